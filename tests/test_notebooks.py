"""In a notebook: short texts, pictures, files that come back, and containers that stay what they were."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pytest
from PIL import Image

from sparsedepth import (
    DepthImage,
    Dictionary,
    InputError,
    Intrinsics,
    Match,
    Origin,
    Restoration,
    Restorer,
    Sensor,
    Stream,
    believe,
    denoise,
    inpaint,
    match,
    point_cloud,
)
from sparsedepth.containers import unpack
from sparsedepth.files import read, write
from sparsedepth.vocabulary import Kind

Y, X = np.mgrid[:24, :32]
SCENE = (2 + 0.05 * X + 0.02 * Y + np.where(X > 15, 1, 0)).astype(np.float32)
SCENE[4:7, 5:8] = np.nan
CAMERA = Intrinsics(30, 30, 15.5, 11.5)


def restored() -> Restoration:
    return denoise(DepthImage(SCENE, "m"), quality="fast", sensor="clean")


def matched() -> Match:
    return Match(SCENE.copy(), np.full(SCENE.shape, 0.25), np.full(SCENE.shape, Origin.FILLED, np.uint8))


THINGS: dict[str, Any] = {
    "Restoration": restored,
    "Match": matched,
    "DepthImage": lambda: DepthImage(SCENE, "m"),
    "Sensor": lambda: Sensor.preset("kinect_v1"),
    "Dictionary": lambda: Dictionary.builtin("default"),
    "Restorer": lambda: Restorer(quality="fast"),
    "nothing known": lambda: Restoration(
        np.full((3, 4), np.nan), np.full((3, 4), np.inf), np.full((3, 4), Origin.REFUSED, np.uint8)
    ),
    "one pixel": lambda: DepthImage(np.ones((1, 1))),
    "a sensor without a unit": Sensor,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", THINGS)
def test_everything_has_a_short_text_and_a_picture(name):
    thing = THINGS[name]()
    text = repr(thing)
    assert text.startswith(f"{type(thing).__name__}(")
    assert len(text) < 160
    assert "\n" not in text
    html = thing._repr_html_()
    found = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)
    assert len(found) == 1
    with Image.open(io.BytesIO(base64.b64decode(found[0]))) as picture:
        assert min(picture.size) > 100
        assert len(np.unique(np.asarray(picture.convert("L")))) > 5, "it shows something"
    figure = thing.plot()
    assert type(figure).__name__ == "Figure"
    assert figure.axes


def test_texts_say_what_matters():
    assert repr(restored()).startswith("Restoration(24 x 32 depth in m: 9")
    assert "1.2% filled" in repr(restored())
    assert repr(matched()) == "Match(24 x 32 disparities in px: 100.0% filled; median std 0.5 px)"
    assert repr(DepthImage(SCENE, "m")) == "DepthImage(24 x 32 depth in m, 98.8% known)"
    assert "std" in repr(Sensor.preset("kinect_v1"))
    assert "atoms of" in repr(Restorer(quality="fast"))


def test_html_is_escaped():
    assert "<script>" not in Sensor(name="<script>")._repr_html_()


@pytest.mark.slow
def test_nothing_is_drawn_before_it_is_asked_for():
    """A text needs no matplotlib, and importing the package imports none."""
    code = (
        "import sys, numpy as np, sparsedepth; r = sparsedepth.Restoration(np.ones((2, 2)), np.ones((2, 2)), "
        "np.zeros((2, 2), np.uint8)); repr(r); assert 'matplotlib' not in sys.modules; r.plot(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_result_is_loaded_as_it_was_saved(dtype, tmp_path):
    write(tmp_path / "scan.png", DepthImage(SCENE, "m"), profile="tum")
    image = read(tmp_path / "scan.png")
    result = denoise(image.values.astype(dtype), quality="fast", sensor="clean").described_by(image)
    result.save(tmp_path / "x.npz")
    again = Restoration.load(tmp_path / "x.npz")
    for name in ("depth", "variance", "origin"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
        assert getattr(again, name).dtype == getattr(result, name).dtype
    assert (again.unit, again.kind, again.profile) == (result.unit, result.kind, result.profile)
    assert again.warnings == result.warnings
    write(tmp_path / "again.png", again)
    write(tmp_path / "first.png", result)
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "first.png").read_bytes()
    np.testing.assert_array_equal(read(tmp_path / "x.npz").values, result.depth.astype(np.float32))


def test_a_result_that_was_written_is_loaded(tmp_path):
    write(tmp_path / "x.npz", restored())
    np.testing.assert_array_equal(Restoration.load(tmp_path / "x.npz").depth, restored().depth)
    matched().save(tmp_path / "m.npz")
    again = Match.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.disparity, matched().disparity)
    np.testing.assert_array_equal(again.variance, matched().variance)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("save", [Restoration.save, lambda result, path: write(path, result)], ids=["save", "write"])
def test_results_of_every_kind_are_loaded(kind, save, tmp_path):
    result = inpaint(DepthImage(SCENE, "", kind), quality="fast", sensor="clean")
    save(result, tmp_path / "x.npz")
    again = Restoration.load(tmp_path / "x.npz")
    assert again.kind == kind
    np.testing.assert_array_equal(again.variance, result.variance)
    np.testing.assert_array_equal(read(tmp_path / "x.npz").values, result.depth)


def test_what_is_no_result_is_a_sentence(tmp_path):
    matched().save(tmp_path / "m.npz")
    np.savez(tmp_path / "other.npz", depth=SCENE)
    shapes: dict[str, Any] = {
        "depth": SCENE,
        "unit": np.array("m"),
        "kind": np.array("depth"),
        "origin": np.zeros((2, 2), np.uint8),
    }
    np.savez(tmp_path / "shapes.npz", variance=SCENE, **shapes)
    shapes["origin"] = np.full(SCENE.shape, 9, np.uint8)
    np.savez(tmp_path / "codes.npz", variance=SCENE, **shapes)
    (tmp_path / "broken.npz").write_bytes(b"PK")
    for name, words in {
        "m.npz": "holds no Restoration",
        "other.npz": "holds no Restoration",
        "shapes.npz": "shape",
        "codes.npz": "origins go from",
        "broken.npz": "cannot be read",
        "none.npz": "no file",
    }.items():
        with pytest.raises(InputError, match=words):
            Restoration.load(tmp_path / name)
    restored().save(tmp_path / "r.npz")
    for name in ("r.npz", "other.npz"):
        with pytest.raises(InputError, match="holds no Match"):
            Match.load(tmp_path / name)
    with pytest.raises(InputError, match=r"saved as \.npz"):
        restored().save(tmp_path / "x.png")


def test_a_restorer_is_loaded_as_it_was_saved(tmp_path):
    first = Restorer(quality="fast", fill="none", sensor=Sensor.preset("kinect_v1"), unit="mm", invalid=[7.0])
    first.save(tmp_path / "r.npz")
    second = Restorer.load(tmp_path / "r.npz")
    assert repr(second) == repr(first)
    one, two = first(SCENE * 1000), second(SCENE * 1000)
    for name in ("depth", "variance", "origin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("content", [b"", b"PK", b"text"])
def test_what_is_no_restorer_is_a_sentence(content, tmp_path):
    (tmp_path / "x.npz").write_bytes(content)
    np.savez(tmp_path / "other.npz", config=np.array('{"kind": "sparsedepth restorer", "options": {}}'), atoms=SCENE)
    np.savez(tmp_path / "third.npz", config=np.array('{"kind": "x"}'))
    for name in ("x.npz", "other.npz", "third.npz", "none.npz"):
        with pytest.raises(InputError):
            Restorer.load(tmp_path / name)
    with pytest.raises(InputError, match=r"\.npz"):
        Restorer(quality="fast").save(tmp_path / "r.json")


def test_a_quality_in_the_place_of_a_dictionary_is_said():
    with pytest.raises(InputError, match=r"write Restorer\(quality='fast'\)"):
        Restorer("fast")


# --- containers -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_xarray_keeps_coordinates_and_attributes(tmp_path):
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray(
        SCENE, dims=("y", "x"), coords={"y": np.arange(24) * 0.5, "x": np.arange(32) * 0.5}, name="range",
        attrs={"units": "m", "source": "lidar"},
    )  # fmt: skip
    result = inpaint(given, quality="fast")
    plain = inpaint(SCENE, unit="m", quality="fast")
    for name in ("depth", "variance", "origin"):
        found: Any = getattr(result, name)
        assert isinstance(found, xarray.DataArray)
        assert found.dims == given.dims
        np.testing.assert_array_equal(found, getattr(plain, name))
        for axis in ("x", "y"):
            np.testing.assert_array_equal(found[axis], given[axis])
    depth: Any = result.depth
    assert (depth.name, depth.attrs) == (given.name, given.attrs)
    spread: Any = result.variance
    assert (spread.name, spread.attrs["units"]) == ("range_variance", "(m)2")
    assert result.unit == "m"
    result.save(tmp_path / "x.npz")
    write(tmp_path / "x.tiff", result)
    np.testing.assert_array_equal(Restoration.load(tmp_path / "x.npz").depth, plain.depth)
    assert "filled" in repr(result)
    assert result.plot().axes
    np.testing.assert_array_equal(given, SCENE, "what came in was changed")


def arrays_of(result: Any) -> dict[str, Any]:
    names = ("depth", "disparity", "mean", "variance", "origin")
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


VIEWS = np.random.default_rng(0).integers(0, 255, (2, 24, 32, 3), np.uint8)
OTHERS = {
    "match": lambda held: match(held(VIEWS[0]), held(VIEWS[0]), max_disparity=4),
    "match of grey views": lambda held: match(held(VIEWS[0, ..., 0]), held(VIEWS[0, ..., 0]), max_disparity=4),
    "believe": lambda held: believe(held(SCENE)),
    "a stream": lambda held: Stream("kinect_v1", unit="m").push(held(SCENE)),
}
"""All that takes maps or views, but `denoise` and its like."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_all_that_takes_maps_gives_xarrays_back(name):
    xarray = pytest.importorskip("xarray")

    def labelled(array: np.ndarray) -> Any:
        place = {"y": np.arange(24) * 0.5, "x": np.arange(32.0)}
        return xarray.DataArray(array, dims=("y", "x", "band")[: array.ndim], coords=place, attrs={"units": "m"})

    found, plain = arrays_of(OTHERS[name](labelled)), arrays_of(OTHERS[name](np.asarray))
    for key, array in found.items():
        assert array.dims == ("y", "x")
        np.testing.assert_array_equal(array["y"], np.arange(24) * 0.5)
        np.testing.assert_array_equal(array, plain[key])
    first = next(iter(found.values()))
    assert first.attrs["units"] == ("px" if "match" in name else "m")


