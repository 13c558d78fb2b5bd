"""What each ingredient of the default method is worth: it is taken out, and everything else stays.

An arm replaces one name in one module of `sparsedepth.restore` while it runs, so arms run one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.experiments._keeping import OURS, kept
from sparsedepth.experiments._methods import Outcome
from sparsedepth.experiments._zoo import Spoilt
from sparsedepth.restore import classifier, denoise, inpaint, noise_model, pipeline, posterior, scores, surfaces
from sparsedepth.restore.inpainting import Trust
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import Vector


@dataclass(frozen=True, eq=False)
class Arm:
    """The default method without something."""

    name: str
    module: Any = None
    names: dict[str, Any] = field(default_factory=dict)
    wishes: dict[str, Any] = field(default_factory=dict)

    def done(self, spoilt: Spoilt, holes: bool) -> Outcome:
        def make() -> Outcome:
            restore = inpaint if holes else denoise
            with self._taken_out():
                result = restore(spoilt.depth, threads=1, **self.wishes)
            return Outcome(result.depth, result.variance, origin=result.origin)

        return kept(f"{self.name}, {holes}", (*OURS, "experiments/_ablation.py"), [spoilt.depth], make)

    @contextmanager
    def _taken_out(self) -> Iterator[None]:
        before = {name: getattr(self.module, name) for name in self.names}
        try:
            for name, value in self.names.items():
                setattr(self.module, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self.module, name, value)


def arms() -> list[Arm]:
    """The whole method, and what is left without each part that finds and weighs noise."""
    return [
        Arm("the default"),
        Arm("the score alone, no network", posterior, {"odds": _by_score}),
        Arm("noise may be of any size", classifier, {"IMPOSSIBLE": 0.0}),
        Arm("noise of one size", pipeline, {"estimate": _of_one_size}),
        Arm("the law from the whole map", noise_model, {"PARTS": (1.0,)}),
        Arm("pixels on a rim like all others", scores, {"RIM": 0.0}),
        Arm("one look", pipeline, {"look_again": lambda _, evidence, *__: evidence}),
        Arm("patches 5 apart (`fast`)", wishes={"quality": "fast"}),
        Arm("the paper's dictionary (Φ1, 16x16)", wishes={"dictionary": "phi1"}),
    ]


def filling_arms() -> list[Arm]:
    """The same for holes."""
    return [
        Arm("the default"),
        Arm("smoothest surface only", pipeline, {"trust": lambda *_: Trust(0.0, 0.0)}),
        Arm("folded surface only", pipeline, {"trust": lambda *_: Trust(1.0, 0.0)}),
        Arm("codes only", pipeline, {"trust": lambda *_: Trust(1.0, 1.0)}),
        Arm("codes over the smoothest surface", surfaces, {"FOLDS": 0}),
    ]


def _by_score(_: Part, seen: scores.Evidence, of_map: noise_model.Law, __: float, where: NDArray[np.bool_]) -> Vector:
    """Even odds at the score beyond which the map's noise was counted."""
    return 2 * np.log(seen.score[where] / max(of_map.limit, 1e-12))


def _of_one_size(*told: Any) -> noise_model.Law:
    return replace(noise_model.estimate(*told), size=1.0)
