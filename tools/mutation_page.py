"""The page of results of mutation testing, from the outcomes that `mutate.py` has kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mutants import Mutant

HEAD = """# Mutation testing

A mutant is the package with one small wrong change: another operator, one side of an operation left out, another
comparison. A good test suite fails on it. `make mutation` draws mutants of arithmetic and comparisons of six packages,
runs on each the tests that execute the changed line, and writes this page. The compiled kernels are not mutated.

The numbers of a package come from a sample that was drawn in proportion to each module, and tried on the tests of the
commit that is named. None of them was written with this sample in view. Tests that came later do not change the
numbers.
*Killed*: a test fails, or the tests take more than five times as long. *Equivalent*: no test can fail, for the reason
given below. The score leaves out equivalent mutants; its standard error is that of sampling (binomial, with one
killed and one surviving mutant added, so that it is never zero).
All packages together are weighted by their number of mutants.
"""


@dataclass(frozen=True)
class Tally:
    """Counts of one package."""

    mutants: int
    killed: int
    equivalent: int
    survived: int
    seed: int = 0
    commit: str = "none"
    """Of the sample, and of the tests that it was tried on."""

    @property
    def drawn(self) -> int:
        """Number of mutants that were tried."""
        return self.killed + self.equivalent + self.survived

    @property
    def score(self) -> float:
        """Share of the mutants that could be killed and were."""
        return self.killed / max(self.killed + self.survived, 1)

    @property
    def error(self) -> float:
        """Standard error of the score; that of no survivor among few mutants is not zero (Laplace's rule)."""
        able = self.killed + self.survived
        share = (self.killed + 1) / (able + 2)
        left = 1 - able / max(self.mutants, able, 1)
        return math.sqrt(share * (1 - share) / (able + 2) * left)


def text(
    first: Sequence[Mapping[str, Any]],
    last: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, int],
    seeds: Mapping[str, int],
    reasons: Mapping[str, str],
    effects: Mapping[str, str],
) -> str:
    """Write the page.

    Parameters
    ----------
    first, last : sequences of mappings
        The first and the last outcome of each mutant that was tried.
    sizes : mapping of str to int
        Number of mutants of each package.
    seeds : mapping of str to int
        Sample of each package that gives its numbers.
    reasons : mapping of str to str
        Why a mutant is equivalent, by its key.
    effects : mapping of str to str
        What a surviving mutant would change, by its key.

    Returns
    -------
    str
        Markdown.
    """
    fresh = {room: [each for each in first if (each["room"], each["seed"]) == (room, seeds[room])] for room in sizes}
    tallies = {room: tally(fresh[room], sizes[room], reasons) for room in sizes if fresh[room]}
    left = [each for each in last if not is_killed(each) and key_of(each) not in reasons]
    later = sum(map(is_killed, last)) - sum(map(is_killed, first))
    equivalent = [each for each in last if not is_killed(each) and key_of(each) in reasons]
    return "\n".join(
        [
            HEAD,
            *table(tallies),
            "\n## Survivors\n",
            f"Of the {len(last)} mutants, tests that came later kill {later} more. {len(left)} survive:\n",
            *(f"- {line(each)}: {effects.get(key_of(each), 'not looked at yet')}" for each in ordered(left)),
            "\n## Equivalent mutants\n",
            *(f"- {line(each)}: {reasons[key_of(each)]}" for each in ordered(equivalent)),
            "",
        ]
    )


def tally(outcomes: Sequence[Mapping[str, Any]], mutants: int, reasons: Mapping[str, str]) -> Tally:
    """Count the outcomes of one sample."""
    alive = [key_of(each) for each in outcomes if not is_killed(each)]
    equivalent = sum(key in reasons for key in alive)
    sample = {(each["seed"], each["commit"]) for each in outcomes} or {(0, "none")}
    return Tally(mutants, sum(map(is_killed, outcomes)), equivalent, len(alive) - equivalent, *max(sample))


def table(tallies: Mapping[str, Tally]) -> list[str]:
    """Tabulate the counts, and the weighted score of all packages."""
    heads = ("mutants", "drawn", "killed", "equivalent", "survived", "score", "seed", "commit")
    rows = [f"| package | {' | '.join(heads)} |", "| :-- " + "| --: " * len(heads) + "|"]
    for room, each in tallies.items():
        counts = (each.mutants, each.drawn, each.killed, each.equivalent, each.survived)
        score = f"{100 * each.score:.0f} ± {100 * each.error:.0f} %"
        rows.append(f"| {room} | {' | '.join(map(str, counts))} | {score} | {each.seed} | {each.commit} |")
    total = sum(each.mutants for each in tallies.values())
    score = sum(each.mutants * each.score for each in tallies.values()) / total
    error = math.hypot(*(each.mutants * each.error for each in tallies.values())) / total
    sums = (sum(getattr(each, name) for each in tallies.values()) for name in heads[:5])
    rows.append(f"| **all** | {' | '.join(map(str, sums))} | **{100 * score:.1f} ± {100 * error:.1f} %** | | |")
    return rows


def is_killed(outcome: Mapping[str, Any]) -> bool:
    """Tell whether a mutant was killed."""
    return outcome["verdict"].startswith("killed")


def key_of(outcome: Mapping[str, Any]) -> str:
    """Name a mutant as the file of reasons does."""
    return Mutant(**outcome["mutant"]).key


def ordered(outcomes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort outcomes by file and line."""
    return sorted(outcomes, key=lambda each: (each["mutant"]["path"], each["mutant"]["line"]))


def line(outcome: Mapping[str, Any]) -> str:
    """Show a mutant in one line."""
    mutant = Mutant(**outcome["mutant"])
    return f"`{mutant.path.removeprefix('src/sparsedepth/')}`: `{flat(mutant.before)}` → `{flat(mutant.after)}`"


def flat(code: str) -> str:
    """Show code without breaks of lines and outer brackets."""
    return (
        " ".join(code.removeprefix("(").removesuffix(")").split()) if code.startswith("(") else " ".join(code.split())
    )
