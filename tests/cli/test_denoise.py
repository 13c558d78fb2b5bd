"""denoise and inpaint as a user meets them: files in, files out, and what is said about them."""

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

from outputs import files_below
from sparsedepth import Origin
from sparsedepth.cli.batch import run
from sparsedepth.files import DepthImage, read, read_array, write, write_array

FAST = ("--quality", "fast")


def scene(shape=(30, 36), seed=0) -> np.ndarray:
    """Two planes in metres with outliers, small holes and one too large to fill."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    depth = 2 + 0.01 * x + 0.004 * y + 0.8 * (x + 0.4 * y > 0.6 * shape[1])
    depth += np.where(rng.random(shape) < 0.03, rng.normal(0, 0.4, shape), 0)
    depth[rng.random(shape) < 0.03] = np.nan
    depth[2:14, 2:14] = np.nan
    return depth.astype(np.float32)


def camera_png(path: Path, depth: np.ndarray, per_unit: float = 1000) -> Path:
    """As a camera writes it: 16 bits, 0 = unknown, nothing said about the unit."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.nan_to_num(np.rint(depth * per_unit)).astype(np.uint16)).save(path)
    return path


@pytest.fixture
def folder(tmp_path) -> Path:
    """in/a.png, in/sub/b.png and a file that is no map."""
    camera_png(tmp_path / "in/a.png", scene())
    camera_png(tmp_path / "in/sub/b.png", scene(seed=1))
    (tmp_path / "in/notes.txt").write_text("a file that is no map is left alone")
    return tmp_path


def test_one_file_with_its_variance_and_origin(command, folder):
    out = {name: folder / name for name in ("a.png", "v.tiff", "o.png")}
    ended = command(
        *("denoise", folder / "in/a.png", "-o", out["a.png"], "--profile", "mm", *FAST),
        *("--variance-out", out["v.tiff"], "--origin-out", out["o.png"]),
    )
    assert ended.code == 0, ended.err
    assert ended.err == "", "nothing was assumed, so nothing is said"
    assert "filled" in ended.out
    image, origin, variance = read(out["a.png"]), read_array(out["o.png"]), read_array(out["v.tiff"])
    assert image.unit == "mm"
    assert set(np.unique(origin)) == set(Origin) - {Origin.SMOOTHED, Origin.REMEMBERED}  # the map has no dense noise
    np.testing.assert_array_equal(np.isnan(image.values), origin == Origin.REFUSED)
    np.testing.assert_array_equal(np.isinf(variance), origin == Origin.REFUSED)
    assert 1000 < np.nanmedian(image.values) < 4000


