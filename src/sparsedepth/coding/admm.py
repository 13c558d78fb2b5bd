"""A batched solver for codes and variances together: ADMM whose steps are matrix products over many patches.

Eq. 6 is split as v = f - Phi a (the residual) and z = a (the codes), with penalties m1 and m2. The step for `a` is a
ridge regression. Its matrix depends on the dictionary and on rho = m2 / m1, *not* on the variances: one factor serves
all patches. With b = z - u2, c = f - v + u1 (u1, u2 the scaled multipliers) and G = Phi Phi',

    a         = b + Phi' inv(G + rho I) (c - Phi b)
    f - Phi a = (f - c) + rho inv(G + rho I) (c - Phi b)          since G inv(G + rho I) = I - rho inv(G + rho I),

which leaves two products an iteration: Phi b, and (c - Phi b) times the stacked factor. The variances are the noise
model's closed form at each iteration's residual.

**Penalties.** Each patch is measured in its own unit, h = lambda / m2, so that soft thresholding is clipping at 1. A
good m2 is lambda over a typical coefficient, and a good m1 is a fraction of the largest precision. A typical
coefficient is the patch's rms up to a constant. Hence m2 = 3 lambda / rms, and m1 = 0.3 sqrt(sigma_0 / rms) / floor.
Where the variances are fixed, half of that m1 is used. Record I2 of the decisions has the grid behind the constants and
the root. The ratio rho is rounded to a coarse grid, so that few factors serve patches of all contrasts; m1 and m2 share
the error. The penalties of a patch depend on that patch alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from sparsedepth.coding.matmul import Layout, layout, row_stable_matmul
from sparsedepth.coding.noise import NoiseModel
from sparsedepth.kernels.admm import GROWTH_NONE, GROWTH_OWN, KERNELS
from sparsedepth.vocabulary import Codes, Floats, Patches, Vector

RELAXATION = 1.7
CODE_PENALTY = 3.0
"""m2 in units of lambda / rms."""
RESIDUAL_PENALTY = {True: 0.3, False: 0.15}
"""m1 in units of 1 / floor, for a patch whose contrast is that of its noise; by whether variances are inferred."""
RATIO_ANCHOR, RATIO_BASE = 0.3, 4.0
"""rho is rounded to ANCHOR * BASE**k; the anchor is what the paper's settings ask for."""
RATIO_EXPONENTS = (-10, 10)
PENALTY_GROWTH = 1.1
"""With inferred variances both penalties grow by this at each check. The energy is not convex, and some patches never
converge with constant penalties."""
CHECK_INTERVAL_ITERATIONS = 8
"""Iterations between two checks of the energy; the start from the initial variances lasts as long."""
PIXEL_MULTIPLE, ATOM_MULTIPLE = 32, 16
"""Pixels and atoms are padded to multiples of these, which a BLAS likes."""


def ratio_of(exponent: Any) -> Any:
    return RATIO_ANCHOR * RATIO_BASE**exponent


