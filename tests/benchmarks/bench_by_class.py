"""Limits of recall and precision on real sets, beside those of a held-out fifth.

    python -m tests.benchmarks.bench_by_class FILE [--draws 12] [--seconds 900]

Lines of FILE that are there are kept; with 0 draws, they are summed up.

A set has two classes, the one that is looked for and the rest. The fifth: a model that
`GridSearchCV(cv=5)` chose on four fifths of the labels, and Clopper-Pearson limits on
the rest, with delta divided by the five numbers of the report: recall and precision of
both classes, and the error. dsel: `certified_report()` of both models, with the other
rows of the set as pool. Then the same for the recall of the class alone, with delta
undivided: ``loss=recall(...)`` beside ``scoring=`` of the recall and a single limit.

What is observed is counted on the rows beyond the labels, which no side has seen the
labels of. A limit fails where it is above (for the error below) what was observed.
"""

import argparse
import time
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, make_scorer, recall_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from tests.benchmarks.bench_certificates import DELTA, limit, table

CLASSES = ["yes", "rest"]
NUMBERS = [
    "recall",
    "precision",
    "recall of the rest",
    "precision of the rest",
    "error",
]
SETS, SIZES = ["magic", "adult", "spambase", "letter"], [2000, 600]
COLUMNS = ["set", "n", "draw", "kind", "side", "number", "limit", "observed"]
WEIGHTS = [None, "balanced"]


def problem(name):
    """Return rows, labels, the estimator and its grid; fixed before the first run."""
    X, y, categorical = table(name)
    y = np.where(y == (0 if name == "letter" else 1), *CLASSES)
    if name == "magic":
        trees = HistGradientBoostingClassifier(
            max_iter=30, early_stopping=False, random_state=0
        )
        return X, y, trees, {"max_leaf_nodes": [4, 8, 16], "class_weight": WEIGHTS}
    if name == "letter":
        grid = {"C": [1.0, 8.0], "gamma": [0.4, 1.7, 7.0], "class_weight": WEIGHTS}
        return X, y, SVC(), grid
    if name == "spambase":
        logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        return X, y, logistic, {
            "logisticregression__C": [0.01, 0.1, 1.0],
            "logisticregression__class_weight": WEIGHTS,
        }  # fmt: skip
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (encoder, categorical), remainder=StandardScaler()
    )
    logistic = make_pipeline(columns, LogisticRegression(max_iter=200))
    cut = FixedThresholdClassifier(
        logistic, pos_label="yes", response_method="predict_proba"
    )
    grid = {"threshold": [0.3, 0.4, 0.5, 0.6]}
    return X, y, cut, grid | {"estimator__logisticregression__C": [0.1, 1.0]}


def numbers(counted, delta=None):
    """Return the five numbers of a confusion matrix, or their limits."""
    parts = [
        (counted[0, 1], counted[0].sum()), (counted[1, 0], counted[:, 0].sum()),
        (counted[1, 0], counted[1].sum()), (counted[0, 1], counted[:, 1].sum()),
        (counted[0, 1] + counted[1, 0], counted.sum()),
    ]  # fmt: skip
    bad = [
        limit(wrong, rows, delta) if delta else float(wrong / rows) if rows else 1.0
        for wrong, rows in parts
    ]
    return [*(1.0 - rate for rate in bad[:4]), bad[4]]


def run(name, n, draw):
    """Return a row of each limit and what was observed, of all sides."""
    X, y, estimator, grid = problem(name)
    seed = crc32(f"by class: {name} {n} {draw}".encode())
    order = np.random.default_rng(seed).permutation(len(y))
    own, rest = order[:n], order[n:]
    train, test = train_test_split(own, test_size=0.2, random_state=seed)
    rows = []

    def count_answers(model, rows):
        return confusion_matrix(y[rows], model.predict(X[rows]), labels=CLASSES)

    def tell(kind, side, limits, model):
        observed = numbers(count_answers(model, rest))
        names = NUMBERS[: len(limits)]
        for number, told, found in zip(names, limits, observed, strict=False):
            rows.append([name, n, draw, kind, side, number, float(told), found])

    def fifth(kind, delta, n_numbers, scoring=None):
        search = GridSearchCV(estimator, grid, cv=5, scoring=scoring)
        model = search.fit(X[train], y[train])
        limits = numbers(count_answers(model, test), delta)[:n_numbers]
        tell(kind, "fifth", limits, model)

    def run_search(**options):
        search = dsel.SemiSupervisedSearchCV(
            estimator, grid, delta=DELTA, random_state=seed, n_jobs=1, **options
        )
        return search.fit(X[own], y[own], pool=X[rest])

    fifth("report", DELTA / 5, 5)
    search = run_search(report=CLASSES)
    for deploy, model in search.models_.items():
        report = search.certified_report(deploy)
        limits = [report.recall_at_least, report.precision_at_least]
        limits = [*np.ravel(limits, order="F"), report.error_at_most]
        tell("report", deploy, limits, model)
    fifth("recall", DELTA, 1, make_scorer(recall_score, pos_label="yes"))
    search = run_search(loss=dsel.losses.recall("yes"))
    for deploy, model in search.models_.items():
        tell("recall", deploy, [1.0 - search.certificates_[deploy].bound], model)
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(table):
    """Print means of limits and observations, what failed, and who has the better."""
    sign = np.where(table["number"] == "error", -1, 1)
    table["failed"] = sign * table["limit"] > sign * table["observed"]
    of_draws = table.groupby(["kind", "set", "n", "number", "side"], sort=False)
    means = of_draws[["limit", "observed"]].mean().round(3)
    print(means.unstack("side").to_string())
    sides = table.groupby(["kind", "side"], sort=False)["failed"]
    print("\nLimits that failed, of so many:", sides.agg(["sum", "size"]), sep="\n")
    draws = table.groupby(["kind", "side", "set", "n", "draw"])["failed"].any()
    draws = draws.groupby(["kind", "side"]).agg(["sum", "size"])
    print("\nDraws in which one failed, of so many:", draws, sep="\n")
    limits = means["limit"].unstack("side")
    better = limits[["one_fold", "all_rows"]].sub(limits["fifth"], axis=0)
    better[better.index.get_level_values("number") == "error"] *= -1
    rows = better.groupby(["kind", "number"], sort=False)
    print("\nBy how much better than the fifth's:", rows.mean().round(3), sep="\n")
    print("\nIn what share of sets and sizes:", (better > 0).groupby(
        ["kind", "number"], sort=False).mean(), sep="\n")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=900.0)
    given = parser.parse_args()
    path, started = given.out, time.monotonic()
    done = set()
    if path.exists():
        done = {*pd.read_csv(path)[COLUMNS[:3]].itertuples(index=False, name=None)}
    for draw, n, name in product(range(given.draws), SIZES, SETS):
        if (name, n, draw) in done or time.monotonic() - started > given.seconds:
            continue
        run(name, n, draw).to_csv(path, mode="a", header=not path.exists(), index=False)
        print(name, n, draw, f"{time.monotonic() - started:.0f} s", flush=True)
    summary(pd.read_csv(path))


if __name__ == "__main__":
    main()
