"""Measure streams, huge maps and clusters on this machine. Writes the generated part of docs/scale.md.

The machine may be busy with other things, so wall-clock time says little. What counts is the processor time of the
longest path: of the client, and of the worker that has most to do.

Each piece (frames, stream, huge, learning, restoring) can be run on its own and leaves its numbers in a folder;
``page`` puts together whatever there is: ``python benchmarks/scale.py frames learning restoring page``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import sparsedepth
import sparsedepth.cluster as work_of_a_cluster
from sparsedepth import Restorer, infer, learn
from sparsedepth.cluster import ClusterAccumulator, Restoring, connect
from sparsedepth.coding.noise import Stationary
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.markdown import commit, machine, table, write_made_part
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import PatchStream

SHAPE = (240, 320)
BATCH, PATCH, ATOMS = 2048, 16, 256
WORKERS = (1, 2, 4)
ROUNDS = 3
GIGABIT = {"1 Gbit/s": 125e6, "10 Gbit/s": 1.25e9}


def frame(number: int) -> np.ndarray:
    """Build a box in front of a slanted wall, moving; 2 % outliers, 2 % holes and a blind margin."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    depth = 2 + 0.004 * x + 0.002 * y + 0.8 * (x + 0.4 * y > 190 + number % 60)
    depth -= 0.5 * (np.hypot(x - 100 - number % 80, y - 120) < 50)
    depth += np.where(rng.random(SHAPE) < 0.02, rng.normal(0, 0.4, SHAPE), 0)
    depth[rng.random(SHAPE) < 0.02] = np.nan
    depth[:, :6] = np.nan
    return depth.astype(np.float32)


def clocked(work: Callable[[], Any]) -> list[float]:
    """Measure wall seconds, and processor seconds of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return [time.perf_counter() - wall, time.process_time() - cpu]


def metered(task: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a task so that it leaves its processor time with the worker that does it."""

    def doing(*given: Any, **options: Any) -> Any:
        from distributed import get_worker

        start = time.thread_time()
        result = task(*given, **options)
        worker: Any = get_worker()
        worker.spent = getattr(worker, "spent", 0.0) + time.thread_time() - start
        return result

    return doing


def turn_of(client: Any, work: Callable[[], Any]) -> list[float]:
    """Measure wall seconds, processor seconds of this process, and those of the workers' tasks."""

    def spent() -> np.ndarray:
        found = client.run(lambda dask_worker: getattr(dask_worker, "spent", 0.0))
        return np.array([found[worker] for worker in sorted(found)])

    before = spent()
    row = clocked(work)
    return [*row, *(spent() - before)]


def frames(_: Path) -> dict[str, Any]:
    """Time one thread, two, and two processes in turns: wall, processor, and wall less the waiting for these."""
    restorer, some = Restorer(quality="fast"), [frame(n) for n in range(6)]
    spent: list[np.ndarray] = []

    def restored(each: np.ndarray) -> None:
        start = _spent("thread-self")
        restorer(each, threads=1)
        spent.append(_spent("thread-self") - start)

    def row(work: Callable[[], Any], at_once: int, others: list[int]) -> list[float]:
        spent.clear()
        before, start = [_spent(pid) for pid in others], time.perf_counter()
        work()
        wall = time.perf_counter() - start
        cpu, waited = np.sum([*spent, *(_spent(pid) - was for pid, was in zip(others, before, strict=True))], axis=0)
        return [wall, cpu, wall - waited / at_once]

    with restorer.in_processes(2) as elsewhere:
        pids = [child.pid for child in psutil.Process().children()]

        def turn(restore: Callable[..., Any], at_once: int, others: list[int]) -> list[float]:
            return row(lambda: list(map_in_threads(restore, some, at_once)), at_once, others)

        turn(restored, 2, [])
        turn(elsewhere, 2, pids)
        ways = ((restored, 1, []), (restored, 2, []), (elsewhere, 2, pids))
        return {"frames": len(some), "rows": [[turn(*way) for way in ways] for _ in range(ROUNDS)]}


def _spent(who: int | str) -> np.ndarray:
    """Read the seconds that a thread, or the main thread of a process, ran and waited for a processor."""
    return np.array(Path(f"/proc/{who}/schedstat").read_text().split()[:2], float) / 1e9


