"""What must hold of every file that a reader is given, whatever its bytes: the tests and the fuzzers ask the same."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sparsedepth import Dictionary, InputError
from sparsedepth.coding.learn import LearningState
from sparsedepth.files import MOST_BYTES, MOST_PIXELS, DepthImage, read, read_about, read_array, read_photo, write
from sparsedepth.vocabulary import Kind, Unit

SMALL: dict[str, Any] = {"most_pixels": 1 << 16, "most_bytes": 1 << 20}
WHOLE: dict[str, Any] = {"most_pixels": MOST_PIXELS, "most_bytes": MOST_BYTES}


def law_of(name: str) -> Callable[[Path], str]:
    """The law for the file of a kind: a suffix of maps without its dot, ``photo`` or ``dictionary``."""
    return {"photo": photo_law, "dictionary": dictionary_law}.get(name, map_law)


def suffix_of(name: str) -> str:
    """What the names of such files end in."""
    return {"photo": ".png", "dictionary": ".safetensors"}.get(name, f".{name}")


def map_law(path: Path) -> str:
    """A map that means what the file says, or one sentence; says which."""
    # One file in sixteen meets the budget that users have, and one is written again: a fuzzer's time is its inputs.
    chance = zlib.crc32(path.read_bytes()) % 16
    budget = WHOLE if chance == 0 else SMALL
    with quiet():
        stored = _result_or_sentence(path, lambda: read_array(path, **budget))
        image = _result_or_sentence(path, lambda: read(path, **budget))
        about = read_about(path)
        metres = _result_or_sentence(path, lambda: read(path, "ros", **budget))
    assert all(isinstance(word, str) for pair in about.items() for word in pair)
    if isinstance(stored, str) or isinstance(image, str):
        assert isinstance(image, str), "what has no numbers has no map"
        return "refused"
    _is_what_it_says(image, stored)
    assert isinstance(metres, str) or (metres.assumed, metres.kind) == ("", "depth")
    assert isinstance(metres, str) or metres.unit == ("m" if stored.dtype.kind == "f" else "mm"), "the unit asked for"
    if chance == 1:
        _written_again_it_is_the_same(image, path)
    return "read"


def _is_what_it_says(image: DepthImage, stored: np.ndarray) -> None:
    assert image.unit in get_args(Unit)
    assert image.kind in get_args(Kind)
    assert image.profile is not None
    assert image.profile.scale is not None
    assert image.values.dtype == np.float32
    assert image.values.shape == stored.shape
    known = np.isfinite(image.values)
    assert not np.isinf(image.values).any()
    numbers = stored.astype(np.float64)
    coded = ~np.isfinite(numbers)
    for code in image.profile.invalid:
        near = np.float32(code) if stored.dtype == np.float32 else code
        coded |= stored == near
    np.testing.assert_array_equal(known, ~coded, "unknown is what the file calls so, and nothing else")
    np.testing.assert_allclose(
        image.values[known].astype(np.float64), numbers[known] / image.profile.scale, rtol=1e-6, atol=1e-44
    )


def _written_again_it_is_the_same(image: DepthImage, path: Path) -> None:
    again = path.with_name("again.npz")
    write(again, image)
    copy = read(again)
    again.unlink()
    assert (copy.unit, copy.kind, copy.assumed) == (image.unit, image.kind, "")
    np.testing.assert_array_equal(copy.values, image.values)


def photo_law(path: Path) -> str:
    """Pixels of a photograph, or one sentence."""
    with quiet():
        photo = _result_or_sentence(path, lambda: read_photo(path))
    if isinstance(photo, str):
        return "refused"
    assert photo.dtype in (np.uint8, np.uint16, np.float32)
    assert photo.size > 0
    assert photo.ndim == 2 or (photo.ndim == 3 and photo.shape[2] == 3)
    return "read"


def dictionary_law(path: Path) -> str:
    """A dictionary that can be used, or one sentence; the same for what resumes a run."""
    with quiet():
        dictionary = _result_or_sentence(path, lambda: Dictionary.load(path))
        state = _result_or_sentence(path, lambda: LearningState.load(path, {}))
    if isinstance(dictionary, Dictionary):
        height, width = dictionary.patch_shape
        assert dictionary.atoms.shape == (dictionary.n_atoms, height * width)
        np.testing.assert_allclose(np.linalg.norm(dictionary.atoms.astype(np.float64), axis=1), 1, atol=1e-3)
        return "read"
    if isinstance(state, LearningState):
        assert state.ranked_atoms.shape == state.atoms.shape
        assert np.isfinite(state.atoms).all()
        assert state.step >= 0
        return "read"
    return "refused"


@contextmanager
def quiet() -> Iterator[None]:
    """Within it nothing may warn: what there is to say is said by the result."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    assert not said, f"it warned: {said[0].message}"


def _result_or_sentence(path: Path, step: Callable[[], Any]) -> Any:
    try:
        return step()
    except InputError as error:
        sentence = str(error)
    assert sentence.isprintable(), f"no single line: {sentence!r}"
    assert path.name in sentence
    assert len(sentence) < 600 + len(str(path))
    return sentence
