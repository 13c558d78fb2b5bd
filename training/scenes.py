"""Maps with known truth that the training scripts share: crops of real maps, simulated scans, planes and foliage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from sparsedepth.data import data_set, kinect
from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_ranges
from sparsedepth.data.time_of_flight import mug
from sparsedepth.vocabulary import DepthMap, Floats

REAL_DATA = (
    "Middlebury 2005 and 2006 (third size), Kinect frames of TUM freiburg3_sitting_rpy, the Azure Kinect mug, "
    "Motorcycle of scikit-image"
)
QUICK_DATA = "a few small maps drawn from seeds and crops of Motorcycle: a quick run, for tests only"
MAX_SEEDS = 10_000


@dataclass(frozen=True, eq=False)
class Scene:
    """A map with known truth."""

    kind: str
    name: str
    """Maps of the same name show the same scene; they are held out together."""
    depth: DepthMap
    near: int = -1
    """1 where large values are near, as in disparities; -1 where they are far."""

    @property
    def truth(self) -> DepthMap:
        """The map with unit standard deviation."""
        return (self.depth / np.nanstd(self.depth)).astype(np.float32)


def real_files() -> list[Path]:
    """List the files that `disparity_crops` and `sensor_crops` read."""
    frames = data_set("kinect", "tum_freiburg3_sitting_rpy").glob("*.png")
    frame = data_set("tof", "azure_kinect_mug")
    return [*disparity_files(2005), *disparity_files(2006), *frames, frame / "depth_mm.png", frame / "ir.png"]


def disparity_crops(seed: int) -> Iterator[Scene]:
    """Cut one crop from each view of the Middlebury scenes of 2005 and 2006."""
    for year in (2005, 2006):
        for i, (file, depth) in enumerate(zip(disparity_files(year), disparities(year), strict=True)):
            found = crops(depth, 1, seed=seed + i)
            yield from (Scene("disparity", file.parent.name, crop.depth, near=1) for crop in found)


def sensor_crops(frames: Iterable[int], per_frame: int, motorcycle: int, seed: int) -> Iterator[Scene]:
    """Cut crops from Kinect frames, from the mug and from Motorcycle; ranges become logarithms."""
    for i in frames:
        found = crops(kinect.frames()[i], per_frame, seed=seed + i)
        yield from (Scene("sensor", "kinect", np.log(crop.depth)) for crop in found)
    yield from (Scene("sensor", "mug", np.log(crop.depth)) for crop in crops(mug().depth, 2, seed=seed + 1))
    found = crops(motorcycle_disparity(), motorcycle, seed=seed + 2)
    yield from (Scene("sensor", "Motorcycle", crop.depth, near=1) for crop in found)


def motorcycle_crops(kind: str, n: int, size: int) -> Iterator[Scene]:
    """Cut small crops from Motorcycle that count as different scenes: for quick runs, without real data."""
    for i, crop in enumerate(crops(motorcycle_disparity(), n, size, seed=0)):
        yield Scene(kind, f"Motorcycle {i}", crop.depth, near=1)


def finer_scans(size: int = 100, min_valid: float = 0.7) -> Iterator[DepthMap]:
    """Simulate scans of half the angular step, or of half the step along rows only, as the log of ranges."""
    for seed in range(MAX_SEEDS):
        rng = np.random.default_rng([78, seed])
        ranges = np.log(simulated_ranges(rng, 2 * size))
        top, left = rng.integers(0, size + 1, 2)
        rows = slice(top, top + size) if seed % 2 else slice(seed % 4 // 2, None, 2)
        scan = ranges[rows, left : left + size]
        if np.isfinite(scan).mean() > min_valid:
            yield scan


def sparse_crowns(size: int = 100, min_valid: float = 0.6) -> Iterator[DepthMap]:
    """Simulate scans through sparse crowns, as the log of ranges: single returns in front of everything else."""
    for seed in range(MAX_SEEDS):
        rng = np.random.default_rng([79, seed])
        ranges = simulated_ranges(rng, size)
        for _ in range(rng.integers(1, 4)):
            ranges = _with_crown(ranges, rng)
        if np.isfinite(ranges).mean() > min_valid:
            yield np.log(ranges)


def _with_crown(ranges: Floats, rng: np.random.Generator) -> Floats:
    """Add the returns of one crown, which are denser towards its centre; some come in pairs."""
    size, (rows, columns) = len(ranges), np.indices(ranges.shape)
    (row, column), (height, width) = rng.uniform(0, size, 2), rng.uniform(8, 35, 2)
    distance = ((rows - row) / height) ** 2 + ((columns - column) / width) ** 2
    draw = rng.random((size, size))
    if rng.random() < 0.5:
        draw = np.minimum(draw, np.roll(draw, 1, axis=rng.integers(2)) + rng.choice([0.0, 0.3]))
    leaf = draw < rng.choice([0.003, 0.01, 0.03, 0.1, 0.3]) * np.exp(-distance)
    return np.where(leaf, np.minimum(ranges, _leaf_ranges(ranges[distance < 1], rng, (size, size))), ranges)


def _leaf_ranges(behind: Floats, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw the ranges of leaves in front of the pixels behind them."""
    nearest = np.nanmin(behind, initial=40.0, where=np.isfinite(behind))
    begin, depth = rng.uniform(0.3, 0.95) * nearest, rng.uniform(0.02, 0.2) * nearest
    return begin + np.abs(rng.normal(0, depth, shape))


def foliage(
    rng: np.random.Generator,
    widths: tuple[float, float] = (0.7, 1.8),
    roughness: float = 0.4,
    nearest: float = 1.0,
    size: int = 100,
) -> DepthMap:
    """Draw a slope seen through leaves of some width in pixels, as the log of ranges; 1 % are missing."""

    def field(scale: float) -> Floats:
        values = gaussian_filter(rng.standard_normal((size, size)), scale)
        return values / values.std()

    rows, columns = np.indices((size, size)) / size
    slope = 6 + 14 * (1 - rows) + 3 * np.sin(3 * columns + rng.uniform(0, 6))
    leaves = field(rng.uniform(*widths)) + 1.2 * field(12.0) > 1
    near = 4 + 0.6 * field(5.0) + roughness * field(0.7)
    depth = np.log(np.where(leaves, np.maximum(near, nearest), slope)) + 0.002 * rng.standard_normal((size, size))
    return np.where(rng.random((size, size)) < 0.01, np.nan, depth)


def planes(rng: np.random.Generator, size: int = 100) -> DepthMap:
    """Draw a few slanted planes with straight borders; some maps are quantised, some a little rough."""
    rows, columns = np.indices((size, size)) / size

    def plane() -> Floats:
        down, right, offset = rng.normal(0, [2, 2, 1])
        return down * (rows - 0.5) + right * (columns - 0.5) + offset

    depth = plane()
    for _ in range(rng.integers(0, 4)):
        angle, (row, column) = rng.uniform(0, np.pi), rng.uniform(0.2, 0.8, 2)
        depth = np.where((rows - row) * np.sin(angle) + (columns - column) * np.cos(angle) > 0, plane(), depth)
    step, roughness = rng.choice([0, 0, 0.03, 0.1]), rng.choice([0, 0.002])
    depth = np.round(depth / step) * step if step else depth
    return depth + roughness * rng.standard_normal(depth.shape)
