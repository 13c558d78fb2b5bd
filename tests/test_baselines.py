"""Laws of the competitors, over all of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import pywt
from scipy.interpolate import griddata
from scipy.ndimage import median_filter

from sparsedepth.baselines import (
    DENOISERS,
    INPAINTERS,
    biharmonic,
    bilateral,
    linear,
    median,
    nl_means,
    nl_means_median,
    switching_median,
    tv_l1,
    tv_l2,
    wavelet_frame,
    windows,
)
from sparsedepth.data.synthetic import corrupted
from sparsedepth.metrics import oracle, psnr
from sparsedepth.vocabulary import InputError

# name: (a filter of a map in units of ``unit``)
FILTERS = {
    "median": lambda depth, unit=1.0: median(depth),
    "median 5": lambda depth, unit=1.0: median(depth, 5),
    "switching median": lambda depth, unit=1.0: switching_median(depth, 0.2 * unit),
    "TV-L2": lambda depth, unit=1.0: tv_l2(depth, 0.2 * unit),
    "TV-L1": lambda depth, unit=1.0: tv_l1(depth, 1.2),
    "NL-means": lambda depth, unit=1.0: nl_means(depth, 0.3 * unit, 5, 4),
    "NL-means, median": lambda depth, unit=1.0: nl_means_median(depth, 0.3 * unit),
    "bilateral": lambda depth, unit=1.0: bilateral(depth, 0.4 * unit, 1.0),
    "biharmonic": lambda depth, unit=1.0: biharmonic(depth),
    "linear": lambda depth, unit=1.0: linear(depth),
}
FILLS = {"biharmonic", "linear"}
# Forward differences look right and down, so total variation knows one corner from another; triangles between four
# pixels on a circle may be cut along either diagonal.
ONE_SIDED = {"TV-L2", "TV-L1", "linear"}


def scene(shape: tuple[int, int] = (26, 30), holes: float = 0.1, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    """A step edge and a slant with some impulses and some holes, one of them at a corner."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    depth = 2 + 1.0 * (x + 0.5 * y > 20) + 0.02 * y
    depth = depth + np.where(rng.random(shape) < 0.05, rng.standard_normal(shape), 0)
    depth[rng.random(shape) < holes] = np.nan
    if holes:
        depth[:4, :3] = np.nan
    return depth.astype(dtype)


@pytest.fixture(params=FILTERS, ids=str)
def name(request) -> str:
    return request.param


def test_missing_stays_missing_or_is_filled_and_what_is_known_is_finite(name):
    depth = scene()
    before = depth.copy()
    result = FILTERS[name](depth)
    np.testing.assert_array_equal(depth, before)
    assert result is not depth
    if name in FILLS:
        assert np.isfinite(result).all()
        np.testing.assert_array_equal(result[np.isfinite(depth)], depth[np.isfinite(depth)])
        assert result.min() >= np.nanmin(depth) - 1e-9
        assert result.max() <= np.nanmax(depth) + 1e-9
    else:
        np.testing.assert_array_equal(np.isnan(result), np.isnan(depth))


def test_units_do_not_matter(name):
    depth = scene()
    for unit in (1000.0, 1e-3):
        np.testing.assert_allclose(FILTERS[name](unit * depth, unit), unit * FILTERS[name](depth), rtol=1e-6)


def test_a_constant_is_carried_through(name):
    depth = scene()
    np.testing.assert_allclose(FILTERS[name](depth + 50), FILTERS[name](depth) + 50, atol=1e-4)


def test_flips_and_transposition_commute(name):
    no_ties = (
        name in ONE_SIDED or name == "linear"
    )  # those fill holes first; ties, as of diagonals, have no fair winner
    depth = scene(holes=0 if no_ties else 0.1)
    result = FILTERS[name](depth)
    np.testing.assert_allclose(FILTERS[name](depth.T), result.T, atol=1e-6)
    if name not in ONE_SIDED:
        np.testing.assert_allclose(FILTERS[name](depth[::-1]), result[::-1], atol=1e-6)
        np.testing.assert_allclose(FILTERS[name](depth[:, ::-1]), result[:, ::-1], atol=1e-6)


