"""Time-of-flight maps: one real frame with its infrared picture, and Middlebury 2005 with simulated noise."""

from __future__ import annotations

from dataclasses import dataclass

from sparsedepth.data import data_set, require_choice
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap

SIMULATED = ("Art", "Books", "Moebius")
FACTORS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Frame:
    """A frame of a time-of-flight camera; the corners outside its hexagonal view are NaN in both maps."""

    depth: DepthMap
    """Metres; NaN = no reliable echo."""
    infrared: DepthMap
    """The echo's strength, 1 to 65535, saturated at the end; NaN where nothing came back."""


@dataclass(frozen=True)
class Simulated:
    """A noisy map at a fraction of full size; values are disparities of the full size, in pixels."""

    noisy: DepthMap
    truth: DepthMap
    """The noiseless map at the same size."""
    full_truth: DepthMap
    """The noiseless map at full size, 1088 x 1376, its holes filled."""


def mug() -> Frame:
    """Read a frame of a mug in front of walls, 576 x 640, with flying pixels and multipath interference."""
    folder = data_set("tof", "azure_kinect_mug")
    return Frame(read_map(folder / "depth_mm.png", scale=1000), read_map(folder / "ir.png"))


def simulated(scene: str, factor: int) -> Simulated:
    """Read one scene at 1/2, 1/4, 1/8 or 1/16 of its size.

    The noisy maps fit the block means of the true map, and no subsampling of it: the difference is then 5 pixels at
    every factor. So `truth` is the block means. The noise is equally large at all pixels.
    """
    require_choice("simulated scene", scene, SIMULATED)
    require_choice("factor", factor, FACTORS)
    folder = data_set("tof", "simulated", scene)
    full, noisy = read_map(folder / "disp_gt_filled.png"), read_map(folder / f"disp_noisy_x{factor}.png")
    blocks = full.reshape(noisy.shape[0], factor, noisy.shape[1], factor)
    return Simulated(noisy, blocks.mean(axis=(1, 3)), full)
