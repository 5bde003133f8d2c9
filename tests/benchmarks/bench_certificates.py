"""The default search on real sets, beside what people do without dsel.

    python tests/benchmarks/bench_certificates.py --out FOLDER [--sets letter ...]
        [--sizes 300 ...] [--learners svm ...] [--draws 20] [--seconds 3600]
        [--queries 50]
    python tests/benchmarks/bench_certificates.py --out FOLDER --summary

Without dsel: `GridSearchCV(cv=5)` on a random four fifths of the labels, and the
Clopper-Pearson limit of its model's errors on the other fifth (`fifth`). With dsel:
`SemiSupervisedSearchCV` with defaults, n labeled rows, and the other rows of the set as
pool (`one_fold`, handed over by default, and `all_rows`); in the first draws also
``certificate="cv_bound"``. All bounds are at 95 %.

With ``--queries``, in a FOLDER of its own and in the place of ``cv_bound`` and MAPIE:
`queried` is the bound of the model of all rows in a search with ``n_queries``, once the
queried rows have got their labels.

MAPIE 1.6, where it is there, tests on the fifth (learn then test): `mapie` is the least
error that `MultiClassificationLTTController` certifies for GridSearchCV's model, by
binomial p-values and so the same limit; `mapie_all` the least for any candidate, all
trained on the four fifths: what it is made for, with numbers of candidates as its
parameter in place of thresholds, and no cross-validation.

Errors are measured on the rows of the set beyond the n labeled ones; the searches never
see their labels. Each piece (set, n, learner, draw) draws rows of its own, by a seed
made of its name, and is one JSON line in FOLDER; a piece that is there, failed ones
too, is not run again. Pieces run in the order of `turn`, whatever earlier ones gave.

A bound fails where it is below the error. This error is known from some thousand rows
only, which makes more bounds fail than delta says; so failures are also counted on all
rows that the model has not seen, tested ones among them: the finite population from
which the tested rows were drawn at random.
"""

import argparse
import json
import os
import time
import traceback
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.stats import beta, binom
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.data.cache import process_cache

DATA_DIR = os.environ.get("DSEL_DATA", "../shared/data")
DELTA = 0.05
SETS = {
    "satimage": (255.0, 4.0),
    "letter": (15.0, 1.7),
    "optdigits": (16.0, 0.11),
    "usps": (2.0, 0.026),
    "pendigits": (100.0, 0.52),
    "digits": (16.0, 0.11),
    "magic": (None, 0.1),
    "adult": (None, 0.075),
    "spambase": (None, 1 / 57),
    "segment": (None, 1 / 19),
}
"""The known range of the features, by which they are divided; where there is none, a
StandardScaler is part of the pipeline (and a OneHotEncoder for adult's categories).
Then the middle of the widths of a Gaussian kernel, which is about ``gamma="scale"``."""
LEARNERS = {
    "trees": HistGradientBoostingClassifier(
        max_iter=30, early_stopping=False, random_state=0
    ),
    "logistic": LogisticRegression(max_iter=200),
    "knn": KNeighborsClassifier(),
    "svm": SVC(),
}
GRIDS = {
    "trees": {"learning_rate": [0.1, 0.2, 0.4], "max_leaf_nodes": [4, 8, 16]},
    "logistic": {"C": [float(C) for C in np.logspace(-3, 1, 9).round(5)]},
    "knn": {"n_neighbors": [1, 3, 5, 9, 17], "weights": ["uniform", "distance"]},
    "svm": {"C": [0.5, 4.0, 32.0], "gamma": [0.25, 1.0, 4.0]},  # times the set's middle
}
TREES = ("satimage", "magic", "adult", "spambase", "segment")
"""Sets for boosted trees: of ten classes and more a fit takes too long."""
DRAWS = {300: 40, 600: 40, 2000: 20, 8000: 8}
"""Draws by number of labels, as far as time allows."""
TURNS = {300: (0.0, 1.0), 600: (0.0, 1.0), 2000: (0.5, 2.0), 8000: (0.8, 5.0)}
"""When the first draw has its turn, and by how much later each further one."""
CV_BOUND_DRAWS = 2
"""Draws that have `cv_bound`, which counts all candidates on the pool."""
CV_BOUND_POOL = 10_000
"""Pool rows that it counts at most; the default search reads the whole pool."""
MIN_POOL = 1_000
BOUNDS = ("fifth", "one_fold", "all_rows", "mapie", "mapie_all", "cv_bound", "queried")
ERRORS = ("fifth", "one_fold", "all_rows", "refit", "mapie_all", "cv_bound", "queried")
SIDES = ("fits", "wall", "cpu")
ROW = ["n", "set", "learner"]


