"""learn, dictionary and what all commands share: real processes, exit codes, a real SIGKILL."""

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
from PIL import Image

from sparsedepth import Dictionary
from sparsedepth.patches import PatchStream

pytestmark = pytest.mark.slow


def run(*arguments, check=True, **options):
    done = subprocess.run(
        [sys.executable, "-m", "sparsedepth", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def maps(tmp_path_factory) -> list[Path]:
    """Two maps with edges, slants, noise and holes, as npy files."""
    folder = tmp_path_factory.mktemp("maps")
    rng = np.random.default_rng(0)
    files = []
    for number in range(2):
        y, x = np.mgrid[:60, :80]
        depth = 5.0 + 0.02 * x + 2 * (x + number * y > 60) + (y > 40) + 0.05 * rng.standard_normal(x.shape)
        depth[rng.random(depth.shape) < 0.03] = np.nan
        files.append(folder / f"map{number}.npy")
        np.save(files[-1], depth.astype(np.float32))
    return files


def learn_arguments(maps, output, steps=60):
    return ["learn", *maps, "-o", output, "--patch", 8, "--atoms", 80, "--steps", steps, "--batch", 64, "--seed", 5]


def test_learn_writes_a_dictionary_that_says_where_it_comes_from(maps, tmp_path):
    output = tmp_path / "d.safetensors"
    done = run(*learn_arguments(maps, output, steps=6), "--json")
    facts = json.loads(done.stdout)
    assert facts["atoms"] == 80
    assert np.isfinite(facts["held_out_energy"])
    dictionary = Dictionary.load(output)
    assert dictionary.patch_shape == (8, 8)
    for fact in ("trained_on", "unit", "normalisation", "noise", "seed", "version", "command"):
        assert dictionary.about[fact]
    assert dictionary.about["command"].startswith("sparsedepth learn")
    assert [p.name for p in tmp_path.iterdir()] == ["d.safetensors"], "no checkpoint is left behind"


def test_maps_are_read_as_by_every_other_command(maps, tmp_path):
    """A profile decodes, a folder and a pattern stand for their maps, and what is assumed is said."""
    stored = [np.nan_to_num(np.load(file) * 256).astype(np.uint16) for file in maps]
    (tmp_path / "in").mkdir()
    for number, numbers in enumerate(stored):
        np.save(tmp_path / f"in/map{number}.npy", np.where(numbers == 0, np.nan, numbers / np.float32(256)))
        Image.fromarray(numbers).save(tmp_path / f"in/map{number}.png")
    options = ("--patch", 8, "--atoms", 20, "--steps", 3, "--batch", 64)
    dictionaries = []
    for name, given in {
        "decoded": [tmp_path / "in/map0.png", tmp_path / "in/map1.png", "--profile", "kitti"],
        "a pattern": [f"{tmp_path}/in/*.png", "--profile", "kitti"],
        "metres": [f"{tmp_path}/in/*.npy", "--profile", "m"],
        "a scale": [f"{tmp_path}/in/*.png", "--scale", 256],
    }.items():
        output = tmp_path / f"{name}.safetensors"
        done = run("learn", *given, "-o", output, *options)
        dictionaries.append(Dictionary.load(output))
        assert ("took its uint16 numbers" in done.stderr) == (name == "a scale")
    for dictionary in dictionaries[1:]:
        np.testing.assert_array_equal(dictionary.atoms, dictionaries[0].atoms)
    assert [dictionary.about["unit"] for dictionary in dictionaries] == ["m", "m", "m", "unknown"]
    assert run("learn", tmp_path / "in", "-o", tmp_path / "folder.safetensors", *options).returncode == 0
    assert Dictionary.load(tmp_path / "folder.safetensors").about["trained_on"].startswith("4 maps")


def test_the_record_says_how_patches_were_normalised(maps, tmp_path):
    run(*learn_arguments(maps, tmp_path / "d.safetensors", steps=3))
    about = Dictionary.load(tmp_path / "d.safetensors").about
    assert f"softening {PatchStream([np.eye(9)], (8, 8)).softening:g} map deviations" in about["normalisation"]


@pytest.mark.parametrize("option", [["--noise", "stationary"], ["--holes", "keep"], ["--noise", "jeffreys"]], ids=str)
def test_the_three_dictionaries_of_the_paper_are_options(maps, tmp_path, option):
    run(*learn_arguments(maps, tmp_path / "d.safetensors", steps=3), *option)
    assert Dictionary.load(tmp_path / "d.safetensors").n_atoms == 80


@pytest.mark.parametrize(
    ("option", "noise"),
    [([], "Jeffreys(floor=0.01, initial=1.0)"), (["--noise", "stationary"], "Stationary(variance=1.0)")],
    ids=str,
)
def test_as_paper_learns_from_random_atoms_with_the_papers_variances(maps, tmp_path, option, noise):
    output = tmp_path / "d.safetensors"
    run("learn", *maps, "-o", output, "--as-paper", "--patch", 8, "--atoms", 80, "--steps", 3, *option)
    about = Dictionary.load(output).about
    facts = {"start": "random", "noise": noise, "batch": "128", "learning": "as in the paper"}
    assert {**about, **facts} == about
    assert "map's deviation" in about["normalisation"]
    repeated = about["command"].split()
    again = [word if not word.endswith(".npy") else str(maps[0].parent / word) for word in repeated[1:]]
    again[again.index("-o") + 1] = str(tmp_path / "again.safetensors")
    run(*again)
    np.testing.assert_array_equal(Dictionary.load(tmp_path / "again.safetensors").atoms, Dictionary.load(output).atoms)


@pytest.mark.parametrize("option", [[], ["--as-paper"]], ids=str)
def test_killed_at_any_moment_it_resumes_to_the_same_dictionary(maps, tmp_path, option):
    whole = tmp_path / "whole.safetensors"
    run(*learn_arguments(maps, whole, steps=150), *option, "--threads", 1)
    killed = tmp_path / "killed.safetensors"
    command = [*learn_arguments(maps, killed, steps=150), *option, "--checkpoint-every", 0.0, "--resume"]
    checkpoint = Path(f"{killed}.checkpoint")
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(2):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen([sys.executable, "-m", "sparsedepth", *map(str, command)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.3)))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 1, "the run was over before it could be killed"
    assert checkpoint.exists()
    assert not killed.exists()
    done = run(*command)
    assert "resuming after step" in done.stderr
    np.testing.assert_array_equal(Dictionary.load(killed).atoms, Dictionary.load(whole).atoms)
    assert not checkpoint.exists()
    assert "nothing to resume" in run(*command).stderr
    assert "other data or settings" in run(*command, "--half", check=False).stderr


def test_a_checkpoint_of_another_run_is_refused(maps, tmp_path):
    output = tmp_path / "d.safetensors"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "sparsedepth",
            *map(str, learn_arguments(maps, output, steps=3000)),
            "--checkpoint-every",
            "0",
        ],
        stderr=subprocess.DEVNULL,
    )
    checkpoint = Path(f"{output}.checkpoint")
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    done = run(*learn_arguments(maps, output, steps=2999), "--resume", check=False)
    assert done.returncode == 2
    assert "other data or settings" in done.stderr


