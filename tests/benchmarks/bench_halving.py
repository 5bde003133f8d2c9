"""Rules that choose the candidate of all rows after halving, on the same fits.

    python -m tests.benchmarks.bench_halving [--rows 150] [--grid small] [--draws 8]

All fits of a grid of SVMs are made, on draws of 14 public sets, and each rule reads
those that halving makes. Printed is the error of the chosen candidate, trained on all
labeled rows, on up to 4,000 others; its ratio to that of a search without halving, and
the mean difference of the two with its standard error.
"""

import argparse
import os
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dsel.search.design.cv_schemes import scheme_of_pairs
from dsel.search.engine.counts import FitTable
from dsel.search.engine.inner_searches import InnerSearches
from dsel.search.engine.jobs import FitStatus

DATA_DIR = Path(os.environ.get("DSEL_DATA", "../shared/data"))
SETS = ("letter", "magic", "satimage", "segment", "spambase", "pendigits", "optdigits",
        "qsar_biodegradation", "chess", "gas_drift_zscored", "usps", "banknote",
        "adult", "dna")  # fmt: skip
GRIDS = {  # C, and gamma times the number of features
    "small": ((0.3, 3, 30), (0.03, 0.3, 1)),
    "large": ((0.1, 1, 10, 100, 1000), (0.01, 0.1, 0.3, 1, 3)),
}
N_FOLDS, MOST_ROWS = 5, 4_000


def fit_all(name, n_rows, grid, draw):
    """Return the table of all fits, and the error of each candidate on other rows."""
    with np.load(DATA_DIR / f"{name}.npz", allow_pickle=True) as stored:
        X, y = np.nan_to_num(stored["X"].astype(float)), stored["y"]
    order = np.random.default_rng([draw, SETS.index(name)]).permutation(len(y))
    n_rows = min(n_rows, len(y) * 2 // 3)
    labeled, others = order[:n_rows], order[n_rows:][:MOST_ROWS]
    scaler = StandardScaler().fit(X[labeled])
    X_labeled, y_labeled = scaler.transform(X[labeled]), y[labeled]
    C_values, widths = GRIDS[grid]
    models = [SVC(C=C, gamma=w / X.shape[1]) for C in C_values for w in widths]
    scheme = scheme_of_pairs(N_FOLDS, n_rows, seed=draw, n_candidates=len(models))
    table, errors = FitTable(scheme, (), len(models)), []
    for candidate, model in enumerate(models):
        for number, split in enumerate(scheme.splits):
            model.fit(X_labeled[split.train_rows], y_labeled[split.train_rows])
            for part, rows in enumerate(split.row_parts):
                wrong = model.predict(X_labeled[rows]) != y_labeled[rows]
                table.errors[candidate, number, part] = wrong.sum()
                table.scores[candidate, number, part] = wrong.mean()
        predicted = model.fit(X_labeled, y_labeled).predict(scaler.transform(X[others]))
        errors.append((predicted != y[others]).mean())
    table.fit_status[:] = FitStatus.DONE
    return table, np.array(errors)


def chosen_by_rule(table):
    """Return the candidate of all rows by each rule, of a table with all fits."""
    scheme, scores = table.scheme, table.scores.mean(axis=2)
    halving = InnerSearches(scheme, "halving")
    survives, is_first = halving.survivors(table)[:-1], np.zeros(len(scheme.splits))
    is_first[list(scheme.first_round)] = True
    is_made = np.tile(is_first.astype(bool), (table.n_candidates, 1))
    for test in scheme.inner_tests:
        is_made[:, test.split_number] |= survives[test.left_out_fold]
    kept, n_searches, n_fits = (
        survives.any(axis=0), survives.sum(axis=0), is_made.sum(axis=1)
    )  # fmt: skip

    def best(candidates, splits):
        means = np.where(candidates, scores[:, splits].mean(axis=1), np.inf)
        return int(means.round(12).argmin())

    def best_of_most(numbers):
        most = numbers == numbers.max()
        return best(most, is_made[most].all(axis=0))

    everywhere = np.ones(len(scheme.splits), bool)
    rules = {
        "without halving": best(np.ones_like(kept), everywhere),
        "kept, all fits made": best(kept, everywhere),
        "kept, by the first round": best(kept, is_first.astype(bool)),
        "kept by most searches": best_of_most(n_searches),
        "most fits": best_of_most(n_fits),
    }
    table.fit_status[~is_made] = FitStatus.OPEN
    rules["as dsel does"] = halving.choose_candidates(table).candidate_of_all_rows
    return rules


def errors_by_rule(n_rows, grid, name, draw):
    """Return the error of the candidate that each rule chooses, of one draw."""
    table, errors = fit_all(name, n_rows, grid, draw)
    return {rule: errors[number] for rule, number in chosen_by_rule(table).items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--grid", choices=list(GRIDS), default="small")
    parser.add_argument("--draws", type=int, default=8)
    arguments = parser.parse_args()
    one = delayed(partial(errors_by_rule, arguments.rows, arguments.grid))
    found = Parallel(2)(one(n, draw) for n in SETS for draw in range(arguments.draws))
    base = np.array([errors["without halving"] for errors in found])
    print(f"{len(found)} searches, {arguments.rows} rows, {arguments.grid} grid")
    for rule in found[0]:
        errors = np.array([each[rule] for each in found])
        more, ratio = errors - base, errors.sum() / base.sum()
        print(
            f"{rule:26} error {errors.mean():.4f}, ratio {ratio:.4f}, "
            f"difference {more.mean():+.5f} +- {more.std() / len(more) ** 0.5:.5f}"
        )
