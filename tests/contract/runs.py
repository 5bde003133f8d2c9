"""Runs whose numbers are frozen, and how the tests beside call a search.

    python -m tests.contract.runs          # write the files that are missing

A frozen file is never written again: where a name goes, its keys are taken out. What a
run says beside the frozen keys is not compared.
"""

import json
import os
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel import bounds
from dsel.least_squares import (
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    select_least_squares,
)
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.search import read_rows

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).parent / "frozen"
EXACT = ("cv_bound", "best_fold", "holdout")
"""Certificates whose searches choose the same where they prune."""
CERTIFICATES = ("nested", *EXACT)
HALF_CRITERIA = (
    *("disagreement", "dis_error", "two_fold_cv", "max_dt_e", "max_cv_dt_e"),
    "loo_error",
)
LEAST_SQUARES_CRITERIA = ("loo", "gcv", "kfold", "holdout", "extra_sample")


def plan_search(estimator, grid, X, y, pool=None, **options):
    """Plan a search in which all candidates are counted, unless told otherwise."""
    options = {"random_state": 7, "prune": False, **options}
    return dsel.plan_search(estimator, grid, X, y, pool, **options)


def run_search(*rows, client=None, out=None, n_jobs=None, **options):
    return plan_search(*rows, **options).run(client, out=out, n_jobs=n_jobs)


# ------------------------------------------------------------------ counts of a run


def counts_of(run):
    """Return every number that must not depend on where and how a search ran.

    ``pair_errors[candidate, i, j]`` of a nested search are the errors on fold j of the
    model that has seen neither fold i nor fold j, from which what has not seen fold i
    is chosen.
    """
    cube, pairs = run.results, run.pair_results
    names = ("fold_errors", "fold_rows", "disagreements", "pool_rows", "status")
    counts = {name: whole(cube[name]) for name in names if name in cube}
    if pairs is not None:
        k = cube.sizes["fold"]
        found = pairs["fold_errors"].values.reshape(-1, pairs.sizes["pair"], 2)
        one, other = pairs["fold"].values.T
        errors = np.full((len(found), k, k), np.nan)
        errors[:, other, one], errors[:, one, other] = found[..., 0], found[..., 1]
        counts |= {
            "pair_errors": whole(errors),
            "fold_errors": whole(cube["fold_errors"].values.reshape(-1, k)),
            "candidates_without_fold": whole(cube["outer_candidate"]),
            "errors_without_fold": whole(cube["outer_errors"]),
        }
        if "all_rows" in run.certificates:
            counts["disagreements_without_fold"] = whole(cube["outer_disagreements"])
    for deploy, certificate in run.certificates.items():
        counts[f"{deploy}/candidate"] = run.choice.bounded_models[deploy].candidate
        counts[f"{deploy}/fold"] = certificate.fold
        counts[f"{deploy}/bound"] = certificate.bound
    return counts


