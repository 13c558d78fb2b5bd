"""The core without the extras: it works, and every feature that needs one says what to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
MODULES_OF = {
    "cli": ["typer", "rich"],
    "plot": ["matplotlib", "markdown_it"],
    "reproduce": ["skimage", "pywt"],
    "stereo": ["cv2", "skimage"],
    "camera": ["pyrealsense2", "openni"],
    "serve": ["fastapi", "uvicorn", "multipart", "python_multipart", "plotly"],
    "sklearn": ["sklearn"],
    "cluster": ["dask", "distributed"],
    "exr": ["OpenEXR"],
    "bags": ["rosbags"],
    "phone": ["liblzfse"],
}
CORE = {"numpy", "scipy", "threadpoolctl", "pillow", "tifffile", "safetensors"}
BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_without(extras: list[str], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter that lacks what some extras install, or a module that is none."""
    blocked = {module for extra in extras for module in MODULES_OF.get(extra, [extra])}
    text = BLOCK.format(blocked=blocked) + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=folder, check=False)


def command(*words: str) -> str:
    return f"from sparsedepth.cli import main; main({list(words)!r})"


def packages(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[><=]", requirement)[0] for requirement in requirements}


def test_the_core_has_few_dependencies():
    assert packages(PROJECT["dependencies"]) == CORE


def test_every_extra_is_among_all():
    """Drivers of cameras are for those who have one; the decoder of a phone's recordings has no wheels."""
    extras = PROJECT["optional-dependencies"]
    assert set(MODULES_OF) == set(extras) - {"all", "bench", "test", "docs", "fuzz", "release", "dev"}
    assert set(re.findall(r"[a-z]+", extras["all"][0].partition("[")[2])) == set(MODULES_OF) - {"camera", "phone"}


def test_the_core_works_without_any_extra(tmp_path):
    code = """
import numpy as np, sparsedepth
from sparsedepth.files import read, write
for name in sparsedepth.__all__: getattr(sparsedepth, name)
depth = np.add.outer(np.zeros(40), np.linspace(1.0, 2.0, 60))
depth[10, 20], depth[30, 30:33] = 5.0, np.nan
write("x.npz", sparsedepth.denoise(depth))
write("x.tiff", read("x.npz"))
left = np.random.default_rng(0).random((40, 96), np.float32)
sparsedepth.match(left, np.roll(left, -4, axis=1), max_disparity=16)
"""
    ended = run_without(list(MODULES_OF), code, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "x.tiff").exists()


def test_the_command_without_its_packages_says_what_to_install(tmp_path):
    for words in ([], ["--help"], ["denoise", "x.png", "-o", "y.png"]):
        ended = run_without(list(MODULES_OF), command(*words), tmp_path)
        assert ended.returncode == 2
        assert ended.stderr == (
            "error: the command line needs typer; install it with: pip install 'sparsedepth[cli]'\n"
        )


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("plot", ["show", "x.npy", "-o", "x.png"]),
        ("plot", ["report", "x.npy", "-o", "x.html"]),
        ("plot", ["stream", "x.npy", "-o", "out", "--video", "x.gif"]),
        ("reproduce", ["demo"]),
        ("serve", ["serve"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_without_its_extra_says_what_to_install(missing, words, tmp_path):
    (tmp_path / "x.npy").write_bytes(b"")
    ended = run_without([missing], command(*words), tmp_path)
    assert ended.returncode == 2
    assert f"pip install 'sparsedepth[{missing}]'" in " ".join(ended.stderr.split())


def test_reproducing_without_the_experiments_says_what_to_install(tmp_path):
    ended = run_without(["sparsedepth_experiments"], command("reproduce", "denoising"), tmp_path)
    assert ended.returncode == 2
    assert "pip install ./experiments" in " ".join(ended.stderr.split())


def test_commands_need_no_extra_but_their_own(tmp_path):
    code = "import numpy as np; np.save('x.npy', np.ones((30, 40))); "
    others = [extra for extra in MODULES_OF if extra != "cli"]
    for words in (["denoise", "x.npy", "-o", "y.npy"], ["stream", "x.npy", "-o", "out"], ["dictionary", "default"]):
        ended = run_without(others, code + command(*words), tmp_path)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("plot", "import sparsedepth.pictures"),
        ("plot", "import sparsedepth.sensor_pictures"),
        ("reproduce", "import sparsedepth.baselines"),
        ("reproduce", "from sparsedepth.data.motorcycle import motorcycle_pair; motorcycle_pair()"),
        ("reproduce", "import sparsedepth_experiments; sparsedepth_experiments.load('denoising')"),
    ],
)
def test_python_without_an_extra_says_what_to_install(missing, code, tmp_path):
    caught = f"from sparsedepth import InputError\ntry:\n    {code}\nexcept InputError as error:\n    print(error)"
    ended = run_without([missing], caught, tmp_path)
    assert f"pip install 'sparsedepth[{missing}]'" in ended.stdout, ended.stderr