def test_the_unit_is_said_loudly_and_once(command, folder):
    ended = command("denoise", folder / "in", "-o", folder / "out", *FAST)
    assert ended.code == 0
    assert ended.err.count("took its uint16 numbers as depth in mm") == 1
    assert "--profile" in ended.err
    assert "profile=" not in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "per_unit", "options"),
    [("mm", 1000, []), ("tum", 5000, []), ("kitti", 256, []), ("kitti-disparity", 256, []), ("ros", 1000, [])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_came_as_png_goes_as_png_in_the_same_encoding(command, tmp_path, unit, per_unit, options):
    depth = scene()
    camera_png(tmp_path / "in.png", depth, per_unit)
    ended = command("inpaint", tmp_path / "in.png", "-o", tmp_path / "out.png", "--profile", unit, *options, *FAST)
    assert ended.code == 0, ended.err
    came, went = read_array(tmp_path / "in.png"), read_array(tmp_path / "out.png")
    assert went.dtype == np.uint16
    known = came != 0
    np.testing.assert_array_equal(came[known], went[known])
    assert (went[5:9, 5:9] == 0).all(), "the large hole stays unknown"


def test_middlebury_needs_and_keeps_its_scale(command, tmp_path):
    Image.fromarray(np.nan_to_num(scene() * 50).astype(np.uint8)).save(tmp_path / "in.png")
    arguments = ("inpaint", tmp_path / "in.png", "-o", tmp_path / "out.png", "--profile", "middlebury", *FAST)
    ended = command(*arguments)
    assert ended.code == 2
    assert "--scale" in ended.err
    assert command(*arguments, "--scale", 3).code == 0
    assert read_array(tmp_path / "out.png").dtype == np.uint8
    known = read_array(tmp_path / "in.png") != 0
    np.testing.assert_array_equal(read_array(tmp_path / "in.png")[known], read_array(tmp_path / "out.png")[known])


@pytest.mark.slow
def test_the_old_names_of_options_still_work_and_say_so(command, tmp_path):
    np.save(tmp_path / "in.npy", scene())
    common = ("inpaint", tmp_path / "in.npy", *FAST)
    ended = command(*common, "--unit", "m", "--output-unit=mm", "-o", tmp_path / "old.npz")
    assert ended.code == 0, ended.err
    assert "--unit is now --profile" in ended.err
    assert "--output-unit is now --output-profile" in ended.err
    assert command(*common, "--profile", "m", "--output-profile", "mm", "-o", tmp_path / "new.npz").err == ""
    assert (tmp_path / "old.npz").read_bytes() == (tmp_path / "new.npz").read_bytes()
    assert "--unit" not in command("inpaint", "--help").out


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".tiff", ".npy", ".pfm", ".npz", ".pgm"])
def test_the_suffix_decides_the_format_and_the_unit_stays(command, folder, suffix):
    out = folder / f"out{suffix}"
    assert command("denoise", folder / "in/a.png", "-o", out, "--profile", "mm", *FAST).code == 0
    image = read(out)
    assert 1000 < np.nanmedian(image.values) < 4000
    if suffix in (".tiff", ".npz"):
        assert (image.unit, image.assumed) == ("mm", "")
    if suffix == ".npz":
        assert (read_array(out, name="variance") > 0).all()
        assert set(np.unique(read_array(out, name="origin"))) == set(Origin) - {Origin.SMOOTHED, Origin.REMEMBERED}


@pytest.mark.slow
def test_metres_to_millimetres_with_their_variances(command, tmp_path):
    write(tmp_path / "in.tiff", DepthImage(scene(), "m"))
    common = ("denoise", tmp_path / "in.tiff", *FAST)
    ended = command(*common, "-o", tmp_path / "out.png")
    assert ended.code == 1
    assert "--output-profile" in ended.err
    assert command(*common, "-o", tmp_path / "out.png", "--output-profile", "mm").code == 0
    assert command(*common, "-o", tmp_path / "m.npz").code == 0
    assert command(*common, "-o", tmp_path / "mm.npz", "--output-profile", "mm").code == 0
    metres, millimetres = read(tmp_path / "m.npz"), read(tmp_path / "mm.npz")
    assert (metres.unit, millimetres.unit, read(tmp_path / "out.png").unit) == ("m", "mm", "mm")
    np.testing.assert_allclose(millimetres.values, metres.values * 1000, rtol=1e-5)
    variances = (read_array(tmp_path / f"{unit}.npz", name="variance") for unit in ("m", "mm"))
    known = np.isfinite(metres.values)
    one, other = (variance[known] for variance in variances)
    np.testing.assert_allclose(other, one * 1e6, rtol=1e-5)


def test_folders_keep_their_shape_and_json_tells_all(command, folder):
    (folder / "in/bad.png").write_bytes(b"no map")
    ended = command("denoise", folder / "in", "-o", folder / "out", "--json", *FAST, "--profile", "mm")
    assert ended.code == 1, "one file failed"
    told = json.loads(ended.out)
    assert told["failed"] == 1
    assert files_below(folder / "out") == ["a.png", "sub/b.png"]
    by_name = {Path(each["input"]).name: each for each in told["files"]}
    assert by_name["bad.png"]["error"]
    assert by_name["bad.png"]["shape"] is None
    good = by_name["b.png"]
    assert good["error"] is None
    assert good["shape"] == [30, 36]
    assert good["unit"] == "mm"
    assert good["output"] == str(folder / "out/sub/b.png")
    assert good["filled"] + good["refused"] == pytest.approx(1 - good["known"])
    assert good["seconds"] > 0


