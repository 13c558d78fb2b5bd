"""Who may import whom: the rooms of the house."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sparsedepth
import sparsedepth_experiments

ROOT = Path(sparsedepth.__file__).parent
EXPERIMENTS = Path(sparsedepth_experiments.__file__).parent
MAY_IMPORT = {
    "vocabulary": {"display", "files"},  # within methods that show, save and load; nothing is imported with it
    "display": {"vocabulary", "dictionary", "sensors", "pictures"},
    "containers": {"vocabulary"},
    "restorer_files": {"vocabulary", "checks", "atomic_files", "dictionary", "messages", "sensors"},
    "checks": {"vocabulary"},
    "extras": {"vocabulary"},
    "atomic_files": {"vocabulary"},
    "patches": {"vocabulary", "checks"},
    "kernels": {"vocabulary"},
    "geometry": {"vocabulary", "atomic_files", "input_warnings"},
    "neighbourhood": {"vocabulary", "kernels"},
    "chosen_pixels": {"vocabulary", "kernels"},
    "ranks": {"vocabulary", "kernels"},
    "components": {"kernels"},
    "messages": set(),
    "input_warnings": {"vocabulary"},
    "tensor_files": {"vocabulary", "checks"},
    "surfaces": {"vocabulary", "kernels"},
    "missing": {"vocabulary", "kernels"},
    "holes": {"vocabulary", "surfaces", "holes_rays", "holes_sides", "holes_guide"},
    "holes_sides": {"vocabulary", "chosen_pixels", "surfaces", "holes_rays", "holes_guide"},
    "holes_guide": {"vocabulary", "neighbourhood", "holes_rays"},
    "holes_rays": {"vocabulary"},
    "isotonic": {"vocabulary"},
    "dictionary": {"vocabulary", "atomic_files", "tensor_files"},
    "fitted": {"vocabulary", "atomic_files", "tensor_files"},
    "files": {"vocabulary", "checks", "atomic_files", "parallel"},
    "pictures": {"extras", "vocabulary", "checks", "atomic_files", "dictionary"},
    "markdown": {"vocabulary", "atomic_files"},
    "report": {"extras", "vocabulary", "atomic_files"},
    "findings": {"vocabulary", "metrics", "pictures", "report"},
    "parallel": {"checks"},
    "belief": {"vocabulary", "checks", "containers", "dictionary", "coding", "parallel", "sensors", "tiling"},
    "process_pool": {"vocabulary", "messages"},
    "restorer_pool": {"vocabulary", "messages", "process_pool", "input_warnings"},
    "tiling": {"vocabulary", "checks", "patches", "parallel", "ranks"},
    "sklearn": {"vocabulary", "dictionary", "patches", "coding", "restore", "sensors"},
    "coding": {
        "vocabulary",
        "checks",
        "atomic_files",
        "tensor_files",
        "dictionary",
        "patches",
        "parallel",
        "kernels",
    },
    "restore": {
        "missing",
        "containers",
        "restorer_files",
        "isotonic",
        "input_warnings",
        "checks",
        "vocabulary",
        "dictionary",
        "patches",
        "neighbourhood",
        "chosen_pixels",
        "ranks",
        "fitted",
        "coding",
        "parallel",
        "messages",
        "components",
        "restorer_pool",
        "surfaces",
        "tiling",
        "hole_filling",
        "sensors",
    },
    "cluster": {"vocabulary", "patches", "coding"},
    "baselines": {"extras", "vocabulary", "checks"},
    "metrics": {"vocabulary", "checks"},
    "stereo": {
        "extras",
        "vocabulary",
        "geometry",
        "missing",
        "neighbourhood",
        "ranks",
        "components",
        "fitted",
        "parallel",
        "kernels",
    },
    "matching": {"vocabulary", "containers", "stereo", "belief", "sensors", "input_warnings"},
    "sensors": {"vocabulary", "tiling", "atomic_files", "parallel", "kernels"},
    "hole_filling": {"vocabulary", "holes"},
    "streams": {"vocabulary", "checks", "containers", "geometry", "sensors", "hole_filling", "kernels", "parallel"},
    "stream_video": {"extras", "vocabulary", "atomic_files"},
    "cameras": {"vocabulary", "files", "geometry", "sensors", "data"},
    "sensor_pictures": {"extras", "vocabulary", "pictures", "sensors"},
    "data": {"extras", "vocabulary", "files", "sensors"},
    "demo": {"vocabulary", "files", "pictures", "report", "findings", "restore", "baselines", "metrics", "data"},
    "sparsedepth_experiments": {
        "extras",
        "belief",
        "vocabulary",
        "atomic_files",
        "dictionary",
        "patches",
        "neighbourhood",
        "files",
        "pictures",
        "markdown",
        "report",
        "findings",
        "coding",
        "restore",
        "baselines",
        "metrics",
        "stereo",
        "matching",
        "data",
        "sensors",
        "streams",
        "stream_video",
        "parallel",
    },
    "cli": {
        "extras",
        "kernels",
        "geometry",
        "input_warnings",
        "vocabulary",
        "atomic_files",
        "dictionary",
        "patches",
        "files",
        "pictures",
        "report",
        "findings",
        "markdown",
        "parallel",
        "cluster",
        "coding",
        "restore",
        "metrics",
        "stereo",
        "matching",
        "data",
        "demo",
        "serve",
        "hole_filling",
        "sensors",
        "sensor_pictures",
        "streams",
        "stream_video",
        "cameras",
    },
    "serve": {
        "geometry",
        "input_warnings",
        "messages",
        "vocabulary",
        "process_pool",
        "dictionary",
        "files",
        "pictures",
        "restore",
        "stereo",
        "matching",
        "data",
        "hole_filling",
        "sensors",
        "streams",
        "stream_video",
        "cameras",
    },
    "__main__": {"cli"},
}
NOT_REQUIRED = {
    "torch",
    "ray",
    "numba",
    "jax",
    "napari",
    "huggingface_hub",
    "cv2",
    "pickle",
    "sklearn",
    "spams",
    "celer",
}
WRAPPED = {"stereo/opencv.py": {"cv2"}, "sparsedepth_experiments/_opencv.py": {"cv2"}, "sklearn.py": {"sklearn"}}
"""Files that offer a peer to those who have installed it; nothing else imports it, or them."""
MODULES = sorted(path for root in (ROOT, EXPERIMENTS) for path in root.rglob("*.py") if path != ROOT / "__init__.py")
RUNS_EXPERIMENTS = "cli/reproduce.py"
MAX_LINES = 320
LONG_MODULES = {"coding/admm.py"}
"""One algorithm each, that is easier to read in one piece."""
MAX_MODULES = {"restore": 14}


def imported(path: Path) -> set[str]:
    """Dotted names of everything a module imports, at its top or inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def place(path: Path) -> str:
    """Where a module is: within the package, or in the package of the experiments."""
    return path.relative_to(EXPERIMENTS.parent if path.is_relative_to(EXPERIMENTS) else ROOT).as_posix()


