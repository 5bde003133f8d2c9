"""Rules that choose the deployed fold of a nested search, on the same runs.

    python tests/benchmarks/bench_deployed_fold.py --out FILE [--seconds 1500]
        [--kinds rare plain] [--losses error balanced recall cost]
    python tests/benchmarks/bench_deployed_fold.py --out FILE --summary

All limits of a nested search hold at once, so any rule may choose which fold's model is
deployed. For each run the file has the limits of all folds, what inner searches counted
for their candidates, and the true errors by class of all models, measured on the rest
of the set. `rare`: in seven sets one class has 1, 2, 5 or 10% of the rows; true errors
are weighted by these shares. `plain`: ten sets as they are. A run that is in the file
is not made again. Ratios are geometric means over runs, to the smallest limit's.
"""

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path
from unittest.mock import patch
from zlib import crc32

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search.running import nested

DATA_DIR = os.environ.get("DSEL_DATA", "../shared/data")
DELTA, NEAR, MOST_ROWS = 0.05, 0.05, 5_000
BINARY = ("adult", "magic", "spambase", "letter:0", "satimage:3", "pendigits:8",
          "shuttle:3")  # fmt: skip
PLAIN = ("letter", "satimage", "pendigits", "optdigits", "segment", "usps", "dna",
         "adult", "magic", "spambase")  # fmt: skip
LEARNERS = {
    "logistic": (LogisticRegression(max_iter=200),
                 {"C": [float(C) for C in np.logspace(-3, 1, 7).round(5)]}),
    "tree": (DecisionTreeClassifier(random_state=0),
             {"max_depth": [1, 2, 4, 8], "min_samples_leaf": [1, 5, 20]}),
    "knn": (KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 9, 17, 33]}),
    "svm": (SVC(), {"C": [0.5, 4.0, 32.0], "gamma": [0.01, 0.04, 0.16]}),
}  # fmt: skip


def table(name):
    """Return features and class codes of a set, or of one of its classes."""
    name, _, label = name.partition(":")
    with np.load(os.path.join(DATA_DIR, f"{name}.npz")) as stored:
        X, y = np.nan_to_num(stored["X"].astype(float)), stored["y"].astype(int)
    return X, (y == int(label)).astype(int) if label else y


def pieces(kinds, losses):
    """Return the runs in their order; every draw has another part of the design."""
    rare = product(BINARY, (0.01, 0.02, 0.05, 0.1), (300, 500, 1000), LEARNERS)
    plain = product(PLAIN, (None,), (300, 600), LEARNERS)
    design = {"rare": (list(rare), 6, losses), "plain": (list(plain), 4, ["error"])}
    for draw, kind in product(range(60), kinds):
        settings, every, of_kind = design[kind]
        for setting in settings:
            turn = every * (2 if setting[-1] == "svm" else 1)
            if (crc32(str(setting).encode()) + draw) % turn == 0:
                yield from ((*setting, draw, loss) for loss in of_kind)


