"""The maps of the restoration experiment and what is done to them: each row of its tables is one kind of damage."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsedepth.data import kinect, simulated_sensors, synthetic
from sparsedepth.data.crops import Crop, crops
from sparsedepth.data.middlebury import benchmark_pair, scene_names, stereo_pair
from sparsedepth.data.motorcycle import motorcycle_disparity, motorcycle_pair
from sparsedepth.data.range_scans import log_scan
from sparsedepth.data.rooms import depth_of_disparity
from sparsedepth.data.time_of_flight import mug
from sparsedepth.vocabulary import DepthMap, Floats

SIZE, CROP_SEED, NOISE_SEED = 100, 0, 0
KINDS = ("disparity", "laser")
SHARES = (0.01, 0.05, 0.1, 0.2)
"""Of corrupted pixels."""
IMPULSE_AMPLITUDES = (0.5, 1.0, 2.0)
MISSING = (0.5, 0.8, 0.95)
DRAWS = 3
DISPARITY_CROPS = {"Teddy": 4, "Cones": 3, "Venus": 3}
LASER_CROPS = {"street_trees_os2": 2, "street_os0": 1, "corner_os1_a": 2, "trees_os1_sparse": 2, "walkway": 3}
"""Ten of each kind; street_os0 has room for one that is hardly holed."""
DEVELOPMENT = (
    "These are development maps: no dictionary or model was trained on them, but earlier versions of the method were "
    "run on them, and some of its rules answer failures that were seen there. The numbers are no held-out results."
)
"""What every page with crops of these scenes says."""
LEVELS = 32
CLUSTERED, RANGE_NOISE, FLYING, STUCK, GAUSSIAN = 0.05, 0.05, 0.5, 0.03, 0.05
SENSOR_IMPULSES = (0.0, 0.01, 0.05)
"""Fractions of impulses over the noise of simulated sensors."""


@dataclass(frozen=True, eq=False)
class Source:
    """A true map, and where it was cut."""

    kind: str
    name: str
    crop: Crop
    picture: Floats | None = None
    """What a camera sees there, (height, width, channels)."""
    number: int = 0
    """From which its noise is drawn."""

    @property
    def near(self) -> int:
        """1 where large values are near, -1 where they are far."""
        return 1 if self.kind == "disparity" else -1

    @property
    def ranges(self) -> DepthMap:
        """Metres, or for disparities their inverses in hundreds."""
        depth = self.crop.depth
        return (100 / depth if self.kind == "disparity" else np.exp(depth)).astype(depth.dtype)

    def depth_for(self, sensor: str) -> DepthMap:
        """Convert disparities to mm, with the median in the middle of the range of a simulated sensor."""
        middle = float(np.sqrt(np.prod(simulated_sensors.OPTICS[sensor].range_mm)))
        return depth_of_disparity(self.crop.depth, middle).astype(self.crop.depth.dtype)

    def __str__(self) -> str:
        return f"{self.name} ({self.crop.top}, {self.crop.left})"


@dataclass(frozen=True, eq=False)
class Spoilt:
    """A map with its truth."""

    depth: DepthMap
    truth: DepthMap


@dataclass(frozen=True, eq=False)
class Row:
    """One kind of damage, done to every map several times."""

    name: str
    spoil: Callable[[Source, np.random.Generator], DepthMap]
    draws: int = 1
    holes: bool = False
    of_ranges: bool = False
    """Whether the map is turned into ranges first."""
    sensor: str = ""
    """Simulated sensor whose depths the map is converted to; its holes are not evaluated."""
    kinds: tuple[str, ...] = KINDS

    def done(self, source: Source, draw: int) -> Spoilt:
        rng = np.random.default_rng([NOISE_SEED, source.number, draw, zlib.crc32(self.name.encode())])
        spoilt = self.spoil(source, rng)
        if self.sensor:
            truth = source.depth_for(self.sensor)
            return Spoilt(spoilt, np.where(np.isnan(spoilt), np.nan, truth).astype(truth.dtype))
        return Spoilt(spoilt, source.ranges if self.of_ranges else source.crop.depth)


def impulses(share: float, amplitude: float = 1.0) -> str:
    return f"{share:.0%} impulses" + (f", x{amplitude:g}" if amplitude != 1 else "")


def rows() -> list[Row]:
    """List the whole zoo."""
    return [_clean(), *_impulsive(), *_sensors(), *_holes(), *simulated_sensor_rows()]


def few_rows() -> list[Row]:
    """List one row of each family, drawn once."""
    every = {row.name: replace(row, draws=1) for row in rows()}
    return [every[name] for name in ("clean", impulses(0.05), "50% missing")]


def _clean() -> Row:
    return Row("clean", lambda source, rng: source.crop.depth)


def _impulsive() -> list[Row]:
    def row(share: float, amplitude: float) -> Row:
        return Row(
            impulses(share, amplitude),
            lambda source, rng: synthetic.corrupted(source.crop.depth, share, rng, amplitude),
            draws=DRAWS if amplitude == 1 else 1,
        )

    return [row(share, amplitude) for amplitude in (1.0, 0.5, 2.0) for share in SHARES]


def _sensors() -> list[Row]:
    return [
        Row(
            f"{CLUSTERED:.0%} in clusters",
            lambda source, rng: synthetic.with_clusters(source.crop.depth, CLUSTERED, rng),
        ),
        Row("flying pixels", lambda source, rng: synthetic.with_flying_pixels(source.crop.depth, FLYING, rng)),
        Row(
            "range noise",
            lambda source, rng: synthetic.with_range_noise(source.ranges, RANGE_NOISE, rng),
            of_ranges=True,
        ),
        Row("quantised", lambda source, rng: synthetic.quantised(source.crop.depth, LEVELS)),
        Row(f"{STUCK:.0%} stuck", lambda source, rng: synthetic.with_stuck_pixels(source.crop.depth, STUCK, rng)),
        Row("Gaussian noise", lambda source, rng: synthetic.with_gaussian_noise(source.crop.depth, GAUSSIAN, rng)),
        Row(
            "Gaussian + 1%",
            lambda source, rng: synthetic.corrupted(
                synthetic.with_gaussian_noise(source.crop.depth, GAUSSIAN, rng), 0.01, rng
            ),
        ),
    ]


def _holes() -> list[Row]:
    def missing(share: float) -> Row:
        return Row(
            f"{share:.0%} missing",
            lambda source, rng: synthetic.with_missing(source.crop.depth, share, rng),
            holes=True,
        )

    return [
        *map(missing, MISSING),
        Row(
            "matching shadows",
            lambda source, rng: synthetic.with_matching_shadows(source.crop.depth, source.near),
            holes=True,
        ),
        Row(
            "Kinect shadows",
            lambda source, rng: synthetic.with_kinect_shadows(source.crop.depth, source.near, rng),
            holes=True,
        ),
    ]


def simulated_sensor_rows() -> list[Row]:
    """List the simulated sensors, each without and with impulses, on disparity maps alone."""

    def row(sensor: str, share: float) -> Row:
        def spoil(source: Source, rng: np.random.Generator) -> DepthMap:
            frame = simulated_sensors.simulated_frame(sensor, source.depth_for(sensor), rng)
            hit = simulated_sensors.with_impulses(frame, share, rng)
            return hit.depth.astype(source.crop.depth.dtype)

        name = sensor + (f" + {share:.0%}" if share else "")
        return Row(name, spoil, sensor=sensor, kinds=("disparity",))

    return [row(sensor, share) for sensor in simulated_sensors.SIMULATED for share in SENSOR_IMPULSES]


def development_sources() -> list[Source]:
    """Cut the development maps, ten of each kind: nothing was trained on them, but rules answer failures seen there."""
    drawn = [
        Source("disparity", name, crop, crop.of(scene.pair.left))
        for name, n in DISPARITY_CROPS.items()
        for scene in [benchmark_pair(name)]
        for crop in crops(scene.disparity, n, SIZE, seed=CROP_SEED)
    ] + [
        Source("laser", name, crop)
        for name, n in LASER_CROPS.items()
        for crop in crops(log_scan(name), n, SIZE, seed=CROP_SEED)
    ]
    return [replace(source, number=number) for number, source in enumerate(drawn)]


def validation_sources() -> list[Source]:
    """Cut six crops of each kind to choose settings on: Middlebury 2005, and other sensors' frames for laser scans."""
    scenes = [stereo_pair(2005, name) for name in scene_names(2005)]
    cut = [crops(scene.disparity, 1, SIZE, seed=CROP_SEED)[0] for scene in scenes]
    disparity = [Source("disparity", "2005", c, c.of(scene.pair.left)) for c, scene in zip(cut, scenes, strict=True)]
    frames = {"kinect": kinect.frames()[0], "mug": mug().depth}
    drawn = disparity + [
        Source("laser", name, crop)
        for name, depth in frames.items()
        for crop in crops(np.log(depth).astype(np.float32), 3, SIZE, seed=CROP_SEED)
    ]
    return [replace(source, number=number) for number, source in enumerate(drawn)]


def stand_ins(size: int = 32) -> list[Source]:
    """Cut small parts of a map that needs no data set."""
    found = crops(motorcycle_disparity(), len(KINDS), size, seed=CROP_SEED)
    pictures = (found[0].of(motorcycle_pair().left), None)
    return [
        Source(kind, "Motorcycle", crop, picture, number)
        for number, (kind, crop, picture) in enumerate(zip(KINDS, found, pictures, strict=True))
    ]
