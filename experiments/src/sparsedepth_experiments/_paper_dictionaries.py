"""The paper's dictionaries of several learning seeds: the shipped ones are of seed 0, the others are learned here."""

from __future__ import annotations

from functools import cache

from sparsedepth.coding.learn import PAPER_ROUNDS, learn, paper_phases
from sparsedepth.coding.noise import Jeffreys, Stationary
from sparsedepth.coding.starts import random_start
from sparsedepth.data.middlebury import disparities
from sparsedepth.dictionary import Dictionary
from sparsedepth.patches import PatchStream
from sparsedepth_experiments._cache import ARRAYS, Stored, cached

NAMES = ("phi1", "phi2", "phi3")
STEPS, BATCH, ATOMS, SHAPE = 900, 128, 256, (16, 16)
"""As the shipped ones were learned; the length was chosen on crops of 2005 and of other sensors."""
LEARNING_VERSION = "learning as in the paper 1"
"""Raised by hand when learning changes bits, as dictionaries are cached by it."""


@cache
def paper_dictionary(name: str, seed: int) -> Dictionary:
    """Return phi1, phi2 or phi3 of a learning seed: the shipped one, or one that is learned now or was cached."""
    if seed == 0:
        return Dictionary.builtin(name)
    maps = [depth for year in (2005, 2006) for depth in disparities(year)]
    stored = Stored(f"{name} of seed {seed}, {STEPS} steps", LEARNING_VERSION, maps, ARRAYS)
    found = cached(stored, lambda: {"atoms": _learned(name, seed, maps).atoms})
    return Dictionary(found["atoms"], SHAPE)


def _learned(name: str, seed: int, maps: list) -> Dictionary:
    """Learn as `sparsedepth learn --as-paper` does."""
    noise = Stationary(1.0) if name == "phi3" else Jeffreys()
    holes = "keep" if name == "phi2" else "mask"
    stream = PatchStream(maps, SHAPE, batch=BATCH, seed=seed, holes=holes, scale="map", least_contrast=0.0)
    start = random_start(ATOMS, SHAPE, seed)
    *_, last = learn(stream, start, phases=paper_phases(noise, STEPS), rounds=PAPER_ROUNDS, threads=1)
    return last.dictionary
