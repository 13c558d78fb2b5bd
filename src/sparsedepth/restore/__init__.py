"""Restore depth maps: `denoise`, `inpaint`, `believe`, and `Restorer` for many maps.

Every result has a variance and an `Origin` for each pixel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparsedepth.checks import as_guide, positive
from sparsedepth.coding.aggregate import PatchCoder
from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.input_warnings import with_warnings
from sparsedepth.messages import Message
from sparsedepth.parallel import cores, map_in_threads, one_blas_thread
from sparsedepth.restore import paper, pipeline
from sparsedepth.restore.inpainting import fill_large_holes, guided_inpaint
from sparsedepth.restore.settings import Settings
from sparsedepth.restorer_pool import RestorerPool
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import Belief, DepthImage, DepthMap, InputError, Restoration

__all__ = ["METHODS", "METHOD_VERSION", "QUALITIES", "Restorer", "Settings", "believe", "denoise", "inpaint"]

METHOD_VERSION = 2
"""Version of the results of restoration. Raise it by one with every change of results: cached outcomes are then made
again."""

QUALITIES = ("fast", "balanced", "best", "paper")
"""From the least effort to the paper's own."""
METHODS = {"calibrated": pipeline, "paper": paper}
"""Name -> module with ``patch_coder(dictionary, quality, settings)`` and ``fit(sample, coder, settings, ...)``."""


def denoise(
    depth: Any,
    *,
    variance: Any = None,
    guide: Any = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    fill: bool = True,
    outward: bool = False,
    second_pass: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Correct the outliers and the noise of a depth map, and fill its holes.

    Parameters
    ----------
    depth
        (height, width) in any unit, or a `DepthImage`, which gives its unit, kind and profile to the result. NaN is
        missing; so is 0 in integer maps, unless ``invalid`` names other codes. It may lie in a memory-mapped file; a
        large map is restored in tiles.
    variance
        Variance that a sensor gives for each pixel, in squared units of the map.
    guide
        A grey or colour picture of the same view: holes are filled from pixels of similar colour.
    dictionary
        A `Dictionary` or the name of a shipped one.
    method
        "calibrated", or "paper" for the method of the paper.
    quality
        "fast", "balanced" or "best"; "paper" for the paper's method, dictionary and stride.
    fill
        Whether holes are filled. A hole that contains a whole patch is refused.
    outward
        Whether such holes are filled, too, with a variance that grows inwards.
    second_pass
        Whether outliers are filled like holes. It pays with the paper's method.
    invalid
        Values that mark missing pixels.
    threads
        Number of threads; all cores by default.
    out
        Arrays that receive the result; they may be memory-mapped.

    Returns
    -------
    Restoration
        Depth, variance in squared units and `Origin` of each pixel; refused ones are NaN with infinite variance.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import denoise
    >>> depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    >>> depth[3, 4] = np.nan
    >>> result = denoise(depth)
    >>> int(result.origin[3, 4]), bool(abs(result.depth[3, 4] - depth[2, 4]) < 0.02)
    (2, True)
    """
    restore = Restorer(
        dictionary, quality, method=method, fill=fill, outward=outward, second_pass=second_pass, invalid=invalid
    )
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)


def inpaint(
    depth: Any,
    *,
    variance: Any = None,
    guide: Any = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    outward: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Fill the holes of a depth map and leave measured pixels unchanged; parameters are those of `denoise`."""
    restore = Restorer(dictionary, quality, method=method, correct=False, outward=outward, invalid=invalid)
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)


def believe(
    depth: Any,
    dictionary: Dictionary | str | None = None,
    noise: NoiseModel = Jeffreys(),  # noqa: B008 (frozen)
    *,
    sparsity: float = 1.0,
    stride: int = 1,
    variance: Any = None,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
) -> Belief:
    """Average the values and the noise variances of the patches that cover each pixel, as the paper does.

    Parameters
    ----------
    depth, variance, invalid, threads
        As for `denoise`.
    dictionary, noise, sparsity
        As for `infer`.
    stride
        Pixels between patches.

    Returns
    -------
    Belief
        Mean and variance of each pixel. The variance of a missing pixel is that of its prediction; where no patch has a
        valid pixel, the mean is NaN and the variance infinite.
    """
    coder = PatchCoder(
        _dictionary(dictionary) or Dictionary.builtin("default"), noise, sparsity, positive("stride", stride)
    )
    values = depth.values if isinstance(depth, DepthImage) else depth
    source = TiledMap.from_array(values, variance, coder.dictionary.patch_shape, invalid, Settings().tiling)
    result = source.run(lambda tile, threads: paper.believe_tile(tile, coder, threads), None, _n_threads(threads))
    return Belief(result.depth, result.variance)


