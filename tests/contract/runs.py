"""Runs whose numbers are frozen, and all that these tests know about calls.

    python -m tests.contract.runs          # write the files that are missing

The tests beside this module say what users see; how a search is called, and where its
numbers are read, stands here. So a change of these calls changes this module alone, and
what the tests claim stays. Only names that are meant to stay may occur.

A frozen file is never written again: where a name goes, its keys are taken out.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
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
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    select_least_squares,
)
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.search import predict_pool, read_rows

__all__ = ["KernelLeastSquares", "predict_pool", "read_rows"]  # for the tests beside

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).parent / "frozen"

# ---------------------------------------------------------------- calls of a search

ONE_FOLD, ALL_ROWS = "one_fold", "all_rows"
DEPLOYMENTS = {
    "nested": (ONE_FOLD, ALL_ROWS),
    "cv_bound": (ALL_ROWS,),
    "best_fold": (ALL_ROWS,),
    "holdout": (ONE_FOLD,),
}
"""Every certificate, and whose error each bounds."""
CRITERIA = ("cv_bound", "holdout", "cv_error")
"""Criteria that read the counts of a search by `cv_bound`; the last is an estimate."""
HALF_CRITERIA = (
    "disagreement",
    "dis_error",
    "two_fold_cv",
    "max_dt_e",
    "max_cv_dt_e",
    "loo_error",
)
FOLD_COUNTS = ("fold_errors", "fold_rows", "disagreements", "pool_rows", "status")
LEAST_SQUARES_CRITERIA = ("loo", "gcv", "kfold", "holdout", "extra_sample")


@dataclass
class Run:
    """A finished search: as its plan and what `run` returned."""

    plan: Any
    outcome: Any
    certificate: str
    has_pool: bool = True


@dataclass
class ReadOut:
    """What a search says about one of its models."""

    candidate: int
    params: dict[str, Any]
    estimate: float
    bound: float
    fold: int | None
    certified: bool
    text: str


def plan_search(estimator, grid, X, y, pool=None, *, certificate="nested", **options):
    """Plan a search by one of the certificates; all candidates are counted."""
    options = {"certificate": certificate, "random_state": 7, "prune": False, **options}
    if options["prune"] is True:  # as the certificate does by default
        del options["prune"]
    return dsel.plan_search(estimator, grid, X, y, pool, **options)


def plan_estimates(estimator, grid, X, y, pool=None, *, criterion, **options):
    """Plan a search by an estimate, which certifies nothing."""
    options = {"random_state": 7, **options}
    return dsel.plan_search(estimator, grid, X, y, pool, criterion=criterion, **options)


def run_plan(plan, certificate, client=None, *, has_pool=True, **running):
    return Run(plan, plan.run(client, **running), certificate, has_pool)


def run_search(*rows, certificate="nested", client=None, out=None, **options):
    """Run a search on a client, else on threads of this process."""
    running = {name: options.pop(name) for name in ("n_jobs",) if name in options}
    plan = plan_search(*rows, certificate=certificate, **options)
    running["has_pool"] = len(rows) > 4
    return run_plan(plan, certificate, client, out=out, **running)


def results_of(run) -> xr.Dataset:
    """Return the cube."""
    return run.outcome.results


def dimensions_of(run) -> dict[str, int]:
    """Return the dimensions of the cube."""
    return dict(results_of(run).sizes)


def choice_of(run):
    """Return the declared choice."""
    return dsel.select(run.outcome)


def choice_from(cube):
    """Return the declared choice of a cube that was opened again."""
    return dsel.select(cube)


def certificate_of(run, deploy) -> ReadOut:
    """Return what a run says about one of its models."""
    choice = run.outcome.choice
    return _read(choice, deploy, choice.candidates[deploy])


def read_by(run, criterion) -> ReadOut:
    """Return what another criterion says of the same counts."""
    choice = dsel.select(run.outcome, criterion)
    return _read(choice, choice.deploy, choice.candidate)


def _read(choice, deploy, candidate) -> ReadOut:
    found = choice.certificates[deploy]
    return ReadOut(
        candidate=candidate,
        params=dict(choice.params),
        estimate=choice.estimate,
        bound=found.bound,
        fold=found.fold,
        certified=found.certified,
        text=str(choice),
    )


def model_of(run, deploy):
    """Return the model that a certificate is about."""
    return run.outcome.models[deploy]


def fit_facade(estimator, grid, X, y, pool=None, **options):
    """Return the fitted estimator of a search, of a certificate or by default."""
    running = {name: options.pop(name) for name in ("out",) if name in options}
    search = dsel.SemiSupervisedSearchCV(estimator, grid, **options)
    return search.fit(X, y, pool=pool, **running)


# ------------------------------------------------------------------ counts of a run


def counts_of(run) -> dict[str, Any]:
    """Return every number that must not depend on where and how a search ran."""
    results = results_of(run)
    counts = {name: whole(results[name]) for name in ("status", "fold_rows")}
    if run.certificate == "nested":
        counts |= nested_counts_of(run)
    else:
        there = [name for name in FOLD_COUNTS if name in results]
        counts |= {name: whole(results[name]) for name in there}
    for deploy in DEPLOYMENTS[run.certificate]:
        found = certificate_of(run, deploy)
        counts[f"{deploy}/candidate"] = found.candidate
        counts[f"{deploy}/fold"] = found.fold
        counts[f"{deploy}/bound"] = found.bound
    return counts


def nested_counts_of(run) -> dict[str, Any]:
    """Return the counts of a nested search, one key a name.

    ``pair_errors[candidate, i, j]`` are the errors on fold j of the model that has seen
    neither fold i nor fold j, from which what has not seen fold i is chosen.
    """
    results = results_of(run)
    k = results.sizes["fold"]
    pairs = run.outcome.pair_results
    found = pairs["fold_errors"].values.reshape(-1, pairs.sizes["pair"], 2)
    errors = np.full((len(found), k, k), np.nan)
    for place, (one, other) in enumerate(pairs["fold"].values):
        errors[:, other, one], errors[:, one, other] = found[:, place].T
    counts = {"pair_errors": whole(errors)}
    counts["fold_errors"] = whole(results["fold_errors"].values.reshape(-1, k))
    counts["candidates_without_fold"] = whole(results["outer_candidate"])
    counts["errors_without_fold"] = whole(results["outer_errors"])
    if run.has_pool:
        counts["disagreements_without_fold"] = disagreements_without_fold(run)
    return counts


def disagreements_without_fold(run) -> list[int | None]:
    """Return on how many pool rows the model of all rows and each fold's differ."""
    return whole(results_of(run)["outer_disagreements"])


