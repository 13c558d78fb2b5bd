"""Calibration of predicted variances: errors against predictions, separately for each origin of pixels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from sparsedepth.markdown import table
from sparsedepth.metrics import Calibration, calibration, sparsification
from sparsedepth.pictures import Curve, save_curves
from sparsedepth.vocabulary import DepthMap, Floats, Origin, Vector
from sparsedepth_experiments._methods import Outcome

TENTHS = 10
HONEST = (0.8, 1.25)
"""Of squared error over variance, in the mean of a bin."""
MUCH = 0.25
"""The part of a mean that one pixel may make without remark."""
SHOWN = (Origin.MEASURED, Origin.CORRECTED, Origin.FILLED)


OriginErrors = dict[Origin, tuple[Floats, Floats]]
"""Errors and variances of the pixels of a map, by their origin, in standard deviations of the true map."""


def errors_by_origin(truth: DepthMap, outcome: Outcome) -> OriginErrors:
    """Select errors and variances: of filled pixels if the map had holes to fill, of valid ones otherwise."""
    assert outcome.variance is not None
    assert outcome.origin is not None
    spread, known = np.nanstd(truth), np.isfinite(truth)
    was_holed = (outcome.origin[known] == Origin.FILLED).any()
    found = {}
    for origin in (Origin.FILLED,) if was_holed else (Origin.MEASURED, Origin.CORRECTED):
        these = known & (outcome.origin == origin)
        found[origin] = (outcome.depth - truth)[these] / spread, outcome.variance[these] / spread**2
    return found


class PredictedVariances:
    """Errors and variances of many maps.

    Parameters
    ----------
    maps
        Kind of each map, and its errors and variances by origin.
    """

    def __init__(self, maps: Iterable[tuple[str, OriginErrors]]) -> None:
        self._pairs: dict[str, dict[Origin, list[tuple[Floats, Floats]]]] = {}
        for kind, by_origin in maps:
            for origin, pair in by_origin.items():
                self._pairs.setdefault(kind, {}).setdefault(origin, []).append(pair)

    @property
    def kinds(self) -> list[str]:
        """The kinds that have judged maps."""
        return list(self._pairs)

    def of(self, kind: str, origin: Origin) -> tuple[Floats, Floats]:
        """Concatenate errors and variances."""
        pairs = self._pairs.get(kind, {}).get(origin) or [(np.empty(0), np.empty(0))]
        return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])

    def groups(self) -> dict[str, tuple[str, list[Origin]]]:
        """Name the groups of maps that are judged by themselves."""
        kinds = self.kinds
        return {f"{kind}, {origin.name.lower()}": (kind, [origin]) for kind in kinds for origin in SHOWN} | {
            f"{kind}, all known": (kind, [Origin.MEASURED, Origin.CORRECTED]) for kind in kinds
        }

    def concatenated(self, kind: str, origins: list[Origin]) -> tuple[Floats, Floats]:
        """Concatenate errors and variances of some origins."""
        pairs = [self.of(kind, origin) for origin in origins]
        return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])

    def calibrations(self) -> dict[str, Calibration]:
        """Compute squared error over variance in each tenth, most certain first; fewer tenths at ties."""
        found = {name: self.concatenated(*group) for name, group in self.groups().items()}
        return {name: calibration(*pair, bins=TENTHS) for name, pair in found.items() if len(pair[0]) >= TENTHS}

    def ratios(self) -> dict[str, Vector]:
        """Average the ratio in each tenth."""
        return {name: found.ratio for name, found in self.calibrations().items()}

    def ends(self) -> dict[str, tuple[float, float, bool]]:
        """Find the least and the largest ratio of each group, and whether both are calibrated."""
        return {
            name: (float(r.min()), float(r.max()), bool(r.min() >= HONEST[0] and r.max() <= HONEST[1]))
            for name, r in self.ratios().items()
        }


def calibration_table(predicted: PredictedVariances) -> str:
    """Tabulate the ratio of each tenth."""
    rows = [
        [name, *(f"{r:.2f}{'*' if one > MUCH else ''}" for r, one in _cells(found)), _area(predicted, name)]
        for name, found in predicted.calibrations().items()
    ]
    head = ["squared error / variance", *(str(i + 1) for i in range(TENTHS)), "AUSE"]
    return table(head, rows) + (
        "\n\nPixels of all maps with impulses of amplitude 1 (measured, corrected) and with holes (filled), sorted by "
        "their variance into tenths, from the surest on; equal variances share a tenth. 1 is honest, above too sure. "
        f"* a single pixel makes more than {MUCH:.0%} of it. "
        "AUSE is the area between the curves below: 0 = the variance sorts pixels as their true errors do."
    )


def _cells(found: Calibration) -> Iterator[tuple[float, float]]:
    return zip(_padded(found.ratio), _padded(found.of_one), strict=True)


def _padded(ratio: Vector) -> Vector:
    return np.pad(ratio, (0, TENTHS - len(ratio)), constant_values=np.nan)


def _area(predicted: PredictedVariances, name: str) -> str:
    return f"{sparsification(*predicted.concatenated(*predicted.groups()[name])).area:.3f}"


def draw_calibration(predicted: PredictedVariances, output: Path) -> None:
    """Draw the reliability and the sparsification plots."""
    ratios, kinds = predicted.ratios(), predicted.kinds
    tenths = [float(i + 1) for i in range(TENTHS)]
    bounds = [Curve(f"{bound:g}", np.full(TENTHS, bound)) for bound in HONEST]
    reliability = {
        kind: [
            *(Curve(origin.name.lower(), _padded(ratios[f"{kind}, {origin.name.lower()}"]), ours=True)
              for origin in SHOWN if f"{kind}, {origin.name.lower()}" in ratios),
            *bounds,
        ]
        for kind in kinds
    }  # fmt: skip
    save_curves(
        reliability, tenths, output / "restoration-reliability.png",
        x="tenth of the pixels, from the surest on", y="squared error / variance", scales=("linear", "log"),
    )  # fmt: skip
    removed = np.arange(20) / 20
    groups = {}
    for kind in kinds:
        groups[kind] = []
        for origin in SHOWN:
            errors, variances = predicted.of(kind, origin)
            if len(errors):
                found = sparsification(errors, variances, steps=len(removed))
                groups[kind].append(Curve(origin.name.lower(), found.by_variance, ours=True))
                groups[kind].append(Curve(f"{origin.name.lower()}, best", found.by_error))
    save_curves(
        groups, [float(100 * r) for r in removed], output / "restoration-sparsification.png",
        x="% of the least sure pixels left out", y="RMSE of the rest / of all", scales=("linear", "linear"),
    )  # fmt: skip
