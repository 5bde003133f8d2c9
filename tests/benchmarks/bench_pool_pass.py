"""One pass of a search over a large zarr pool, beside Dask's plain read-and-sum.

Run by hand: ``python tests/benchmarks/bench_pool_pass.py --rows 10000000``. The pass
runs on workers that dsel starts, which keep freed memory for the next chunk; the sum on
workers as Dask starts them, and on ours. Prints seconds, rows per second, the largest
worker and the ratios, those of the workers' processor time too (which other load on the
machine disturbs less), for three rounds.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from sklearn.svm import LinearSVC

import dsel
from dsel.cluster import connect

N_COLUMNS = 50


def make_pool(path, n_rows, chunk_rows):
    """Write noise with one direction that matters, unless it is there already."""
    direction = np.linspace(-1, 1, N_COLUMNS, dtype=np.float32)

    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        rng = np.random.default_rng(start)
        noise = rng.standard_normal((stop - start, N_COLUMNS), dtype=np.float32)
        return noise + rng.integers(0, 2, (stop - start, 1)) * direction

    lengths = [min(chunk_rows, n_rows - at) for at in range(0, n_rows, chunk_rows)]
    rows = da.map_blocks(
        chunk, chunks=(tuple(lengths), N_COLUMNS), dtype=np.float32, name="bench-pool"
    )
    return dsel.write_pool(rows, path, chunk_rows=chunk_rows)


def labeled_rows(n_rows=2000):
    rng = np.random.default_rng(-1 % 2**32)
    y = rng.integers(0, 2, n_rows)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    return X + y[:, None] * np.linspace(-1, 1, N_COLUMNS), y


class Largest:
    """Largest resident size of any worker process while the block runs."""

    def __init__(self, pids):
        self._processes = [psutil.Process(pid) for pid in pids]
        self._stop = threading.Event()
        self.nbytes = 0

    def __enter__(self):
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()

    def _watch(self):
        while not self._stop.wait(0.02):
            sizes = [process.memory_info().rss for process in self._processes]
            self.nbytes = max(self.nbytes, *sizes)


def processor_seconds(pids):
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(time.user + time.system for time in times)


def seconds_of_pass(path, client):
    """Return the seconds of the search beyond its longest fit, of all, and the cube.

    The pass before, which looks for labeled rows in the pool, is in the second alone.
    """
    X, y = labeled_rows()
    plan = dsel.plan_search(
        LinearSVC(),
        {"C": [0.1]},
        X,
        y,
        dsel.open_pool(path),
        certificate="cv_bound",
        cv=5,
        random_state=7,
    )
    started = time.perf_counter()
    search, results = seconds_of_search(plan, client)
    total = time.perf_counter() - started
    return search - float(results.full_fit_seconds.max()), total, results


def seconds_of_search(plan, client):
    """Return the seconds from the driver's first turn on, and the cube."""
    begun = []
    results = plan.run(
        client, on_progress=lambda _: begun.append(time.perf_counter())
    ).results
    return time.perf_counter() - begun[0], results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--chunk-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    path = folder / f"pool-{options.rows}-{options.chunk_rows}.zarr"
    make_pool(path, options.rows, options.chunk_rows)
    dask_workers = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        memory_limit="2GiB",
        dashboard_address="127.0.0.1:0",
    )
    with (
        dask_workers,
        Client(dask_workers, set_as_default=False) as others,
        connect(workers=2, memory="2 GiB") as client,
    ):
        small = folder / "pool-warm.zarr"
        make_pool(small, 100_000, 50_000)
        seconds_of_pass(small, client)
        for each in (others, client):  # the first to read waits for the disk
            seconds_of_sum(path, each)
        found = [round_of(path, others, client) for _ in range(options.rounds)]
    medians = np.median(np.array(found), axis=0)
    print("median of " + RATIOS.format(*medians))


RATIOS = (
    "pass / sum on Dask's workers {:.2f}, on ours {:.2f}; the same of processor time "
    "{:.2f}, {:.2f}; of the whole run {:.2f}, {:.2f}"
)


def round_of(path, others, client):
    """Print and return the ratios of one round."""
    sums = [seconds_of_sum(path, each) for each in (others, client)]
    pids = process_numbers(client)
    before = processor_seconds(pids)
    with Largest(pids) as largest:
        seconds, total, results = seconds_of_pass(path, client)
    used = processor_seconds(pids) - before
    ratios = [
        *(seconds / each for each, _ in sums),
        *(used / each for _, each in sums),
        *(total / each for each, _ in sums),
    ]
    rows = int(results.n_unlabeled) / seconds / 1e6
    print(
        f"sums {sums[0][0]:.2f} and {sums[1][0]:.2f} s, pass {seconds:.2f} s, "
        f"{used:.2f} s of processors, {rows:.2f} M rows/s, largest worker "
        f"{largest.nbytes / 2**20:.0f} MiB; {RATIOS.format(*ratios)}",
        flush=True,
    )
    return ratios


def seconds_of_sum(path, client):
    """Return seconds and processor seconds of Dask's plain read-and-sum."""
    pids = process_numbers(client)
    before = processor_seconds(pids)
    started = time.perf_counter()
    client.compute(da.from_zarr(path).sum()).result()
    return time.perf_counter() - started, processor_seconds(pids) - before


def process_numbers(client):
    return list(client.run(os.getpid).values())


if __name__ == "__main__":
    main()
