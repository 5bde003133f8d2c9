"""A search over a mixed Parquet pool, beside the pipeline's own ``predict`` by Dask.

Run by hand: ``python -m tests.benchmarks.bench_tables --rows 10000000``. The pool has
8 columns of numbers and 4 of text, the 20 candidates are one pipeline of
`OneHotEncoder` and `LogisticRegression`. The other side is
``dask.dataframe.map_partitions`` over the same files on the same workers, with the same
models: for each row and candidate the full model, the best fold's and the drawn
fold's. Prints seconds, processor seconds of the workers, rows per second and the
largest worker; counts of both sides must be equal.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dsel
from dsel.cluster import connect
from tests.benchmarks.bench_pool_pass import (
    Largest,
    process_numbers,
    processor_seconds,
    seconds_of_search,
)

NUMBERS = [f"n{i}" for i in range(8)]
TEXTS = [f"t{i}" for i in range(4)]
N_FOLDS = 5
CANDIDATES = np.geomspace(1e-3, 1e2, 20)


def rows_from(start, n_rows):
    """Draw rows, and labels that depend on numbers and texts."""
    rng = np.random.default_rng(start)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=NUMBERS)
    codes = rng.integers(0, [3, 10, 30, 100], (n_rows, 4))
    for name, column in zip(TEXTS, codes.T, strict=True):
        words = np.array([f"{name} value {code}" for code in range(100)], dtype=object)
        frame[name] = words[column]
    score = frame.n0 + frame.n1 + (codes[:, 1] > 4) + 0.02 * codes[:, 3] - 1.5
    return frame, (score + rng.normal(size=n_rows) > 0).astype(int)


def make_pool(folder, n_rows, file_rows, group_rows):
    """Write the pool as files of some row groups, unless it is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, file_rows)):
        path = folder / f"part-{number:04}.parquet"
        if not path.exists():
            frame, _ = rows_from(1000 + start, min(file_rows, n_rows - start))
            frame.to_parquet(path, index=False, row_group_size=group_rows)


def pipeline():
    return make_pipeline(
        make_column_transformer(
            ("passthrough", NUMBERS), (OneHotEncoder(handle_unknown="ignore"), TEXTS)
        ),
        LogisticRegression(max_iter=200),
    )


def plan_of(folder):
    X, y = rows_from(1, 2000)
    return dsel.plan_search(
        pipeline(),
        {"logisticregression__C": CANDIDATES},
        X,
        y,
        folder,
        certificate="cv_bound",
        cv=N_FOLDS,
        prune=False,
        random_state=7,
    )


def counts_of(frame, models, best, seed):
    """Return differences by candidate: of the drawn folds, and of the best fold."""
    drawn = np.random.default_rng(seed).integers(0, N_FOLDS, len(frame))
    parts = [np.flatnonzero(drawn == fold) for fold in range(N_FOLDS)]
    found = []
    for number, of_candidate in enumerate(models):
        full = of_candidate[N_FOLDS].predict(frame)
        by_best = of_candidate[best[number]].predict(frame)
        by_fold = [
            np.sum(of_candidate[fold].predict(frame.iloc[rows]) != full[rows])
            for fold, rows in enumerate(parts)
        ]
        found.append([sum(by_fold), np.sum(by_best != full)])
    return pd.DataFrame(found, columns=["drawn", "best"])


def by_dask(folder, client, models, best):
    """Return the counts of the best fold, seconds, and processor seconds."""
    pids = process_numbers(client)
    before, started = processor_seconds(pids), time.perf_counter()
    sent = dask.delayed(models)
    frame = dd.read_parquet(folder, split_row_groups=True)
    meta = pd.DataFrame({"drawn": [0], "best": [0]})
    counts = frame.map_partitions(counts_of, sent, best, 7, meta=meta)
    counts = client.compute(counts).result().groupby(level=0).sum()
    return counts, time.perf_counter() - started, processor_seconds(pids) - before


def by_dsel(plan, client):
    """Return the cube, seconds of the search, and processor seconds."""
    pids = process_numbers(client)
    before = processor_seconds(pids)
    with Largest(pids) as largest:
        seconds, results = seconds_of_search(plan, client)
    used = processor_seconds(pids) - before
    return results, seconds, used, largest.nbytes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--file-rows", type=int, default=1_000_000)
    parser.add_argument("--group-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    path = folder / f"tables-{options.rows}"
    make_pool(path, options.rows, options.file_rows, options.group_rows)
    plan = plan_of(path)
    models = [
        [plan.model(number, fold) for fold in (*range(N_FOLDS), None)]
        for number in range(len(CANDIDATES))
    ]
    ratios = []
    with connect(workers=options.workers, memory="1 GiB") as client:
        client.run(os.getpid)
        for _ in range(options.rounds):
            results, seconds, used, nbytes = by_dsel(plan, client)
            best = results.fold_errors.argmin("fold").values.tolist()
            counts, others, theirs = by_dask(path, client, models, best)
            same = results.best_fold_disagreements.values == counts.best
            assert same.all(), (results.best_fold_disagreements.values, counts)
            ratios.append([seconds / others, used / theirs])
            print(
                f"dsel with its fits {seconds:.1f} s, {used:.1f} s of processors, "
                f"{options.rows / seconds:,.0f} rows/s, largest worker "
                f"{nbytes / 2**20:.0f} MiB; predict by Dask {others:.1f} s, "
                f"{theirs:.1f} s of processors, {options.rows / others:,.0f} rows/s; "
                f"time {ratios[-1][0]:.2f}, processors {ratios[-1][1]:.2f}",
                flush=True,
            )
    wall, processors = np.median(np.array(ratios), axis=0)
    print(f"median ratio of time {wall:.2f}, of processor time {processors:.2f}")


if __name__ == "__main__":
    main()