@pytest.mark.slow
def test_variances_and_origins_of_many_files_go_to_folders_or_npz(command, folder):
    extra = ("--variance-out", folder / "v", "--origin-out", folder / "o")
    assert command("inpaint", folder / "in", "-o", folder / "out", *extra, *FAST).code == 0
    assert files_below(folder / "v") == ["a.tiff", "sub/b.tiff"]
    assert files_below(folder / "o") == ["a.png", "sub/b.png"]
    assert command("inpaint", folder / "in", "-o", folder / "z", "--npz", *FAST).code == 0
    assert files_below(folder / "z") == ["a.npz", "sub/b.npz"]
    origin = read_array(folder / "o/sub/b.png")
    np.testing.assert_array_equal(origin, read_array(folder / "z/sub/b.npz", name="origin"))


@pytest.mark.slow
def test_quoted_patterns_and_outputs_within_inputs(command, folder):
    pattern = f"{folder}/in/**/*.png"
    for _ in range(2):
        assert command("inpaint", pattern, "-o", folder / "in/out", *FAST, "--force").code == 0
        assert files_below(folder / "in/out") == ["a.png", "sub/b.png"], "results are not taken for inputs"
    assert command("inpaint", folder / "in/sub", "-o", folder, *FAST).code == 0
    assert (folder / "b.png").exists(), "a folder that holds the inputs may hold the results"
    ended = command("inpaint", folder / "in", "-o", folder / "in", *FAST, "--force")
    assert ended.code == 2
    assert "one of the inputs" in ended.err
    assert command("inpaint", f"{folder}/in/*/../../in/*.png", "-o", folder / "in/sub", *FAST).code == 2


@pytest.mark.slow
def test_the_number_of_jobs_does_not_matter(command, folder):
    for number in range(4):
        camera_png(folder / f"in/{number}.png", scene(seed=number))
    for jobs in (1, 3):
        assert command("denoise", folder / "in", "-o", folder / f"out{jobs}", "--jobs", jobs, *FAST).code == 0
    assert files_below(folder / "out1") == files_below(folder / "out3")
    for name in files_below(folder / "out1"):
        assert (folder / "out1" / name).read_bytes() == (folder / "out3" / name).read_bytes()


@pytest.mark.slow
def test_processes_write_what_threads_write(command, folder):
    """Two jobs get a process each where the maps are many; one job is a thread."""
    (folder / "in/broken.png").write_bytes(b"no picture")
    for number in range(run.MIN_MAPS_FOR_PROCESSES):
        camera_png(folder / f"in/{number}.png", scene((16, 18), seed=number))
    for jobs, out in ((1, "threads"), (2, "processes")):
        ended = command("denoise", folder / "in", "-o", folder / out, "--jobs", jobs, "--method", "paper", *FAST)
        assert ended.code == 1
        assert "broken.png" in ended.err
    assert files_below(folder / "processes") == files_below(folder / "threads")
    for name in files_below(folder / "threads"):
        assert (folder / "processes" / name).read_bytes() == (folder / "threads" / name).read_bytes()


@pytest.mark.slow
def test_nothing_is_overwritten_unasked(command, folder):
    (folder / "out").mkdir()
    (folder / "out/a.png").write_bytes(b"precious")
    arguments = ("denoise", folder / "in", "-o", folder / "out", *FAST)
    ended = command(*arguments)
    assert ended.code == 2
    assert "--force" in ended.err
    assert files_below(folder / "out") == ["a.png"], "no work was begun"
    assert command(*arguments, "--skip-existing").code == 0
    assert (folder / "out/a.png").read_bytes() == b"precious"
    assert files_below(folder / "out") == ["a.png", "sub/b.png"]
    assert command(*arguments, "--force").code == 0
    assert read(folder / "out/a.png").unit == "mm"