def stream(_: Path) -> dict[str, Any]:
    """Measure the memory of two processes and of the one that feeds them while a stream is restored.

    Now and then it is that of the middle of a frame: what counts is the median of fifty looks.
    """
    restorer, looks, memory = Restorer(quality="fast"), [], []
    here = psutil.Process()
    for number, _ in enumerate(restorer.each((frame(n) for n in range(1000)), processes=2), 1):
        looks.append(sum(process.memory_info().rss for process in (here, *here.children())))
        if number % 100 == 0:
            memory.append([number, float(np.median(looks[-50:]))])
    return {"memory": memory}


def huge(folder: Path) -> dict[str, Any]:
    """Measure the peak memory of the command for maps of growing size."""
    found = {}
    for side in (2500, 5000, 10000):
        source, target = folder / "huge.npy", folder / "huge.tiff"
        _huge_map(source, side)
        target.unlink(missing_ok=True)
        words = [sys.executable, "-m", "sparsedepth", "denoise", source, "-o", target, "--profile", "m"]
        started = time.perf_counter()
        child = os.posix_spawn(sys.executable, [*map(str, words), "--quality", "fast", "--jobs", "1"], os.environ)
        _, status, usage = os.wait4(child, 0)
        assert status == 0
        cpu = usage.ru_utime + usage.ru_stime
        found[side] = {"peak": usage.ru_maxrss * 1024, "cpu": cpu, "wall": time.perf_counter() - started}
    return found


