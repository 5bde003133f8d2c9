"""MCPL at scale. Run by hand:

    python -m tests.benchmarks.bench_mcpl scale --rows 10000000
    python -m tests.benchmarks.bench_mcpl growth

Numbers are printed; nothing is asserted, since the machine may be shared.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import zarr

from dsel.mcpl import SemiSupervisedLDA

N_FEATURES, N_CLASSES, N_LABELED = 50, 5, 250
CHUNK_ROWS = 100_000


def draw_rows(n_rows, seed, centres):
    rng = np.random.default_rng([7, seed])
    labels = rng.integers(0, len(centres), n_rows)
    noise = rng.standard_normal((n_rows, centres.shape[1]), dtype=np.float32)
    return centres[labels] + noise, labels


def make_centres():
    rng = np.random.default_rng(3)
    return (0.7 * rng.standard_normal((N_CLASSES, N_FEATURES))).astype(np.float32)


def write_rows(path, n_rows, centres):
    """Write the pool chunk by chunk, without a codec."""
    array = zarr.create_array(
        path,
        shape=(n_rows, N_FEATURES),
        chunks=(min(CHUNK_ROWS, n_rows), N_FEATURES),
        dtype="float32",
        compressors=None,
    )
    for number, start in enumerate(range(0, n_rows, CHUNK_ROWS)):
        stop = min(start + CHUNK_ROWS, n_rows)
        array[start:stop] = draw_rows(stop - start, number + 1, centres)[0]


class PeakMemory(threading.Thread):
    """Watches the largest resident memory of some processes."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.processes = [psutil.Process(pid) for pid in pids]
        self.peak = 0
        self.finished = threading.Event()

    def run(self):
        while not self.finished.wait(0.1):
            sizes = [process.memory_info().rss for process in self.processes]
            self.peak = max(self.peak, *sizes)


def fit_and_time(path, X, y, **params):
    started = time.perf_counter()
    model = SemiSupervisedLDA(**params).fit(X, y, pool=str(path))
    return model, time.perf_counter() - started


def scale(n_rows, workers, memory_limit, start_rows):
    from distributed import Client, LocalCluster

    centres = make_centres()
    X, y = draw_rows(N_LABELED, 0, centres)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.zarr"
        write_rows(path, n_rows, centres)
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=memory_limit,
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster) as client,
        ):
            watch = PeakMemory(client.run(os.getpid).values())
            watch.start()
            model, seconds = fit_and_time(path, X, y, start_rows=start_rows)
            watch.finished.set()
    print(
        f"{n_rows} x {N_FEATURES}, {workers} workers: {seconds:.1f} s, "
        f"{model.n_passes_} passes, gap {model.duality_gap_:.2e}, "
        f"contrast >= {model.contrast_lower_:.4f}, "
        f"largest worker {watch.peak / 2**20:.0f} MiB"
    )


def growth(most_rows, start_rows):
    """Time in local threads; processor seconds tell more where others work too."""
    centres = make_centres()
    X, y = draw_rows(N_LABELED, 0, centres)
    sizes = [10**power for power in range(4, 8) if 10**power <= most_rows]
    used = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pool.zarr"
            write_rows(path, n_rows, centres)
            before = time.process_time()
            model, seconds = fit_and_time(path, X, y, start_rows=start_rows)
            used.append(time.process_time() - before)
        print(
            f"{n_rows:>9} rows: {seconds:7.2f} s, {used[-1]:.2f} processor seconds, "
            f"{model.n_passes_} passes, gap {model.duality_gap_:.1e}",
            flush=True,
        )
    slope = np.polyfit(np.log(sizes), np.log(used), 1)[0]
    last = np.log10(used[-1] / used[-2])
    print(f"exponent {slope:.2f} over all sizes, {last:.2f} over the last tenfold")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["scale", "growth"])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="1.5GiB")
    parser.add_argument("--start-rows", type=int, default=20_000)
    given = parser.parse_args()
    if given.what == "scale":
        scale(given.rows, given.workers, given.memory_limit, given.start_rows)
    else:
        growth(given.rows, given.start_rows)


if __name__ == "__main__":
    main()
