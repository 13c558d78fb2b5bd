"""Compare the results of this tree with those of another revision, bit by bit.

``python tools/same_bits.py REV`` checks REV out into a temporary worktree, runs the cases of `same_bits_cases.py` with
both trees and compares every array: type, shape and bytes. It exits with 1 if any of them differs. A change that only
renames or moves code must print no difference. Stored results would not do, because the last bits depend on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from same_bits_cases import CASES, left_out  # noqa: E402 (from this tree, not from what is installed)


def differences(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> list[str]:
    """Describe each array that is not the same on both sides; an empty list means that all bits agree."""
    alone = [f"{name} is only in the {side} result" for side, name in _unpaired(before, after)]
    pairs = ((name, _difference(before[name], after[name])) for name in before if name in after)
    return alone + [f"{name} {said}" for name, said in pairs if said is not None]


def _unpaired(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from (("old", name) for name in before if name not in after)
    yield from (("new", name) for name in after if name not in before)


def _difference(before: NDArray[Any], after: NDArray[Any]) -> str | None:
    if before.dtype != after.dtype or before.shape != after.shape:
        return f"was {before.dtype} {before.shape} and is {after.dtype} {after.shape}"
    differ = (_bytes(before) != _bytes(after)).any(axis=1)
    if not differ.any():
        return None
    largest = np.abs(before.ravel()[differ].astype(np.float64) - after.ravel()[differ].astype(np.float64)).max()
    return f"differs at {differ.sum()} of {differ.size} pixels, by at most {largest:.3g}"


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """View an array as one row of bytes an element."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """Check a revision out into a worktree within ``folder``; the worktree is removed at the end."""
    tree = folder / f"tree-{len(list(folder.iterdir()))}"
    git("worktree", "add", "--detach", "--quiet", str(tree), revision)
    try:
        compile_kernels(tree)
        yield tree
    finally:
        git("worktree", "remove", "--force", str(tree))


def compile_kernels(tree: Path) -> None:
    """Compile the kernels of a tree; early revisions have none."""
    if (tree / "hatch_build.py").is_file():
        subprocess.run([sys.executable, "hatch_build.py"], cwd=tree, check=True, capture_output=True)


def git(*arguments: str) -> str:
    """Run git in this repository and return what it prints."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Runner:
    """A process that runs the cases with one tree."""

    process: subprocess.Popen[str]
    folder: Path

    @classmethod
    def start(cls, tree: Path, folder: Path, names: Sequence[str]) -> Runner:
        folder.mkdir()
        command = [sys.executable, str(ROOT / "tools" / "same_bits_cases.py"), str(tree), str(folder), *names]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )  # a session of its own: Ctrl-C reaches this process only, which then stops the others
        return cls(process, folder)

    def result(self, name: str) -> dict[str, NDArray[Any]] | str:
        """Wait for the arrays of a case, or for the reason why there are none."""
        output: IO[str] | None = self.process.stdout
        line = output.readline() if output else ""
        report = json.loads(line) if line else {"error": "the process has ended"}
        if "error" in report:
            return report["error"]
        with np.load(self.folder / f"{name}.npz", allow_pickle=False) as arrays:
            return dict(arrays)

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def running(trees: Sequence[Path], folder: Path, names: Sequence[str]) -> Iterator[list[Runner]]:
    """Run the cases with every tree at the same time, one process a tree."""
    with ExitStack() as stack:
        runners = []
        for number, tree in enumerate(trees):
            runners.append(Runner.start(tree, folder / f"results-{number}", names))
            stack.callback(runners[-1].stop)
        yield runners


def verdict(name: str, before: Runner, after: Runner) -> str:
    """Compare the results of one case: "same", or what differs."""
    results = {"old": before.result(name), "new": after.result(name)}
    failed = [f"the {side} tree fails: {said}" for side, said in results.items() if isinstance(said, str)]
    found = failed or differences(results["old"], results["new"])  # type: ignore[arg-type]
    return f"DIFFERENT: {'; '.join(found)}" if found else "same"


def compare(old: str, new: str | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each case with its verdict, for two revisions or for one and this tree."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="same-bits-")))
        trees = [stack.enter_context(checked_out(revision, folder)) if revision else ROOT for revision in (old, new)]
        for name in names:
            if said := left_out(name):
                yield name, f"left out: {said}"
        able = [name for name in names if not left_out(name)]
        before, after = stack.enter_context(running(trees, folder, able))
        for name in able:
            yield name, verdict(name, before, after)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the results of this tree with those of REV, bit by bit.")
    parser.add_argument("old", metavar="REV", nargs="?", help="the revision to compare with")
    parser.add_argument("new", metavar="OTHER", nargs="?", help="another revision, instead of this tree as it is")
    parser.add_argument("--only", metavar="NAME", action="append", choices=CASES, help="one case; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of all cases and stop")
    given = parser.parse_args()
    if not given.list and given.old is None:
        parser.error("name the revision to compare with")
    return given


def main() -> int:
    given = _arguments()
    if given.list:
        print("\n".join(CASES))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    names, differing = given.only or list(CASES), 0
    for name, said in compare(given.old, given.new, names):
        print(f"{name:<{max(map(len, CASES))}}  {said}", flush=True)
        differing += said.startswith("DIFFERENT")
    print(f"{differing} of {len(names)} cases differ" if differing else "no difference")
    return 1 if differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
