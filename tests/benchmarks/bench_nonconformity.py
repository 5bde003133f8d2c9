"""Seconds of selection by nonconformity, by cross-validation, and by GridSearchCV.

    python -m tests.benchmarks.bench_nonconformity --data FOLDER [--sets haberman ...]

Seconds of one outer fold of each set of the paper; the paper's factor is the ratio of
means. Cross-validation has our solver, `GridSearchCV` as many cores as both.
"""

import argparse
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from tests.benchmarks.measuring import Watch

sys.path.append(str(Path(__file__).parents[2] / "examples" / "papers"))
hardoon2009 = import_module("hardoon2009")
PAPER = hardoon2009.Settings()
GRID = {"C": list(PAPER.C), "gamma": list(PAPER.gamma)}


def warm_up():
    """Compile the solvers and start the processes of GridSearchCV."""
    X, y = make_classification(800, 10, n_informative=8, random_state=0)
    GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2, n_jobs=2).fit(X, y)
    one = replace(PAPER, C=(1.0,), gamma=(1.0,))
    hardoon2009.run_fold(X, y, 0, one)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None)
    parser.add_argument("--sets", nargs="+", default=list(hardoon2009.RECIPES))
    options = parser.parse_args()
    found = []
    warm_up()
    for name in options.sets:
        X, y = hardoon2009.load_table(name, options.data)
        X = hardoon2009.scale_to_range(X)
        ours, cv, *_ = hardoon2009.run_fold(X, y, 0, PAPER)["seconds"]
        rows = np.random.default_rng(0).permutation(len(X))[: len(X) * 7 // 10]
        with Watch() as watch:
            GridSearchCV(SVC(), GRID, cv=10, n_jobs=2).fit(X[rows], y[rows])
        found.append((ours, cv, watch.wall))
        print(f"{name}: nonconformity {ours:.2f} s, cross-validation {cv:.2f} s, "
              f"GridSearchCV {watch.wall:.2f} s", flush=True)  # fmt: skip
    ours, cv, theirs = np.mean(found, axis=0)
    print(f"ratio of means: cross-validation {cv / ours:.2f}, "
          f"GridSearchCV {theirs / ours:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
