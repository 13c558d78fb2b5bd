"""What every trained file says of itself: the script, the data with their checksum, the seed, the commit, the date."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from sparsedepth.data import data_folder
from sparsedepth.markdown import commit


def provenance(script: str, what: str, data: str, files: Iterable[Path], seed: int | None = None) -> dict[str, str]:
    """Describe a fit that starts now.

    Parameters
    ----------
    script : str
        The ``__file__`` of the training script.
    what : str
        What the coefficients are.
    data : str
        The names of the data sets.
    files : iterable of Path
        All files that were read from the folder of data sets.
    seed : int, optional
        Of the random generator, if there is one.
    """
    return {
        "what": what,
        "script": f"training/{Path(script).name}",
        "data": f"{data}; {checksum(files)}",
        "seed": "no randomness" if seed is None else str(seed),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def checksum(files: Iterable[Path]) -> str:
    """Digest the names and the contents of files, in the order of their names."""
    digest, paths = hashlib.sha256(), sorted(files)
    for path in paths:
        digest.update(str(path.relative_to(data_folder())).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{len(paths)} files, SHA-256 {digest.hexdigest()}"