def whole(values):
    """Return counts; None where nothing was counted."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array) & (array != -1), array, None).tolist()


# ------------------------------------------------------------------ rows of the runs


def split_rows(X, y, n_labeled):
    """Return labeled rows, their labels, and the other rows as a pool."""
    order = np.random.default_rng(0).permutation(len(y))
    labeled, pool = order[:n_labeled], order[n_labeled:]
    return X[labeled], y[labeled], X[pool]


def digits(n_labeled=400):
    return split_rows(*load_digits(return_X_y=True), n_labeled)


def labels_of_digits(n_labeled=400):
    """Return the true labels of their pool."""
    return digits(1797)[1][n_labeled:]


def satimage():
    path = Path(os.environ.get("DSEL_DATA", ROOT.parent / "shared" / "data"))
    with np.load(path / "satimage.npz") as table:
        X, y = table["X"] / 255.0, table["y"]
    X, y, pool = split_rows(X, y, 500)
    return X, y, pool[:3000]


def sinc_rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 1))
    dense = np.linspace(-3, 3, 200)[:, np.newaxis]
    return X, np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(n), dense


def three_classes(n_pool=3000):
    """Return labeled rows of three Gaussian classes, a pool, and its true labels."""
    rng = np.random.default_rng(1)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 4)) + 1.5 * np.eye(3, 4)[y]
    truth = rng.integers(0, 3, n_pool)
    return X, y, rng.normal(size=(n_pool, 4)) + 1.5 * np.eye(3, 4)[truth], truth


DIGITS_GRID = {"C": [0.5, 2.0, 8.0, 32.0], "gamma": [1e-4, 5e-4, 2e-3, 1e-2]}
SATIMAGE_GRID = {"C": [1, 8, 64], "gamma": [0.1, 1, 10]}
K_NEAREST = (
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    {"kneighborsclassifier__n_neighbors": [1, 3, 7, 15]},
)
TREES = (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4, 8]})
LEARNERS = {"SVC": (SVC(), DIGITS_GRID), "k-NN": K_NEAREST, "tree": TREES}


# ------------------------------------------------------------------- the frozen runs


def read_all(results, criteria):
    """Return what each criterion chooses and says, be it a bound or an estimate."""
    frozen = {}
    for name in criteria:
        choice = dsel.select(results, name)
        frozen[f"{name}/candidate"] = choice.candidate
        frozen[f"{name}/bound"] = frozen[f"{name}/estimate"] = choice.criterion_value
    return frozen


def plain(*rows, cv=5):
    """A search by plain folds, its formulas, and what certificates and pruning say."""
    run = run_search(*rows, certificate="cv_bound", cv=cv)
    frozen = counts_of(run) | read_all(run, ("cv_bound", "holdout", "cv_error"))
    errors, differ, read = (
        run.results[name].values.reshape(-1, cv).astype(int)
        for name in ("fold_errors", "disagreements", "pool_rows")
    )
    for share in (0.5, 0.95):
        terms = bounds.cv_bound(
            errors,
            run.results["fold_rows"].values.astype(int),
            differ.sum(axis=1),
            read.sum(axis=1),
            delta=np.full(len(errors), 0.05 / len(errors)),
            label_share=share,
        )
        frozen[f"label share {share}/label_bound"] = terms.label_term
        frozen[f"label share {share}/pool_bound"] = terms.disagreement_term
    for name in EXACT:
        for title, prune in (("exhaustive", False), ("pruned", "exact")):
            choice = run_search(*rows, certificate=name, cv=cv, prune=prune).choice
            frozen[f"{name}/{title}/candidate"] = choice.candidate
            frozen[f"{name}/{title}/bound"] = choice.certificate.number
            frozen[f"{name}/{title}/certified"] = choice.certificate.certified
    return frozen


def nested(*rows, cv):
    """Every count of a nested search, and both numbers that it gives."""
    alone = run_search(*rows[:4], certificate="nested", cv=cv)
    bound = {"without a pool/bound": alone.certificate.bound}
    return counts_of(run_search(*rows, certificate="nested", cv=cv)) | bound


def estimated(*rows, criterion, names, **options):
    """A search without a certificate."""
    results = run_search(*rows, criterion=criterion, **options).results
    return {name: whole(results[name]) for name in names} | read_all(
        results, [criterion]
    )


def iris():
    rows = load_iris(return_X_y=True)
    learner, names = LogisticRegression(max_iter=2000), ("fold_errors", "fold_rows")
    options = {"criterion": "cv_error", "names": (*names, "status"), "cv": 5}
    return estimated(learner, {"C": [0.1, 1.0, 10.0]}, *rows, **options)


def leave_one_out():
    X, y, pool = digits(80)
    rows = (SVC(), {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3]}, X, y, pool[:200])
    return estimated(*rows, criterion="loo_error", names=["loo_errors"])


def covalidate(*rows, repeats=6, **options):
    return dsel.covalidate(*rows, repeats=repeats, random_state=3, **options)


def co_validation():
    X, y, pool = digits(120)
    grid = {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3, 5e-3]}
    results = covalidate(SVC(), grid, X, y, pool[:780], leave_one_out=True)
    names = ("fold_errors", "fold_rows", "train_errors", "disagreements", "loo_errors")
    return {name: whole(results[name]) for name in names} | read_all(
        results, HALF_CRITERIA
    )


def least_squares_search(**options):
    grid = np.geomspace(0.1, 3, 6), np.geomspace(1e-4, 10, 8)
    return LeastSquaresSearch(*grid, random_state=0, **options)


def streamed_search():
    grid = np.geomspace(0.1, 3, 4), np.geomspace(1e-4, 10, 5)
    return StreamedLeastSquaresSearch(*grid, n_centers=12, random_state=0)


def least_squares():
    X, y, dense = sinc_rows()
    search = least_squares_search(cv=10).fit(X, y, dense, np.sinc(dense[:, 0]))
    frozen = {"predictions": search.predict(dense[::20])}
    for name in LEAST_SQUARES_CRITERIA:
        found = select_least_squares(search.results_, name)
        frozen[f"{name}/candidate"] = found.candidate
        frozen[f"{name}/loss"] = found.estimate
    streamed = streamed_search().fit(*sinc_rows(400)[:2])
    frozen["streamed/params"] = streamed.best_params_
    frozen["streamed/predictions"] = streamed.predict(dense[::20])
    return frozen


def nonconformity_model(ties="random", **options):
    grid = {"C": [0.5, 2.0, 8.0], "gamma": [3e-4, 1e-3, 4e-3]}
    return NonconformityClassifier(SVC(), grid, ties=ties, random_state=0, **options)


def nonconformity():
    X, y, pool = digits(300)
    random, literal = (
        nonconformity_model(ties).fit(X, y) for ties in ("random", "literal")
    )
    return {
        "random/predictions": whole(random.predict(pool[:300])),
        "literal/predictions": whole(literal.predict(pool[:300])),
        "p_values": literal.p_values(pool[:4]),
    }


def fit_lda(kind, X, y, pool, truth=None):
    """Fit the supervised, the semi-supervised or the oracle model."""
    if kind == "supervised":
        return MaximumLikelihoodLDA().fit(X, y)
    if kind == "oracle":
        return OracleLDA().fit(X, y, pool=pool, pool_labels=truth)
    return SemiSupervisedLDA(tol=1e-9).fit(X, y, pool=pool)


def mcpl():
    *rows, pool, truth = three_classes()
    frozen = {}
    for kind in ("supervised", "semi-supervised", "oracle"):
        model = fit_lda(kind, *rows, pool, truth)
        frozen[f"{kind}/means"] = model.means_
        frozen[f"{kind}/errors"] = int((model.predict(pool) != truth).sum())
        frozen[f"{kind}/contrast"] = getattr(model, "contrast_lower_", None)
    return frozen


def certify_grid_search(X, y, pool=None, **options):
    procedure = GridSearchCV(SVC(), {"C": [1, 8], "gamma": [5e-4, 1e-3]}, cv=3)
    options = {"cv": 3, "random_state": 0, **options}
    return dsel.certify(procedure, X, y, pool, **options)


def certify_selection():
    X, y, pool = digits(300)
    found, alone = certify_grid_search(X, y, pool), certify_grid_search(X, y)
    return {
        "fold_errors": whole(found.results["fold_errors"]),
        "disagreements": whole(found.results["outer_disagreements"]),
        "all_rows/bound": found.certificates["all_rows"].bound,
        "params": found.models["all_rows"].best_params_,
        "without a pool/fold_errors": whole(alone.results["fold_errors"]),
        "without a pool/bound": alone.certificates["one_fold"].bound,
    }


def plan_bound():
    """The expected bound of every certificate, over folds."""
    rates = {"delta": 0.05, "error": 0.08, "disagreement": 0.02, "cv": (2, 3, 5, 10)}
    found = dsel.plan_bound(600, 10_000, n_candidates=50, **rates).bound
    return {
        f"{name}/{k} folds/bound": float(found.sel(certificate=name, n_folds=k))
        for name in ("cv_bound", "best_fold", "all_rows", "one_fold")
        for k in rates["cv"]
    }


WINE = (*K_NEAREST, *split_rows(*load_wine(return_X_y=True), 90))
CANCER = (*TREES, *split_rows(*load_breast_cancer(return_X_y=True), 250))
RUNS = {
    "digits": lambda: plain(SVC(), DIGITS_GRID, *digits()),
    "digits-nested-3": lambda: nested(SVC(), DIGITS_GRID, *digits(), cv=3),
    "digits-nested-5": lambda: nested(SVC(), DIGITS_GRID, *digits(), cv=5),
    "satimage": lambda: plain(SVC(), SATIMAGE_GRID, *satimage()),
    "wine": lambda: plain(*WINE),
    "wine-nested-5": lambda: nested(*WINE, cv=5),
    "breast-cancer": lambda: plain(*CANCER),
    "breast-cancer-nested-3": lambda: nested(*CANCER, cv=3),
    "iris": iris,
    "co-validation": co_validation,
    "leave-one-out": leave_one_out,
    "least-squares": least_squares,
    "nonconformity": nonconformity,
    "mcpl": mcpl,
    "certify-selection": certify_selection,
    "plan-bound": plan_bound,
}


# -------------------------------------------------- jobs as processes of their own


class SlowTree(DecisionTreeClassifier):
    """A tree that writes a line for each fit, and takes its time."""

    def __init__(self, max_depth=None, random_state=0, log=""):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.log = log

    def fit(self, X, y):
        time.sleep(0.02)
        with Path(self.log).open("a") as lines:
            lines.write("fit\n")
        return super().fit(X, y)


def job(kind, log, out=None, client=None):
    """Run a nested search of some seconds that keeps its counts in `out`."""
    X, y, pool = digits(300)
    learner = SVC()
    grid = {"C": 2.0 ** np.arange(-2, 9), "gamma": 2.0 ** np.arange(-14, -4)}
    if kind == "tree":
        learner, grid = SlowTree(log=str(log)), {"max_depth": list(range(1, 9))}
    running = {"n_jobs": 1, "client": client, "out": out}
    return run_search(learner, grid, X, y, pool, cv=3, **running)


def answers_of(place):
    """Return the class codes that `predict_pool` has written."""
    return np.concatenate([codes for _, codes in read_rows(place, "label")])


if __name__ == "__main__":
    for name, run in RUNS.items():
        if not (path := FROZEN / f"{name}.json").exists():
            pairs = sorted(run().items())  # a line each, so that lines can go
            lines = [
                json.dumps({k: v}, default=np.ndarray.tolist)[1:-1] for k, v in pairs
            ]
            path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