def test_an_input_is_never_overwritten(command, folder):
    before = (folder / "in/a.png").read_bytes()
    os.symlink(folder / "in", folder / "link")
    for output in ("in/a.png", "in/../in/a.png", "link/a.png", "in/"):
        ended = command("denoise", folder / "in/a.png", "-o", f"{folder}/{output}", "--force", *FAST)
        assert ended.code == 2
        assert "one of the inputs" in ended.err
    assert (folder / "in/a.png").read_bytes() == before


def test_two_inputs_for_one_output_are_refused_before_work(command, folder):
    camera_png(folder / "other/a.png", scene())
    ended = command("denoise", folder / "in/a.png", folder / "other/a.png", "-o", folder / "out", *FAST)
    assert ended.code == 2
    assert "would both be written" in ended.err
    camera_png(folder / "in/a.pgm", scene())
    assert command("denoise", folder / "in", "-o", folder / "out", "--npz", *FAST).code == 2
    same = ("--variance-out", folder / "x.npy", "--origin-out", folder / "x.npy")
    assert command("denoise", folder / "in/a.png", "-o", folder / "y.png", *same, *FAST).code == 2
    assert files_below(folder / "out") == []


def test_outputs_do_not_leave_their_folder_by_links(command, folder):
    (folder / "out").mkdir()
    (folder / "elsewhere").mkdir()
    os.symlink(folder / "elsewhere", folder / "out/sub")
    ended = command("denoise", folder / "in", "-o", folder / "out", *FAST, "--force")
    assert ended.code == 2
    assert "leads out of" in ended.err
    os.remove(folder / "out/sub")
    os.symlink(folder / "elsewhere/a.png", folder / "out/a.png")
    assert command("denoise", folder / "in", "-o", folder / "out", *FAST, "--force").code == 0
    assert not (folder / "out/a.png").is_symlink(), "the link itself was replaced"
    assert files_below(folder / "elsewhere") == []


def test_what_a_sensor_says_of_its_pixels(command, folder):
    variance = np.full((30, 36), 25.0, np.float32)
    variance[20, 20] = np.inf
    write_array(folder / "v.npy", variance)
    write_array(folder / "o.png", np.zeros((30, 36), np.uint8))
    common = ("denoise", folder / "in", "--profile", "mm", *FAST, "--npz", "--sensor-variance")
    assert command(*common, folder / "v.npy", "-o", folder / "out").code == 0
    assert read_array(folder / "out/a.npz", name="origin")[20, 20] == Origin.FILLED
    (folder / "vs").mkdir()
    write_array(folder / "vs/a.tiff", variance)
    ended = command(*common, folder / "vs", "-o", folder / "out2")
    assert ended.code == 1, "b has no variance"
    assert "sub/b.*" in ended.err
    assert files_below(folder / "out2") == ["a.npz"]