def test_existing_output_is_not_overwritten_unasked(maps, tmp_path):
    output = tmp_path / "d.safetensors"
    output.write_bytes(b"precious")
    done = run(*learn_arguments(maps, output, steps=3), check=False)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert output.read_bytes() == b"precious"
    run(*learn_arguments(maps, output, steps=3), "--force")
    assert Dictionary.load(output).n_atoms == 80


def test_dictionary_command_describes_and_draws(tmp_path):
    done = run("dictionary", "phi1", "--mosaic", tmp_path / "mosaic.png", "--json")
    facts = json.loads(done.stdout)
    assert facts["atoms"] == 256
    assert facts["patch_shape"] == [16, 16]
    assert (tmp_path / "mosaic.png").read_bytes().startswith(b"\x89PNG")
    assert "atoms: 256" in run("dictionary", "phi1").stdout
    run("dictionary", "phi1", "--curve", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_dictionary_without_a_history_has_no_curve(tmp_path):
    Dictionary(np.eye(4, dtype=np.float32), (2, 2)).save(tmp_path / "by_hand.safetensors")
    done = run("dictionary", tmp_path / "by_hand.safetensors", "--curve", tmp_path / "curve.png", check=False)
    assert done.returncode == 2
    assert "does not say its energies" in done.stderr
    assert not (tmp_path / "curve.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dictionary", "no-such-name"], "choose one of"),
        (["dictionary", "no-such.safetensors"], "no file"),
        (["learn", "missing.npy", "-o", "out.safetensors"], "no file"),
        (["learn", "missing.npy", "-o", "nowhere/out.safetensors"], "no folder"),
        (["learn", "missing.npy", "-o", "."], "is a folder"),
        (["learn", ".", "-o", "out.safetensors"], "holds no maps"),
        (["learn", "missing.npy", "-o", "out.safetensors", "--sparsity", "-1"], "no file"),
        (["dictionary", "phi1", "--mosaic", "nowhere/x.png"], "no folder"),
        (["learn", "x.npy", "-o", "d.safetensors", "--as-paper", "--every", "2"], "leave --every out"),
        (["dictionary", "phi1", "--mosaic", "x.xyz"], "must end in .png"),
        (["dictionary", "phi1", "--curve", "x.xyz"], "must end in .png"),
        (["dictionary", "x" * 300], "choose one of"),
        (["reproduce", "nothing"], "no experiment"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_mistakes_are_one_sentence_and_exit_code_two(arguments, message, tmp_path):
    done = run(*arguments, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_options_are_usage_errors(tmp_path):
    done = run("learn", "x.npy", "-o", "y", "--noise", "loud", check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "loud" in done.stderr
    assert "Traceback" not in done.stderr


def test_version_and_help():
    import sparsedepth

    assert run("--version").stdout.strip() == sparsedepth.__version__
    shown = run("--help").stdout
    for command in ("denoise", "inpaint", "show", "evaluate", "report", "learn", "dictionary", "demo", "reproduce"):
        assert command in shown
    assert "Usage" in run("learn", "--help").stdout
