"""Limits of recall and precision on real sets, beside those of a held-out fifth.

    python -m tests.benchmarks.bench_by_class --out FILE [--draws 12] [--seconds 900]
    python -m tests.benchmarks.bench_by_class --out FILE --summary

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
import json
import time
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.stats import beta
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
from tests.benchmarks.bench_certificates import table

DELTA = 0.05
CLASSES = ["yes", "rest"]
NUMBERS = [
    "recall",
    "precision",
    "recall of the rest",
    "precision of the rest",
    "error",
]
SIDES = ["fifth", "one_fold", "all_rows"]
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


def at_most(found, rows, delta):
    """Return the Clopper-Pearson limit."""
    return 1.0 if found >= rows else float(beta.ppf(1 - delta, found + 1, rows - found))


def numbers(counted, delta=None):
    """Return the five numbers of a confusion matrix, or their limits."""
    parts = [
        (counted[0, 1], counted[0].sum()), (counted[1, 0], counted[:, 0].sum()),
        (counted[1, 0], counted[1].sum()), (counted[0, 1], counted[:, 1].sum()),
        (counted[0, 1] + counted[1, 0], counted.sum()),
    ]  # fmt: skip
    bad = [
        at_most(wrong, rows, delta) if delta else float(wrong / rows) if rows else 1.0
        for wrong, rows in parts
    ]
    return [*(1.0 - rate for rate in bad[:4]), bad[4]]


def run(name, n, draw):
    """Return limits and what was observed, of the report and of the recall alone."""
    X, y, estimator, grid = problem(name)
    seed = crc32(f"by class: {name} {n} {draw}".encode())
    order = np.random.default_rng(seed).permutation(len(y))
    own, rest = order[:n], order[n:]
    train, test = train_test_split(own, test_size=0.2, random_state=seed)

    def counted(model, rows):
        return confusion_matrix(y[rows], model.predict(X[rows]), labels=CLASSES)

    def searched(**options):
        search = dsel.SemiSupervisedSearchCV(
            estimator, grid, delta=DELTA, random_state=seed, n_jobs=1, **options
        )
        return search.fit(X[own], y[own], pool=X[rest])

    found = {"report": {}, "recall": {}}
    fifth = GridSearchCV(estimator, grid, cv=5).fit(X[train], y[train])
    found["report"]["fifth"] = (
        numbers(counted(fifth, test), DELTA / 5), numbers(counted(fifth, rest))
    )  # fmt: skip
    search = searched(report=CLASSES)
    for deploy, model in search.models_.items():
        told = search.certified_report(deploy)
        limits = np.ravel([told.recall_at_least, told.precision_at_least], order="F")
        found["report"][deploy] = (
            [*limits.tolist(), told.error_at_most], numbers(counted(model, rest))
        )  # fmt: skip
    score = make_scorer(recall_score, pos_label="yes")
    fifth = GridSearchCV(estimator, grid, cv=5, scoring=score).fit(X[train], y[train])
    found["recall"]["fifth"] = [
        numbers(counted(fifth, test), DELTA)[:1], numbers(counted(fifth, rest))[:1]
    ]  # fmt: skip
    search = searched(loss=dsel.losses.recall("yes"))
    for deploy, model in search.models_.items():
        limit = 1.0 - search.certificates_[deploy].bound
        found["recall"][deploy] = [[limit], numbers(counted(model, rest))[:1]]
    return {"set": name, "n": n, "draw": draw, "share": float((y == "yes").mean())} | (
        found
    )


def summary(records):
    """Print limits and observations as a table of Markdown, and what failed."""
    cells, failed = defaultdict(list), defaultdict(lambda: np.zeros(3, int))
    for record in records:
        for kind, side in ((k, s) for k in ("report", "recall") for s in SIDES):
            limits, observed = np.array(record[kind][side])
            cells[record["set"], record["n"], kind, side].append((limits, observed))
            is_wrong = limits > observed
            if kind == "report":
                is_wrong[4] = limits[4] < observed[4]
            failed[kind, side] += (is_wrong.sum(), is_wrong.any(), 1)
    titles = ["a held-out fifth", "`one_fold`", "`all_rows`"]
    for kind, shown in (("report", NUMBERS), ("recall", ["recall alone"])):
        print(f"\n| set | labels | draws | number | {' | '.join(titles)} |")
        print("| --- | ---: | ---: | --- |" + " ---: |" * 3)
        for name, n in sorted({key[:2] for key in cells}):
            for place, number in enumerate(shown):
                draws = [cells[name, n, kind, side] for side in SIDES]
                texts = [
                    "{:.3f} / {:.3f}".format(*np.mean(each, axis=0)[:, place])
                    for each in draws
                ]
                row = [name, f"{n:,}", str(len(draws[0])), number, *texts]
                print(f"| {' | '.join(row)} |")
        for side in SIDES:
            limits, some, draws = failed[kind, side]
            print(f"{kind}, {side}: {limits} limits failed, in {some} of {draws} draws")
    for kind, side in ((k, s) for k in ("report", "recall") for s in SIDES[1:]):
        for place, number in enumerate(NUMBERS if kind == "report" else NUMBERS[:1]):
            better = []
            for name, n in {key[:2] for key in cells}:
                ours, theirs = (
                    np.mean(cells[name, n, kind, s], axis=0)[0, place]
                    for s in (side, "fifth")
                )
                better.append((ours - theirs) * (-1 if number == "error" else 1))
            won = sum(each > 0 for each in better)
            print(
                f"{kind}, {side}, {number}: better than the fifth's in {won} of "
                f"{len(better)} rows, by {np.mean(better):+.3f} on average"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument(
        "--sets", nargs="+", default=["magic", "adult", "spambase", "letter"]
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[2000, 600])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    path, started = Path(arguments.out), time.monotonic()
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(each["set"], each["n"], each["draw"]) for each in records}
    pieces = [
        (name, n, draw)
        for draw in range(0 if arguments.summary else arguments.draws)
        for n in arguments.sizes
        for name in arguments.sets
    ]
    for piece in pieces:
        if piece in done:
            continue
        if time.monotonic() - started > arguments.seconds:
            print("No time is left for further draws.")
            break
        records.append(run(*piece))
        with path.open("a") as file:
            file.write(json.dumps(records[-1]) + "\n")
        print(*piece, f"{time.monotonic() - started:.0f} s", flush=True)
    summary(records)


if __name__ == "__main__":
    main()