def whole(values) -> Any:
    """Return counts as integers, what was not counted as None."""
    array = np.asarray(values, dtype=float)
    counted = np.isfinite(array) & (array != -1)
    assert (array[counted] == np.rint(array[counted])).all()
    found = np.where(counted, np.rint(np.where(counted, array, 0)), None)
    return json.loads(
        json.dumps(found.tolist()), parse_float=lambda text: int(float(text))
    )


def values(array) -> Any:
    return np.asarray(array, dtype=float).tolist()


# ------------------------------------------------------------------ rows of the runs


def split_rows(X, y, n_labeled, seed=0):
    """Return labeled rows, their labels, and the other rows as a pool."""
    order = np.random.default_rng(seed).permutation(len(y))
    labeled, pool = order[:n_labeled], order[n_labeled:]
    return X[labeled], y[labeled], X[pool]


def digits(n_labeled=400):
    return split_rows(*load_digits(return_X_y=True), n_labeled)


def satimage():
    path = Path(os.environ.get("DSEL_DATA", ROOT.parent / "shared" / "data"))
    with np.load(path / "satimage.npz") as table:
        X, y = table["X"] / 255.0, table["y"]
    X, y, pool = split_rows(X, y, 500)
    return X, y, pool[:3000]


DIGITS_GRID = {"C": [0.5, 2.0, 8.0, 32.0], "gamma": [1e-4, 5e-4, 2e-3, 1e-2]}
SATIMAGE_GRID = {"C": [1, 8, 64], "gamma": [0.1, 1, 10]}
K_NEAREST = (
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    {"kneighborsclassifier__n_neighbors": [1, 3, 7, 15]},
)
TREES = (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4, 8]})
LEARNERS = {"SVC": (SVC(), DIGITS_GRID), "k-NN": K_NEAREST, "tree": TREES}


