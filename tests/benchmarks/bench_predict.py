"""Time a table of predictions, over `predict` of its model on the same threads.

    python -m tests.benchmarks.bench_predict [ROWS] [REPETITIONS]

For each model that `dsel select` has a name for, on a table of numbers, texts and gaps:
seconds of `predict` on all rows in memory, divided among threads, and of
`predict_table` from a Parquet and a CSV file to a Parquet file. Medians.
"""

import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.utils import gen_even_slices

import dsel
from dsel.cli.models import MODELS, build
from dsel.runtime.clients import count_threads
from dsel.runtime.tasks import single_threaded

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
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def predict_on_threads(model, X):
    def predict(part):
        with single_threaded():  # as tasks do
            return model.predict(X[part])

    parts = list(gen_even_slices(len(X), count_threads()))
    with ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(predict, parts))


def measure(folder, n_rows, n_repetitions):
    frame, labels = make_table(max(n_rows, N_LABELED))
    frame[:n_rows].to_parquet(folder / "new.parquet", row_group_size=2**16)
    frame[:n_rows].to_csv(folder / "new.csv", index=False)
    X, y = frame[:N_LABELED], labels[:N_LABELED]
    print(f"{n_rows:,} rows, {count_threads()} threads: seconds, and ratios")
    for name in MODELS:
        estimator, grid, _ = build(name, (), X)
        estimator.set_params(**{key: values[0] for key, values in grid.items()})
        plan = dsel.plan_search(None, [estimator], X, y, cv=3, random_state=0)
        outcome = plan.run()
        times = {"own": [], "parquet": [], "csv": []}
        for _ in range(n_repetitions):
            own = seconds(lambda model=outcome.model: predict_on_threads(model, frame))
            times["own"].append(own)
            for ending in ("parquet", "csv"):
                out = folder / "predictions.parquet"
                source = folder / f"new.{ending}"
                times[ending].append(
                    seconds(
                        lambda outcome=outcome, source=source, out=out: (
                            outcome.predict_table(source, out=out, verbose=False)
                        )
                    )
                )
                out.unlink()
        own, parquet, csv = map(statistics.median, times.values())
        print(
            f"{name:10} predict {own:7.1f}   from Parquet {parquet / own:5.2f}   "
            f"from CSV {csv / own:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    with TemporaryDirectory() as name:
        measure(Path(name), *(given + [1_000_000, 3][len(given) :]))
