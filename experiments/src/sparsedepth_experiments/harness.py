"""One way to run an experiment: jobs with a key, done in parallel and cached; records that group and average.

An experiment lists its jobs, runs them with `run_jobs`, and makes its tables from the `Records`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from sparsedepth.markdown import table, write_made_part
from sparsedepth.parallel import cores, map_in_threads
from sparsedepth_experiments import Progress
from sparsedepth_experiments._cache import Codec, Stored, cached_arrays
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
    stored: Callable[[], Stored] | None = None

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
            place = found
            for name in names[:-1]:
                place = place.setdefault(key[name], {})
            place.setdefault(key[names[-1]], []).append(value(score))
        return found

    def mean(self, value: Callable[[Score], float]) -> float:
        """Average a value over the records."""
        return float(np.mean([value(score) for score in self.scores]))


def run_jobs(
    jobs: Sequence[Job[Score]],
    progress: Progress,
    cache: Codec[Any] | None = None,
    *,
    parallel: Parallel = "threads",
    before: int = 0,
    total: int | None = None,
) -> Records[Score]:
    """Run jobs and collect their scores in the order of the jobs.

    Parameters
    ----------
    jobs
        What is to be done.
    progress
        Called with what is being done, the steps done and all steps.
    cache
        How results become arrays and come back. With `SPARSEDEPTH_CACHE` set, a run that was stopped goes on where it
        was: results are read from that folder. None = nothing is cached.
    parallel
        "threads", each with one BLAS thread; "processes"; "no" = one after another, for jobs that measure time.
    before
        Steps of the experiment that were done before these jobs.
    total
        All steps of the experiment; None = these jobs are the last.

    Returns
    -------
    Records
        Key and score of every job.

    Examples
    --------
    >>> jobs = [Job({"n": n}, partial(pow, n, 2)) for n in (1, 2, 3)]
    >>> run_jobs(jobs, lambda *_: None).scores
    [1, 4, 9]
    """
    after, items = before + len(jobs), []
    total = after if total is None else total
    results = _results(jobs, partial(_score, cache=cache), parallel)
    for done, job in enumerate(jobs):
        progress(str(job), before + done, total)
        items.append((job.key, next(results)))
    if after == total:
        progress("done", total, total)
    return Records(items)


def _results(jobs: Sequence[Job[Score]], work: Callable[[Job[Score]], Score], parallel: Parallel) -> Iterator[Score]:
    if parallel == "no":
        yield from map(work, jobs)
    elif parallel == "threads":
        yield from map_in_threads(work, jobs, threads())
    else:
        with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, jobs, chunksize=CHUNK)


def _score(job: Job[Score], cache: Codec[Any] | None) -> Score:
    """Do a job, unless its result is cached, and score it."""
    if cache is None or job.stored is None:
        return job.score(job.run())
    name = job.stored()
    arrays = cached_arrays(name.name, name.version, name.maps, lambda: cache.to_arrays(job.run()))
    return job.score(cache.from_arrays(arrays))


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


def verdict_table(verdicts: Mapping[str, tuple[bool, str]]) -> str:
    """Tabulate claims, whether each holds, and its numbers."""
    rows = [[claim, "yes" if holds else "**no**", numbers] for claim, (holds, numbers) in verdicts.items()]
    return table(["", "", ""], rows)


def write_page(output: Path, name: str, title: str, parts: Sequence[str], quick: bool) -> None:
    """Write the page of an experiment; empty parts are left out."""
    command = f"sparsedepth reproduce {name}" + " --quick" * quick
    write_made_part(output / f"{name}.md", title, command, [part for part in parts if part])
