"""Mutation testing: make small wrong changes, one at a time, and see whether a test fails.

* ``python tools/mutate.py collect`` runs the tests once and notes which test executes which line.
* ``python tools/mutate.py run --room stereo --sample 40`` draws mutants of a room. For each of them it runs the tests
  that execute the changed line.
* ``python tools/mutate.py page`` writes docs/results/mutation.md from the outcomes.

Mutants live in a scratch copy of the committed tree, never in this one. One process works at a time. The compiled
kernels are not mutated. A mutant is killed if a test fails, or if the tests take far longer than before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mutation_page
from mutants import Mutant, mutants_of, python_files

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results" / "mutation.md"
VERDICTS = Path(__file__).with_name("mutation_equivalents.json")
EFFECTS = Path(__file__).with_name("mutation_survivors.json")
ROOMS = ("coding", "restore", "stereo", "files", "sensors", "streams")
COUNTED = ("arithmetic", "comparison")
NOT_COLLECTED = (  # they start processes of their own, in which lines are not counted, or state no law of a room
    "tests/serve",
    "tests/test_cluster.py",
    "tests/test_kills.py",
    "tests/test_examples.py",
    "tests/test_docs.py",
    "tests/test_readme.py",
    "tests/test_same_bits.py",
    "tests/test_demo.py",
    "tests/test_training.py",
    "tests/test_experiments.py",
    "tests/test_second_order_experiment.py",
    "tests/test_extras.py",
    "tests/test_release.py",
)
PRELOADED = (  # imported once, before forking, where they are installed
    *("hypothesis", "hypothesis.strategies", "scipy.ndimage", "scipy.sparse.linalg", "scipy.optimize", "PIL.Image"),
    *(
        "tifffile",
        "typer",
        "rich.console",
        "rich.progress",
        "safetensors.numpy",
        "matplotlib.pyplot",
        "fastapi",
        "uvicorn",
    ),
    *("httpx", "psutil", "skimage.restoration", "pywt", "sklearn.utils.estimator_checks", "cv2", "OpenEXR"),
)
PYTEST = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis", "-p", "no:cov",
          "-W", "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip
FIRST = 6  # tests that are tried alone, before the files of all others are imported
MEMORY = 12 << 30  # bytes of address space; a mutant that asks for more is killed by its own MemoryError
SURVIVED, KILLED, LATE, UNRUN = "survived", "killed", "killed (time)", "not executed"


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    verdict: str
    tests: int
    seconds: float
    by: str


@dataclass(frozen=True)
class Coverage:
    """Which tests execute which lines, and how long each takes."""

    by_line: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]

    def tests_of(self, mutant: Mutant) -> set[str]:
        """Return the tests that execute the line of a mutant; for lines that run at import, all of the module.

        Where no test executes any line of the module, as of a record of settings, all tests of its package.
        """
        lines, package = self.by_line.get(mutant.path, {}), mutant.path.rpartition("/")[0]
        beside = (each for path, each in self.by_line.items() if path.startswith(f"{package}/"))
        return (
            lines.get(mutant.line)
            or set().union(*lines.values())
            or set().union(*(tests for each in beside for tests in each.values()))
        )


def in_order(tests: set[str], seconds: dict[str, float], budget: float) -> list[str]:
    """Order tests so that each function has a turn before any has its second, quick ones first, within a budget."""
    by_function: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        by_function[test.split("[")[0]].append(test)
    turns = [(turn, seconds[test], test) for cases in by_function.values() for turn, test in enumerate(cases)]
    chosen, spent = [], 0.0
    for _, cost, test in sorted(turns):
        if spent + cost <= budget or not chosen:
            chosen.append(test)
            spent += cost
    return chosen


class Timer:
    """Plugin of pytest that notes how long each test takes, and whether it passes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.unfit: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.unfit.add(report.nodeid)


class FirstExample:
    """Plugin of pytest that lets hypothesis report the first example that fails, without looking for a simpler one."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("first", settings.default, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("first")


def collect(folder: Path, paths: Sequence[str]) -> None:
    """Run the tests of a scratch copy once, under coverage, and keep what they execute and how long they take."""
    import pytest

    folder.mkdir(parents=True, exist_ok=True)
    with scratch_tree() as tree:
        os.environ["COVERAGE_FILE"] = str(folder / "coverage.db")
        enter(tree)
        timer = Timer()
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--cov=sparsedepth",
            "--cov-context=test",
            "--cov-report=",
            f"--cov-config={os.devnull}",
        ]
        options += ["--cov-append"] if paths else []
        left_out = [f"--ignore={path}" for path in NOT_COLLECTED]
        pytest.main(
            [*options, *left_out, *(paths or ["tests", *(f"src/sparsedepth/{room}" for room in ROOMS)])], [timer]
        )
        seconds = {test: spent for test, spent in timer.seconds.items() if test not in timer.unfit}
        kept = folder / "seconds.json"
        before = json.loads(kept.read_text()) if paths and kept.exists() else {}
        kept.write_text(json.dumps(before | seconds))


def load(folder: Path) -> Coverage:
    """Read what `collect` has kept."""
    from coverage import CoverageData

    seconds = json.loads((folder / "seconds.json").read_text())
    data = CoverageData(str(folder / "coverage.db"))
    data.read()
    by_line: dict[str, dict[int, set[str]]] = {}
    for name in data.measured_files():
        lines = by_line.setdefault(name[name.rindex("src/sparsedepth/") :], {})
        for line, contexts in data.contexts_by_lineno(name).items():
            tests = {context.rpartition("|")[0] for context in contexts} & seconds.keys()
            lines.setdefault(line, set()).update(tests)
    return Coverage(by_line, seconds)


@contextmanager
def scratch_tree() -> Iterator[Path]:
    """Copy the committed tree and its compiled kernels to a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        tree = Path(name) / "tree"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)], check=True)
        subprocess.run([sys.executable, "hatch_build.py"], cwd=tree, check=True, capture_output=True)
        yield tree


