"""The digits job as a process of its own, for tests that kill things.

    python -m tests.job SCHEDULER FOLDER [KIND [OUT [LOG]]]

writes the cube to FOLDER/cube.json (counts only) and a line for each finished task to
FOLDER/log.txt, or LOG. KIND is one of PLANS or STORED.
"""

import json
import logging
import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.cluster import connect

FIXED = {"random_state": 0, "certificate": "cv_bound"}


def make_plan():
    """225 candidates, 5 folds, 500 labeled rows; some seconds on two cores."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    rows, pool = order[:500], order[500:]
    grid = {"C": 2.0 ** np.arange(-2, 13), "gamma": 2.0 ** np.arange(-16, -1)}
    given = {"cv": 5, "prune": False, **FIXED}
    return dsel.plan_search(SVC(), grid, X[rows], y[rows], X[pool], **given)


def make_short_plan(prune=False, *, file=None, **changed):
    """9 candidates, 3 folds, and a pool of 50 MB in memory; a few seconds.

    The pool is in a file instead where one is given, and written where it is missing.
    """
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(1)
    pool = np.tile(X, (55, 1)) + rng.normal(size=(55 * len(X), 1))
    if file is not None:
        if not file.exists():
            write_rows(file, pool)
        pool = file
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [1e-4, 1e-3, 1e-2]}
    given = {"cv": 3, "prune": prune, **FIXED, **changed}
    return dsel.plan_search(SVC(), grid, X[:200], y[:200] < 5, pool, **given)


def write_rows(file, pool):
    """Write a pool as its file's ending says."""
    if file.suffix == ".npy":
        np.save(file, pool)
    else:
        dsel.write_pool(pool, file, chunk_rows=10_000)


STORED = ("pool.npy", "pool.zarr")
"""Kinds whose pool is a file of that name in the job's folder."""
PLANS = {
    "digits": make_plan,
    "short": make_short_plan,
    "pruned": partial(make_short_plan, "exact"),
    "nested": partial(make_short_plan, "halving", cv=5, certificate="nested"),
}


def counts_of(cube):
    """Everything in the cube but times, to the last bit, as JSON has it."""
    return {
        str(name): [repr(value) for value in cube[name].values.ravel().tolist()]
        for name in sorted(map(str, cube.variables))
        if "seconds" not in name
    }


def main(scheduler, folder, kind="digits", out=None, log=None):
    folder = Path(folder)
    log = log or folder / "log.txt"
    logging.basicConfig(filename=log, level=logging.INFO, format="%(message)s")
    try:
        with connect(scheduler, timeout=600) as client:
            sys.stdout.write("connected\n")
            sys.stdout.flush()
            make = PLANS.get(kind) or partial(make_short_plan, file=folder / kind)
            cube = make().run(client, out=out).results
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(3)
    (folder / "cube.json").write_text(json.dumps(counts_of(cube)))


if __name__ == "__main__":
    main(*sys.argv[1:])