# ------------------------------------------------------------------- the frozen runs


def read_all(run, criteria):
    """Return what each criterion chooses and says, one key a number."""
    frozen = {}
    for name in criteria:
        found = read_by(run, name)
        frozen[f"{name}/candidate"] = found.candidate
        is_bound = name in DEPLOYMENTS
        frozen[f"{name}/{'bound' if is_bound else 'estimate'}"] = found.estimate
    return frozen


def plain(estimator, grid, X, y, pool, cv):
    """Freeze a search by plain folds, and what a pruned one says."""
    rows = (estimator, grid, X, y, pool)
    run = run_search(*rows, certificate="cv_bound", cv=cv)
    frozen = {name: whole(results_of(run)[name]) for name in FOLD_COUNTS}
    frozen |= read_all(run, CRITERIA) | _formulas(results_of(run))
    return frozen | _of_certificates(rows, cv)


def estimates(estimator, grid, X, y, cv):
    """Freeze a search without a pool, which ends in an estimate."""
    plan = plan_estimates(
        estimator, grid, X, y, criterion="cv_error", cv=cv, prune=False
    )
    run = run_plan(plan, "cv_error")
    names = ("fold_errors", "fold_rows", "status")
    frozen = {name: whole(results_of(run)[name]) for name in names}
    return frozen | read_all(run, ("cv_error",))


def _formulas(results):
    """Freeze the terms of every candidate, by both ways of dividing delta."""
    k = results.sizes["fold"]
    errors, differ, read = (
        results[name].values.reshape(-1, k).astype(int)
        for name in ("fold_errors", "disagreements", "pool_rows")
    )
    frozen = {}
    for share in (0.5, 0.95):
        terms = bounds.cv_bound(
            errors,
            results["fold_rows"].values.astype(int),
            differ.sum(axis=1),
            read.sum(axis=1),
            delta=np.full(len(errors), 0.05 / len(errors)),
            label_share=share,
        )
        frozen[f"label share {share}/label_bound"] = values(terms.label_term)
        frozen[f"label share {share}/pool_bound"] = values(terms.disagreement_term)
    return frozen


def _of_certificates(rows, cv):
    """Freeze what runs by other certificates say, and pruned ones."""
    frozen = {}
    for name in ("cv_bound", "best_fold", "holdout"):
        for prune in (False, True):
            run = run_search(*rows, certificate=name, cv=cv, prune=prune)
            found = certificate_of(run, DEPLOYMENTS[name][0])
            key = f"{name}/{'pruned' if prune else 'exhaustive'}"
            frozen[f"{key}/candidate"] = found.candidate
            frozen[f"{key}/bound"] = found.bound
            frozen[f"{key}/certified"] = found.certified
    return frozen


def nested(estimator, grid, X, y, pool, cv):
    """Freeze every count of a nested search, and both numbers that it gives."""
    run = run_search(estimator, grid, X, y, pool, certificate="nested", cv=cv)
    frozen = nested_counts_of(run)
    frozen["fold_rows"] = whole(results_of(run)["fold_rows"])
    for deploy in DEPLOYMENTS["nested"]:
        found = certificate_of(run, deploy)
        frozen[f"{deploy}/candidate"] = found.candidate
        frozen[f"{deploy}/fold"] = found.fold
        frozen[f"{deploy}/bound"] = found.bound
    alone = run_search(estimator, grid, X, y, certificate="nested", cv=cv)
    frozen["without a pool/bound"] = certificate_of(alone, ONE_FOLD).bound
    return frozen