@pytest.mark.slow
def test_a_picture_guides_the_filling(command, folder):
    """One picture for all maps, or one for each; the filled pixels follow it and no others change."""
    depth = scene()
    picture = np.where(np.nan_to_num(depth) > 2.6, 220, 30).astype(np.uint8)
    Image.fromarray(picture).save(folder / "photo.png")
    common = ("inpaint", folder / "in", "--profile", "mm", *FAST, "--npz")
    assert command(*common, "-o", folder / "plain").code == 0
    assert command(*common, "--guide", folder / "photo.png", "-o", folder / "guided").code == 0
    plain, guided = (read(folder / name / "a.npz").values for name in ("plain", "guided"))
    filled = read_array(folder / "plain/a.npz", name="origin") == Origin.FILLED
    np.testing.assert_array_equal(plain[~filled], guided[~filled])
    assert (plain[filled] != guided[filled]).any()
    (folder / "photos").mkdir()
    Image.fromarray(picture).save(folder / "photos/a.jpg")
    ended = command(*common, "--guide", folder / "photos", "-o", folder / "each")
    assert ended.code == 0, ended.err
    assert "no picture for sub/b.png" in ended.err
    assert "a.jpg" in ended.err
    ended = command(*common, "--guide", folder / "photos", "-o", folder / "strict", "--strict")
    assert ended.code == 1, "b has no picture"
    assert "no picture for sub/b.png" in ended.err
    assert files_below(folder / "strict") == ["a.npz"]
    ended = command(*common, "--guide", folder / "nothing.png", "-o", folder / "none")
    assert ended.code == 2
    assert "nothing.png" in ended.err


@pytest.mark.slow
def test_wishes(command, folder):
    common = ("denoise", folder / "in/a.png", "--profile", "mm", *FAST)
    for name, options in {
        "plain": [],
        "all": ["--holes", "all"],
        "holes": ["--no-fill"],
        "again": ["--second-pass"],
        "words": ["--dictionary", "default", "--method", "paper"],
        "codes": ["--invalid", "0", "--invalid", "65535"],
    }.items():
        ended = command(*common, *options, "-o", folder / f"{name}.npz")
        assert ended.code == 0, ended.err
    origins = {name: read_array(folder / f"{name}.npz", name="origin") for name in ("plain", "all", "holes")}
    assert (origins["plain"] == Origin.REFUSED).any()
    assert not (origins["all"] == Origin.REFUSED).any()
    assert not (origins["holes"] == Origin.FILLED).any()


# --- being stopped ---------------------------------------------------------------------------------------------------


def started(*arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "sparsedepth", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process: subprocess.Popen, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_map_ends_at_once(tmp_path):
    camera_png(tmp_path / "in/a.png", scene((30, 36)))
    camera_png(tmp_path / "in/large.png", scene((900, 900)))
    out = tmp_path / "out"
    process = started("denoise", tmp_path / "in", "-o", out, "--quality", "paper", "--jobs", 2)
    wait_for(lambda: (out / "a.png").exists(), process)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - sent < 10
    assert "Traceback" not in said
    assert "stopped" in said
    assert files_below(out) == ["a.png"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_writing_many_maps_leaves_whole_files_only(tmp_path, number):
    for index in range(300):
        camera_png(tmp_path / f"in/{index:03d}.png", scene((20, 24), seed=index))
    out = tmp_path / "out"
    process = started(
        "denoise", tmp_path / "in", "-o", out, *FAST, "--method", "paper", "--variance-out", tmp_path / "v", "--jobs", 2
    )
    wait_for(lambda: len(files_below(out)) > 20, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    written = files_below(out)
    assert 20 < len(written) < 300
    assert all(name.endswith(".png") for name in written), "no temporary file is left"
    assert sorted(os.listdir(tmp_path / "v")) == [name.replace(".png", ".tiff") for name in written]
    for name in written:
        assert read(out / name).values.shape == (20, 24)


def test_holes_too_wide_to_be_known_are_said_and_how_they_are_filled(command, tmp_path):
    plane = np.add.outer(np.linspace(1.0, 2.0, 48), np.linspace(1.0, 2.0, 64)).astype(np.float32)
    plane[10:30, 10:30] = np.nan
    np.save(tmp_path / "a.npy", plane)
    words = ("inpaint", str(tmp_path / "a.npy"), "--profile", "m", "--sensor", "clean", "--quality", "fast")
    left = command(*words, "-o", str(tmp_path / "b.npy"))
    filled = command(*words, "-o", str(tmp_path / "c.npy"), "--holes", "all")
    assert "refused (--holes all fills them)" in left.out
    assert "--holes" not in filled.out
    assert "0.0% refused" in filled.out
