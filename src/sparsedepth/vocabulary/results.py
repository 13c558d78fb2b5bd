"""What comes out: beliefs, restored maps, matches, and where their pixels come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary.arrays import DepthMap
from sparsedepth.vocabulary.maps import DepthImage, Kind, Metadata, Profile, Unit


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about each pixel: the one message between the layers of the model."""

    mean: DepthMap
    """NaN where nothing can be said."""
    variance: DepthMap
    """In squared units of the map; inf where nothing can be said."""


class Origin(IntEnum):
    """Where a restored pixel comes from."""

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
class Restoration:
    """A restored map: depth, variance in squared units of the map (inf = refused), and the `Origin` of each pixel.

    ``unit``, ``kind``, ``profile`` and ``metadata`` are those of the `DepthImage` that was restored:
    `sparsedepth.files.write` writes the result as that map came. The result of an array has none.
    """

    depth: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]
    unit: Unit = ""
    kind: Kind = "depth"
    profile: Profile | None = None
    warnings: tuple[str, ...] = ()
    """Sentences on what is suspicious about the map, such as codes taken for depths."""
    metadata: Metadata | None = None

    @property
    def image(self) -> DepthImage:
        """The restored map with what its numbers mean, as float32."""
        return DepthImage(self.depth, self.unit, self.kind, self.profile, metadata=self.metadata)

    def described_by(self, image: DepthImage) -> Restoration:
        """Return the result with the unit, the kind, the profile and the metadata of an image."""
        return replace(self, unit=image.unit, kind=image.kind, profile=image.profile, metadata=image.metadata)


@dataclass(frozen=True, eq=False)
class Match:
    """What a stereo pair says of the left view: disparity in pixels, its variance, and the `Origin` of each pixel.

    Filled are the pixels that the right view does not show, or shows elsewhere.
    """

    disparity: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]

    @property
    def image(self) -> DepthImage:
        """The disparities with what they mean."""
        return DepthImage(self.disparity, "px", "disparity")