def draw_rows(name, rate, n, learner, draw):
    """Return a shuffled set, the numbers of labeled rows and others, and class shares.

    None if the set has too few rows of the rare class, or the draw fewer than two.
    """
    seed = crc32(f"{name} {rate} {n} {learner} {draw}".encode())
    rng, (X, y) = np.random.default_rng(seed), table(name)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    counts = np.bincount(y)
    shares, labeled = counts / len(y), np.arange(n)
    if rate is not None:
        shares, n_rare = np.array([1 - rate, rate]), rng.binomial(n, rate)
        if not 2 <= n_rare <= counts[1] - 50:
            return None
        common, rare = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
        labeled = rng.permutation([*common[: n - n_rare], *rare[:n_rare]])
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    first = rest[y[rest] == 1][: 2 * MOST_ROWS // 5] if rate is not None else rest[:0]
    others = np.setdiff1d(rest, rest[y[rest] == 1] if rate is not None else first)
    return X, y, labeled, np.append(first, others[: MOST_ROWS - len(first)]), shares


def run(name, rate, n, learner, draw, loss):
    """Return limits of all folds and true errors of their models, of one search."""
    rows = draw_rows(name, rate, n, learner, draw)
    if rows is None:
        return {}
    X, y, labeled, rest, shares = rows
    estimator, grid = LEARNERS[learner]
    if learner != "tree":
        prefix = type(estimator).__name__.lower()
        grid = {f"{prefix}__{key}": values for key, values in grid.items()}
        estimator = make_pipeline(StandardScaler(), estimator)
    declared = {"recall": "recall:1"}.get(loss, loss)
    if loss == "cost":
        declared = dsel.losses.cost({(0, 1): 1, (1, 0): 1 / rate})
    plan = dsel.plan_search(
        estimator, grid, X[labeled], y[labeled], loss=declared, delta=DELTA,
        random_state=crc32(str((name, rate, n, learner, draw)).encode()) % 2**31,
    )  # fmt: skip
    # Outcomes keep the bounded models only; the call has those of all folds.
    with patch.object(nested, "make_choice", wraps=nested.make_choice) as make_choice:
        outcome = plan.run(n_jobs=1)
    _, search_counts, chosen, *_ = make_choice.call_args.args
    fitted = chosen.fitted
    numbers = list(fitted.chosen_candidates.by_fold)
    scores = search_counts.fold_scores[numbers]
    main, classes = plan.search.context.losses.main, range(len(shares))
    models = [chosen.models[fold] for fold in range(plan.search.scheme.n_folds)]
    predicted = np.array([model.predict(X[rest]) for model in models])
    truth = y[rest]
    has_class = [(truth == c).any() for c in classes]
    wrong, apart = predicted != truth, predicted[:, np.newaxis] != predicted

    def by_class(flags):
        parts = [flags[..., truth == c].mean(axis=-1) for c in classes if has_class[c]]
        return np.stack(parts, axis=-1)

    tested = [split.test_rows for split in plan.search.scheme.fold_splits]
    of_folds = [np.bincount(y[labeled][r], minlength=len(shares)) for r in tested]
    seen = np.array([counted / counted.sum() for counted in of_folds])
    all_shares = np.bincount(y[labeled], minlength=len(shares)) / n
    return {
        "limits": main.limits(fitted.fold_counts_of[main.statistic], DELTA).tolist(),
        "fold": outcome.certificate.fold,
        "candidates": numbers,
        "cv_losses": scores.mean(axis=1).round(12).tolist(),
        "misses": by_class(wrong).tolist(),
        "error": (by_class(wrong) @ shares[has_class]).tolist(),
        "apart": (by_class(apart) @ shares[has_class]).sum(axis=1).tolist(),
        "class_distance": np.abs(seen - all_shares).sum(axis=1).round(12).tolist(),
        "one_class": [len(np.unique(each)) == 1 for each in predicted],
    }  # fmt: skip


def near(limits, by, most=NEAR):
    """Return the fold with the smallest number among those with a limit near enough."""
    limits = np.array(limits)
    folds = np.flatnonzero(limits <= (1 + most) * limits.min())
    return int(min(folds, key=lambda fold: (by[fold], limits[fold])))


RULES = {
    "smallest limit": lambda r: int(np.argmin(r["limits"])),
    "deployed": lambda r: r["fold"],
    "near: best candidate": lambda r: near(r["limits"], r["cv_losses"]),
    "near: shared by most": lambda r: near(
        r["limits"], [-r["candidates"].count(number) for number in r["candidates"]]
    ),
    "near: differs least": lambda r: near(r["limits"], r["apart"]),
    "near: classes as the whole": lambda r: near(r["limits"], r["class_distance"]),
    "near 50%: several classes": lambda r: near(r["limits"], r["one_class"], 0.5),
    "classes as the whole": lambda r: near(r["limits"], r["class_distance"], np.inf),
    "differs least": lambda r: near(r["limits"], r["apart"], np.inf),
    "a random fold": lambda r: crc32(str(r["key"]).encode()) % len(r["limits"]),
    "smallest true error": lambda r: int(np.argmin(r["error"])),
}


def summary(records):
    """Print by loss, and by kind of set, what each rule would have deployed."""
    for loss, is_rare in product(
        ("error", "balanced", "recall", "cost"), (True, False)
    ):
        runs = [
            record for record in records
            if record["key"][-1] == loss and (record["key"][1] is not None) == is_rare
        ]  # fmt: skip
        if not runs:
            continue
        print(f"\n{loss}, {'rare class' if is_rare else 'plain'}: {len(runs)} runs")
        base = [RULES["smallest limit"](record) for record in runs]
        for name, rule in RULES.items():
            folds = [rule(record) for record in runs]

            def ratio(part, folds=folds, runs=runs, base=base):
                logs = [
                    np.log((part(r, fold) + 1e-4) / (part(r, first) + 1e-4))
                    for r, fold, first in zip(runs, folds, base, strict=True)
                ]
                return np.exp(np.mean(logs)), np.std(logs) / np.sqrt(len(logs))

            def mean(part, folds=folds, runs=runs):
                pairs = zip(runs, folds, strict=True)
                return np.mean([part(record, fold) for record, fold in pairs])

            bound, _ = ratio(lambda r, fold: r["limits"][fold])
            error, spread = ratio(lambda r, fold: r["error"][fold])
            balanced, of_balanced = ratio(lambda r, fold: np.mean(r["misses"][fold]))
            print(
                f"{name:28} bound {bound:.4f}  error {error:.3f} +- {spread:.3f}  "
                f"balanced error {balanced:.3f} +- {of_balanced:.3f}, "
                f"mean {mean(lambda r, fold: np.mean(r['misses'][fold])):.3f}  "
                f"recall of the last class "
                f"{1 - mean(lambda r, fold: r['misses'][fold][-1]):.3f}  one class "
                f"{mean(lambda r, fold: r['one_class'][fold]):.3f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--kinds", nargs="+", default=["rare", "plain"])
    parser.add_argument("--losses", nargs="+",
                        default=["error", "balanced", "recall", "cost"])  # fmt: skip
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    if arguments.summary:
        summary([record for record in records if "limits" in record])
    else:
        done, started = {tuple(record["key"]) for record in records}, time.monotonic()
        for piece in pieces(arguments.kinds, arguments.losses):
            if time.monotonic() - started > arguments.seconds:
                break
            if piece not in done:
                record = {"key": piece} | run(*piece)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
