"""Dictionary learning and restoration as scikit-learn transformers; need ``pip install 'sparsedepth[sklearn]'``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsedepth.coding.infer import SparseCode, infer
from sparsedepth.coding.learn import LearningState, learn, schedule
from sparsedepth.coding.noise import Jeffreys
from sparsedepth.coding.starts import start_from
from sparsedepth.dictionary import Dictionary
from sparsedepth.patches import Batch, Normalised, PatchPool, normalise
from sparsedepth.restore import Restorer
from sparsedepth.sensors.choice import SensorChoice
from sparsedepth.vocabulary import Codes, Floats, InputError, Patches, Unit

FLAT_ATOM_NOISE = 0.05
"""Patches flatter than this share of the data's spread are not blown up to unit variance."""
MAX_STEPS = 1 << 40


class DepthDictionary(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that learns atoms of patches with missing or noisy pixels, and codes patches with them.

    Rows of ``X`` are patches in any unit, NaN = missing. Each is centred and scaled for itself. Before the ``n_atoms``
    learned components stands a flat one whose code carries the mean, so that ``inverse_transform`` gives patches in the
    unit they came in.

    After `transform`, ``variance_`` holds the inferred noise variance of each pixel of that call, in squared units of
    ``X``; inf = missing. `infer` returns codes and variances together. Threads that share an estimator should call it.

    Parameters
    ----------
    n_atoms
        Atoms to learn.
    floor
        Least noise variance, in variances of a patch.
    sparsity
        Cost of a unit of code.
    steps, batch_size
        Steps of learning, and patches of each.
    patch_shape
        Height and width of a patch, in pixels; None = square.
    random_state
        Seed or generator of the first atoms and of the batches.
    threads
        Number of threads; all cores by default.

    Examples
    --------
    >>> from sparsedepth.sklearn import DepthDictionary
    >>> X = np.add.outer(np.arange(100.0), np.linspace(0, 3, 16))
    >>> coder = DepthDictionary(n_atoms=8, steps=20, random_state=0).fit(X)
    >>> X[0, 3], X[1, 4] = np.nan, 90.0
    >>> restored = coder.inverse_transform(coder.transform(X))
    >>> bool(abs(restored[0, 3] - 0.6) < 0.1), int(coder.variance_[1].argmax())
    (True, 4)
    """

    n_features_in_: int

    def __init__(
        self,
        n_atoms: int = 64,
        *,
        floor: float = 0.01,
        sparsity: float = 1.0,
        steps: int = 300,
        batch_size: int = 256,
        patch_shape: tuple[int, int] | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        threads: int | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.floor = floor
        self.sparsity = sparsity
        self.steps = steps
        self.batch_size = batch_size
        self.patch_shape = patch_shape
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from these patches alone, in ``steps`` batches of them."""
        patches = self._start(self._checked(X, reset=True))
        pool = PatchPool(patches, batch=min(self.batch_size, len(patches)), seed=self._seed)
        for step in range(self.steps):
            self._learn(pool(step))
        return self._learned(patches.dtype)

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn one step, with these patches as its batch; the first call fixes the scale."""
        first = not hasattr(self, "components_")
        given = self._checked(X, reset=first)
        self._learn(Batch(self._start(given) if first else self._scaled(given).patches))
        return self._learned(given.dtype)

    def infer(self, X: ArrayLike) -> SparseCode:
        """Infer codes of the components and noise variances of the pixels, both in units of ``X``."""
        check_is_fitted(self)
        given = self._scaled(self._checked(X, reset=False))
        price = np.append(
            0.0, np.full(self.n_atoms, self.sparsity)
        )  # a mean costs nothing, whatever outliers made of it
        found = infer(given.patches, self.components_, Jeffreys(self.floor), price, threads=self.threads)
        scale = given.scale[:, None]
        codes = found.codes * scale
        codes[:, 0] += given.centre * np.sqrt(self.n_features_in_)
        dtype = given.patches.dtype
        return replace(found, codes=codes.astype(dtype), variance=(found.variance * scale**2).astype(dtype))

    def transform(self, X: ArrayLike) -> Codes:
        """Compute the codes of patches, (n, components); ``variance_`` then holds their noise."""
        found = self.infer(X)
        self._last["variance"] = found.variance
        return found.codes

    def inverse_transform(self, X: Codes) -> Patches:
        """Reconstruct patches from codes, without noise and without holes."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_

    @property
    def variance_(self) -> Floats:
        """The noise variance of each pixel of the last `transform`, (n, pixels)."""
        try:
            return self._last["variance"]
        except (AttributeError, KeyError):
            raise AttributeError("nothing was transformed yet, so there are no variances") from None

    @property
    def dictionary_(self) -> Dictionary:
        """The learned atoms, most used first, without the flat one: for `denoise` and for files."""
        check_is_fitted(self)
        return Dictionary(self._state.ranked_atoms, self._shape())

    def _checked(self, X: ArrayLike, *, reset: bool) -> Patches:
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")  # type: ignore[return-value]

    def _shape(self) -> tuple[int, int]:
        if self.patch_shape is not None:
            return self.patch_shape
        side = int(np.sqrt(self.n_features_in_))
        return (side, side) if side * side == self.n_features_in_ else (1, self.n_features_in_)

    def _start(self, patches: Patches) -> Patches:
        """Reset, fix the scale and the first atoms; return the patches as learning needs them."""
        if self.n_atoms < 1:
            raise InputError(f"n_atoms is {self.n_atoms}; give at least 1")
        if self.steps < 1:
            raise InputError(f"steps is {self.steps}; learning takes at least 1")
        known = patches[~np.isnan(patches)].astype(np.float64)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._last: dict[str, Floats] = {}  # a box of its own, so that transforming leaves the estimator as it is
        self.spread_ = float(known.std()) if known.size else 0.0
        self._phases = schedule(Jeffreys(self.floor, initial=0.02), self.steps, self.sparsity)
        self._phases[-1] = replace(self._phases[-1], steps=MAX_STEPS)
        scaled = self._scaled(patches).patches
        pool = PatchPool(scaled, seed=self._seed)
        atoms = start_from(pool, self.n_atoms, self._shape(), self._seed).atoms
        self._state = LearningState(0, atoms.astype(np.float32), np.ones(len(atoms), np.float32), {})
        return scaled

    def _scaled(self, patches: Patches) -> Normalised:
        return normalise(patches, FLAT_ATOM_NOISE * self.spread_)

    def _learn(self, batch: Batch) -> None:
        atoms = Dictionary(self._state.atoms, self._shape())
        steps = learn(lambda _: batch, atoms, phases=self._phases, resume=self._state, threads=self.threads)
        self._state = next(steps).state

    def _learned(self, dtype: Any) -> Self:
        """Set the attributes that scikit-learn's users expect."""
        flat = np.full((1, self.n_features_in_), 1 / np.sqrt(self.n_features_in_))
        self.components_ = np.vstack([flat, self._state.atoms]).astype(dtype)
        self.n_steps_ = self._state.step
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class DepthRestorer(TransformerMixin, BaseEstimator):
    """A transformer that restores depth maps, as `denoise` does: a step of a pipeline.

    Parameters
    ----------
    quality
        "fast", "balanced" or "best".
    sensor
        Noise of the camera, as `denoise` takes it.
    unit
        Unit of the maps, "m" or "mm"; presets need it.
    fill, holes
        How and which holes are filled, as for `denoise`.
    correct
        Whether outliers are corrected; False fills holes only, as `inpaint` does.
    threads
        Maps that are restored at the same time; all cores by default.

    Examples
    --------
    >>> from sparsedepth.sklearn import DepthRestorer
    >>> maps = np.tile(np.linspace(1.0, 2.0, 24), (3, 24, 1))
    >>> maps[1, 4, 5] = np.nan
    >>> restorer = DepthRestorer(quality="fast")
    >>> clean = restorer.fit_transform(maps)
    >>> clean.shape, bool(np.isfinite(clean).all()), restorer.variance_.shape
    ((3, 24, 24), True, (3, 24, 24))
    """

    def __init__(
        self,
        quality: str = "balanced",
        *,
        sensor: SensorChoice = None,
        unit: Unit = "",
        fill: str | bool = "auto",
        holes: str = "auto",
        correct: bool = True,
        threads: int | None = None,
    ) -> None:
        self.quality = quality
        self.sensor = sensor
        self.unit: Unit = unit
        self.fill = fill
        self.holes = holes
        self.correct = correct
        self.threads = threads

    def fit(self, X: Sequence[ArrayLike] | Floats | None = None, y: object = None) -> Self:
        """Check the options; nothing is learned from maps."""
        self.restorer_ = Restorer(
            quality=self.quality, sensor=self.sensor, unit=self.unit, fill=self.fill, holes=self.holes,
            correct=self.correct,
        )  # fmt: skip
        return self

    def transform(self, X: Sequence[ArrayLike] | Floats) -> Floats:
        """Restore maps.

        Parameters
        ----------
        X
            (n, height, width), NaN = missing; or a sequence of maps of one size.

        Returns
        -------
        (n, height, width); what was refused is NaN. ``variance_`` and ``origin_`` then hold those of each pixel.
        """
        check_is_fitted(self)
        shapes = {np.shape(depth) for depth in X}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise InputError(f"the maps have the shapes {sorted(shapes)}; give maps (height, width) of one size")
        results = list(self.restorer_.each(X, threads=self.threads))
        self._last = {name: np.stack([getattr(r, name) for r in results]) for name in ("variance", "origin")}
        return np.stack([result.depth for result in results])

    @property
    def variance_(self) -> Floats:
        """Variance of each pixel of the last `transform`, (n, height, width); inf = refused."""
        return self._of_last("variance")

    @property
    def origin_(self) -> Floats:
        """Origin of each pixel of the last `transform`, (n, height, width)."""
        return self._of_last("origin")

    def _of_last(self, name: str) -> Floats:
        try:
            return self._last[name]
        except (AttributeError, KeyError):
            raise AttributeError("nothing was transformed yet") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.requires_fit = True
        return tags
