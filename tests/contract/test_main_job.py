"""The main job: each certificate, each kind of learner, wherever it runs."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from dsel.bounds import binomial_tail_inversion, fold_shares
from tests.contract.runs import (
    CERTIFICATES,
    DIGITS_GRID,
    LEARNERS,
    counts_of,
    digits,
    labels_of_digits,
    run_search,
)

pytestmark = pytest.mark.contract

X, Y, POOL = digits(200)
SVMS = (SVC(), DIGITS_GRID)
TREE = LEARNERS["tree"][0]
JOBS = [
    (learner, name)
    for learner in LEARNERS
    for name in CERTIFICATES
    if learner == "SVC" or name in ("nested", "cv_bound")
]


def small_job(learner, name, **where):
    X, y, pool = digits(150)
    rows = (*LEARNERS[learner], X, y, pool[:600])
    return counts_of(run_search(*rows, certificate=name, cv=3, **where))


@cache
def expected(*job):
    return small_job(*job, n_jobs=1)


@pytest.mark.parametrize("job", JOBS, ids="-".join)
def test_run__two_threads_count_what_one_counts(job):
    assert small_job(*job, n_jobs=2) == expected(*job)


@pytest.mark.cluster
@pytest.mark.parametrize("job", JOBS, ids="-".join)
def test_run__worker_processes_count_what_one_thread_counts(job, processes):
    assert small_job(*job, client=processes) == expected(*job)


# What a run says


@pytest.mark.parametrize("name", CERTIFICATES)
def test_certificate__is_of_the_declared_delta_and_holds_on_the_pools_true_labels(name):
    X, y, pool = digits()
    run = run_search(*SVMS, X, y, pool, certificate=name, cv=5)
    for deploy, certificate in run.certificates.items():
        wrong = (run.models[deploy].predict(pool) != labels_of_digits()).mean()
        assert wrong <= certificate.bound < 0.2
        assert (certificate.fold is None) == (deploy == "all_rows")
        assert certificate.certified
        assert (certificate.delta, certificate.reasons) == (0.05, ())
    choice = run.choice
    C, gamma = divmod(choice.candidate, 4)
    chosen = {"C": DIGITS_GRID["C"][C], "gamma": DIGITS_GRID["gamma"][gamma]}
    assert choice.params == chosen
    for text in (str(choice), repr(choice), repr(choice.certificate)):
        assert "95%" in text
    assert str(choice.params["gamma"]) in repr(choice)


@pytest.mark.parametrize("learner", LEARNERS)
def test_nested__what_is_chosen_without_a_fold_has_the_fewest_inner_errors(learner):
    counts = counts_of(run_search(*LEARNERS[learner], X, Y, POOL, cv=5))
    pairs = np.array(counts["pair_errors"], dtype=float)
    inner = np.nansum(pairs, axis=2)  # candidates x folds left out, of 40 rows each
    assert inner.argmin(axis=0).tolist() == counts["candidates_without_fold"]


@pytest.mark.parametrize("cv", [3, 5])
def test_nested__without_a_pool_the_bound_is_that_of_the_best_fold(cv):
    run = run_search(*SVMS, X, Y, cv=cv)
    rows = run.results["fold_rows"].values.astype(int)
    errors = run.results["outer_errors"].values.astype(int)
    limits = binomial_tail_inversion(errors, rows, delta=0.05 * fold_shares(cv))
    [(deploy, certificate)] = run.certificates.items()
    assert deploy == "one_fold"
    assert certificate.bound == pytest.approx(limits.min(), abs=1e-12)
    assert certificate.fold == limits.argmin()
    assert certificate.certified


# Other learners


def test_run__a_list_of_estimators_is_a_grid_of_one_dimension():
    listed = [SVC(C=8.0, gamma=5e-4), TREE, LEARNERS["k-NN"][0]]
    grids = [(None, listed), (SVC(), {"C": [8.0], "gamma": [5e-4]})]
    options = {"certificate": "cv_bound", "cv": 3}
    found, alone = (
        run_search(*each, X, Y, POOL, **options).results.fold_errors for each in grids
    )
    assert found.dims == ("candidate", "fold")
    assert found[0].values.tolist() == alone.values.ravel().tolist()


def test_run__a_fit_that_fails_rules_its_candidate_out():
    rows = (TREE, {"max_depth": [4, -1]}, X, Y, POOL)
    with pytest.warns(dsel.errors.FitFailedWarning, match="1 of 2 candidates failed"):
        run = run_search(*rows, certificate="cv_bound", cv=3)
    assert run.results["status"].values.tolist() == [0, 2]
    assert "1 candidate failed (max_depth=-1)" in run.choice.remarks
    assert run.choice.remarks == dsel.select(run, "cv_error").remarks
    assert run.choice.candidate == 0


class FailsAtLast(KNeighborsClassifier):
    """Warns of few rows, and raises on all of them."""

    def fit(self, X, y):
        if len(X) == len(Y):
            raise ValueError("these are too many rows")
        warnings.warn("it stopped early", ConvergenceWarning, stacklevel=2)
        return super().fit(X, y)


def test_run__says_why_fits_failed_and_not_what_other_fits_warned_of():
    grid = {"n_neighbors": [1, 3]}
    with pytest.raises(dsel.errors.AllFitsFailedError, match="too many rows"):
        run_search(FailsAtLast(), grid, X, Y, POOL, certificate="cv_bound", cv=3)


# The estimator


@pytest.mark.parametrize("learner", LEARNERS)
def test_estimator__with_defaults_chooses_and_certifies(learner):
    X, y, pool = digits()
    n_seeds, n_failed = 5, 0
    for seed in range(n_seeds):
        search = dsel.SemiSupervisedSearchCV(*LEARNERS[learner], random_state=seed)
        search.fit(X, y, pool=pool)
        assert search.choice_.certificate.certified
        assert search.best_params_ == search.choice_.params
        bounds = {name: each.bound for name, each in search.certificates_.items()}
        assert max(bounds.values()) < 1
        errors = {
            name: (model.predict(pool) != labels_of_digits()).mean()
            for name, model in search.models_.items()
        }
        n_failed += any(errors[name] > bounds[name] for name in bounds)
    # Both bounds hold at once in 95% of all draws, not in each: the tree's fails for
    # seed 0. More than three of five would happen once in 30,000 times.
    assert n_failed <= binom.isf(1e-3, n_seeds, search.delta)
    wrong = (search.predict(pool) != labels_of_digits()).mean()
    assert search.score(pool, labels_of_digits()) == pytest.approx(1 - wrong)
    assert search.classes_.tolist() == list(range(10))
    assert 6 <= len(str(search.choice_).splitlines()) <= 10


def test_estimator__hands_over_the_model_of_the_plan():
    options = {"certificate": "cv_bound", "cv": 3}
    given = {"random_state": 7, "prune": False, **options}
    search = dsel.SemiSupervisedSearchCV(*SVMS, **given).fit(X, Y, pool=POOL)
    run = run_search(*SVMS, X, Y, POOL, **options)
    assert search.choice_ == run.choice
    assert (search.predict(POOL) == run.model.predict(POOL)).all()
    table = search.cv_results_
    assert len(table["params"]) == 16
    assert table["mean_test_score"].max() <= 1


@pytest.mark.cluster
def test_estimator__on_the_current_client_is_that_of_threads(processes):
    search = dsel.SemiSupervisedSearchCV(*SVMS, cv=3, random_state=7)
    choice, predicted = search.fit(X, Y, pool=POOL).choice_, search.predict(POOL)
    with processes.as_current():
        search.fit(X, Y, pool=POOL)
    assert search.choice_ == choice
    assert (search.predict(POOL) == predicted).all()
