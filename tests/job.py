"""The digits job as a process of its own, for tests that kill things.

    python -m tests.job SCHEDULER FOLDER [--prune] [--in-memory] [--out PLACE]

writes the cube to FOLDER/cube.json (counts only) and a line for each finished task to
FOLDER/log.txt.
"""

import argparse
import json
import logging
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.cluster import connect

GRID = {"C": 2.0 ** np.arange(-2, 13), "gamma": 2.0 ** np.arange(-16, -1)}
N_LABELED = 500


def make_plan():
    """225 candidates, 5 folds, 500 labeled rows; some seconds on two cores."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    labeled, unlabeled = order[:N_LABELED], order[N_LABELED:]
    return dsel.plan_search(
        SVC(),
        GRID,
        X[labeled],
        y[labeled],
        X[unlabeled],
        cv=5,
        random_state=0,
        prune=False,
        certificate="cv_bound",
    )


def make_short_plan(prune):
    """9 candidates, 3 folds, and a pool of 50 MB in memory; a few seconds."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(1)
    pool = np.tile(X, (55, 1)) + rng.normal(size=(55 * len(X), 1))
    return dsel.plan_search(
        SVC(),
        {"C": [0.1, 1.0, 10.0], "gamma": [1e-4, 1e-3, 1e-2]},
        X[:200],
        y[:200] < 5,
        pool,
        cv=3,
        random_state=0,
        prune="exact" if prune else False,
        certificate="cv_bound",
    )


def counts_of(cube):
    """Everything in the cube but times, to the last bit, as JSON has it."""
    return {
        str(name): [repr(value) for value in cube[name].values.ravel().tolist()]
        for name in sorted(map(str, cube.variables))
        if "seconds" not in name
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scheduler")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--in-memory", action="store_true", help="a short job")
    parser.add_argument("--prune", action="store_true", help="of the short one")
    parser.add_argument("--out")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    logging.basicConfig(
        filename=given.log or given.folder / "log.txt",
        level=logging.INFO,
        format="%(message)s",
    )
    try:
        with connect(given.scheduler, timeout=600) as client:
            sys.stdout.write("connected\n")
            sys.stdout.flush()
            plan = make_short_plan(given.prune) if given.in_memory else make_plan()
            cube = plan.run(client, out=given.out).results
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(3)
    (given.folder / "cube.json").write_text(json.dumps(counts_of(cube)))


if __name__ == "__main__":
    main()