def co_validation():
    X, y, pool = digits(120)
    grid = {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3, 5e-3]}
    results = covalidate(SVC(), grid, X, y, pool[:780], leave_one_out=True)
    names = (
        "fold_errors",
        "fold_rows",
        "train_errors",
        "disagreements",
        "loo_errors",
    )
    frozen = {name: whole(results[name]) for name in names}
    run = Run(None, SimpleNamespace(results=results), "co_validation")
    return frozen | read_all(run, HALF_CRITERIA)


def covalidate(*rows, repeats=6, random_state=3, **options) -> xr.Dataset:
    return dsel.covalidate(*rows, repeats=repeats, random_state=random_state, **options)


def loo_run(estimator, grid, X, y, pool=None):
    return run_plan(
        plan_estimates(estimator, grid, X, y, pool, criterion="loo_error"), "loo_error"
    )


def leave_one_out():
    X, y, pool = digits(80)
    run = loo_run(SVC(), {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3]}, X, y, pool[:200])
    frozen = {"loo_errors": whole(results_of(run)["loo_errors"])}
    return frozen | read_all(run, ["loo_error"])


def sinc_rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 1))
    dense = np.linspace(-3, 3, 200)[:, np.newaxis]
    return X, np.sinc(X[:, 0]) + 0.1 * rng.standard_normal(n), dense


def least_squares_search(**options):
    return LeastSquaresSearch(
        np.geomspace(0.1, 3, 6), np.geomspace(1e-4, 10, 8), random_state=0, **options
    )


def streamed_search(**options):
    return StreamedLeastSquaresSearch(
        np.geomspace(0.1, 3, 4),
        np.geomspace(1e-4, 10, 5),
        n_centers=12,
        random_state=0,
        **options,
    )


def least_squares():
    X, y, dense = sinc_rows()
    search = least_squares_search(cv=10).fit(X, y, dense, np.sinc(dense[:, 0]))
    frozen = {"predictions": values(search.predict(dense[::20]))}
    for name in LEAST_SQUARES_CRITERIA:
        found = select_least_squares(search.results_, name)
        frozen[f"{name}/candidate"] = found.candidate
        frozen[f"{name}/loss"] = found.estimate
    streamed = streamed_search().fit(*sinc_rows(400)[:2])
    frozen["streamed/params"] = {k: float(v) for k, v in streamed.best_params_.items()}
    frozen["streamed/predictions"] = values(streamed.predict(dense[::20]))
    return frozen


def nonconformity_model(ties="random", **options):
    grid = {"C": [0.5, 2.0, 8.0], "gamma": [3e-4, 1e-3, 4e-3]}
    return NonconformityClassifier(SVC(), grid, ties=ties, random_state=0, **options)


def nonconformity():
    X, y, pool = digits(300)
    frozen = {}
    for ties in ("random", "literal"):
        model = nonconformity_model(ties).fit(X, y)
        frozen[f"{ties}/predictions"] = whole(model.predict(pool[:300]))
    frozen["p_values"] = values(model.p_values(pool[:4]))
    return frozen


def three_classes(n_pool=3000):
    """Return labeled rows of three Gaussian classes, a pool, and its true labels."""
    rng = np.random.default_rng(1)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 4)) + 1.5 * np.eye(3, 4)[y]
    truth = rng.integers(0, 3, n_pool)
    return X, y, rng.normal(size=(n_pool, 4)) + 1.5 * np.eye(3, 4)[truth], truth


def fit_lda(kind, X, y, pool, truth):
    """Fit the supervised, the semi-supervised or the oracle model."""
    if kind == "supervised":
        return MaximumLikelihoodLDA().fit(X, y)
    if kind == "oracle":
        return OracleLDA().fit(X, y, pool=pool, pool_labels=truth)
    return SemiSupervisedLDA(tol=1e-9).fit(X, y, pool=pool)


