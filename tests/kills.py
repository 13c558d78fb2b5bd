"""What is left when a run is killed, meets another one, or runs out of disk: ``python tests/kills.py 100``.

Every scenario states a law and counts how often it was tried; the tests run a few rounds of each. Runs are forked from
one process that has imported everything, so that a round takes no longer than its work.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from sparsedepth import Dictionary
from sparsedepth.cli import main as command
from sparsedepth.files import FORMATS, read, write
from sparsedepth.markdown import table, write_made_part

SCENARIOS: dict[str, Callable[[int, random.Random, Path], dict[str, int]]] = {}


def scenario(law: Callable[[int, random.Random, Path], dict[str, int]]) -> Callable:
    SCENARIOS[law.__name__] = law
    return law


def forked(work: Callable[[], object], *, said: Path | None = None) -> int:
    """Do it in a child; its number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: there are none
        child = os.fork()
    if child:
        return child
    try:
        out = os.open(said or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        work()
        os._exit(0)
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except BaseException:
        os._exit(99)


def ended(child: int) -> int:
    """How it ended: its code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(work: Callable[[], object], seconds: float) -> bool:
    """Kill it after so long; whether it was still at work."""
    child = forked(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = ended(child)
    assert code in (0, -signal.SIGKILL), f"it ended with {code} before it was killed"
    return code != 0


def run(*words: object) -> Callable[[], object]:
    return lambda: command([str(word) for word in words])


def finished(work: Callable[[], object]) -> float:
    """Let it end; the seconds it took."""
    began = time.monotonic()
    code = ended(forked(work))
    assert code == 0, f"it ended with {code}"
    return time.monotonic() - began


def results(folder: Path) -> dict[str, bytes]:
    """What has a final name, and its bytes."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".sparsedepth-")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def leftovers(folder: Path) -> int:
    return sum(1 for _ in folder.rglob(".sparsedepth-*.tmp"))


def scenes(folder: Path, n: int = 3) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir()
    y, x = np.mgrid[:12, :14]
    for number in range(n):
        depth = 1000 + 9.0 * x + 5 * y + 200 * (x > 6 + 2 * number)
        depth[rng.random(depth.shape) < 0.05] = np.nan
        write(folder / f"{number}{'.png' if number % 2 else '.tiff'}", depth, profile="mm")
    return folder


@scenario
def writers_killed(rounds: int, rng: random.Random, folder: Path) -> dict[str, int]:
    """A file under its final name is always one that was written whole."""
    base = (np.arange(200 * 200) % 977 + 1).reshape(200, 200)
    suffixes = [suffix for suffix in FORMATS if suffix not in (".exr", ".tif")]

    def work() -> None:
        for step in range(10**6):
            for suffix in suffixes:
                write(folder / f"map{suffix}", base + step % 50, profile="mm")

    count = {"kills": 0, "files": 0}
    for _ in range(rounds):
        count["kills"] += killed(work, rng.uniform(0, 0.3))
        for path in folder.glob("map.*"):
            assert np.unique(read(path, "mm").values - base).size == 1, f"{path} is a mixture"
            count["files"] += 1
    count["leftovers"] = leftovers(folder)
    finished(lambda: write(folder / "map.png", base, profile="mm"))
    assert leftovers(folder) == 0, "the next run has not swept"
    return count


@scenario
def denoise_killed(rounds: int, rng: random.Random, folder: Path) -> dict[str, int]:
    """Whatever is there is as an undisturbed run made it, and --resume ends with the same files."""
    source = scenes(folder / "in")
    words = ("denoise", source, "--quality", "fast", "--jobs", 2, "--resume", "--profile", "mm")
    seconds = finished(run(*words, "-o", f"{folder / 'whole'}/"))
    whole = results(folder / "whole")
    count = {"kills": 0, "files": 0, "resumed": 0}
    while count["kills"] < rounds:
        out = folder / f"out{count['resumed']}"
        for _ in range(rng.randint(1, 3)):
            count["kills"] += killed(run(*words, "-o", f"{out}/"), rng.uniform(0, 1.2 * seconds))
            there = results(out)
            assert there.items() <= whole.items(), "a file is not as it should be"
            count["files"] += len(there)
        finished(run(*words, "-o", f"{out}/"))
        assert results(out) == whole
        count["resumed"] += 1
    return count


@scenario
def learn_killed(rounds: int, rng: random.Random, folder: Path) -> dict[str, int]:
    """--resume ends with the dictionary of an undisturbed run: its atoms to the last bit, and what is said of them."""

    def learned(path: Path) -> tuple[bytes, dict[str, str]]:
        found = Dictionary.load(path)
        return found.atoms.tobytes(), dict(found.about)

    source = scenes(folder / "in", 2)
    words = ("learn", *sorted(source.iterdir()), "--patch", 4, "--atoms", 8, "--steps", 12, "--batch", 16)
    words += ("--checkpoint-every", 0, "--threads", 1, "--resume")
    (folder / "whole").mkdir()
    seconds = finished(run(*words, "-o", folder / "whole" / "x.safetensors"))
    whole = learned(folder / "whole" / "x.safetensors")
    count = {"kills": 0, "resumed": 0}
    while count["kills"] < rounds:
        out = folder / f"out{count['resumed']}"
        out.mkdir()
        for _ in range(rng.randint(1, 3)):
            count["kills"] += killed(run(*words, "-o", out / "x.safetensors"), rng.uniform(0, 1.2 * seconds))
            if (out / "x.safetensors").exists():
                assert learned(out / "x.safetensors") == whole
        finished(run(*words, "-o", out / "x.safetensors"))
        assert list(results(out)) == ["x.safetensors"]
        assert learned(out / "x.safetensors") == whole
        count["resumed"] += 1
    return count


@scenario
def two_runs_at_once(rounds: int, rng: random.Random, folder: Path) -> dict[str, int]:
    """Two runs into one folder both end well, and every file is whole."""
    source = scenes(folder / "in")
    words = ("denoise", source, "--quality", "fast", "--jobs", 2, "--profile", "mm")
    seconds = finished(run(*words, "-o", f"{folder / 'whole'}/"))
    whole = results(folder / "whole")
    count = {"pairs": 0, "files": 0}
    for number in range(rounds):
        out = folder / f"out{number}"
        out.mkdir()
        both = [forked(run(*words, "-o", f"{out}/", "--force"))]
        time.sleep(rng.uniform(0, 0.5 * seconds))
        both.append(forked(run(*words, "-o", f"{out}/", rng.choice(["--force", "--resume"]), "--force")))
        codes = [ended(child) for child in both]
        assert codes == [0, 0], codes
        assert results(out) == whole
        assert leftovers(out) == 0
        count["pairs"] += 1
        count["files"] += len(whole)
    return count


@scenario
def full_and_read_only_disks(rounds: int, rng: random.Random, folder: Path) -> dict[str, int]:
    """A disk without room or that is read-only: a sentence, the old file stays, nothing half is left."""
    source, place = scenes(folder / "in"), folder / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", place], capture_output=True).returncode:
        return {"runs": 0}
    count = {"runs": 0, "sentences": 0}
    try:
        for number in range(rounds):
            read_only = number % 2
            for path in place.iterdir():
                path.unlink()
            (place / "2.tiff").write_bytes(b"precious")
            (place / "filling").write_bytes(bytes(4096 if read_only else rng.choice([4096, 8192])))
            subprocess.run(["mount", "-o", f"remount,{'ro' if read_only else 'rw'},size=16k", place], check=True)
            words = ("denoise", source, "-o", f"{place}/", "--quality", "fast", "--force", "--profile", "mm")
            code = ended(forked(run(*words), said=folder / "said"))
            said = (folder / "said").read_text()
            told = [line for line in said.splitlines() if "No space left" in line or "ead-only" in line]
            assert code in (1, 2), f"{code}: {said}"
            assert told, said
            assert "Traceback" not in said, said
            assert leftovers(place) == 0
            kept = (place / "2.tiff").read_bytes()
            assert kept == b"precious" or len(kept) > 100
            count["runs"] += 1
            count["sentences"] += len(told)
            subprocess.run(["mount", "-o", "remount,rw,size=16k", place], check=True)
    finally:
        subprocess.run(["umount", place], check=True)
    return count


def told(counts: dict[str, dict[str, int]]) -> str:
    """A table of what was tried, how often, and what happened."""
    said = {
        "writers_killed": "writers of every format, killed | {kills} kills | {files} files looked at: all whole; "
        "{leftovers} temporary files left at the end, which the next writer removed",
        "denoise_killed": "`denoise` on a folder, killed | {kills} kills | {files} files looked at: all as "
        "undisturbed; {resumed} of {resumed} `--resume` ended with the same files",
        "learn_killed": "`learn`, killed | {kills} kills | {resumed} of {resumed} `--resume` ended with the same "
        "dictionary, to the last bit",
        "two_runs_at_once": "two runs into one folder at once | {pairs} pairs | both ended well; {files} files, all "
        "whole",
        "full_and_read_only_disks": "full disk, read-only disk (tmpfs) | {runs} runs | one sentence a file "
        "({sentences}), the old file kept, nothing half",
    }
    rows = [said[name].format(**count).split(" | ") for name, count in counts.items()]
    return table(["what", "how often", "what happened"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="tell docs/trust.md")
    options = parser.parse_args()
    counts = {}
    for name in options.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            counts[name] = SCENARIOS[name](options.rounds, random.Random(options.seed), Path(folder))
        print(json.dumps({"scenario": name, **counts[name]}), flush=True)
    if options.page:
        page = Path(__file__).parents[1] / "docs" / "trust.md"
        write_made_part(page, "Trust", f"python tests/kills.py {options.rounds} --page", [told(counts)], "kills")


if __name__ == "__main__":
    main()