def test_types(name):
    depth = scene()
    single = FILTERS[name](depth.astype(np.float32))
    assert single.dtype == np.float32
    assert FILTERS[name](depth).dtype == np.float64
    np.testing.assert_allclose(single, FILTERS[name](depth), atol=2e-3)
    millimetres = np.round(1000 * scene(holes=0)).astype(np.uint16)
    np.testing.assert_array_equal(FILTERS[name](millimetres, 1000), FILTERS[name](millimetres.astype(float), 1000))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 9), (9, 1), (2, 2), (2, 3), (3, 3), (5, 2)], ids=str)
def test_tiny_and_flat_maps(name, shape):
    flat = np.full(shape, 3.5)
    np.testing.assert_allclose(FILTERS[name](flat), flat, rtol=1e-12)
    bumpy = np.random.default_rng(0).random(shape)
    assert np.isfinite(FILTERS[name](bumpy)).all()
    if flat.size > 1:
        flat[0, 0] = bumpy[-1, -1] = np.nan
        result = FILTERS[name](flat)
        np.testing.assert_allclose(result[np.isfinite(result)], 3.5, rtol=1e-12)
        assert np.isfinite(FILTERS[name](bumpy)[np.isfinite(bumpy)]).all()
        lonely = np.full(shape, np.nan)
        lonely[0, 0] = 2
        assert FILTERS[name](lonely)[0, 0] == pytest.approx(2)


def test_nothing_known(name):
    nothing = np.full((6, 7), np.nan, np.float32)
    if name in FILLS:
        with pytest.raises(InputError, match="no pixel of the map is known"):
            FILTERS[name](nothing)
    else:
        np.testing.assert_array_equal(FILTERS[name](nothing), nothing)


@pytest.mark.parametrize(
    "bad", [np.zeros(5), np.zeros((0, 4)), np.zeros((2, 2), complex), np.full((2, 2), np.inf)], ids=str
)
def test_what_is_no_map_is_refused(name, bad):
    with pytest.raises(InputError):
        FILTERS[name](bad)


@pytest.mark.parametrize("method", [switching_median, tv_l2, tv_l1, nl_means, nl_means_median, bilateral])
def test_what_is_no_parameter_is_refused(method):
    for value in (-1.0, np.nan):
        with pytest.raises(InputError, match="zero or more"):
            method(scene(), value)


def test_even_windows_are_refused():
    for call in (
        lambda: median(scene(), 4),
        lambda: nl_means(scene(), 1, patch=2),
        lambda: nl_means_median(scene(), 1, 2),
    ):
        with pytest.raises(InputError, match="odd"):
            call()


@pytest.mark.parametrize(
    "gentle",
    [
        lambda depth: median(depth, 1),
        lambda depth: switching_median(depth, np.inf),
        lambda depth: tv_l1(depth, 4.0),
        lambda depth: tv_l1(depth, 1e6),
        lambda depth: tv_l2(depth, 0),
        lambda depth: tv_l2(depth, 1e-9),
        lambda depth: nl_means(depth, 0),
        lambda depth: nl_means(depth, 1e-9),
        lambda depth: nl_means_median(depth, 0),
        lambda depth: bilateral(depth, 0),
        lambda depth: bilateral(depth, 1e-9),
    ],
)
def test_the_gentlest_parameter_changes_nothing(gentle):
    depth = scene()
    np.testing.assert_allclose(gentle(depth), depth, atol=1e-6)


def test_the_strongest_parameters():
    depth = scene()
    np.testing.assert_array_equal(switching_median(depth, 0), median(depth))
    assert np.nanstd(tv_l2(depth, 100.0)) < 0.05 * np.nanstd(depth)
    assert np.nanstd(tv_l1(depth, 0.001, 3000)) < 0.02


