"""One way to run an experiment: jobs with a key, done in parallel and cached; records that group and average.

An experiment lists its jobs, runs them with `run_jobs`, and makes its tables from the `Records`. With
`SPARSEDEPTH_CACHE` set, a run that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from sparsedepth.markdown import table, write_made_part
from sparsedepth.parallel import cores, map_in_threads
from sparsedepth_experiments import Progress
from sparsedepth_experiments._cache import Stored, cached
from sparsedepth_experiments._methods import threads

Score = TypeVar("Score")
Value = TypeVar("Value")
Key = Mapping[str, Hashable]
"""What something is of, by name: kind, method, map, ..."""
Parallel = Literal["no", "threads", "processes"]
CHUNK = 8
"""Jobs that a process gets at once."""


def _unchanged(result: Any) -> Any:
    return result


@dataclass(frozen=True, eq=False)
class Job(Generic[Score]):
    """One piece of work of an experiment.

    Parameters
    ----------
    key
        What it is of. The values name it in progress bars.
    run
        Does it. For processes it is a function of a module, or a `functools.partial` of one.
    score
        Turns the result into what is kept: results may be large, and only they are cached.
    stored
        Names the result in the cache, when the job begins; None = it is not cached.
    """

    key: Key
    run: Callable[[], Any]
    score: Callable[[Any], Score] = _unchanged
    stored: Callable[[], Stored[Any]] | None = None

    def done(self) -> Score:
        """Do it, unless its result is cached, and score it."""
        return self.score(self.run() if self.stored is None else cached(self.stored(), self.run))

    def __str__(self) -> str:
        return ", ".join(map(str, self.key.values()))


class Records(Generic[Score]):
    """A flat list of scores, each with its key.

    Parameters
    ----------
    items
        Pairs of key and score.

    Examples
    --------
    >>> jobs = [{"map": "a", "draw": 0}, {"map": "a", "draw": 1}, {"map": "b", "draw": 0}]
    >>> found = Records(list(zip(jobs, (1.0, 3.0, 5.0), strict=True)))
    >>> found.where(map="a").mean(float)
    2.0
    >>> {key: len(group) for key, group in found.groups("map").items()}
    {('a',): 2, ('b',): 1}
    >>> found.nested("map", value=float)
    {'a': [1.0, 3.0], 'b': [5.0]}
    >>> found.tree("map", "draw", value=float)
    {'a': {0: 1.0, 1: 3.0}, 'b': {0: 5.0}}
    >>> found.spread("power", value=lambda score: {(n,): score**n for n in (1, 2)}).where(power=2).scores
    [1.0, 9.0, 25.0]
    """

    def __init__(self, items: Iterable[tuple[Key, Score]] = ()) -> None:
        self._items = list(items)

    def __iter__(self) -> Iterator[tuple[Key, Score]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def scores(self) -> list[Score]:
        """The scores without their keys."""
        return [score for _, score in self._items]

    def where(self, **fields: Hashable) -> Records[Score]:
        """Select the records whose key has these values."""
        wanted = fields.items()
        return Records((key, score) for key, score in self._items if wanted <= key.items())

    def groups(self, *names: str) -> dict[tuple[Hashable, ...], Records[Score]]:
        """Group the records by some fields of the key; groups and records keep their order."""
        found: dict[tuple[Hashable, ...], list[tuple[Key, Score]]] = {}
        for key, score in self._items:
            found.setdefault(tuple(key[name] for name in names), []).append((key, score))
        return {values: Records(items) for values, items in found.items()}

    def nested(self, *names: str, value: Callable[[Score], Any]) -> dict[Any, Any]:
        """List a value of every record in dictionaries within dictionaries, one level for each field of the key."""
        found: dict[Any, Any] = {}
        for key, score in self._items:
            _place(found, key, names[:-1]).setdefault(key[names[-1]], []).append(value(score))
        return found

    def tree(self, *names: str, value: Callable[[Score], Any]) -> dict[Any, Any]:
        """Arrange a value of every record in the same way, where each place has one record; the last one stays."""
        found: dict[Any, Any] = {}
        for key, score in self._items:
            _place(found, key, names[:-1])[key[names[-1]]] = value(score)
        return found

    def spread(self, *names: str, value: Callable[[Score], Mapping[Any, Value]]) -> Records[Value]:
        """Make a record of each item of a mapping: what finds the item fills further fields of the key."""
        return Records(
            ({**key, **dict(zip(names, fields, strict=True))}, each)
            for key, score in self._items
            for fields, each in value(score).items()
        )

    def mean(self, value: Callable[[Score], float]) -> float:
        """Average a value over the records."""
        return float(np.mean([value(score) for score in self.scores]))


def _place(tree: dict[Any, Any], key: Key, names: Sequence[str]) -> dict[Any, Any]:
    """Descend to the dictionary of a key, and make what is missing."""
    for name in names:
        tree = tree.setdefault(key[name], {})
    return tree


def run_jobs(
    jobs: Sequence[Job[Score]],
    progress: Progress,
    *,
    parallel: Parallel = "threads",
) -> Records[Score]:
    """Run jobs and collect their scores in the order of the jobs.

    Parameters
    ----------
    jobs
        What is to be done.
    progress
        Called with what is being done, the jobs done and all jobs.
    parallel
        "threads", each with one BLAS thread; "processes"; "no" = one after another, for jobs that measure time.

    Returns
    -------
    Records
        Key and score of every job.

    Examples
    --------
    >>> from functools import partial
    >>> jobs = [Job({"n": n}, partial(pow, n, 2)) for n in (1, 2, 3)]
    >>> run_jobs(jobs, lambda *_: None).scores
    [1, 4, 9]
    """
    items, scores = [], _scores(jobs, parallel)
    for done, job in enumerate(jobs):
        progress(str(job), done, len(jobs))
        items.append((job.key, next(scores)))
    progress("done", len(jobs), len(jobs))
    return Records(items)


def _scores(jobs: Sequence[Job[Score]], parallel: Parallel) -> Iterator[Score]:
    if parallel == "no":
        yield from map(Job[Score].done, jobs)
    elif parallel == "threads":
        yield from map_in_threads(Job[Score].done, jobs, threads())
    else:
        with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
            yield from pool.map(Job[Score].done, jobs, chunksize=CHUNK)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Compute the mean of some numbers and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Bar:
    """Something that we want to be true, and what the numbers say."""

    wanted: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        """The last cell of its row."""
        return "yes" if self.met else "**no**"


def count_met(bars: Sequence[Bar]) -> str:
    """Say how many bars are met."""
    return f"{sum(bar.met for bar in bars)} of {len(bars)} are met"


def bar_table(bars: Sequence[Bar]) -> str:
    """Tabulate bars: what was wanted, what was measured, and whether that is enough."""
    return table(["", "measured", "met"], [[bar.wanted, bar.measured, bar.verdict] for bar in bars])


def bar_facts(bars: Sequence[Bar]) -> list[list[Any]]:
    """Convert bars to what JSON can hold."""
    return [[bar.wanted, bar.measured, bar.met] for bar in bars]


def verdict_table(claims: Sequence[Bar]) -> str:
    """Tabulate claims, whether each holds, and its numbers."""
    return table(["", "", ""], [[claim.wanted, claim.verdict, claim.measured] for claim in claims])


def verdict_facts(claims: Sequence[Bar]) -> dict[str, bool]:
    """Say of each claim whether it holds."""
    return {claim.wanted: claim.met for claim in claims}


def write_page(output: Path, name: str, title: str, parts: Sequence[str], quick: bool) -> None:
    """Write the page of an experiment; empty parts are left out."""
    command = f"sparsedepth reproduce {name}" + " --quick" * quick
    write_made_part(output / f"{name}.md", title, command, [part for part in parts if part])