def _huge_map(path: Path, side: int) -> None:
    pixels = np.lib.format.open_memmap(path, "w+", np.float32, (side, side))
    rng, x = np.random.default_rng(0), np.arange(side)
    for top in range(0, side, 500):
        y = np.arange(top, min(top + 500, side))[:, None]
        depth = 2 + 4e-4 * x + 2e-4 * y + 0.8 * ((x // 97 + y // 131) % 2) + 0.3 * np.sin(x / 40) * np.cos(y / 57)
        depth += np.where(rng.random(depth.shape) < 0.01, rng.normal(0, 0.4, depth.shape), 0)
        depth[rng.random(depth.shape) < 0.01] = np.nan
        pixels[top : top + 500] = depth


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Start a scheduler and worker processes of one thread, and a client."""
    one = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        processes: list[subprocess.Popen] = []

        def start(what: str, *options: str) -> None:
            words = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *options]
            processes.append(subprocess.Popen(words, env=one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        try:
            place = Path(folder) / "scheduler.json"
            start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(place))
            while not place.exists():
                time.sleep(0.05)
            for _ in range(workers):
                start(
                    "worker",
                    "--scheduler-file",
                    str(place),
                    "--nthreads",
                    "1",
                    "--no-nanny",
                    "--local-directory",
                    folder,
                )
            client = connect(json.loads(place.read_text())["address"], sparsedepth.__version__)
            client.wait_for_workers(workers, timeout=120)
            yield client
            client.close()
        finally:
            for process in processes:
                process.kill()
                process.wait()


def learning(_: Path) -> dict[str, Any]:
    """Measure seconds a step for 1, 2 and 4 workers, by turns, and what the client itself spends."""
    work_of_a_cluster.accumulate = metered(work_of_a_cluster.accumulate)
    batches = PatchStream([motorcycle_disparity()], (PATCH, PATCH), batch=BATCH)
    drawn = {step: batches(step) for step in range(ROUNDS + 1)}
    start = sparsedepth.Dictionary.builtin("phi1")
    rows: dict[int, list[list[float]]] = {n: [] for n in WORKERS}
    with ExitStack() as stack:
        runs = {}
        for n in WORKERS:
            client = stack.enter_context(cluster(n))
            steps, accumulator = 10 * (ROUNDS + 1), ClusterAccumulator(client)
            run = learn(lambda step: drawn[step], start, steps=steps, accumulator=accumulator)
            next(run)
            runs[n] = partial(turn_of, client, partial(next, run))
        for _ in range(ROUNDS):
            for n in WORKERS:
                rows[n].append(runs[n]())
    drawing = clocked(lambda: batches(0))[1]
    some = drawn[0].patches[:1024]
    quick = partial(infer, some, start, Stationary(1.0), tolerance=0.0, max_rounds=48, threads=1)
    return {"rows": rows, "drawing": drawing, "coding": clocked(quick)[1] / len(some)}


def restoring(_: Path) -> dict[str, Any]:
    """Measure seconds for some frames by 1, 2 and 4 workers, by turns, and what the client itself spends.

    A worker that waits for a core gets fewer frames than the others: with few frames, one more or less decides.
    """
    work_of_a_cluster._restored = metered(work_of_a_cluster._restored)
    some, rows = [frame(n) for n in range(16)], {n: [] for n in WORKERS}
    with ExitStack() as stack:
        runs = {}
        for n in WORKERS:
            client = stack.enter_context(cluster(n))
            way = Restoring(client, Restorer(quality="fast"))
            list(map_in_threads(way, some[:1], 1))
            runs[n] = partial(turn_of, client, lambda way=way, n=n: list(map_in_threads(way, some, 2 * n)))
        for _ in range(ROUNDS):
            for n in WORKERS:
                rows[n].append(runs[n]())
    return {"frames": len(some), "rows": rows}


PIECES = {"frames": frames, "stream": stream, "huge": huge, "learning": learning, "restoring": restoring}


def page(folder: Path) -> list[str]:
    """Format the generated part of the page, of the pieces that have been measured."""
    found = {
        name: json.loads((folder / f"{name}.json").read_text()) for name in PIECES if (folder / f"{name}.json").exists()
    }
    shared = (
        f"The machine was shared ({_measured(found)}), so times of clusters are processor time of the longest way: "
        "the client, and the worker that has most to do; messages and the scheduler are not in them."
    )
    parts = [f"Medians of {ROUNDS} turns. {machine()} {shared}"]
    for name, told in found.items():
        parts += TOLD[name](told["numbers"], found)
    return parts


def _measured(found: dict[str, Any]) -> str:
    return "; ".join(f"{name}: load {told['load']:.1f}, commit `{told['commit']}`" for name, told in found.items())


def _frames(told: dict[str, Any], _: Any) -> list[str]:
    rows, n = np.median(told["rows"], axis=0), told["frames"]
    lines = []
    for name, (wall, cpu, free) in zip(("1 thread", "2 threads", "2 processes"), rows, strict=True):
        cells = [name, f"{cpu / n:.2f}", f"{n / wall:.2f}", f"{n / free:.2f}"]
        lines.append([*cells, f"{rows[0, 0] / wall:.2f}", f"{rows[0, 2] / free:.2f}"])
    head = ["by", "CPU s a frame", "frames/s", "frames/s without waiting", "times one", "times one without waiting"]
    said = (
        "Without waiting is as if no thread had ever waited for a processor that others had. Threads wait for each "
        "other's Python; processes (`each(frames, processes=2)`, and `denoise` on a folder of many maps) do not, and "
        "had been started before."
    )
    return ["## Frames, 320x240, `fast`", table(head, lines), said]


def _stream(told: dict[str, Any], _: Any) -> list[str]:
    sizes = dict(told["memory"])
    first, last = sizes[100], sizes[max(sizes)]
    said = ", ".join(f"{size / 1e6:.0f} MB after {number}" for number, size in sizes.items())
    told_of = "Two processes and the one that feeds them, median of the fifty frames before"
    return ["## Memory of a stream", f"{told_of}: {said}: {last / first - 1:+.1%} from frame 100 to {max(sizes)}."]


def _huge(told: dict[str, Any], _: Any) -> list[str]:
    lines = [
        [f"{int(side) ** 2 / 1e6:.1f}", f"{row['peak'] / 1e9:.2f}", f"{row['cpu'] / (int(side) ** 2 / 1e6):.1f}"]
        for side, row in told.items()
    ]
    return [
        "## Huge maps, npy to TIFF, `fast`, one thread",
        table(["megapixels", "peak memory, GB", "CPU s a megapixel"], lines),
    ]


def _scaling(told: dict[str, Any], unit: str, each: float, longest: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    """Format a table of times; columns are wall, client, workers."""
    rows = {int(n): np.array(values) for n, values in told["rows"].items()}
    one, lines = np.median(longest(rows[1])), []
    for n, values in rows.items():
        way = np.median(longest(values))
        client = f"{1000 * np.median(values[:, 1]) / each:.0f}"
        lines.append([str(n), f"{each / way:.2f}", f"{one / way:.2f}", f"{one / way / n:.0%}", client])
    head = ["worker processes", f"{unit}/s", "times one", "efficiency", f"client's CPU, ms a {unit[:-1]}"]
    return [table(head, lines)]


def _restoring(told: dict[str, Any], found: dict[str, Any]) -> list[str]:
    table_ = _scaling(told, "frames", told["frames"], lambda rows: rows[:, 1:].max(axis=1))
    rows = {int(n): np.array(values) for n, values in told["rows"].items()}
    client = float(np.median(rows[2][:, 1])) / told["frames"]
    work = float(np.median(rows[1][:, 2])) / told["frames"]
    if "frames" in found:
        work = (
            float(np.median(np.array(found["frames"]["numbers"]["rows"])[:, 0, 1]))
            / found["frames"]["numbers"]["frames"]
        )
    moved = 13 * SHAPE[0] * SHAPE[1]
    lines = []
    for machines in (1, 2, 10, 100, 1000):
        cores = 2 * machines
        limits = {"computing": cores / work, "client's processor": 1 / client}
        cells = [str(machines), f"{limits['computing']:.0f}"]
        for speed in GIGABIT.values():
            least = min({**limits, "network": speed / moved}.items(), key=lambda each: each[1])
            cells.append(f"{least[1]:.0f} ({least[0]})")
        lines.append(cells)
    head = ["machines of 2 cores", "frames/s by computing", *(f"frames/s, {name}" for name in GIGABIT)]
    said = (
        f"Model: a frame takes {work:.2f} s of a core; {moved / 1e6:.1f} MB on the wire (4 bytes a pixel out, 9 back) "
        f"and {1000 * client:.0f} ms of the client's processor."
    )
    return ["## Restoring on a cluster", *table_, said, table(head, lines)]


def _learning(told: dict[str, Any], _: Any) -> list[str]:
    table_ = _scaling(told, "steps", 1, lambda rows: rows[:, 1] + rows[:, 2:].max(axis=1))
    wire = 4 * ATOMS * (2 * PATCH**2 + ATOMS)
    rows = {int(n): np.array(values) for n, values in told["rows"].items()}
    fixed = float(np.median(rows[2][:, 1])) + told["drawing"]
    lines = []
    for machines in (1, 2, 10, 100, 1000):
        workers = 2 * machines
        for batch, rule in ((BATCH, "fixed"), (256 * workers, "256 a worker")):
            busy = min(workers, batch // 128)
            work = told["coding"] * batch / busy
            cells = [str(machines), f"{batch} ({rule})"]
            for speed in GIGABIT.values():
                step = work + fixed * batch / BATCH + (busy * wire + batch * 4 * PATCH**2) / speed
                cells.append(f"{batch / step:.0f} ({told['coding'] * batch / step / workers:.0%})")
            lines.append(cells)
    head = ["machines of 2 cores", "batch", *(f"patches/s, {name} (efficiency)" for name in GIGABIT)]
    said = (
        f"Model: a patch takes {1e6 * told['coding']:.0f} µs of a core and {4 * PATCH**2} bytes on the wire; a worker "
        f"and step {wire / 1e6:.2f} MB (the atoms there, two sums back); the client "
        f"{1000 * fixed * 512 / BATCH:.0f} ms for 512 patches (drawing them, and the rest)."
    )
    title = f"## Learning on a cluster: batches of {BATCH}, {PATCH}x{PATCH}, {ATOMS} atoms"
    return [title, *table_, said, table(head, lines)]


TOLD = {"frames": _frames, "stream": _stream, "huge": _huge, "restoring": _restoring, "learning": _learning}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pieces", nargs="*", choices=[*PIECES, "page"], default=[*PIECES, "page"])
    parser.add_argument("--results", type=Path, default=Path("example-output/scale"))
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    for piece in options.pieces:
        if piece == "page":
            print(write_made_part(Path("docs/scale.md"), "Scale", "python benchmarks/scale.py", page(options.results)))
            continue
        told = {"load": os.getloadavg()[0], "commit": commit(), "numbers": PIECES[piece](options.results)}
        (options.results / f"{piece}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