def padded(length: int, lanes: int) -> int:
    return -(-length // lanes) * lanes


class Factors:
    """A padded dictionary, and the factor of the ridge step for each penalty ratio."""

    def __init__(self, atoms: Floats, price: Floats | None = None, rows: Layout | None = None) -> None:
        """Pad the atoms; ``price`` weighs the sparsity of each atom's code, 1 by default, 0 = free.

        ``rows`` is how patches lie in memory; None: as this machine needs it.
        """
        self.n_atoms, self.n_pixels = atoms.shape
        self.layout = rows or layout()
        self.price: Floats | None = None
        if price is not None:
            self.price = np.ones(padded(self.n_atoms, ATOM_MULTIPLE), atoms.dtype)
            self.price[: self.n_atoms] = price
        self.limits = np.ones(padded(self.n_atoms, ATOM_MULTIPLE), atoms.dtype) if self.price is None else self.price
        self.atoms = np.zeros((padded(self.n_atoms, ATOM_MULTIPLE), padded(self.n_pixels, PIXEL_MULTIPLE)), atoms.dtype)
        self.atoms[: self.n_atoms, : self.n_pixels] = atoms
        self._by_exponent: dict[float, Floats] = {}

    def of(self, exponent: float) -> Floats:
        """Compute the relaxation times [inv(G + rho I) Phi | rho inv(G + rho I)], to multiply from the right."""
        if exponent not in self._by_exponent:
            wide, ratio = self.atoms.astype(np.float64), ratio_of(exponent)
            inverse = _inverse(wide.T @ wide + ratio * np.eye(wide.shape[1]))
            stacked = np.empty((wide.shape[1], sum(wide.shape)), self.atoms.dtype)
            stacked[:, : len(wide)] = RELAXATION * (inverse @ wide.T)
            stacked[:, len(wide) :] = RELAXATION * ratio * inverse
            self._by_exponent[exponent] = stacked
        return self._by_exponent[exponent]

    def reconstruct(self, codes: Codes) -> Patches:
        whole = np.zeros((len(codes), len(self.atoms)), codes.dtype)
        whole[:, : self.n_atoms] = codes
        return row_stable_matmul(whole, self.atoms, self.layout)[:, : self.n_pixels]


def _inverse(positive: Floats) -> Floats:
    """Invert a positive definite matrix by its Cholesky factor, at a third of the cost of a general inverse."""
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (positive,))
    upper = potri(potrf(positive)[0])[0]
    return np.triu(upper) + np.triu(upper, 1).T


@dataclass(frozen=True)
class Penalties:
    """The penalties of each patch: the exponent of its ratio rho, its unit h and its residual penalty m1."""

    exponent: Vector
    unit: Vector
    residual: Vector

    @classmethod
    def choose(cls, rms: Vector, variance: Vector, sparsity: float, inferred: bool) -> Penalties:
        """Choose penalties from each patch's contrast and a typical small variance of its pixels, as derived above."""
        residual = RESIDUAL_PENALTY[inferred] / variance * np.sqrt(np.minimum(1, np.sqrt(variance) / rms))
        ideal = CODE_PENALTY * sparsity / (residual * rms)
        exponent = np.clip(np.rint(np.log(ideal / RATIO_ANCHOR) / np.log(RATIO_BASE)), *RATIO_EXPONENTS)
        shared = np.sqrt(ideal / ratio_of(exponent))
        return cls(exponent, rms / CODE_PENALTY * shared, residual * shared)

    def take(self, rows: NDArray[np.intp]) -> Penalties:
        return Penalties(self.exponent[rows], self.unit[rows], self.residual[rows])


@dataclass(frozen=True)
class Job:
    """Patches that share their penalty ratios: those of the start (initial variances) and of the rest."""

    rows: NDArray[np.intp]
    start: Penalties
    rest: Penalties
    starting: bool

    @property
    def exponents(self) -> tuple[float, float]:
        """The exponents of the ratio at the start, if there is one, and of the ratio of the rest."""
        rest = float(self.rest.exponent[0])
        return (float(self.start.exponent[0]) if self.starting else rest), rest


def plan(patches: Patches, noise: NoiseModel, sparsity: float, block: int) -> list[Job]:
    """Group the patches that have anything to code by their penalty ratios, then cut the groups into blocks."""
    pieces = [slice(i, i + 4096) for i in range(0, len(patches), 4096)]
    measured = [_measure(patches[piece], noise.take(piece)) for piece in pieces]
    rms, floor, initial = np.concatenate(measured, axis=1) if measured else np.empty((3, 0))
    rows = np.flatnonzero(rms > 0)
    rms, floor, initial = rms[rows], floor[rows], initial[rows]
    start, rest = (Penalties.choose(rms, variance, sparsity, noise.inferred) for variance in (initial, floor))
    starting = initial > floor
    groups = ((start.exponent * 64 + rest.exponent) * 2 + starting).astype(np.intp)  # |exponent| <= 10: no two collide
    jobs = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        for i in range(0, len(members), block):
            some = members[i : i + block]
            jobs.append(Job(rows[some], start.take(some), rest.take(some), bool(starting[some[0]])))
    return jobs


