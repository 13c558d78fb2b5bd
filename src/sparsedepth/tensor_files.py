"""Files of named arrays with a header of strings, in the safetensors format: reading one runs nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from sparsedepth.checks import one_line
from sparsedepth.vocabulary import Floats, InputError

MAX_FILE_BYTES = 1 << 30


def encode_tensors(arrays: Mapping[str, Floats], header: Mapping[str, str]) -> bytes:
    """Encode arrays and a header; equal contents give equal bytes, which the library itself does not ensure."""
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata=dict(header))
    end = 8 + int.from_bytes(content[:8], "little")
    ordered = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    ordered += b" " * (-len(ordered) % 8)
    return len(ordered).to_bytes(8, "little") + ordered + content[end:]


def read_tensors(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the arrays and the header of a file whose header says that it is of this kind."""
    path = Path(path)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB; this is no {kind}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = dict(file.metadata() or {})
            if header.pop("kind", None) != kind:
                raise InputError(f"{path} is a safetensors file but no {kind}")
            return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no {kind} ({one_line(error)}); these are safetensors files") from None
