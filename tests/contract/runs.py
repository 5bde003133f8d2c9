"""Six runs whose numbers are frozen in `frozen/`, through public names only.

    python -m tests.contract.runs          # write what is missing
    python -m tests.contract.runs --again  # write all again: a decision, not a habit

Each run returns plain numbers: counts, choices and bounds. `test_frozen` makes every
run again and compares it whole with what was written here by an earlier commit.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.models import SemiSupervisedLDA, SemiSupervisedQDA
from dsel.searches import (
    LeastSquaresSearch,
    NonconformityClassifier,
    select_least_squares,
)

FROZEN = Path(__file__).parent / "frozen"
FOLD_COUNTS = ("fold_errors", "full_train_errors", "disagreements", "pool_rows")
FOLD_CRITERIA = (
    "cv_bound",
    "cv_error",
    "merged_folds",
    "leaders",
    "cv_interval",
    "holdout_bound",
    "train_error",
)
HALF_CRITERIA = (
    "disagreement",
    "dis_error",
    "two_fold_cv",
    "max_dt_e",
    "max_cv_dt_e",
    "loo_error",
)


def numbers(values):
    """Return an array as nested lists, what was not counted as None."""
    flat = [
        None if v is None or np.isnan(v) or v == -1 else float(v)
        for v in np.asarray(values, dtype=float).ravel()
    ]
    return {"shape": list(np.shape(values)), "values": flat}


def read_out(results, criteria):
    """Return what each criterion chooses, and the terms of its certificate."""
    found = {}
    for name in criteria:
        choice = dsel.select(results, name)
        certificate = choice.certificate
        found[name] = {
            "candidate": choice.candidate,
            "estimate": choice.estimate,
            "bound": certificate.bound,
            "label_term": certificate.label_term,
            "disagreement_term": certificate.disagreement_term,
            "lower": certificate.lower,
        }
    return found


OTHER_COUNTS = ("best_fold", "averaged_disagreement", "transductive")
"""Criteria whose counts of the pool are made only where they are asked for."""


def fold_search(X, y, pool, grid, *, prune):
    def run(criterion):
        options = {"cv": 5, "delta": 0.05, "random_state": 7, "duplicates": "keep",
                   "train_errors": True}  # fmt: skip
        plan = dsel.plan_search(
            SVC(), grid, X, y, pool, criterion=criterion, prune=prune, **options
        )
        return plan.run()

    if prune:
        names = ("cv_bound", "best_fold")
        return {name: read_out(run(name), [name]) for name in names}
    results = run("cv_bound")
    counts = {name: numbers(results[name].values) for name in FOLD_COUNTS}
    others = {name: read_out(run(name), [name]) for name in OTHER_COUNTS}
    return {"counts": counts, "choice": read_out(results, FOLD_CRITERIA), **others}


def digits():
    X, y = load_digits(return_X_y=True)
    grid = {"C": [0.5, 2.0, 8.0, 32.0], "gamma": [1e-4, 5e-4, 2e-3, 1e-2]}
    return X[:400], y[:400], X[400:], grid


def satimage():
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("DSEL_DATA", beside)) / "satimage.npz"
    with np.load(path) as table:
        X, y = table["X"] / 255.0, table["y"]
    order = np.random.default_rng(0).permutation(len(y))
    labeled, pool = order[:500], order[500:3500]
    return X[labeled], y[labeled], X[pool], {"C": [1, 8, 64], "gamma": [0.1, 1, 10]}


def co_validation():
    X, y = load_digits(return_X_y=True)
    results = dsel.covalidate(
        SVC(), {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3, 5e-3]}, X[:120], y[:120],
        X[120:900], repeats=6, leave_one_out=True, random_state=3, duplicates="keep",
    )  # fmt: skip
    names = ("half_errors", "half_rows", "disagreements", "full_train_errors")
    counts = {n: numbers(results[n].values) for n in names if n in results}
    return {"counts": counts, "choice": read_out(results, HALF_CRITERIA)}


def least_squares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(60)
    dense = np.linspace(-3, 3, 200)[:, np.newaxis]
    search = LeastSquaresSearch(
        np.geomspace(0.1, 3, 6), np.geomspace(1e-4, 10, 8), cv=10, random_state=0
    )
    search.fit(X, y, dense, np.sinc(dense[:, 0]))
    chosen = {
        name: select_least_squares(search.results_, name)
        for name in ("loo", "gcv", "kfold", "holdout", "extra_sample")
    }
    return {
        "losses": {name: each.estimate for name, each in chosen.items()},
        "chosen": {name: each.candidate for name, each in chosen.items()},
        "predictions": numbers(search.predict(dense[::20])),
    }


def nonconformity():
    X, y = load_digits(return_X_y=True)
    grid = {"C": [0.5, 2.0, 8.0], "gamma": [3e-4, 1e-3, 4e-3]}
    found = {}
    for ties in ("random", "margin", "vote", "first", "literal"):
        model = NonconformityClassifier(SVC(), grid, ties=ties, random_state=0)
        model.fit(X[:300], y[:300])
        found[ties] = numbers(model.predict(X[300:600]))
    return found


def mcpl():
    rng = np.random.default_rng(1)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 4)) + 1.5 * np.eye(3, 4)[y]
    fresh = rng.integers(0, 3, 3000)
    pool = rng.normal(size=(3000, 4)) + 1.5 * np.eye(3, 4)[fresh]
    found = {}
    for model in (SemiSupervisedLDA(tol=1e-9), SemiSupervisedQDA(tol=1e-9, ridge=0.1)):
        model.fit(X, y, pool=pool)
        found[type(model).__name__] = {
            "means": numbers(model.means_),
            "contrast_lower": model.contrast_lower_,
            "errors": int((model.predict(pool) != fresh).sum()),
        }
    return found


RUNS = {
    "digits": lambda: fold_search(*digits(), prune=False),
    "digits-pruned": lambda: fold_search(*digits(), prune=True),
    "satimage": lambda: fold_search(*satimage(), prune=False),
    "satimage-pruned": lambda: fold_search(*satimage(), prune=True),
    "co-validation": co_validation,
    "least-squares": least_squares,
    "nonconformity": nonconformity,
    "mcpl": mcpl,
}


if __name__ == "__main__":
    FROZEN.mkdir(exist_ok=True)
    for name, run in RUNS.items():
        path = FROZEN / f"{name}.json"
        if "--again" in sys.argv or not path.exists():
            path.write_text(json.dumps(run(), indent=None, sort_keys=True) + "\n")