def _measure(patches: Patches, noise: NoiseModel) -> Floats:
    """Measure the contrast, the typical small floor and the typical small initial variance of each patch (3, n).

    A typical small variance is the lower quartile over the known pixels. So the reliable pixels set the penalties, and
    a few extreme ones do not matter. The contrast is the rms. Where variances are inferred, values are first clipped at
    three times their ninth decile: an outlier will be explained as noise, not by codes.
    """
    floor, pixels = noise.floor_variance(patches), patches.shape[1]
    rms, scratch = np.empty(len(patches)), np.empty(pixels + 1, patches.dtype)
    KERNELS[patches.dtype].contrast(len(patches), pixels, patches, floor, noise.inferred, scratch, rms)

    def low(variance: Floats) -> Vector:
        known = np.isfinite(variance)
        least = variance.min(initial=np.inf)
        if (variance[known] == least).all():
            return np.full(len(variance), least)
        quartile = (np.maximum(known.sum(axis=1), 1) - 1) // 4
        return np.take_along_axis(np.sort(variance, axis=1), quartile[:, None], axis=1)[:, 0].astype(np.float64)

    return np.stack([rms, low(floor), low(noise.initial_variance(patches))])


class Block:
    """The patches of one job during the iterations."""

    def __init__(self, patches: Patches, noise: NoiseModel, sparsity: float, factors: Factors, job: Job) -> None:
        dtype = factors.atoms.dtype
        self._layout, self.count = factors.layout, len(patches)
        self._across, self._kernels = self._layout.order == "F", KERNELS[dtype]
        rows, column = self._layout.length(self.count), self._layout.column
        self.factors, self.noise, self.sparsity, self.starting = factors, noise, sparsity, job.starting
        self._exponent, self._next_exponent = job.exponents
        self._unit, self._next_unit = column(job.start.unit), column(job.rest.unit)
        if not self.starting:
            self._unit, self._exponent = self._next_unit, self._next_exponent
        self._dual_change = self._unit / self._next_unit * column(job.start.residual / job.rest.residual)
        self._prepare(patches, job)
        self._load = self._floor_load
        if self.starting:
            initial = self._layout.full(rows, factors.atoms.shape[1], np.inf, np.float64)
            initial[self.real, : patches.shape[1]] = noise.initial_variance(patches)
            self._load = (column(job.start.residual) * initial).astype(dtype, order=self._layout.order)
        self.code_sum = self._layout.full(rows, len(factors.atoms), 0, dtype)
        self._difference = np.zeros_like(self.code_sum)
        self.quiet = np.zeros(rows, bool)

    def _prepare(self, patches: Patches, job: Job) -> None:
        """Lay the patches out in the units of their penalties."""
        dtype, rows, pixels = self.factors.atoms.dtype, self._layout.length(self.count), self.factors.atoms.shape[1]
        self.target, self._floor_load, self._per_floor, self.residual_dual, self.carried = (
            self._layout.full(rows, pixels, fill, dtype) for fill in (0, np.inf, 0, 0, 0)
        )
        unit = job.start.unit if self.starting else job.rest.unit
        rounding = (16 * np.finfo(dtype).eps * CODE_PENALTY * job.rest.unit) ** 2
        floor = np.ascontiguousarray(self.noise.floor_variance(patches), dtype)
        numbers = (each.astype(dtype) for each in (unit, job.rest.unit, job.rest.residual, rounding))
        block = (self.target, self._floor_load, self._per_floor)
        sizes = (*patches.shape, rows, pixels, self._layout.idle, self._across)
        self._kernels.prepare(*sizes, patches, floor, *numbers, *map(self._laid, block))

    def _laid(self, values: Floats) -> Floats:
        """Return an array of the block as it lies in memory."""
        return values.T if self._across else values

    @property
    def real(self) -> slice:
        """The rows that are patches, not padding."""
        return self._layout.place(self.count)

    @property
    def codes(self) -> Floats:
        return self._codes_and_spent()[0]

    def _codes_and_spent(self) -> tuple[Floats, Vector]:
        """Compute the codes in the block's units, and the weighted sums of their absolute values."""
        codes, spent = np.empty_like(self.code_sum), np.empty(len(self.code_sum))
        laid = map(self._laid, (self.code_sum, codes))
        self._kernels.codes(*self.code_sum.shape, self._across, self.factors.limits, *laid, spent)
        return codes, spent

    def leave_start(self) -> None:
        """Change to the penalties and units of the inferred variances; the multipliers m1 u1 and m2 u2 carry over."""
        self._rescale((self._unit / self._next_unit).astype(self.target.dtype), self._dual_change)
        self._unit, self._exponent, self.starting = self._next_unit, self._next_exponent, False

    def tighten(self) -> None:
        """Raise both penalties; in the unit that goes with them the scaled multipliers stay as they are."""
        more = self.target.dtype.type(PENALTY_GROWTH)
        self._rescale(np.full((len(self.target), 1), more), 1.0)
        self._floor_load *= more
        self._per_floor /= more * more
        self._unit = self._next_unit = self._unit / more

    def _rescale(self, primal: Floats, dual: Any) -> None:
        """Multiply targets, codes and residuals by one number for each row, multipliers of residuals by another."""
        laid = map(self._laid, (self.code_sum, self._difference))
        self._kernels.rescale(*self.code_sum.shape, self._across, primal, self.factors.limits, *laid)
        self.target *= primal
        self.carried += self.residual_dual
        self.carried *= primal
        self.residual_dual *= np.asarray(dual, self.target.dtype)
        self.carried -= self.residual_dual

    def advance(self, iterations: int) -> None:
        atoms, factor = self.factors.atoms, self.factors.of(self._exponent)
        wanted, fitted = self.target - self.carried, np.empty_like(self.target)
        step = np.empty((len(fitted), factor.shape[1]), fitted.dtype, order=self._layout.order)
        load, growth = (self._load, GROWTH_NONE) if self.starting else (self._floor_load, self.noise.growth_law)
        own = growth == GROWTH_OWN
        load = load.copy(order="K") if own else load
        arrays = (self.target, load, self._per_floor, self.residual_dual, self.carried, wanted)
        arrays = (step, self.factors.limits, self.code_sum, self._difference, *arrays)
        addresses = [array.ctypes.data for array in arrays]
        sizes = (len(fitted), len(atoms), fitted.shape[1], self._across)
        for _ in range(iterations):
            np.subtract(wanted, np.matmul(self._difference, atoms, out=fitted), out=fitted)
            np.matmul(fitted, factor, out=step)
            if own:
                np.multiply(self._growth(step[:, len(atoms) :]), self._floor_load, out=load)
            self._kernels.step(*sizes, *addresses, RELAXATION, GROWTH_NONE if own else growth)

    def _growth(self, shift: Floats) -> Floats:
        """Compute the best variances over their floors by the noise model's own function, for shifts of residuals."""
        misfit = shift / shift.dtype.type(RELAXATION) + self.carried
        return self.noise.growth(np.square(misfit) * self._per_floor)

    def energy(self) -> Vector:
        """Compute Eq. 6 of the codes at their best variances, beyond the sum of log floors (so never negative)."""
        codes, spent = self._codes_and_spent()
        misfit = self.target - self._layout.times(codes, self.factors.atoms)
        misfit *= (self._unit / self._next_unit).astype(misfit.dtype)
        return self._energy_of(misfit, spent)

    def zero_energy(self) -> Vector:
        """Compute the energy of zero codes."""
        return self._energy_of(self.target * (self._unit / self._next_unit).astype(self.target.dtype), 0.0)

    def _energy_of(self, misfit: Floats, spent: Vector | float) -> Vector:
        np.square(misfit, out=misfit)
        misfit *= self._per_floor
        pixels = self.noise.price(misfit).sum(axis=1, dtype=np.float64)
        return (pixels + self.sparsity * self._unit[:, 0] * spent)[self.real]

    def relative_gap(self) -> Vector:
        """Compute the duality gap of the weighted lasso over its objective, for fixed variances.

        In the block's units the objective is sum r^2 / (2 load) + rho |z|_1. The feasible dual point is u1, shrunk
        until |Phi' u1| <= rho. It is much nearer to the optimum than the residual.
        """
        ratio = ratio_of(self._exponent)
        codes, spent = self._codes_and_spent()
        misfit = self.target - self._layout.times(codes, self.factors.atoms)
        load = self._floor_load
        objective = (np.square(misfit) / (2 * load)).sum(axis=1, dtype=np.float64)
        objective += ratio * spent
        dual = self.residual_dual
        steepest = np.abs(self._layout.times(dual, self.factors.atoms.T)).max(axis=1, keepdims=True)
        dual = dual * (ratio / np.maximum(steepest, ratio))
        finite_load = np.where(np.isfinite(load), load, 0)
        bound = (dual * self.target - dual * dual * finite_load / 2).sum(axis=1, dtype=np.float64)
        return ((objective - bound) / np.maximum(objective, np.finfo(np.float64).tiny))[self.real]

    def codes_of(self, rows: NDArray[np.intp]) -> Codes:
        """Return the codes of some rows, in units of the patches."""
        rows = rows + self._layout.idle
        return (self.codes[rows] * self._unit[rows])[:, : self.factors.n_atoms].astype(self.target.dtype)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Continue with these patches only."""
        self.count = len(rows)
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, self._layout.select(values, rows))


class Solution(NamedTuple):
    codes: Codes
    rounds: NDArray[np.int32]
    converged: NDArray[np.bool_]


class EnergyAtRest:
    """A stopping rule: the energy is, twice in a row, within this fraction of the lowest before.

    The share is of the energy's excess over the noise floor. One quiet look is often a coincidence on a bumpy way.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.never = tolerance == 0
        """Nothing rests before the rounds are over: only the last look matters."""

    def __call__(self, block: Block, lowest: Vector, now: Vector) -> NDArray[np.bool_]:
        quiet = np.abs(lowest - now) <= self.tolerance * lowest
        resting = quiet & block.quiet[block.real]
        block.quiet[block.real] = quiet
        return resting