@pytest.mark.parametrize("name", OTHERS)
def test_all_that_takes_maps_gives_tensors_back(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Torch)
    found, plain = arrays_of(OTHERS[name](lambda array: Tensor(array, "cuda:1"))), arrays_of(OTHERS[name](np.asarray))
    for key, array in found.items():
        assert (type(array), array.device) == (Tensor, "cuda:1")
        np.testing.assert_array_equal(array.array, plain[key])


def test_what_is_no_map_says_what_to_give():
    xarray = pytest.importorskip("xarray")
    with pytest.raises(InputError, match="Dataset of the variables z, quality; give one"):
        denoise(xarray.Dataset({"z": (("y", "x"), SCENE), "quality": (("y", "x"), SCENE)}))
    for path in ("scan.png", Path("scan.png")):
        with pytest.raises(InputError, match=r"name of a file; read it first: sparsedepth\.files\.read\('scan\.png'\)"):
            denoise(path)  # pyright: ignore[reportArgumentType]


def test_the_unit_that_was_given_is_that_of_the_result(tmp_path):
    result = inpaint(SCENE, unit="m", quality="fast", sensor="clean")
    assert (result.unit, inpaint(SCENE, quality="fast").unit) == ("m", "")
    assert point_cloud(result, CAMERA).unit == "m"
    write(tmp_path / "x.png", result, profile="mm")
    np.testing.assert_allclose(read(tmp_path / "x.png", "mm").values, 1000 * result.depth, atol=0.5)
    restorer = Restorer(unit="m", quality="fast", sensor="clean")
    with restorer.in_processes(1) as pool:
        assert (restorer(SCENE).unit, pool(SCENE).unit) == ("m", "m")


