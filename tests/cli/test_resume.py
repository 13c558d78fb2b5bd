"""--resume: what is done and verified is left out, all else is done, and the end is that of a run never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from outputs import files_below
from sparsedepth.cli.batch import journal
from sparsedepth.files import write_array

pytestmark = pytest.mark.slow

QUICK = ("--quality", "fast", "--method", "paper", "--profile", "mm")


def frame(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth = 1000 + np.add.outer(np.arange(20.0), 5 * np.arange(24.0)) + 300 * (np.arange(24) > 8 + seed % 8)
    depth[rng.random(depth.shape) < 0.05] = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    write_array(path, depth.astype(np.uint16))


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files_below(folder)}


@pytest.fixture
def folder(tmp_path) -> Path:
    for index in range(5):
        frame(tmp_path / f"in/{index}.png", index)
    return tmp_path


def test_only_what_is_missing_damaged_or_changed_is_done_again(command, folder):
    out = folder / "out"
    again = ("denoise", folder / "in", "-o", out, "--variance-out", folder / "v", *QUICK)
    assert command(*again).code == 0
    first, variances = results(out), results(folder / "v")
    (out / "0.png").unlink()
    (out / "1.png").write_bytes(first["1.png"][:-20])
    (folder / "v/2.tiff").write_bytes(b"")
    frame(folder / "in/3.png", 8)
    untouched = (out / "4.png").stat().st_mtime_ns
    ended = command(*again, "--resume", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (len(told["files"]), told["skipped"]) == (4, 1)
    assert (out / "4.png").stat().st_mtime_ns == untouched
    assert {name: content for name, content in results(out).items() if name != "3.png"} == {
        name: content for name, content in first.items() if name != "3.png"
    }
    assert results(out)["3.png"] != first["3.png"]
    assert results(folder / "v")["2.tiff"] == variances["2.tiff"]
    assert json.loads(command(*again, "--resume", "--json").out)["skipped"] == 5


def test_another_way_of_making_them_makes_them_again(command, folder):
    common = ("-o", folder / "out", *QUICK, "--resume", "--json")
    assert command("denoise", folder / "in", *common).code == 0
    for arguments in (("denoise", "--no-fill"), ("denoise", "--invalid", 0, "--invalid", 7), ("inpaint",)):
        verb, *options = arguments
        assert json.loads(command(verb, folder / "in", *common, *options).out)["skipped"] == 0
        assert json.loads(command(verb, folder / "in", *common, *options).out)["skipped"] == 5


def test_what_no_run_of_ours_began_is_not_overwritten(command, folder):
    (folder / "out").mkdir()
    (folder / "out/2.png").write_bytes(b"precious")
    ended = command("denoise", folder / "in", "-o", folder / "out", *QUICK, "--resume")
    assert ended.code == 2
    assert "--force" in ended.err
    assert results(folder / "out") == {"2.png": b"precious"}


def test_a_torn_record_counts_for_nothing(command, folder):
    again = ("denoise", folder / "in", "-o", folder / "out", *QUICK, "--resume", "--json")
    assert command(*again).code == 0
    record = folder / "out" / journal.NAME
    lines = record.read_text().splitlines()
    record.write_text("\n".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]) + '\n[1, 2]\n{"output": 5}\n\x00')
    assert json.loads(command(*again).out)["skipped"] == 4
    assert json.loads(command(*again).out)["skipped"] == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [(("--resume", "--skip-existing", "-o", "out/"), "enough"), (("--resume", "-o", "out.png"), "folder")],
    ids=str,
)
def test_wishes_that_make_no_sense_are_refused(command, folder, monkeypatch, options, says):
    monkeypatch.chdir(folder)
    ended = command("denoise", "in/0.png", *options)
    assert ended.code == 2
    assert says in ended.err


def test_killed_it_resumes_to_the_same_files(command, tmp_path):
    for index in range(120):
        frame(tmp_path / f"in/{index:03d}.png", index)
    out = tmp_path / "out"
    words = [*map(str, ("denoise", tmp_path / "in", "-o", out, *QUICK, "--jobs", 2, "--resume", "--json"))]
    process = subprocess.Popen([sys.executable, "-m", "sparsedepth", *words], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not out.exists() or len(os.listdir(out)) < 20):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    whole = {path.name: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert 10 < len(whole) < 120
    told = json.loads(command(*words).out)
    assert len(whole) - 2 <= told["skipped"] <= len(whole), "two may have been written but not recorded"
    kept = sum(path.stat().st_mtime_ns == whole.get(path.name) for path in out.glob("*.png"))
    assert kept == told["skipped"]
    assert command("denoise", tmp_path / "in", "-o", tmp_path / "straight", *QUICK, "--jobs", 1).code == 0
    done = {name: content for name, content in results(out).items() if not name.endswith(".tmp")}
    assert done == results(tmp_path / "straight")
