"""Every bad input that a user might bring: a sentence or a documented result, never a traceback or a lost file."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from outputs import files_below
from sparsedepth import Dictionary, Restorer
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.cli.options import MapReader
from sparsedepth.files import read, read_array, write, write_array

FAST = ("--quality", "fast")
DEPTH = (1000 + 10 * np.add.outer(np.arange(16), np.arange(20))).astype(np.uint16)
METRES = (DEPTH / 1000).astype(np.float32)


def said_well(err: str) -> None:
    assert "Traceback" not in err
    assert "mistake in sparsedepth" not in err
    assert all(len(line) < 600 for line in err.splitlines())


# --- maps that are strange, but maps: a documented result -----------------------------------------------------------

STRANGE: dict[str, np.ndarray] = {
    "all NaN": np.full((12, 12), np.nan, np.float32),
    "one valid pixel": np.where(np.arange(144).reshape(12, 12) == 70, 2.0, np.nan),
    "all zero": np.zeros((12, 12), np.uint16),
    "all zero, float": np.zeros((12, 12), np.float32),
    "constant": np.full((20, 20), 1500, np.uint16),
    "smaller than a patch": METRES[:3, :4],
    "one pixel": np.ones((1, 1), np.float32),
    "one row": METRES[:1],
    "one column": METRES[:, :1],
    "infinities and 1e10": np.where(np.eye(16, 20) > 0, np.inf, np.where(METRES > 1.3, 1e10, METRES)),
    "negative": -METRES,
    "denormal": METRES * np.float32(1e-40),
    "float16": METRES.astype(np.float16),
    "float64": METRES.astype(np.float64),
    "big-endian": METRES.astype(">f4"),
    "Fortran": np.asfortranarray(METRES),
    "int32": DEPTH.astype(np.int32),
    "nearly all holes": np.where(np.random.default_rng(0).random((60, 60)) < 0.001, 2.0, np.nan),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["denoise", "inpaint"])
@pytest.mark.parametrize("name", STRANGE)
def test_strange_maps_give_a_map(command, tmp_path, verb, name):
    np.save(tmp_path / "in.npy", STRANGE[name])
    ended = command(verb, tmp_path / "in.npy", "-o", tmp_path / "out.npz", *FAST, "--invalid", 0, "--invalid", 1e10)
    assert ended.code == 0, ended.err
    said_well(ended.err)
    came, went = read(tmp_path / "in.npy", invalid=(0, 1e10)).values, read(tmp_path / "out.npz").values
    assert went.shape == came.shape
    assert np.isfinite(went[np.isfinite(came)]).all(), "what was known stays known"
    if not np.isfinite(came).any():
        assert np.isnan(went).all(), "nothing is made up"
        assert "unknown everywhere" in ended.err


def test_8_bit_depth_is_taken_for_disparity_and_that_is_said(command, tmp_path):
    Image.fromarray((DEPTH // 10).astype(np.uint8)).save(tmp_path / "in.png")
    ended = command("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", *FAST)
    assert ended.code == 0
    assert "uint8 numbers as disparity in px" in ended.err
    assert read_array(tmp_path / "out.png").dtype == np.uint8


def test_65535_as_the_code_for_unknown_pixels(command, tmp_path):
    coded = np.where(np.eye(16, 20) > 0, 65535, DEPTH).astype(np.uint16)
    Image.fromarray(coded).save(tmp_path / "in.png")
    common = ("inpaint", tmp_path / "in.png", "--profile", "mm", "--invalid", 65535, *FAST, "--json")
    told = json.loads(command(*common, "-o", tmp_path / "out.png").out)
    assert told["files"][0]["filled"] == pytest.approx(16 / 320)
    assert read_array(tmp_path / "out.png").max() < 2000


# --- files that hold no map: the others go on, and the exit code is 1 ------------------------------------------------


def _picture(mode: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        Image.new(mode, (8, 8)).save(folder / "bad.png")
        return folder / "bad.png"

    return make


def _bytes(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def _array(array: np.ndarray) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.save(folder / "bad.npy", array, allow_pickle=array.dtype == object)
        return folder / "bad.npy"

    return make


def _truncated(folder: Path) -> Path:
    write(folder / "bad.png", np.arange(1.0, 4001).reshape(50, 80), profile="mm")
    whole = (folder / "bad.png").read_bytes()
    (folder / "bad.png").write_bytes(whole[: len(whole) // 2])
    return folder / "bad.png"


def _lying_png(folder: Path) -> Path:
    write(folder / "bad.png", DEPTH, profile="mm")
    content = bytearray((folder / "bad.png").read_bytes())
    content[16:24] = struct.pack(">II", 100_000, 100_000)
    (folder / "bad.png").write_bytes(content)
    return folder / "bad.png"


def _slipping_npz(folder: Path) -> Path:
    np.save(folder / "x.npy", np.zeros((2, 2, 2)))
    with zipfile.ZipFile(folder / "bad.npz", "w") as archive:
        archive.write(folder / "x.npy", "../../slipped.npy")
    (folder / "x.npy").unlink()
    return folder / "bad.npz"


def _link_to_itself(folder: Path) -> Path:
    os.symlink(folder / "bad.png", folder / "bad.png")
    return folder / "bad.png"


NO_MAPS = {
    "colour": (_picture("RGB"), "colour picture"),
    "colour with alpha": (_picture("RGBA"), "colour with alpha"),
    "palette, as of a colour map": (_picture("P"), "palette"),
    "grey with alpha": (_picture("LA"), "grey with alpha"),
    "black and white": (_picture("1"), "1 bits"),
    "truncated": (_truncated, "bad.png"),
    "lying header": (_lying_png, "budget"),
    "lying npy": (_bytes("bad.npy", b"\x93NUMPY\x01\0\x04\0{'a("), "cannot be read"),
    "empty": (_bytes("bad.png", b""), "no PNG"),
    "empty TIFF": (_bytes("bad.tiff", b""), "bad.tiff"),
    "text": (_bytes("bad.pfm", b"hello"), "bad.pfm"),
    "JPEG named PNG": (_bytes("bad.png", b"\xff\xd8\xff\xe0" + bytes(50)), "no PNG"),
    "unknown suffix": (_bytes("bad.jpg", b"\xff\xd8\xff\xe0"), "not known"),
    "no suffix": (_bytes("bad", b"\x89PNG"), "not known"),
    "zip that would slip": (_slipping_npz, "bad.npz"),
    "link to itself": (_link_to_itself, "no file"),
    "missing": (lambda folder: folder / "bad.png", "no file"),
    "very long name": (lambda folder: folder / ("x" * 300 + ".png"), "no file"),
    "three channels": (_array(np.zeros((4, 4, 3))), "2-D"),
    "no pixels": (_array(np.zeros((0, 0))), "at least one"),
    "complex": (_array(np.zeros((4, 4), complex)), "real"),
    "pickle": (_array(np.array([[{}]], dtype=object)), "bad.npy"),
    "beyond float32": (_array(np.full((4, 4), 1e300)), "float32"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NO_MAPS)
def test_a_file_that_holds_no_map_does_not_stop_the_others(command, tmp_path, name):
    make, sentence = NO_MAPS[name]
    write(tmp_path / "good.png", DEPTH, profile="mm")
    bad = make(tmp_path)
    ended = command("denoise", bad, tmp_path / "good.png", "-o", tmp_path / "out", *FAST, "--json")
    assert ended.code == 1
    assert sentence in ended.err
    said_well(ended.err)
    told = json.loads(ended.out)
    assert [bool(each["error"]) for each in told["files"]] == [True, False]
    assert sentence in told["files"][0]["error"]
    assert files_below(tmp_path / "out") == ["good.png"]
    assert not (tmp_path.parent / "slipped.npy").exists()


@pytest.mark.parametrize("name", ["colour", "truncated", "empty", "missing"])
@pytest.mark.parametrize("verb", ["show", "evaluate", "learn"])
def test_the_other_commands_say_it_too(command, tmp_path, verb, name):
    make, sentence = NO_MAPS[name]
    bad = make(tmp_path)
    write(tmp_path / "good.png", DEPTH, profile="mm")
    ended = {
        "show": lambda: command("show", bad, "-o", tmp_path / "x.png"),
        "evaluate": lambda: command("evaluate", bad, tmp_path / "good.png"),
        "learn": lambda: command("learn", bad, "-o", tmp_path / "x.safetensors"),
    }[verb]()
    assert ended.code == 2
    assert sentence in ended.err
    said_well(ended.err)
    assert not list(tmp_path.glob("x.*"))


# --- variances, dictionaries, units ---------------------------------------------------------------------------------

VARIANCES = {
    "wrong shape": (np.ones((4, 4), np.float32), "shape"),
    "zero": (np.zeros(DEPTH.shape, np.float32), "positive"),
    "negative": (-np.ones(DEPTH.shape, np.float32), "positive"),
    "a confidence with zeros": (np.eye(*DEPTH.shape, dtype=np.float32), "confidence"),
}


@pytest.mark.parametrize("name", VARIANCES)
def test_bad_variances(command, tmp_path, name):
    variance, sentence = VARIANCES[name]
    write(tmp_path / "in.png", DEPTH, profile="mm")
    write_array(tmp_path / "v.tiff", variance)
    common = ("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", *FAST, "--sensor-variance")
    ended = command(*common, tmp_path / "v.tiff")
    assert ended.code == 1
    assert sentence in ended.err
    assert not (tmp_path / "out.png").exists()
    assert command(*common, tmp_path / "missing.tiff").code == 2


def test_a_variance_of_nan_means_unknown(command, tmp_path):
    write(tmp_path / "in.png", DEPTH, profile="mm")
    write_array(tmp_path / "v.tiff", np.full(DEPTH.shape, np.nan, np.float32))
    ended = command(
        *("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", *FAST, "--sensor-variance", tmp_path / "v.tiff")
    )
    assert ended.code == 0
    assert "unknown everywhere" in ended.err
    assert not read_array(tmp_path / "out.png").any()


def _dictionary(folder: Path, name: str) -> str:
    path = folder / f"{name}.safetensors"
    shipped = Dictionary.builtin("default")
    header = {"kind": "sparsedepth dictionary", "patch_shape": json.dumps(shipped.patch_shape)}
    atoms = shipped.atoms.copy()
    if name == "a map":
        write(folder / "map.npy", DEPTH, profile="mm")
        return str(folder / "map.npy")
    if name == "text":
        path.write_text("no dictionary")
    elif name == "NaN":
        atoms[0, 0] = np.nan
        save_file({"atoms": atoms}, path, header)
    elif name == "not normalised":
        save_file({"atoms": atoms * 3}, path, header)
    elif name == "wrong patch shape":
        save_file({"atoms": atoms}, path, header | {"patch_shape": "[5, 5]"})
    elif name == "someone else's":
        save_file({"weights": atoms}, path, {"format": "pt"})
    elif name == "no such name":
        return "phi9"
    return str(path)


@pytest.mark.parametrize(
    "name",
    ["a map", "text", "NaN", "not normalised", "wrong patch shape", "someone else's", "no such name", "missing"],
)
def test_bad_dictionaries_are_refused_before_work(command, tmp_path, name):
    write(tmp_path / "in.png", DEPTH, profile="mm")
    ended = command(
        *("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", "--dictionary", _dictionary(tmp_path, name))
    )
    assert ended.code == 2
    said_well(ended.err)
    assert not (tmp_path / "out.png").exists()


WRONG = {
    "unknown unit": (["in.png", "-o", "x.png", "--profile", "inch"], "no profile 'inch'"),
    "unknown output unit": (["in.png", "-o", "x.png", "--output-profile", "inch"], "no profile 'inch'"),
    "no scale": (["in.png", "-o", "x.png", "--profile", "middlebury"], "--scale"),
    "negative scale": (["in.png", "-o", "x.png", "--scale", "-1"], "positive"),
    "scale of text": (["in.png", "-o", "x.png", "--scale", "big"], "--scale"),
    "unknown method": (["in.png", "-o", "x.png", "--method", "magic"], "choose one of"),
    "unknown quality": (["in.png", "-o", "x.png", "--quality", "magic"], "magic"),
    "no jobs": (["in.png", "-o", "x.png", "--jobs", "0"], "greater than"),
    "no output": (["in.png"], "--output"),
    "no input": (["-o", "x.png"], "input"),
    "empty input": (["", "-o", "x.png"], "empty name"),
    "empty output": (["in.png", "-o", ""], "is a folder"),
    "unknown suffix": (["in.png", "-o", "x.jpg"], "not known"),
    "no folder": (["in.png", "-o", "nowhere/x.png"], "no folder"),
    "folder that is a file": (["in.png", "in.png", "-o", "in.png"], "is a file"),
    "file as folder": (["in.png", "-o", "in.png/"], "is a file"),
    "no maps in a folder": (["empty", "-o", "x"], "holds no maps"),
    "a folder named like a file": (["folder.png", "-o", "x.png"], "holds no maps"),
    "no match": (["*.tiff", "-o", "x"], "holds no maps"),
    "variance in integers": (["in.png", "-o", "x.png", "--variance-out", "v.png"], "use .tiff"),
    "origin in floats": (["in.png", "-o", "x.png", "--origin-out", "o.tiff"], "use .png"),
    "npz into png": (["in.png", "-o", "x.png", "--npz"], ".npz"),
    "swapped": (["x.png", "-o", "in.png"], "exists"),
    "a device": (["in.png", "-o", "/dev/full", "--force"], "not known"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_commands_are_refused_before_work(command, tmp_path, monkeypatch, name):
    arguments, sentence = WRONG[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.png").mkdir()
    write("in.png", DEPTH, profile="mm")
    before = Path("in.png").read_bytes()
    ended = command("denoise", *arguments)
    assert ended.code == 2
    assert sentence in ended.err
    said_well(ended.err)
    assert ended.out == ""
    assert sorted(os.listdir()) == ["empty", "folder.png", "in.png"]
    assert Path("in.png").read_bytes() == before


@pytest.mark.parametrize(
    ("values", "options", "sentence"),
    [
        (METRES * 100, ["--output-profile", "mm"], "does not fit uint16"),
        (-METRES, ["--output-profile", "mm"], "negative"),
        (METRES, [], "--output-profile"),
        (METRES, ["--output-profile", "px"], "kind|disparity"),
    ],
    ids=["overflow", "negative", "no unit for integers", "another kind"],
)
def test_what_a_file_cannot_hold_is_said_and_leaves_nothing(command, tmp_path, values, options, sentence):
    np.save(tmp_path / "in.npy", values)
    ended = command(
        *("inpaint", tmp_path / "in.npy", "-o", tmp_path / "out.png", "--profile", "m", *FAST, *options),
        *("--variance-out", tmp_path / "v.tiff", "--origin-out", tmp_path / "o.png"),
    )
    assert ended.code == 1
    assert any(word in ended.err for word in sentence.split("|"))
    assert os.listdir(tmp_path) == ["in.npy"], "no variance without its map"


# --- names, rights and disks ----------------------------------------------------------------------------------------


def run(*arguments, **options):
    command = [sys.executable, "-m", "sparsedepth", *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


@pytest.mark.slow
def test_names_in_no_encoding(tmp_path):
    folder = os.fsencode(tmp_path / "in")
    os.mkdir(folder)
    np.save(os.fsdecode(folder + b"/d\xff.npy"), METRES)
    (tmp_path / "in" / os.fsdecode(b"bad\xfe.npy")).write_bytes(b"")
    for options in ([], ["--json", "--force"]):
        done = run("denoise", folder, "-o", tmp_path / "out", *FAST, *options)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
        assert b"bad" in done.stderr
        assert files_below(tmp_path / "out") == [os.fsdecode(b"d\xff.npy")]
    assert len(json.loads(done.stdout)["files"]) == 2
    done = run("show", folder + b"/d\xff.npy", "-o", tmp_path / "x.png", "--profile", "m")
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_as_long_as_the_file_system_allows(command, tmp_path):
    name = "x" * 251 + ".png"
    write(tmp_path / name, DEPTH, profile="mm")
    assert command("inpaint", tmp_path / name, "-o", f"{tmp_path}/out/", *FAST).code == 0
    assert files_below(tmp_path / "out") == [name]
    ended = command("inpaint", tmp_path / name, "-o", tmp_path / f"y{name}", *FAST)
    assert ended.code == 2
    assert "too long" in ended.err


def test_an_output_folder_that_cannot_be_written(command, tmp_path):
    write(tmp_path / "in.png", DEPTH, profile="mm")
    if os.geteuid() == 0:
        folder = Path("/proc")
        if not folder.is_dir():
            pytest.skip("a root user may write everywhere")
    else:
        folder = tmp_path / "closed"
        folder.mkdir(0o500)
    ended = command("denoise", tmp_path / "in.png", "-o", folder / "out.png", *FAST)
    assert ended.code in (1, 2)
    assert "cannot write" in ended.err
    said_well(ended.err)


def test_a_device_is_not_replaced_by_a_file(command, tmp_path):
    write(tmp_path / "in.png", DEPTH, profile="mm")
    os.symlink("/dev/full", tmp_path / "out.png")
    ended = command("denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", *FAST, "--force")
    assert ended.code == 1
    assert "no regular file" in ended.err
    assert (tmp_path / "out.png").is_symlink()


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "in.tiff", rng.random((200, 200)) + 1, profile="m")
    (tmp_path / "out.tiff").write_bytes(b"precious")

    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = run("inpaint", tmp_path / "in.tiff", "-o", tmp_path / "out.tiff", "--force", preexec_fn=fill_the_disk)
    assert done.returncode == 1
    assert b"cannot write" in done.stderr
    assert b"Traceback" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["in.tiff", "out.tiff"]
    assert (tmp_path / "out.tiff").read_bytes() == b"precious"
    done = run("show", tmp_path / "in.tiff", "-o", tmp_path / "x.png", preexec_fn=fill_the_disk)
    assert done.returncode == 2
    assert not (tmp_path / "x.png").exists()


def test_what_a_killed_run_left_behind_is_no_input(command, tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in/a.png", DEPTH, profile="mm")
    (tmp_path / "in/.sparsedepth-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / "in/.hidden.png").write_bytes(b"half")
    assert command("inpaint", tmp_path / "in", "-o", tmp_path / "out", *FAST).code == 0
    assert files_below(tmp_path / "out") == ["a.png"]


def test_a_mistake_of_ours_is_one_sentence_and_the_other_files_go_on(run_spec, tmp_path):
    restorer = Restorer(quality="fast", method="paper")

    def fails_for_some(depth, **options):
        if len(depth.values) < len(DEPTH):
            raise ZeroDivisionError("what nobody foresaw")
        return restorer(depth, **options)

    (tmp_path / "in").mkdir()
    write(tmp_path / "in/a.png", DEPTH[:12], profile="mm")
    write(tmp_path / "in/b.png", DEPTH, profile="mm")
    task = RestoreSpec(fails_for_some, {}, MapReader("mm", None, None), None, None, None)
    ended = run_spec(task, tmp_path / "in", tmp_path / "out")
    assert ended.code == 1
    assert "a mistake in sparsedepth (ZeroDivisionError: what nobody foresaw)" in ended.err
    assert "Traceback" not in ended.err
    assert files_below(tmp_path / "out") == ["b.png"]