@pytest.mark.parametrize("restore", [denoise, inpaint])
def test_a_unit_that_is_not_known_is_refused(restore):
    with pytest.raises(InputError, match="the unit is 'feet'; use one of 'm', 'mm'"):
        restore(SCENE, unit="feet")


def test_views_whose_channels_come_first_are_refused():
    with pytest.raises(InputError, match="put the axis of channels last"):
        match(VIEWS[0].transpose(2, 0, 1), VIEWS[1].transpose(2, 0, 1), max_disparity=4)


class Torch:
    """As much of the library."""

    @staticmethod
    def from_dlpack(array: np.ndarray) -> Tensor:
        return Tensor(array, gradient=False)


class Tensor:
    """As much of a torch tensor as matters: on a device, with a gradient, and no array by itself."""

    made: ClassVar[list[np.ndarray]] = []
    __module__ = "torch"

    def __init__(self, array: np.ndarray, device: str = "cpu", gradient: bool = True) -> None:
        self.array, self.device, self.gradient = array, device, gradient

    def detach(self) -> Tensor:
        return Tensor(self.array, self.device, False)

    def cpu(self) -> Tensor:
        return Tensor(self.array, "cpu", self.gradient)

    def to(self, device: str) -> Tensor:
        return Tensor(self.array, device, self.gradient)

    def __dlpack__(self, **_: Any) -> Any:
        return self.array.__dlpack__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        assert not self.gradient
        assert self.device == "cpu"
        return self.array