def enter(tree: Path) -> None:
    """Make this process, and those that it starts, import the package from a tree."""
    os.chdir(tree)
    paths = [str(tree / part) for part in ("src", "experiments/src", "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path[:0] = paths


def try_mutant(tree: Path, mutant: Mutant, tests: Sequence[str], limit: float) -> tuple[str, str]:
    """Run tests on a mutant; return the verdict and the test that failed."""
    file = tree / mutant.path
    source = file.read_bytes()
    compiled = file.parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}.pyc"
    compiled.unlink(missing_ok=True)
    file.write_bytes(mutant.apply(source))
    try:
        code, said = run_tests(tree, tests[:FIRST], limit)
        if code == 0 and tests[FIRST:]:
            code, said = run_tests(tree, tests[FIRST:], limit)
    finally:
        file.write_bytes(source)
        compiled.unlink(missing_ok=True)
    failed = next((line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    if code is None:
        return LATE, ""
    if code and not failed:
        failed = f"CODE {code}: {said.strip().splitlines()[-1:]}"
    return (KILLED if code else SURVIVED), failed.partition(" ")[2].split(" - ")[0]


def run_tests(tree: Path, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Run tests in a fork of this process, which has imported the packages that they need; None means too slow."""
    listed = tree.parent / "tests.txt"
    listed.write_text("\n".join(tests))
    log = tree.parent / "log.txt"
    child = os.fork()
    if child == 0:
        _become_tests(tree, listed, log)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _end_group(child)
            return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
        time.sleep(0.05)
    _end_group(child)
    os.waitpid(child, 0)
    return None, ""


def _end_group(leader: int) -> None:
    """End what a fork has started and left."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _become_tests(tree: Path, listed: Path, log: Path) -> None:
    code = 99
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600), number)
        enter(tree)
        import pytest

        code = int(pytest.main([*PYTEST, f"@{listed}"], [FirstExample()]))
    finally:
        os._exit(code)


def counted(room: str, tree: Path) -> list[list[Mutant]]:
    """List the mutants of arithmetic and comparisons of each file of a room."""
    files = python_files(tree, f"src/sparsedepth/{room}")
    every = ([m for m in mutants_of(path, (tree / path).read_bytes()) if m.kind in COUNTED] for path in files)
    return [some for some in every if some]


def drawn(room: str, tree: Path, sample: int, seed: int) -> list[Mutant]:
    """Draw mutants of a room, of each file in proportion; a larger sample begins with the smaller one."""
    rng = random.Random(f"{room} {seed}")
    placed = []
    for some in counted(room, tree):
        rng.shuffle(some)
        start = rng.random()
        placed += [((rank + start) / len(some), mutant) for rank, mutant in enumerate(some)]
    every = [mutant for _, mutant in sorted(placed, key=lambda pair: (pair[0], pair[1].path, pair[1].start))]
    return every[:sample] if sample else every


def run(arguments: argparse.Namespace) -> None:
    """Try mutants of some rooms and append each outcome to a file of JSON lines."""
    coverage = load(arguments.folder)
    for name in PRELOADED:
        with suppress(ImportError):
            __import__(name)
    with scratch_tree() as tree:
        commit = _commit(tree)
        check_unchanged(tree, coverage)
        for room, named, mutant in chosen(arguments, tree):
            outcome = judge(tree, mutant, coverage, arguments.budget)
            about = {"room": room, "commit": commit, "seed": arguments.seed, "mutant": asdict(named)}
            with open(arguments.out, "a") as file:
                file.write(json.dumps(about | asdict(outcome)) + "\n")
            change = f"{mutant.path}:{mutant.line}  {mutant.before}  ->  {mutant.after}"
            print(f"{outcome.verdict:13} {outcome.seconds:6.1f} s  {change}  {outcome.by}", flush=True)


def chosen(arguments: argparse.Namespace, tree: Path) -> Iterator[tuple[str, Mutant, Mutant]]:
    """Yield mutants of all rooms in turn: the room, the mutant as it was drawn, and as it is now."""
    rooms = arguments.room or ROOMS
    if arguments.again:
        yield from ((room, *pair) for room in rooms for pair in survivors(room, tree, arguments.out))
        return
    known = {json.dumps(each["mutant"]) for each in read_outcomes(arguments.out)} if arguments.out.exists() else set()
    for turn in zip(*(drawn(room, tree, arguments.sample, arguments.seed) for room in rooms), strict=False):
        for room, mutant in zip(rooms, turn, strict=True):
            if json.dumps(asdict(mutant)) not in known:
                yield room, mutant, mutant


def check_unchanged(tree: Path, coverage: Coverage) -> None:
    """Stop unless tests of the tree pass as long as nothing is changed."""
    some = random.Random(0).sample(sorted(coverage.seconds), 200)
    code, said = run_tests(tree, in_order(set(some), coverage.seconds, 60.0), 600.0)
    if code != 0:
        raise SystemExit(f"tests fail without any mutant:\n{said[-2000:]}")


def judge(tree: Path, mutant: Mutant, coverage: Coverage, budget: float) -> Outcome:
    """Try one mutant."""
    tests = in_order(coverage.tests_of(mutant), coverage.seconds, budget)
    if not tests:
        return Outcome(UNRUN, 0, 0.0, "")
    began = time.monotonic()
    expected = sum(coverage.seconds[test] for test in tests)
    verdict, by = try_mutant(tree, mutant, tests, 30 + 5 * expected)
    return Outcome(verdict, len(tests), round(time.monotonic() - began, 1), by)


def survivors(room: str, tree: Path, outcomes: Path) -> list[tuple[Mutant, Mutant]]:
    """Pair the mutants of a room that have survived so far with themselves as they are now; lines may have moved.

    Equivalent mutants are left out.
    """
    pairs, equivalent = [], json.loads(VERDICTS.read_text())
    for each in read_outcomes(outcomes):
        past = Mutant(**each["mutant"])
        if each["room"] == room and each["verdict"] in (SURVIVED, UNRUN) and past.key not in equivalent:
            same = [now for now in mutants_of(past.path, (tree / past.path).read_bytes()) if now.key == past.key]
            pairs += [(past, now) for now in sorted(same, key=lambda now: abs(now.line - past.line))[:1]]
    return pairs


def _commit(tree: Path) -> str:
    done = subprocess.run(["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def read_outcomes(path: Path, *, first: bool = False) -> list[dict[str, Any]]:
    """Read the last outcome of each mutant, or the first one, which no later test has changed."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    ordered = reversed(lines) if first else lines
    return list({json.dumps(each["mutant"]): each for each in ordered}.values())


def page(arguments: argparse.Namespace) -> None:
    """Write the page of results from the outcomes of one seed, or of one for each room."""
    first, last = (read_outcomes(arguments.out, first=first) for first in (True, False))
    sizes = {room: sum(map(len, counted(room, ROOT))) for room in ROOMS}
    reasons, effects = (json.loads(file.read_text()) for file in (VERDICTS, EFFECTS))
    seeds = dict.fromkeys(ROOMS, arguments.seed) | dict(arguments.seed_of or ())
    text = mutation_page.text(first, last, sizes, seeds, reasons, effects)
    PAGE.write_text(text)


def seed_of(text: str) -> tuple[str, int]:
    """Read the seed of a room, such as ``streams=3``."""
    room, _, seed = text.partition("=")
    if room not in ROOMS:
        raise argparse.ArgumentTypeError(f"{room!r} is none of {', '.join(ROOMS)}")
    return room, int(seed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("out/mutation").resolve(), help="where outcomes are kept")
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("collect", help="note which test executes which line")
    step.add_argument("paths", nargs="*", help="only these tests, added to what is known")
    step.set_defaults(do=lambda given: collect(given.folder, given.paths))
    step = steps.add_parser("run", help="try mutants")
    step.add_argument("--room", action="append", choices=ROOMS, help="all rooms if left out")
    step.add_argument("--sample", type=int, default=40, help="mutants a room; 0 for all")
    step.add_argument("--seed", type=int, default=1)
    step.add_argument("--budget", type=float, default=30.0, help="seconds of tests a mutant")
    step.add_argument("--again", action="store_true", help="only those that have survived so far")
    step.set_defaults(do=run)
    step = steps.add_parser("page", help="write docs/results/mutation.md")
    step.add_argument("--seed", type=int, default=1, help="the sample that gives the numbers")
    step.add_argument("--seed-of", action="append", type=seed_of, metavar="ROOM=SEED", help="that of one room")
    step.set_defaults(do=page)
    given = parser.parse_args(arguments)
    given.out = given.folder / "outcomes.jsonl"
    given.do(given)


if __name__ == "__main__":
    main()