def mcpl():
    X, y, pool, truth = three_classes()
    frozen = {}
    for kind in ("supervised", "semi-supervised", "oracle"):
        model = fit_lda(kind, X, y, pool, truth)
        frozen[f"{kind}/means"] = values(model.means_)
        frozen[f"{kind}/errors"] = int((model.predict(pool) != truth).sum())
        if kind == "semi-supervised":
            frozen[f"{kind}/contrast"] = float(model.contrast_lower_)
    return frozen


def certify_grid_search(X, y, pool=None, **options):
    procedure = GridSearchCV(SVC(), {"C": [1, 8], "gamma": [5e-4, 1e-3]}, cv=3)
    options = {"cv": 3, "random_state": 0, **options}
    return dsel.certify_selection(procedure, X, y, pool, **options)


def certify_selection():
    X, y, pool = digits(300)
    found, alone = certify_grid_search(X, y, pool), certify_grid_search(X, y)
    return {
        "fold_errors": whole(found.results["fold_errors"]),
        "disagreements": whole(found.results["outer_disagreements"]),
        "all_rows/bound": found.certificates[ALL_ROWS].bound,
        "params": {k: float(v) for k, v in found.models[ALL_ROWS].best_params_.items()},
        "without a pool/fold_errors": whole(alone.results["fold_errors"]),
        "without a pool/bound": alone.certificates[ONE_FOLD].bound,
    }


def expected_bounds(**changed):
    """Return the expected bound of every certificate, over folds."""
    sizes = {"n_labeled": 600, "n_unlabeled": 10_000, "n_candidates": 50}
    rates = {"delta": 0.05, "error": 0.08, "disagreement": 0.02, "cv": (2, 3, 5, 10)}
    table = dsel.plan_bound(**{**sizes, **rates, **changed})
    return {
        name: table["bound"].sel(certificate=name).dropna("n_folds")
        for name in ("cv_bound", "best_fold", ALL_ROWS, ONE_FOLD)
    }


AUDITED = {
    "cv_bound": "cv_bound, lucky folds",
    "best_fold": "best_fold, lucky folds",
    "nested": "nested, lucky folds",
    "a broken bound": "luckiest fold",
}
"""Settings of the audit, by the certificate whose failures they count."""


def audit_of(names, **options):
    """Return certified draws and failures of each setting, and the whole report."""
    report = dsel.audit([AUDITED[name] for name in names], **options)
    counts = {
        name: [int(report[of].sel(setting=AUDITED[name]).item()) for of in
               ("certified", "failures")]
        for name in names
    }  # fmt: skip
    return counts, report


def plan_bound():
    return {
        f"{name}/{int(k)} folds/bound": float(found.sel(n_folds=k))
        for name, found in expected_bounds().items()
        for k in found["n_folds"].values
    }


def _wine():
    return split_rows(*load_wine(return_X_y=True), 90)


def _cancer():
    return split_rows(*load_breast_cancer(return_X_y=True), 250)


def _iris():
    X, y = load_iris(return_X_y=True)
    return LogisticRegression(max_iter=2000), {"C": [0.1, 1.0, 10.0]}, X, y


RUNS = {
    "digits": lambda: plain(SVC(), DIGITS_GRID, *digits(), cv=5),
    "digits-nested-3": lambda: nested(SVC(), DIGITS_GRID, *digits(), cv=3),
    "digits-nested-5": lambda: nested(SVC(), DIGITS_GRID, *digits(), cv=5),
    "satimage": lambda: plain(SVC(), SATIMAGE_GRID, *satimage(), cv=5),
    "wine": lambda: plain(*K_NEAREST, *_wine(), cv=5),
    "wine-nested-5": lambda: nested(*K_NEAREST, *_wine(), cv=5),
    "breast-cancer": lambda: plain(*TREES, *_cancer(), cv=5),
    "breast-cancer-nested-3": lambda: nested(*TREES, *_cancer(), cv=3),
    "iris": lambda: estimates(*_iris(), cv=5),
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


def write_missing():
    FROZEN.mkdir(exist_ok=True)
    for name, run in RUNS.items():
        path = FROZEN / f"{name}.json"
        if not path.exists():
            pairs = sorted(run().items())  # a line each, so that lines can go
            lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs]
            path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_missing()