class Restorer:
    """Restores maps, one by one or as they come from a camera, with the same options for all.

    Parameters are those of `denoise`. ``correct=False`` leaves measured pixels unchanged, as `inpaint` does.
    ``settings`` replaces thresholds of the methods. The result of a map depends on that map alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import Restorer
    >>> restorer = Restorer(quality="fast")
    >>> frames = (np.add.outer(np.zeros(24), np.linspace(1.0, 2.0 + n, 24)) for n in range(3))
    >>> [float(result.depth.max().round(1)) for result in restorer.each(frames)]
    [2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        dictionary: Dictionary | str | None = None,
        quality: str = "balanced",
        *,
        method: str = "calibrated",
        correct: bool = True,
        fill: bool = True,
        outward: bool = False,
        second_pass: bool = False,
        invalid: float | Sequence[float] | None = None,
        settings: Settings | None = None,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
        self._method = "paper" if quality == "paper" else method
        self._settings = settings or Settings()
        self._coder = METHODS[self._method].patch_coder(_dictionary(dictionary), quality, self._settings)
        self._options = {"correct": correct, "fill": fill, "second_pass": second_pass}
        self._outward = outward and fill
        self._invalid = invalid
        self._config = {**self._options, "quality": quality, "method": method, "outward": outward}

    def __call__(
        self,
        depth: Any,
        *,
        variance: Any = None,
        guide: Any = None,
        invalid: float | Sequence[float] | None = None,
        threads: int | None = None,
        out: Restoration | None = None,
    ) -> Restoration:
        """Restore one map; ``invalid`` replaces what holds for the others."""
        image = depth if isinstance(depth, DepthImage) else None
        codes = self._invalid if invalid is None else invalid
        source = self._source(depth if image is None else image.values, variance, codes)
        picture = None if guide is None else as_guide(guide, source.shape)
        if picture is not None and not self._options["fill"]:
            raise InputError("a guide is for filling holes, and fill=False leaves them; drop one of the two")
        threads = _n_threads(threads)
        result = self._restore(source, self._options, out, threads)
        if picture is not None:
            chosen = self._settings
            guided_inpaint(result, picture, partial(self._fill_only, threads=threads), chosen.guide, chosen.variance)
        return with_warnings(result if image is None else result.described_by(image), depth, codes)

    def _source(self, depth: Any, variance: Any, invalid: Any) -> TiledMap:
        patch_shape = self._coder.dictionary.patch_shape
        return TiledMap.from_array(depth, variance, patch_shape, invalid, self._settings.tiling)

    def _fill_only(self, depth: DepthMap, threads: int) -> Restoration:
        options = {**self._options, "correct": False, "second_pass": False}
        return self._restore(self._source(depth, None, ()), options, None, threads)

    def _restore(
        self, source: TiledMap, options: dict[str, bool], out: Restoration | None, threads: int
    ) -> Restoration:
        with one_blas_thread:  # also without threads of ours: BLAS threads would add up in another order
            method = METHODS[self._method]
            fitted = method.fit(source.sample, self._coder, self._settings, **options, threads=threads)
            result = source.run(fitted, out, threads)
            if self._outward:
                fill_large_holes(result, self._settings)
        return result

    def each(
        self, frames: Iterable[Any], *, threads: int | None = None, processes: int | None = None
    ) -> Iterator[Restoration]:
        """Restore a stream of maps in their order, several at the same time, each by one thread.

        At most two frames a thread are taken ahead, so memory does not grow with the stream. ``processes`` uses
        processes instead of threads: each takes a second to start, but does not wait for the others.
        """
        if processes is None:
            return map_in_threads(lambda frame: self(frame, threads=1), frames, _n_threads(threads))
        return self._each_in_processes(frames, positive("processes", processes))

    def _each_in_processes(self, frames: Iterable[Any], count: int) -> Iterator[Restoration]:
        with self.in_processes(count) as restore:
            yield from map_in_threads(restore, frames, count)

    def in_processes(self, count: int) -> RestorerPool:
        """Return a pool of processes that restore as this object does; it may be called by as many threads."""
        if self._settings != Settings():
            raise InputError("processes have the default settings; use threads with settings of your own")
        dictionary = self._coder.dictionary
        config = {**self._config, "patch_shape": dictionary.patch_shape}
        config["invalid"] = None if self._invalid is None else np.atleast_1d(self._invalid).tolist()
        return RestorerPool(self, _from_config, (config, {"atoms": dictionary.atoms}), count)


def _from_config(message: Message) -> Restorer:
    config, arrays = message
    return Restorer(Dictionary(arrays["atoms"], tuple(config.pop("patch_shape"))), **config)


def _dictionary(dictionary: Dictionary | str | None) -> Dictionary | None:
    """Return a dictionary, or the shipped one of a name."""
    if dictionary is None or isinstance(dictionary, Dictionary):
        return dictionary
    if isinstance(dictionary, str):
        return Dictionary.builtin(dictionary)
    raise InputError(
        f"the dictionary is a {type(dictionary).__name__}; give a Dictionary or the name of a built-in one"
    )


def _n_threads(threads: int | None) -> int:
    return cores() if threads is None else positive("threads", threads)
