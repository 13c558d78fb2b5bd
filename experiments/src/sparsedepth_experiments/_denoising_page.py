"""The page of the experiment on denoising: tables beside the paper's, curves, verdicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sparsedepth.markdown import table
from sparsedepth.metrics import psnr
from sparsedepth_experiments._claims import Claim, Verdict, table_of
from sparsedepth_experiments._denoising_jobs import (
    ALTERNATIONS,
    MILD_NOISE,
    ORDER,
    PAPER_NOISE,
    PHI1,
    PHI2,
    PHI3,
    SC,
    SC1,
    TIGHT,
    UNIT,
    Plan,
    Results,
)
from sparsedepth_experiments._methods import NOISY, TUNED, VARIANCES, own_methods

KINDS = ("laser", "disparity")
PAPER = {
    NOISY.name: 28.5,
    PHI1: 37.8,
    PHI2: 36.3,
    PHI3: 35.3,
    SC: 32.3,
    "median": 31.3,
    "TV-L2": 31.8,
    "NL-means": 32.9,
    TIGHT: 33.7,
    UNIT: 33.7,
}
"""PSNR in the paper's Fig. 4, on one laser map with 1 % of the pixels corrupted; it does not say which frame it has."""


def page_of(
    plan: Plan,
    results: Results,
    verdicts: Mapping[Claim, Verdict],
    further: Mapping[Claim, Verdict],
    mild: Mapping[Claim, Verdict],
) -> list[str]:
    """Write the parts of the page, in the order of the paper."""
    return [
        plan.note,
        _described(plan),
        "## Beside the paper's Fig. 4",
        _against_the_paper(plan, results),
        "The paper's numbers are of one natural laser scan, which is not public. Its NL-means may be the one of "
        "medians, and its frame is not described further; both frames are printed.",
        *(f"### {kind.capitalize()}, the first map\n\n![{kind} map](denoising-{kind}.png)" for kind in KINDS),
        "## The paper's Fig. 5",
        "![PSNR over corrupted pixels](denoising-curves.png)",
        *(part for kind in KINDS for part in _means(PAPER_NOISE, kind, plan, results)),
        f"## The paper's claims: {_count(verdicts)} hold here",
        *(f"{kind.capitalize()}: {_count(verdicts, kind)}. " + _clear(verdicts, kind) for kind in KINDS),
        table_of(verdicts),
        "Differences are means over maps, noise draws and learning seeds, with the standard error over the maps. The "
        "least draw is the mean of the noise draw that speaks most against the claim. The margins ask for less than "
        f"the paper's: its Φ1 is {PAPER[PHI1] - PAPER[TIGHT]:.1f} dB above the best of the four.",
        f"### The other frame, and what the text says besides: {_count(further)} hold",
        table_of(further),
        "## A few iterations",
        *_iterations(plan, results),
        f"## The milder noise: {_count(mild)} hold",
        "The noise of earlier versions of this page: variances uniform in (0, 1) variances of the map.",
        *(part for kind in KINDS for part in _means(MILD_NOISE, kind, plan, results)),
        table_of(mild),
        *_against_the_best(plan, results),
    ]


def _count(verdicts: Mapping[Claim, Verdict], kind: str = "") -> str:
    chosen = [verdict for claim, verdict in verdicts.items() if kind in ("", claim.kind)]
    return f"{sum(verdict.holds for verdict in chosen)} of {len(chosen)}"


def _clear(verdicts: Mapping[Claim, Verdict], kind: str) -> str:
    """Say how far Φ1 is above Φ2."""
    found = [
        (claim, v)
        for claim, v in verdicts.items()
        if claim.kind == kind and (claim.better, claim.worse) == (PHI1, PHI2)
    ]
    each = (f"{_size(verdict)} at {claim.share:.0%}" for claim, verdict in found)
    return f"Φ1 less Φ2: {', '.join(each)}."


def _size(verdict: Verdict) -> str:
    """Format a difference, and whether it is more than its standard error."""
    if verdict.error is None:
        return f"{verdict.difference:+.2f} dB"
    clear = "more" if verdict.difference > verdict.error else "**not more**"
    return f"{verdict.difference:+.2f} ± {verdict.error:.2f} dB ({clear} than its standard error)"


