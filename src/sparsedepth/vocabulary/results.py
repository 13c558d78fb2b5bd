"""What comes out: beliefs, restored maps, matches, and where their pixels come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary.arrays import DepthMap
from sparsedepth.vocabulary.maps import DepthImage, Kind, Metadata, Profile, Unit
from sparsedepth.vocabulary.shown import Shown


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about each pixel: the one message between the layers of the model.

    Parameters
    ----------
    mean
        (height, width) in the unit of the map; NaN where nothing can be said.
    variance
        (height, width) in squared units of the map; inf where nothing can be said.

    Examples
    --------
    >>> Belief(np.array([[2.0, np.nan]]), np.array([[0.01, np.inf]])).variance
    array([[0.01,  inf]])
    """

    mean: DepthMap
    variance: DepthMap


class Origin(IntEnum):
    """Where a restored pixel comes from.

    Examples
    --------
    >>> Origin(2).name
    'FILLED'
    """

    MEASURED = 0
    CORRECTED = 1
    """Measured, but found noisy: the value follows its surroundings."""
    FILLED = 2
    REFUSED = 3
    """Unknown, and too far from anything known: it stays NaN."""
    SMOOTHED = 4
    """Measured, and moved within the noise of its sensor."""
    REMEMBERED = 5
    """Missing in this frame of a stream: the value was seen before."""


@dataclass(frozen=True, eq=False)
class Restoration(Shown):
    """A restored map, with a variance and an `Origin` for each pixel.

    Parameters
    ----------
    depth
        (height, width) in ``unit``; NaN = refused. What came as an xarray or a tensor comes back as one.
    variance
        (height, width) in squared units of the map; inf = refused.
    origin
        (height, width) uint8, the `Origin` of each pixel.
    unit, kind, profile, metadata
        Those of the `DepthImage` that was restored: `sparsedepth.files.write` writes the result as that map came. The
        result of an array has the unit that was given.
    warnings
        Sentences on what is suspicious about the map, such as codes taken for depths.

    Examples
    --------
    >>> from sparsedepth import inpaint
    >>> depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    >>> depth[3, 4] = np.nan
    >>> inpaint(depth, unit="m", sensor="clean").origin[3, 3:6]
    array([0, 2, 0], dtype=uint8)
    """

    depth: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]
    unit: Unit = ""
    kind: Kind = "depth"
    profile: Profile | None = None
    warnings: tuple[str, ...] = ()
    metadata: Metadata | None = None

    def __repr__(self) -> str:
        what = f"{self.kind} in {self.unit or 'an unknown unit'}"
        return f"Restoration({_summary(self.depth, what, self.origin, self.variance, self.unit)})"

    def save(self, path: str | Path) -> None:
        """Write map, variance, origin and their meaning to an npz file, whole or not at all.

        Parameters
        ----------
        path
            The file; it ends in .npz. `sparsedepth.files.read` reads its map.
        """
        from sparsedepth.files.results import save_result

        save_result(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Restoration:
        """Read a result that `save`, `sparsedepth.files.write` or the command line wrote to an npz file.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Restoration
            The same arrays, bit by bit, with unit, kind and profile.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "result.npz"
        >>> depth, origin = np.full((2, 3), 4.0), np.zeros((2, 3), np.uint8)
        >>> Restoration(depth, depth / 100, origin, "m").save(path)
        >>> Restoration.load(path)
        Restoration(2 x 3 depth in m: 100.0% measured; median std 0.2 m)
        """
        from sparsedepth.files.results import load_result

        return load_result(path, cls)

    @property
    def image(self) -> DepthImage:
        """The restored map with what its numbers mean, as float32."""
        return DepthImage(np.asarray(self.depth), self.unit, self.kind, self.profile, metadata=self.metadata)

    def described_by(self, image: DepthImage) -> Restoration:
        """Return the result with the unit, the kind, the profile and the metadata of an image."""
        return replace(self, unit=image.unit, kind=image.kind, profile=image.profile, metadata=image.metadata)


@dataclass(frozen=True, eq=False)
class Match(Shown):
    """What a stereo pair says of the left view.

    Parameters
    ----------
    disparity
        (height, width) in pixels.
    variance
        (height, width) in squared pixels.
    origin
        (height, width) uint8, the `Origin` of each pixel. Filled are those that the right view does not show, or shows
        elsewhere.
    warnings
        Sentences on what is suspicious about the views, such as rows that do not correspond.

    Examples
    --------
    >>> Match(np.full((2, 3), 7.0), np.full((2, 3), 0.25), np.zeros((2, 3), np.uint8))
    Match(2 x 3 disparities in px: 100.0% measured; median std 0.5 px)
    """

    disparity: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Match({_summary(self.disparity, 'disparities in px', self.origin, self.variance, 'px')})"

    def save(self, path: str | Path) -> None:
        """Write disparities, variance and origin to an npz file, whole or not at all."""
        from sparsedepth.files.results import save_result

        save_result(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Match:
        """Read a match that `save` or `sparsedepth.files.write` wrote to an npz file."""
        from sparsedepth.files.results import load_result

        return load_result(path, cls)

    @property
    def image(self) -> DepthImage:
        """The disparities with what they mean."""
        return DepthImage(np.asarray(self.disparity), "px", "disparity")


def _summary(values: DepthMap, what: str, origin: NDArray[np.uint8], variance: DepthMap, unit: str) -> str:
    """Describe a result in one line: its size, the shares of its origins, and its median standard deviation."""
    height, width = np.shape(values)
    shares = np.bincount(np.asarray(origin).ravel(), minlength=len(Origin)) / max(1, height * width)
    parts = ", ".join(f"{share:.1%} {Origin(n).name.lower()}" for n, share in enumerate(shares) if share > 0)
    spread = np.asarray(variance)
    known = spread[np.isfinite(spread)]
    middle = f"{np.sqrt(np.median(known)):.3g} {unit}".strip() if known.size else "unknown"
    return f"{height} x {width} {what}: {parts}; median std {middle}"
