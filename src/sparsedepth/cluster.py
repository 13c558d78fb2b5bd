"""Restoring and learning by the workers of a Dask cluster; needs the extra ``sparsedepth[cluster]``.

This process reads and writes all files. Maps are sent to the workers and results come back, so no shared disk is
needed. If a worker dies, another one repeats its work. A result does not depend on the worker that made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sparsedepth.coding.accumulate import SHARD_PATCHES, PartialSums, accumulate
from sparsedepth.coding.noise import NoiseModel
from sparsedepth.patches import Batch
from sparsedepth.vocabulary import Floats, InputError, Restoration

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 30.0
"""Seconds to wait for a scheduler, and for a worker to come (back)."""


def connect(address: str, version: str, patience: float = CONNECT_SECONDS) -> Client:
    """Connect to a cluster whose workers have this version of sparsedepth; an error says what is missing.

    ``patience`` is how many seconds to wait for it.
    """
    try:
        from dask.config import set as configure
        from distributed import Client
    except ImportError:
        raise InputError(
            "a cluster needs the packages dask and distributed; install them: pip install 'sparsedepth[cluster]'"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said by our own sentences
    configure({"distributed.admin.large-graph-warning-threshold": "1TB"})  # maps are large
    try:
        client = Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise InputError(
            f"no scheduler answers at {address} ({reason}); start one: dask scheduler; "
            "and on each machine: dask worker tcp://<scheduler>:8786 --nthreads 1 --nworkers <cores>"
        ) from None
    try:
        _require_workers(client, address, version, patience)
    except InputError:
        client.close()
        raise
    return client


def _require_workers(client: Client, address: str, version: str, patience: float) -> None:
    try:
        client.wait_for_workers(1, timeout=patience)
        found: dict[str, str] = cast(Any, client.run(_version))
    except TimeoutError:
        raise InputError(f"the cluster at {address} has no workers; start some: dask worker {address}") from None
    except ImportError as error:
        raise InputError(f"the workers at {address} cannot import {error.name}; install sparsedepth there") from None
    others = sorted({f"{theirs} at {worker}" for worker, theirs in found.items() if theirs != version})
    if others:
        raise InputError(f"this is sparsedepth {version} but there is {', '.join(others)}; install one everywhere")


def _version() -> str:
    from importlib.metadata import version

    return version("sparsedepth")


def slots(client: Client) -> int:
    """Count the tasks that the cluster can work on at the same time."""
    return max(sum(cast(Any, client.nthreads()).values()), 1)


class Restoring:
    """Restoration by the workers of a cluster; may be called by many threads at once.

    The function, with its dictionary, is itself the result of a task. It is sent to each worker once, and made again if
    all workers that have it die. A map whose result grows in files (``out``) is restored here, with the files.
    """

    def __init__(self, client: Client, restore: Callable[..., Restoration]) -> None:
        self._client, self._here = client, restore
        self._restore = client.submit(_itself, restore, pure=False)

    def __call__(self, depth: Any, *, threads: int | None = None, **more: Any) -> Restoration:
        if more.get("out") is not None:
            return self._here(depth, threads=threads, **more)
        return _result(self._client, self._client.submit(_restored, self._restore, depth, more, pure=False))


def _itself(thing: Any) -> Any:
    return thing


def _restored(restore: Callable[..., Restoration], depth: Any, more: dict[str, Any]) -> Restoration:
    return restore(depth, **more, threads=1)


class ClusterAccumulator:
    """An accumulator for `learn` whose shards are coded by the workers; the sums are equal to the last bit."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self,
        batch: Batch,
        atoms: Floats,
        noise: NoiseModel,
        sparsity: float,
        *,
        rounds: int | None,
        threads: int | None,
    ) -> PartialSums:
        del threads
        shards = -(-len(batch.patches) // SHARD_PATCHES)
        pieces = [piece for piece in np.array_split(np.arange(shards), slots(self._client)) if len(piece)]
        futures = [
            self._client.submit(
                accumulate,
                _rows(batch, int(piece[0]) * SHARD_PATCHES, (int(piece[-1]) + 1) * SHARD_PATCHES),
                atoms,
                noise,
                sparsity,
                rounds=rounds,
                threads=1,
                first=int(piece[0]),
                pure=False,
            )
            for piece in pieces
        ]
        found: dict[Any, Any] = {}
        for future in futures:
            found.update(_result(self._client, future))
        return found


def _rows(batch: Batch, start: int, end: int) -> Batch:
    return Batch(batch.patches[start:end], None if batch.variance is None else batch.variance[start:end])


def _result(client: Client, future: Future) -> Any:
    """Wait for a task; where the cluster cannot finish it, an error says why."""
    from distributed import KilledWorker

    while True:
        try:
            return future.result(timeout=CONNECT_SECONDS)
        except TimeoutError:
            if not client.nthreads():
                raise InputError("the cluster has lost all its workers; start new ones, and --resume") from None
        except KilledWorker:
            raise InputError("every worker that took it died; it may need more memory than they have") from None
        except CancelledError:
            raise InputError("the cluster's scheduler is gone; start it again, and --resume") from None