class GapBelow:
    """A stopping rule: the relative duality gap (fixed variances) is below the tolerance."""

    never = False

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def __call__(self, block: Block, lowest: Vector, now: Vector) -> NDArray[np.bool_]:
        return block.relative_gap() <= self.tolerance


def solve(block: Block, at_rest: EnergyAtRest | GapBelow, max_rounds: int) -> Solution:
    """Iterate each patch until it converges; its codes are the best that occurred, the zero code among them."""
    n = block.count
    codes = np.zeros((n, block.factors.n_atoms), block.target.dtype)
    rounds, converged = np.zeros(n, np.int32), np.zeros(n, bool)
    lowest = block.zero_energy()
    active = np.arange(n)
    done_rounds = 0
    if block.starting:
        block.advance(CHECK_INTERVAL_ITERATIONS)
        done_rounds += CHECK_INTERVAL_ITERATIONS
        block.leave_start()
    while len(active):
        if block.noise.inferred:
            block.tighten()
        iterations = min(CHECK_INTERVAL_ITERATIONS, max(max_rounds - done_rounds, 1))
        block.advance(iterations)
        done_rounds += iterations
        if at_rest.never and done_rounds < max_rounds:
            continue
        now = block.energy()
        better = np.flatnonzero(now < lowest[active])
        codes[active[better]] = block.codes_of(better)
        resting = at_rest(block, lowest[active], now)
        lowest[active[better]] = now[better]
        rounds[active] = done_rounds
        converged[active] = resting
        if done_rounds >= max_rounds:
            break
        going = np.flatnonzero(~resting)
        if len(going) < len(active):
            active = active[going]
            block.keep(going)
    return Solution(codes, rounds, converged)