def room(path: Path) -> str:
    return place(path).split("/")[0].removesuffix(".py")


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=place)
def test_rooms_keep_to_their_doors(path):
    mine = room(path)
    rooms = {n.split(".")[1] for n in imported(path) if n.startswith("sparsedepth.")} & (MAY_IMPORT.keys() | {"cli"})
    assert rooms - {mine} <= MAY_IMPORT[mine]
    if mine not in ("cli", "sparsedepth_experiments"):
        assert "sparsedepth" not in imported(path), "import the room, not the whole house"


def test_only_one_command_imports_the_experiments():
    importing = {
        place(path)
        for path in MODULES
        if not path.is_relative_to(EXPERIMENTS)
        and "sparsedepth_experiments" in {name.split(".")[0] for name in imported(path)}
    }
    assert importing == {RUNS_EXPERIMENTS}


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=place)
def test_no_heavy_or_unsafe_requirement(path):
    unwanted = NOT_REQUIRED - WRAPPED.get(place(path), set())
    assert not {name.split(".")[0] for name in imported(path)} & unwanted
    top = {
        alias.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import) for alias in node.names
    }
    assert not top & NOT_REQUIRED


def n_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_modules_are_short(path):
    if place(path) not in LONG_MODULES:
        assert n_lines(path) <= MAX_LINES


def test_modules_that_may_be_long_are():
    assert all(n_lines(ROOT / name) > MAX_LINES for name in LONG_MODULES)


@pytest.mark.parametrize("name", MAX_MODULES)
def test_a_room_has_few_modules(name):
    assert len([path for path in MODULES if room(path) == name]) <= MAX_MODULES[name]


def test_every_room_is_listed():
    assert {room(path) for path in MODULES} == MAY_IMPORT.keys()


def test_the_public_names():
    promised = {
        "infer",
        "weighted_lasso",
        "energy",
        "learn",
        "Dictionary",
        "Jeffreys",
        "Stationary",
        "Known",
        "InputError",
    }
    assert promised <= set(sparsedepth.__all__)
    assert all(hasattr(sparsedepth, name) for name in sparsedepth.__all__)


def constants(path: Path) -> set[str]:
    """Names in capitals that a module assigns at its top."""
    targets = [
        target
        for node in ast.parse(path.read_text()).body
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
    ]
    names = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {name.id for name in names if isinstance(name, ast.Name) and name.id.isupper()}


@pytest.mark.parametrize("room", ["restore", "sensors", "coding", "stereo", "streams"])
def test_a_constant_has_one_meaning(room):
    found = [name for path in sorted((ROOT / room).rglob("*.py")) for name in constants(path)]
    assert len(found) == len(set(found))


def test_restoration_stays_small():
    paths = sorted((ROOT / "restore").rglob("*.py"))
    assert len(paths) <= 14
    assert sum(n_lines(path) for path in paths) <= 2900


def test_the_vocabulary_imports_nothing_by_itself():
    for path in sorted((ROOT / "vocabulary").glob("*.py")):
        top = ast.Module([node for node in ast.parse(path.read_text()).body if not isinstance(node, ast.If)], [])
        names = {node.module for node in top.body if isinstance(node, ast.ImportFrom)}
        assert not {name for name in names if (name or "").startswith("sparsedepth.")} - {
            name for name in names if (name or "").startswith("sparsedepth.vocabulary")
        }