@cache
def table(name):
    """Return features, labels, and which columns are categories, of a set."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        categorical = []
    else:
        with np.load(os.path.join(DATA_DIR, f"{name}.npz")) as stored:
            X, y = stored["X"].astype(float), stored["y"]
            flags = stored.get("categorical", [])
        categorical = np.flatnonzero(flags).tolist()
    divisor = SETS[name][0]
    return (X if divisor is None else X / divisor), y, categorical


def problem(name, learner):
    """Return the estimator and the grid that all sides search."""
    estimator, grid = LEARNERS[learner], GRIDS[learner]
    divisor, middle = SETS[name]
    if learner == "svm":
        grid = grid | {"gamma": [middle * width for width in grid["gamma"]]}
    if learner == "trees" or divisor is not None:
        return estimator, grid
    scaler, categorical = StandardScaler(), table(name)[2]
    if categorical:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        scaler = make_column_transformer((encoder, categorical), remainder=scaler)
    prefix = type(estimator).__name__.lower()
    grid = {f"{prefix}__{key}": values for key, values in grid.items()}
    return make_pipeline(scaler, estimator), grid


def pieces(arguments):
    """Return all pieces that were asked for: small sizes first, draw by draw."""

    def turn(piece):
        _, n, _, draw = piece
        first, step = TURNS[n]
        return first + step * draw, n

    found = []
    asked = product(arguments.sets, arguments.sizes, arguments.learners)
    for name, n, learner in asked:
        enough = len(table(name)[1]) >= n + MIN_POOL
        if enough and (learner != "trees" or name in TREES):
            n_draws = DRAWS[n] if arguments.draws is None else arguments.draws
            found += [(name, n, learner, draw) for draw in range(n_draws)]
    return sorted(found, key=turn)


def limit(n_errors, n_rows, delta=DELTA):
    """Return the Clopper-Pearson limit, by scipy."""
    if n_errors >= n_rows:
        return 1.0
    return float(beta.ppf(1 - delta, n_errors + 1, n_rows - n_errors))


def measure_seconds(call):
    """Return what a call returns, and its wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def run(name, n, learner, draw, queries=0):
    """Return bounds, errors, fits and seconds of one piece."""
    X, y, _ = table(name)
    estimator, grid = problem(name, learner)
    seed = crc32(f"first protocol: {name} {n} {learner} {draw}".encode())
    order = np.random.default_rng(seed).permutation(len(y))
    own_X, own_y = X[order[:n]], y[order[:n]]
    rest_X, rest_y = X[order[n:]], y[order[n:]]
    train_X, test_X, train_y, test_y = train_test_split(
        own_X, own_y, test_size=0.2, random_state=seed
    )

    def wrong(model):
        return int(np.sum(model.predict(rest_X) != rest_y))

    def run_nested(**options):
        search = dsel.SemiSupervisedSearchCV(
            estimator, grid, delta=DELTA, random_state=seed, n_jobs=1, **options
        )
        return search.fit(own_X, own_y, pool=rest_X)

    # Both sides on one core, one after the other.
    fifth = GridSearchCV(estimator, grid, cv=5)
    _, *grid_seconds = measure_seconds(lambda: fifth.fit(train_X, train_y))
    search, *dsel_seconds = measure_seconds(run_nested)

    tested = {"fifth": int(np.sum(fifth.predict(test_X) != test_y))}
    bounds = {"fifth": limit(tested["fifth"], len(test_y))}
    errors = {
        "fifth": wrong(fifth),
        "refit": wrong(clone(fifth.best_estimator_).fit(own_X, own_y)),
    }
    reasons = []
    for deploy, certificate in search.certificates_.items():
        bounds[deploy] = certificate.unclipped
        errors[deploy] = wrong(search.models_[deploy])
        reasons += certificate.reasons
    # From these counts any other reading of the bounds can be made without a fit.
    names = ("outer_errors", "fold_rows", "outer_disagreements")
    counts = {each: search.results_[each].values.astype(int).tolist() for each in names}
    tested["one_fold"] = counts["outer_errors"][search.certificates_["one_fold"].fold]
    if queries:
        asked = run_nested(n_queries=queries)
        counts["queried_rows"] = rows = asked.query_rows().index.tolist()
        labeled = asked.certify_with_labels(rest_y[rows])
        certificate = labeled.certificates["all_rows"]
        bounds["queried"] = certificate.unclipped
        bounds["queried_one_fold"] = labeled.certificates["one_fold"].unclipped
        errors["queried"] = wrong(labeled.models["all_rows"])
        reasons += certificate.reasons
    elif draw < CV_BOUND_DRAWS:
        all_at_once = run_nested(certificate="cv_bound", max_pool_rows=CV_BOUND_POOL)
        bounds["cv_bound"] = all_at_once.certificate_.unclipped
        errors["cv_bound"] = wrong(all_at_once)
        reasons += all_at_once.certificate_.reasons
    candidates = list(ParameterGrid(grid))
    try:
        if queries:
            raise ImportError("MAPIE is compared in runs without queries")
        bounds["mapie"] = mapie_limit([fifth.predict(test_X)], test_y)
        models = [
            clone(estimator).set_params(**params).fit(train_X, train_y)
            for params in candidates
        ]
        answers = [model.predict(test_X) for model in models]
        best = int(np.argmin([np.sum(answer != test_y) for answer in answers]))
        bounds["mapie_all"] = mapie_limit(answers, test_y)
        errors["mapie_all"] = wrong(models[best])
        tested["mapie_all"] = int(np.sum(answers[best] != test_y))
    except ImportError:
        pass
    # Models of pairs of folds; the chosen ones of five folds and of all rows.
    n_fits = int(search.pair_results_["fit_seconds"].notnull().sum()) + 5 + 1
    return {
        "pool": len(rest_y),
        "candidates": len(candidates),
        "bounds": bounds,
        "counts": counts,
        "errors": {key: value / len(rest_y) for key, value in errors.items()},
        "unseen": {
            key: (errors[key] + value) / (len(rest_y) + n // 5)
            for key, value in tested.items()
        },
        "fits": {"grid": 5 * len(candidates) + 1, "dsel": n_fits},
        "wall": {"grid": grid_seconds[0], "dsel": dsel_seconds[0]},
        "cpu": {"grid": grid_seconds[1], "dsel": dsel_seconds[1]},
        "reasons": reasons,
    }


def mapie_limit(answers, y):
    """Return the least error that MAPIE certifies for any of the models."""
    from mapie.risk_control import BinaryRisk, MultiClassificationLTTController

    wrong = BinaryRisk(
        risk_occurrence=lambda true, found: found != true,
        risk_condition=lambda true, found: np.ones(len(true), bool),
        higher_is_better=False,
    )

    def is_certified(level):
        control = MultiClassificationLTTController(
            predict_function=lambda _, number: answers[int(number)],
            risks=[wrong],
            target_level=[level],
            confidence_level=1 - DELTA,
            list_predict_params=np.arange(len(answers))[:, np.newaxis],
        )
        control.calibrate(np.zeros((len(y), 1)), y)
        return len(control.valid_predict_params) > 0

    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if is_certified(middle) else (middle, high)
    return high


def read_records(folder):
    """Return the records of all pieces in a folder."""
    files = sorted(Path(folder).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.open()]


def measure(arguments):
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    keys = ("set", "n", "learner", "draw")
    done = {tuple(record[key] for key in keys) for record in read_records(folder)}
    started = time.monotonic()
    warm = set()
    for piece in pieces(arguments):
        if piece in done:
            continue
        if time.monotonic() - started > arguments.seconds:
            print("No time is left for further pieces.", flush=True)
            break
        name, n, learner, _ = piece
        process_cache.cache_clear()  # or kernels of many searches wait for their end
        with warnings.catch_warnings(action="ignore"):
            if learner not in warm:  # imports and compilation are no part of a piece
                run("segment", 300, learner, 0)
                warm.add(learner)
            try:
                facts = run(*piece, arguments.queries)
            except Exception:
                facts = {"failed": traceback.format_exc()[-2000:]}
        record = dict(zip(keys, piece, strict=True))
        record |= {"version": dsel.__version__} | facts
        with (folder / f"{name}-{n}-{learner}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(*piece, "FAILED" if "failed" in facts else "", flush=True)


def ratios(draws, part, name, keys):
    """Return by row how a mean compares to the fifth's, and its standard error."""
    draws = draws[draws[f"{part}.{name}"].notna()]
    rows = draws.groupby(keys)
    theirs = rows[f"{part}.fifth"].mean()
    ratio = rows[f"{part}.{name}"].mean() / theirs
    expected = draws[keys].join(ratio.rename("ratio"), on=keys)["ratio"]
    difference = draws[f"{part}.{name}"] - expected * draws[f"{part}.fifth"]
    spread = difference.groupby([draws[key] for key in keys]).std()
    return ratio, spread / np.sqrt(rows.size()) / theirs


def select_measured(draws, part, names):
    """Return those of the names that the pieces have, with or without queries."""
    return [name for name in names if f"{part}.{name}" in draws]


def failures(draws, name, part):
    """Return in which draws a bound is below the error; none where it is not known."""
    error = f"{part}.{'fifth' if name == 'mapie' else name}"
    return draws[f"bounds.{name}"] < draws.get(error, np.inf)


def summary(folder):
    records = pd.json_normalize(read_records(folder))
    raised = records.get("failed", pd.Series(index=records.index, dtype=object))
    draws = records[raised.isna()]
    means = draws.groupby(ROW).mean(numeric_only=True)
    # Medians, since a machine that stands still for minutes is no part of a search.
    usual = draws.groupby(ROW).median(numeric_only=True)
    sides = {part: usual[f"{part}.dsel"] / usual[f"{part}.grid"] for part in SIDES}
    sides["fits"] = means["fits.dsel"] / means["fits.grid"]
    bounds = select_measured(draws, "bounds", BOUNDS)
    failed = pd.DataFrame({name: failures(draws, name, "errors") for name in bounds})
    counts = failed.groupby([draws[key] for key in ROW]).sum().astype(int).astype(str)
    shown = {"draws": draws.groupby(ROW).size()}
    shown |= {f"bound {name}": means[f"bounds.{name}"].round(4) for name in bounds}
    shown |= {
        f"error {name}": means[f"errors.{name}"].round(4)
        for name in select_measured(draws, "errors", ERRORS)
    }
    shown["failed"] = counts.agg("/".join, axis=1)
    columns = [f"{part}.{side}" for part in SIDES for side in ("grid", "dsel")]
    shown |= {column: usual[column].round(2) for column in columns}
    order = "/".join(bounds)
    print(f"Means of draws (medians of seconds); failed are draws of {order}\n")
    print(pd.DataFrame(shown).to_string(na_rep="-"))
    print(f"\n{len(records)} pieces, of which {raised.notna().sum()} raised an error")
    for _, record in records[raised.notna()].iterrows():
        print("-", *record[[*ROW, "draw"]], record["failed"].splitlines()[-1])
    reasons = {reason for each in draws["reasons"] for reason in each}
    print("Not certified:", *(sorted(reasons) or ["nothing"]))
    print_ratios(draws, sides)
    print("\nFailures; those on all rows unseen; at most by delta, in 97.5 % of runs")
    for name in bounds:
        total = int(draws[f"bounds.{name}"].notna().sum())
        number = failed[name].sum()
        unseen = failures(draws, name, "unseen").sum()
        unseen = unseen if f"unseen.{name}" in draws or name == "mapie" else "-"
        most = int(binom.ppf(0.975, total, DELTA))
        print(f"- {name}: {number} of {total}; {unseen}; {most}")


def print_ratios(draws, sides):
    """Print geometric means of the rows' ratios to the fifth, and the worst rows."""
    table = pd.DataFrame({f"{part} dsel/grid": ratio for part, ratio in sides.items()})
    spreads = {}
    for part, names in (("bounds", BOUNDS[1:]), ("errors", ERRORS[1:])):
        for name in select_measured(draws, part, names):
            ratio, error = ratios(draws, part, name, ROW)
            table[f"{part} {name}"], spreads[part, name] = ratio, (error / ratio) ** 2
    n, learner = (table.index.get_level_values(key) for key in ("n", "learner"))
    groups = {"n <= 2000": n <= 2000} | {f"n = {each}": n == each for each in DRAWS}
    groups |= {each: learner == each for each in LEARNERS}
    lines = {}
    for title, chosen in groups.items():
        rows = table[chosen]
        lines[title] = np.exp(np.log(rows).mean())
        for part in ("bounds", "errors"):  # standard error of the mean's logarithm
            spread = np.sqrt(spreads[part, "one_fold"][chosen].sum())
            lines[title][f"{part} spread"] = spread / max(1, len(rows))
        lines[title]["rows"] = len(rows)
        lines[title]["smaller bounds"] = (rows["bounds one_fold"] < 1).sum()
    print("\nGeometric means of rows' ratios to the fifth (spread: standard error of")
    print("one_fold's; smaller: rows in which one_fold's bound is)\n")
    print(pd.DataFrame(lines).round(3).to_string(na_rep="-"))
    for part, keys in product(("bounds", "errors"), (ROW, ROW[:2])):
        ratio, error = ratios(draws, part, "one_fold", keys)
        size = draws.groupby(keys).size()
        worst = pd.DataFrame({"ratio": ratio, "error": error, "draws": size}).round(3)
        above = f"{(ratio > 1.05).sum()} of {len(ratio)} above 1.05, worst:"
        print(f"\n{part}, one_fold to fifth: {above}")
        print(worst.sort_values("ratio", ascending=False).head(8).to_string())
    print(f"\nMost fits of a row: {sides['fits'].max():.2f} of GridSearchCV's")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, known in (("sets", SETS), ("sizes", DRAWS), ("learners", LEARNERS)):
        kind = type(next(iter(known)))
        parser.add_argument(
            f"--{option}", nargs="+", type=kind, choices=known, default=list(known)
        )
    parser.add_argument("--draws", type=int)
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.out)
    else:
        measure(arguments)
