"""Messages between processes: a header in JSON and named arrays of numbers, so that reading one runs nothing."""

from __future__ import annotations

import json
import struct
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

LENGTH = struct.Struct("<Q")
Header = dict[str, Any]
Message = tuple[Header, dict[str, NDArray[Any]]]
"""What JSON can hold, and arrays by their names."""


def encode_message(kind: str, message: Message) -> bytes:
    """Encode a message of a kind; arrays of Python objects are refused."""
    header, arrays = message
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"the array {name} holds Python objects; numbers only are sent")
    forms = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    words = json.dumps({"kind": kind, "header": header, "arrays": forms}).encode()
    return b"".join([LENGTH.pack(len(words)), words, *(array.tobytes() for array in arrays.values())])


def decode_message(pipe: IO[bytes]) -> tuple[str, Message]:
    """Read the next message of a pipe, and its kind."""
    (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
    words = json.loads(_exactly(pipe, length))
    arrays = {name: _array(pipe, np.dtype(dtype), tuple(shape)) for name, dtype, shape in words["arrays"]}
    return words["kind"], (words["header"], arrays)


def _array(pipe: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    if cast(Any, pipe).readinto(array.reshape(-1).view(np.uint8)) < array.nbytes:
        raise EOFError
    return array


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content
