"""Nonconformity and co-validation at scale. Run as a script:

    python tests/benchmarks/bench_nonconformity.py pool --rows 1000000
    python tests/benchmarks/bench_nonconformity.py rows --rows 1000000
    python tests/benchmarks/bench_nonconformity.py selection --data FOLDER

``pool``: 110 RBF machines of 600 labeled rows answer a zarr pool on two worker
processes. ``rows``: disagreement of 60 models on every pool row. ``selection``: time of
choosing by nonconformity, by ten-fold cross-validation with the same solver, and by
scikit-learn's GridSearchCV on as many cores. Numbers are printed; nothing is asserted,
since the machine may be shared.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import psutil
import zarr
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from dsel.co_validation import write_row_disagreement
from dsel.nonconformity import NonconformityClassifier

sys.path.append(str(Path(__file__).parents[2] / "examples" / "papers"))
hardoon2009 = import_module("hardoon2009")
PAPER = hardoon2009.Settings()
GRID = {"C": list(PAPER.C), "gamma": list(PAPER.gamma)}
COLUMNS = 10


def labeled(n):
    return make_classification(n, COLUMNS, n_informative=8, flip_y=0.1, random_state=0)


def write_pool(folder, n_rows):
    rng = np.random.default_rng(1)
    path = Path(folder) / "pool.zarr"
    pool = zarr.create_array(
        path, shape=(n_rows, COLUMNS), chunks=(65_536, COLUMNS), dtype="float32"
    )
    for start in range(0, n_rows, 65_536):
        stop = min(start + 65_536, n_rows)
        pool[start:stop] = rng.normal(scale=1.5, size=(stop - start, COLUMNS))
    return path


@contextmanager
def two_workers():
    from distributed import Client

    with Client(
        n_workers=2,
        threads_per_worker=1,
        memory_limit="2GiB",
        dashboard_address="127.0.0.1:0",
    ) as client:
        client.run(warm_up)
        yield client


def warm_up():
    """Import and compile what tasks use."""
    X, y = labeled(60)
    NonconformityClassifier(SVC(gamma=0.1), {"C": [1.0]}).fit(X, y).predict(X)


@contextmanager
def watching(client, found):
    """Record the largest resident size of any worker."""
    processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    over = threading.Event()

    def watch():
        while not over.wait(0.1):
            found.extend(process.memory_info().rss for process in processes)

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    over.set()
    thread.join()


def report(title, seconds, sizes):
    print(f"{title}: {seconds:.1f} s, largest worker {max(sizes) / 2**20:.0f} MiB")


def pool(n_rows):
    X, y = labeled(600)
    with tempfile.TemporaryDirectory() as folder, two_workers() as client:
        path, sizes = write_pool(folder, n_rows), []
        started = time.perf_counter()
        model = NonconformityClassifier(SVC(), GRID, random_state=0).fit(X, y)
        seconds = time.perf_counter() - started
        print(f"fit of {model.models_.n_models}: {seconds:.1f} s")
        one_core(model, n_rows)
        with watching(client, sizes):
            started = time.perf_counter()
            model.predict_pool(path, Path(folder) / "answers.zarr", client=client)
            seconds = time.perf_counter() - started
        report(f"{n_rows:,} rows x {model.models_.n_models} models", seconds, sizes)


def one_core(model, n_rows):
    """CPU time of one process, which a neighbour's load does not stretch."""
    X = np.random.default_rng(2).normal(scale=1.5, size=(32_768, COLUMNS))
    started = time.process_time()
    model.predict(X)
    seconds = (time.process_time() - started) * n_rows / len(X)
    print(f"CPU seconds for {n_rows:,} rows on one core: {seconds:.1f}", flush=True)


def rows(n_rows):
    X, y = labeled(1200)
    with tempfile.TemporaryDirectory() as folder, two_workers() as client:
        path, sizes = write_pool(folder, n_rows), []
        for name, estimator in [
            ("logistic regression", LogisticRegression()),
            ("RBF machines", SVC(gamma=0.1)),
        ]:
            with watching(client, sizes):
                started = time.perf_counter()
                out = Path(folder) / f"{name}.zarr"
                write_row_disagreement(
                    estimator, X, y, path, out, n_models=60, client=client
                )
                seconds = time.perf_counter() - started
            report(f"d_x of {n_rows:,} rows, 60 models, {name}", seconds, sizes)


def selection(data, names):
    """Time both ways on one outer fold; the paper's factor is the ratio of means."""
    found = []
    selection_warm_up()
    for name in names:
        X, y = hardoon2009.load_table(name, data)
        X = hardoon2009.scale_to_range(X)
        ours, cv, *_ = hardoon2009.run_fold(X, y, 0, PAPER)["seconds"]
        started = time.perf_counter()
        rows = np.random.default_rng(0).permutation(len(X))[: len(X) * 7 // 10]
        GridSearchCV(SVC(), GRID, cv=10, n_jobs=2).fit(X[rows], y[rows])
        theirs = time.perf_counter() - started
        found.append((ours, cv, theirs))
        print(
            f"{name}: nonconformity {ours:.2f} s, cross-validation {cv:.2f} s "
            f"({cv / ours:.1f} times), GridSearchCV {theirs:.2f} s "
            f"({theirs / ours:.1f} and {theirs / cv:.1f} times)",
            flush=True,
        )
    ours, cv, theirs = np.mean(found, axis=0)
    print(f"ratio of means: cross-validation {cv / ours:.2f}, "
          f"GridSearchCV {theirs / ours:.2f}")  # fmt: skip


def selection_warm_up():
    """Compile the solver and start the processes of GridSearchCV."""
    X, y = labeled(800)  # large tables take another compiled loop than small ones
    warm_up()
    GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2, n_jobs=2).fit(X, y)
    hardoon2009.by_cross_validation(X, y, replace(PAPER, C=(1.0,), gamma=(1.0,)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["pool", "rows", "selection"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", default=None)
    parser.add_argument("--sets", nargs="+", default=list(hardoon2009.SIZES))
    options = parser.parse_args()
    if options.part == "selection":
        selection(options.data, options.sets)
    else:
        {"pool": pool, "rows": rows}[options.part](options.rows)


if __name__ == "__main__":
    main()