def _described(plan: Plan) -> str:
    """Describe the procedure in words."""
    size = len(plan.sources[0].crop.depth)
    where = "; ".join(f"{kind}: " + ", ".join(map(str, plan.of_kind(kind))) for kind in KINDS)
    repeated = [p for p in plan.parts if p.draws * p.seeds > 1]
    often = (
        f" At {' and '.join(f'{p.share:.0%}' for p in repeated)} there are {repeated[0].draws} draws of the noise and "
        f"{repeated[0].seeds} learning seeds of each dictionary; one of each in the other tables."
        if repeated
        else ""
    )
    return (
        "Each chosen pixel gets Gaussian noise whose variance is uniform in (0, 1), in units of which the map's range "
        "is 1.88: at 1 % of the pixels that makes the 28.5 dB of the paper's noisy map. The amplitude is the same at "
        f"every share. The maps are {size}x{size} pixels, drawn by seed among the places where little is missing; "
        f"named with their first row and column, they are {where}. Holes stay holes and are not scored. PSNR is in dB, "
        "over the true map's range.\n\n"
        "Φ1, Φ2 and Φ3 are learned as in the paper, see [The shipped dictionaries](dictionaries.md); "
        "`annealed Φ1` is learned as we do. `ns-SC` is the paper's method with 16x16 patches at every "
        f"{plan.stride}{_th(plan.stride)} pixel; `SC` codes with one variance, the best of "
        f"{', '.join(f'{v:g}' for v in VARIANCES)} variances of the patch, chosen with patches 4 pixels apart; `TIWF` "
        f"is `ns-SC` with a wavelet frame, its patches {plan.wavelet_stride} pixels apart: the tight frame of the "
        "periodic stationary transform, whose atoms keep their norms, or one of atoms of norm 1, cut at the patch's "
        "border. What is tuned has the parameter that suits each map best, chosen with its truth; what is blind has "
        f"one setting for all.{often}"
    )


def _th(n: int) -> str:
    return {1: "st", 2: "nd", 3: "rd"}.get(n, "th")


def _against_the_paper(plan: Plan, results: Results) -> str:
    share = plan.shares(PAPER_NOISE)[0]
    head = [f"{share:.0%} corrupted", "", "paper", *(f"ours, {k}, {w}" for k in KINDS for w in ("first map", "mean"))]
    rows = []
    names = [name for name in results.names(PAPER_NOISE, KINDS[0], share) if "alternation" not in name]
    for name in names:
        ours = []
        for kind in KINDS:
            shown = results.shown(kind)[name].depth
            ours += [psnr(shown, plan.of_kind(kind)[0].crop.depth), results.mean(PAPER_NOISE, kind, name, share)]
        paper = f"{PAPER[name]:.1f}" if name in PAPER else ""
        rows.append([name, results.help[name], paper, *(f"{v:.1f}" for v in ours)])
    return table(head, rows)


def _means(noise: str, kind: str, plan: Plan, results: Results) -> list[str]:
    """Format a table of means, the best of each column in bold."""
    shares = plan.shares(noise)
    names = results.names(noise, kind, shares[-1])
    means = np.array([[results.mean(noise, kind, name, share) for share in shares] for name in names])
    cells = [
        [f"**{m:.1f}**" if m == best else f"{m:.1f}" for m, best in zip(row, means.max(axis=0), strict=True)]
        for row in means
    ]
    rows = [[name, results.help[name], *row] for name, row in zip(names, cells, strict=True)]
    n = len(plan.of_kind(kind))
    title = f"### {kind.capitalize()}: mean PSNR over {n} map{'s' * (n > 1)}"
    return [title, table(["", "", *(f"{share:.0%}" for share in shares)], rows)]


def _iterations(plan: Plan, results: Results) -> list[str]:
    """Compare exact alternations of codes and variances with the joint minimum."""
    names = [name for name in ORDER if "alternation" in name]
    share = plan.shares(PAPER_NOISE)[0]

    def seed_zero(kind: str, name: str) -> float:
        return results.of(PAPER_NOISE, kind, name, share).where(seed=0).mean(lambda score: score.psnr)

    rows = [[kind, *(f"{seed_zero(kind, name):.1f}" for name in (*names, PHI1))] for kind in KINDS]
    return [
        f'The paper alternates codes and variances and converges "in the first few iterations". Here are '
        f"{', '.join(map(str, ALTERNATIONS))} exact alternations beside the joint minimum that `ns-SC` finds, with the "
        f"shipped Φ1 at {share:.0%}, in dB.",
        table(["maps", *names, "joint minimum"], rows),
    ]


def _against_the_best(plan: Plan, results: Results) -> list[str]:
    """Compare our methods that the paper does not have with the best tuned baseline, at both noises."""
    rivals = [name for name, help_ in results.help.items() if help_ == TUNED and name not in (SC, SC1)]
    rows = []
    columns = [(noise, share) for noise in (PAPER_NOISE, MILD_NOISE) for share in plan.shares(noise)]
    for name in (each.name for each in own_methods()):
        for kind in KINDS:
            row = [name, kind]
            for noise, share in columns:
                best, rival = max((results.mean(noise, kind, rival, share), rival) for rival in rivals)
                row.append(f"{results.mean(noise, kind, name, share) - best:+.1f} ({rival})")
            rows.append(row)
    head = ["", "maps", *(f"{noise} {share:.0%}" for noise, share in columns)]
    return ["## Our own methods, blind, less the best tuned competitor, dB", table(head, rows)] if rows else []
