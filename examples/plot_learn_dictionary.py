"""
Learn a dictionary from your own maps
=====================================

Watch it improve, and stop at any step. `learn` is an iterator: each step gives the atoms so far, the energy of its
batch and, now and then, that of held-out patches. Here the maps are the two halves of one real disparity map: one to
learn from, one held out.
"""

from pathlib import Path

import numpy as np

from sparsedepth import Jeffreys, learn
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.patches import PatchStream
from sparsedepth.pictures import save_mosaic

output = Path("example-output")
output.mkdir(exist_ok=True)

left, right = np.array_split(motorcycle_disparity(), 2, axis=1)
stream = PatchStream([left], (8, 8), batch=256)
held_out = PatchStream([right], (8, 8), batch=256, seed=1)(0).patches

dictionary = None
for step in learn(stream, 96, Jeffreys(), steps=100, held_out=held_out, report_every=20):
    dictionary = step.dictionary
    if step.held_out is not None:
        print(f"step {step.step}: held-out energy {step.held_out:.1f}")

assert dictionary is not None
dictionary.save(output / "mine.safetensors")
save_mosaic(dictionary, output / "mine.png", title="96 atoms from half of one map")