def test_the_median_is_the_median():
    depth = scene(holes=0)
    for size in (3, 5):
        inner = (slice(size // 2, -(size // 2)),) * 2
        np.testing.assert_array_equal(median(depth, size)[inner], median_filter(depth, size)[inner])
    depth = scene()
    y, x = 10, 12
    assert median(depth, 5)[y, x] == pytest.approx(np.nanmedian(depth[y - 2 : y + 3, x - 2 : x + 3]))
    assert median(depth)[-1, -1] == pytest.approx(np.nanmedian(depth[-2:, -2:]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("restore", "n_neighbours"),
    [(median, 9), (lambda d: switching_median(d, 0.1), 9), (lambda d: nl_means_median(d, 0.3), 49)],
    ids=["median", "switching median", "non-local median"],
)
def test_strips_do_not_matter(restore, n_neighbours):
    """The rows about the border of two strips have the result of a map that is a single strip."""
    width, reach = 400, 8
    border = windows.STRIP_VALUES // (n_neighbours * width)
    depth = scene((border + 30, width))
    whole, alone = restore(depth), restore(depth[border - 30 :])
    np.testing.assert_allclose(alone[reach:], whole[border - 30 + reach :], rtol=1e-12)


def test_nl_means_median_is_the_weighted_median_of_its_definition():
    depth = scene((9, 10))
    y, x, strength, radius, distance = 4, 5, 0.4, 1, 3
    padded = np.pad(depth, radius + distance, constant_values=np.nan)
    at = np.array([y, x]) + radius + distance

    def patch(dy, dx):
        top, left = at + np.array([dy, dx])
        return padded[top - radius : top + radius + 1, left - radius : left + radius + 1]

    offsets = [(dy, dx) for dy in range(-distance, distance + 1) for dx in range(-distance, distance + 1)]
    offsets = [o for o in offsets if np.isfinite(padded[tuple(at + o)])]
    weights = {o: np.exp(-np.nanmean((patch(*o) - patch(0, 0)) ** 2) / strength**2) for o in offsets}
    weights[0, 0] = max(weight for o, weight in weights.items() if o != (0, 0))
    ranked = sorted((padded[tuple(at + o)], weight) for o, weight in weights.items())
    heard = np.cumsum([weight for _, weight in ranked])
    expected = ranked[int(np.searchsorted(heard, heard[-1] / 2))][0]
    assert nl_means_median(depth, strength, 3, 3)[y, x] == pytest.approx(expected)


def test_tv_l1_lowers_its_energy_towards_the_minimum():
    depth = scene(holes=0)

    def energy(u):
        gradient = np.hypot(np.diff(u, axis=0, append=u[-1:]), np.diff(u, axis=1, append=u[:, -1:]))
        return gradient.sum() + 1.2 * np.abs(u - depth).sum()

    far = energy(tv_l1(depth, 1.2, 3000))
    assert far <= energy(tv_l1(depth, 1.2)) <= far * 1.001
    rng = np.random.default_rng(0)
    best = tv_l1(depth, 1.2, 3000)
    for size in (0.001, 0.03, 1):
        for _ in range(20):
            assert energy(best + size * rng.standard_normal(depth.shape)) > far
    assert energy(depth) > far
    assert energy(np.full_like(depth, np.median(depth))) > far


def test_tv_l1_gives_holes_no_say():
    """What stands in a hole before it is filled cannot matter: the value next to a hole comes from known pixels."""
    depth = np.where(np.arange(20) < 10, 1.0, 3.0) * np.ones((12, 1))
    holed = depth.copy()
    holed[2:9, 4:9] = np.nan
    result = tv_l1(holed, 1.2)
    np.testing.assert_allclose(result[np.isfinite(holed)], depth[np.isfinite(holed)], atol=1e-3)


@pytest.mark.slow
def test_linear_filling_reproduces_slants_and_equals_the_plain_triangulation():
    y, x = np.mgrid[:20, :24]
    slant = 3 + 0.2 * x - 0.1 * y
    holed = np.where(np.random.default_rng(0).random(slant.shape) < 0.6, np.nan, slant)
    holed[[0, 0, -1, -1], [0, -1, 0, -1]] = slant[[0, 0, -1, -1], [0, -1, 0, -1]]
    np.testing.assert_allclose(linear(holed), slant, atol=1e-9)
    depth = scene(holes=0.02)
    known = np.isfinite(depth)
    all_points = griddata(np.argwhere(known), depth[known], np.argwhere(~known))
    inside = np.isfinite(all_points)
    difference = np.abs(linear(depth)[~known][inside] - all_points[inside])
    assert np.median(difference) < 1e-12  # the rest are ties between diagonals
    np.testing.assert_allclose(linear([[1.0, np.nan, 3.0, np.nan]]), [[1, 2, 3, 3]])


def test_inpainters_come_close_where_the_scene_is_smooth():
    y, x = np.mgrid[:30, :30] / 10
    smooth = np.sin(x) + np.cos(1.3 * y)
    holed = np.where(np.random.default_rng(1).random(smooth.shape) < 0.5, np.nan, smooth)
    for fill in INPAINTERS.values():
        assert psnr(fill(holed), smooth) > 35


@pytest.mark.slow
@pytest.mark.parametrize("competitor", DENOISERS)
def test_the_grids_reach_from_nothing_to_too_much(competitor):
    """On noisy maps the best parameter is inside the grid; on a clean one, doing nothing is in it."""
    y, x = np.mgrid[:40, :40]
    clean = (1 + (x + 0.3 * y > 24) + 0.5 * (y > 28) * (x < 18) + 0.004 * x).astype(np.float64)
    method = DENOISERS[competitor]
    assert oracle(method.restore, method.parameters(clean), clean, clean).score == np.inf
    noisy = corrupted(clean, 0.05, np.random.default_rng(3))
    best = oracle(method.restore, method.parameters(noisy), noisy, clean)
    assert not best.at_end
    assert best.score > psnr(noisy, clean) + (0 if competitor == "bilateral" else 1)
    assert list(method.grid) == sorted(set(method.grid))
    assert len(inspect.signature(method.restore).parameters) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("depth", [np.ones((4, 5)), np.full((4, 5), np.nan)], ids=["flat", "unknown"])
def test_every_parameter_of_a_grid_can_be_tried_on_any_map(depth):
    for method in DENOISERS.values():
        for parameter in method.parameters(depth):
            np.testing.assert_allclose(method.restore(depth, parameter), depth)


def test_the_wavelet_frame_is_that_of_the_stationary_transform():
    """An atom is what one coefficient of the transform of a large map adds to a patch of it, up to its norm."""
    frame = wavelet_frame((16, 16))
    assert frame.shape == (2560, 256)
    np.testing.assert_allclose(np.linalg.norm(frame, axis=1), 1)
    places = [(5, 9), (0, 0), (15, 8)]
    empty = [np.zeros((128, 128)) for _ in range(3)]
    for level in range(3):
        for orientation in range(3):
            details = [[band.copy() for band in empty] for _ in range(3)]
            details[level][orientation][56, 56] = 1
            response = pywt.iswt2([(empty[0], tuple(bands)) for bands in details[::-1]], "bior4.4")
            first, last = (end(np.argwhere(np.abs(response) > 1e-9), axis=0) for end in (np.min, np.max))
            for place in places:
                top, left = (first + last) // 2 - place
                atom = response[top : top + 16, left : left + 16].ravel()
                assert np.abs(frame @ atom).max() == pytest.approx(np.linalg.norm(atom), rel=1e-6)


@pytest.mark.slow
def test_the_wavelet_frame_spans_patches_and_has_their_symmetries():
    for shape in ((16, 16), (8, 8), (8, 12)):
        frame = wavelet_frame(shape)
        values = np.linalg.eigvalsh(frame.T @ frame)
        assert values[0] > 1e-3
        alike = np.abs(frame @ frame.T) - np.eye(len(frame))
        assert alike.max() < 1 - 1e-9
        pictures = frame.reshape(-1, *shape)
        turned = [pictures[:, ::-1], pictures[:, :, ::-1]]
        if shape[0] == shape[1]:
            turned.append(pictures.transpose(0, 2, 1))
        for set_of in turned:
            assert np.abs(set_of.reshape(len(frame), -1) @ frame.T).max(axis=1).min() > 1 - 1e-9
    with pytest.raises(InputError, match="no room"):
        wavelet_frame((2, 16))
