"""Time a table of predictions, over `predict` of its model on the same threads.

    python -m tests.benchmarks.bench_predict [ROWS] [REPETITIONS]

For each model that `dsel select` has a name for, on a table of numbers, texts and gaps:
seconds of `predict` on all rows in memory, divided among threads, and ratios to it, of
elapsed seconds and of processor seconds: of `predict_table` from a Parquet and a CSV
file to a Parquet file, and of the same by hand with pyarrow: read the file, predict on
all rows in memory, write the labels. Medians.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet
from sklearn.utils import gen_even_slices

import dsel
from dsel.cli.named_models import MODELS, build
from dsel.runtime.clients import count_threads
from dsel.runtime.tasks import limit_threads

N_LABELED = 1000


def make_table(n_rows):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(n_rows, 10)).round(4), columns=[f"x{n}" for n in range(10)]
    )
    frame["town"] = rng.choice(["Bonn", "Kiel", "Ulm"], n_rows)
    frame.loc[rng.random(n_rows) < 0.05, "x0"] = np.nan
    return frame, np.where(frame["x1"] + frame["x2"] ** 2 > 1, "yes", "no")


def seconds(function):
    """Return elapsed seconds and processor seconds of a call."""
    began, used = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - began, time.process_time() - used


def predict_on_threads(model, X):
    def predict(part):
        with limit_threads():  # as tasks do
            return model.predict(X[part])

    parts = list(gen_even_slices(len(X), count_threads()))
    with ThreadPoolExecutor(len(parts)) as threads:
        return np.concatenate(list(threads.map(predict, parts)))


def predict_by_hand(model, source, out):
    read = csv.read_csv if source.suffix == ".csv" else parquet.read_table
    labels = predict_on_threads(model, read(source).to_pandas())
    parquet.write_table(pa.table({"label": labels}), out)


def measure(folder, n_rows, n_repetitions):
    frame, labels = make_table(max(n_rows, N_LABELED))
    X, y = frame[:N_LABELED], labels[:N_LABELED]
    frame = frame[:n_rows]
    frame.to_parquet(folder / "new.parquet", row_group_size=2**16)
    frame.to_parquet(folder / "one_group.parquet")
    frame.to_csv(folder / "new.csv", index=False)
    print(f"{n_rows:,} rows, {count_threads()} threads: ratios elapsed (processor)")
    for name in MODELS:
        estimator, grid, _ = build(name, (), X)
        estimator.set_params(**{key: values[0] for key, values in grid.items()})
        plan = dsel.plan_search(None, [estimator], X, y, cv=3, random_state=0)
        outcome = plan.run()
        out = folder / "predictions.parquet"
        sides = {"predict": partial(predict_on_threads, outcome.model, frame)}
        for file in ("new.parquet", "one_group.parquet", "new.csv"):
            source = folder / file
            sides[file] = partial(outcome.predict_table, source, out=out, verbose=False)
            if file != "one_group.parquet":
                by_hand = partial(predict_by_hand, outcome.model, source, out)
                sides[f"{file} by hand"] = by_hand
        times = {side: [] for side in sides}
        for _ in range(n_repetitions):
            for side, run in sides.items():
                times[side].append(seconds(run))
                out.unlink(missing_ok=True)
        medians = {side: np.median(pairs, axis=0) for side, pairs in times.items()}
        own = medians.pop("predict")
        print(f"{name}: predict {own[0]:.2f} s ({own[1]:.2f} s)")
        for side, found in medians.items():
            elapsed, used = found / own
            print(f"    {side:22} {elapsed:5.2f} ({used:.2f})", flush=True)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    with TemporaryDirectory() as name:
        measure(Path(name), *(given + [1_000_000, 3][len(given) :]))
