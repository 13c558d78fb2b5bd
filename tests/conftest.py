"""Shared material of the tests: small dictionaries and patches, and the real data where it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import typer
from hypothesis import settings

from sparsedepth import Exponential, Jeffreys, Known, Stationary
from sparsedepth.cli import main
from sparsedepth.cli.batch.plan import plan_targets
from sparsedepth.cli.batch.run import RunOptions, run_batch
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.coding.noise import NoiseModel

if TYPE_CHECKING:
    from running_service import Service

settings.register_profile("same", derandomize=True, deadline=None)  # `make test` gives one answer for one commit
settings.register_profile("explore", deadline=None)  # pytest --hypothesis-profile=explore looks further
settings.load_profile("same")


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers of one test: the same whatever ran before it."""
    return np.random.default_rng(0)


def unit_atoms(n_atoms: int, n_pixels: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    atoms = np.random.default_rng(seed).standard_normal((n_atoms, n_pixels))
    return (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(dtype)


def edge_patches(n: int, side: int, seed: int = 0, missing: float = 0.05, outliers: float = 0.03) -> np.ndarray:
    """Step edges and slants of all orientations, unit variance, a few outliers and missing pixels."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    patches = np.empty((n, side * side))
    for row in range(n):
        angle, offset = rng.uniform(0, 2 * np.pi), rng.uniform(-side / 3, side / 3)
        ramp = np.cos(angle) * x + np.sin(angle) * y - offset
        patch = np.where(ramp > 0, 1.0, 0.0) + rng.uniform(-0.05, 0.05) * (
            np.cos(angle * 2) * x + np.sin(angle * 2) * y
        )
        patches[row] = ((patch - patch.mean()) / patch.std()).ravel()
    noisy = rng.random(patches.shape) < outliers
    patches += np.where(noisy, rng.standard_normal(patches.shape), 0) + 0.03 * rng.standard_normal(patches.shape)
    patches[rng.random(patches.shape) < missing] = np.nan
    return patches


def known_variance(n: int, n_pixels: int, seed: int = 3) -> np.ndarray:
    """A sensor's variances over three decades, some pixels unmeasured."""
    rng = np.random.default_rng(seed)
    variance = 10 ** rng.uniform(-2.5, 0.5, (n, n_pixels))
    variance[rng.random((n, n_pixels)) < 0.05] = np.inf
    return variance


@dataclass(frozen=True)
class StudentT(NoiseModel):
    """A noise model as a project of one's own may add it: the kernels do not know how its variance grows."""

    floor: float = 0.01
    degrees: float = 3.0
    inferred = True

    def floor_variance(self, patches):
        return np.where(np.isnan(patches), np.inf, self.floor).astype(patches.dtype)

    def plus(self, variance):
        return Known(self.floor + np.asarray(variance), inferred=True)

    def growth(self, q):
        return 1 + q / q.dtype.type(self.degrees)

    def price(self, q):
        return q.dtype.type(self.degrees / 2) * np.log1p(q / q.dtype.type(self.degrees))

    def cost(self, variance):
        grown = np.where(np.isfinite(variance), variance / self.floor, 1.0)
        return (self.degrees / 2 * (np.log(grown) - (grown - 1) / grown)).sum(axis=-1)


NOISE_MODELS = {
    "jeffreys": lambda n, p: Jeffreys(floor=0.01),
    "jeffreys, low floor": lambda n, p: Jeffreys(floor=0.001, initial=0.5),
    "exponential": lambda n, p: Exponential(floor=0.01),
    "exponential, known floor": lambda n, p: Exponential(floor=known_variance(n, p)),
    "stationary": lambda n, p: Stationary(variance=0.02),
    "known": lambda n, p: Known(known_variance(n, p)),
    "known floor": lambda n, p: Known(known_variance(n, p), inferred=True),
    "student's t": lambda n, p: StudentT(floor=0.01),
    "known, one row": lambda n, p: Known(known_variance(1, p)[0]),
}


@pytest.fixture(params=NOISE_MODELS, ids=str)
def noise_model(request):
    """A function (n, pixels) -> noise model, over every kind there is."""
    return NOISE_MODELS[request.param]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs real data, by the fixture that gives it."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)


@pytest.fixture
def real_data() -> Path:
    folder = os.environ.get("SPARSEDEPTH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SPARSEDEPTH_DATA does not name the folder with the real data")
    return Path(folder)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys) -> Iterator[Callable[..., Ended]]:
    """Run a command line within this process, which is quicker than a process of its own."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, said.out, said.err)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run_spec(capsys) -> Callable[..., Ended]:
    """Run a batch as a restoring command does, with thresholds that the command line does not offer."""

    def run(
        spec: RestoreSpec, source: Path, output: Path, variance: Path | None = None, origin: Path | None = None
    ) -> Ended:
        capsys.readouterr()
        further = (None if path is None else str(path) for path in (variance, origin))
        targets = plan_targets([str(source)], str(output), *further, npz=False)
        options = RunOptions(str(output), None, False, False, False, None, False)
        try:
            run_batch("restoring", spec, targets, options)
            code = 0
        except typer.Exit as ended:
            code = ended.exit_code
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def plain() -> Iterator[Service]:
    """The HTTP service as it is."""
    from running_service import service  # imports frameworks that other tests do without
    from sparsedepth.serve.limits import Limits

    with service(Limits()) as running:
        yield running


@pytest.fixture(scope="session")
def strict() -> Iterator[Service]:
    """The HTTP service with limits that a test can reach."""
    from running_service import service
    from sparsedepth.serve.limits import Limits

    limits = Limits(
        bytes=200_000,
        pixels=100_000,
        frames=20,
        stream_pixels=300_000,
        queue=2,
        job_seconds=3,
        upload_seconds=4,
        idle_seconds=0.7,
        keep_seconds=5,
        keep_bytes=500_000,
    )
    with service(limits) as running:
        yield running