def test_tensors_come_back_on_their_device(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Torch)
    given: Any = Tensor(SCENE, "cuda:1")
    result: Any = inpaint(given, quality="fast")
    plain = inpaint(SCENE, quality="fast")
    for name in ("depth", "variance", "origin"):
        found = getattr(result, name)
        assert isinstance(found, Tensor)
        assert found.device == "cuda:1"
        np.testing.assert_array_equal(found.array, getattr(plain, name))


class HalfTensor(Tensor):
    """Of a type that NumPy does not know, as bfloat16 is."""

    def detach(self) -> HalfTensor:
        return HalfTensor(self.array, self.device, False)

    def cpu(self) -> HalfTensor:
        return HalfTensor(self.array, "cpu", self.gradient)

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32), self.device, self.gradient)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_tensors_of_types_that_numpy_lacks_are_taken_as_float32():
    array, wrap, _ = unpack(HalfTensor(SCENE))
    assert wrap is not None
    np.testing.assert_array_equal(array, SCENE.astype(np.float32))


def test_results_with_real_tensors_become_files_and_clouds(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    given, plain = torch.tensor(SCENE), inpaint(SCENE, quality="fast")
    result: Any = inpaint(given, quality="fast")
    assert (result.depth.dtype, result.variance.device) == (given.dtype, given.device)
    np.testing.assert_array_equal(result.depth.numpy(), plain.depth)
    cloud = point_cloud(result, CAMERA)
    np.testing.assert_array_equal(cloud.points, point_cloud(plain, CAMERA).points)
    write(tmp_path / "x.npz", result)
    np.testing.assert_array_equal(Restoration.load(tmp_path / "x.npz").depth, plain.depth)


def test_results_with_xarrays_become_clouds():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    cloud = point_cloud(inpaint(xarray.DataArray(SCENE), quality="fast"), CAMERA)
    np.testing.assert_array_equal(cloud.points, point_cloud(inpaint(SCENE, quality="fast"), CAMERA).points)
