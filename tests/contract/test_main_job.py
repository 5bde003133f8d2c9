"""The main job: each certificate, each kind of learner, wherever it runs."""

import numpy as np
import pytest
from distributed import Client
from distributed.security import Security
from sklearn.svm import SVC

import dsel
from dsel.bounds import binomial_tail_inversion
from tests.clusters import make_certificates, running_cluster
from tests.contract.runs import (
    ALL_ROWS,
    DEPLOYMENTS,
    DIGITS_GRID,
    LEARNERS,
    ONE_FOLD,
    certificate_of,
    choice_of,
    counts_of,
    digits,
    disagreements_without_fold,
    fit_facade,
    model_of,
    nested_counts_of,
    results_of,
    run_search,
)

pytestmark = pytest.mark.contract

JOBS = [
    (learner, name)
    for learner in LEARNERS
    for name in DEPLOYMENTS
    if learner == "SVC" or name in ("nested", "cv_bound")
]


def small_job(learner, name, **where):
    estimator, grid = LEARNERS[learner]
    X, y, pool = digits(150)
    rows = (estimator, grid, X, y, pool[:600])
    return counts_of(run_search(*rows, certificate=name, cv=3, **where))


@pytest.fixture(scope="module")
def expected():
    """Return the counts of a job on one thread, made when they are first asked for."""
    counts = {}

    def of(*job):
        if job not in counts:
            counts[job] = small_job(*job, n_jobs=1)
        return counts[job]

    return of


@pytest.mark.parametrize("job", JOBS, ids="-".join)
def test_run__two_threads_count_what_one_counts(job, expected):
    assert small_job(*job, n_jobs=2) == expected(*job)


@pytest.mark.cluster
@pytest.mark.parametrize("job", JOBS, ids="-".join)
def test_run__worker_processes_count_what_one_thread_counts(job, expected, processes):
    assert small_job(*job, client=processes) == expected(*job)


@pytest.mark.cluster
def test_run__a_cluster_with_tls_counts_what_one_thread_counts(tmp_path, expected):
    tls = make_certificates(tmp_path, "127.0.0.1")
    files = [str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")]
    security = Security(
        tls_ca_file=files[0],
        tls_client_cert=files[1],
        tls_client_key=files[2],
        require_encryption=True,
    )
    with running_cluster(tmp_path, 2, tls, "tls") as cluster:
        address = cluster.address
        assert address.startswith("tls://")
        with Client(address, security=security, set_as_default=False) as client:
            for job in [("SVC", "nested"), ("tree", "cv_bound")]:
                assert small_job(*job, client=client) == expected(*job)


# What a run says


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def run(request):
    return run_search(SVC(), DIGITS_GRID, *digits(), certificate=request.param, cv=5)


def test_certificate__is_a_bound_of_the_declared_delta(run):
    for deploy in DEPLOYMENTS[run.certificate]:
        found = certificate_of(run, deploy)
        assert 0 < found.bound < 0.2
        assert (found.fold is None) == (deploy == ALL_ROWS)
    assert choice_of(run).certificate.certified
    assert choice_of(run).certificate.delta == 0.05
    assert choice_of(run).certificate.reasons == ()


def test_certificate__holds_on_the_true_labels_of_the_pool(run):
    pool, labels = digits()[2], digits(1797)[1]
    for deploy in DEPLOYMENTS[run.certificate]:
        wrong = model_of(run, deploy).predict(pool) != labels[400:]
        assert wrong.mean() <= certificate_of(run, deploy).bound


def test_choice__says_what_was_chosen_and_how_wrong_it_can_be(run):
    choice = choice_of(run)
    assert choice.params == {
        "C": DIGITS_GRID["C"][choice.candidate // 4],
        "gamma": DIGITS_GRID["gamma"][choice.candidate % 4],
    }
    for text in (str(choice), repr(choice), repr(choice.certificate)):
        assert "95 %" in text
    assert str(choice.params["gamma"]) in repr(choice)


def test_plan__tells_what_will_be_done_and_computes_nothing(run):
    text = str(run.plan)
    for word in ("16 candidates", "fold", "delta"):
        assert word in text


# The nested search


def nested_run(learner="SVC", cv=5, **options):
    estimator, grid = LEARNERS[learner]
    return run_search(estimator, grid, *digits(200), cv=cv, **options)


@pytest.mark.parametrize("learner", LEARNERS)
def test_nested__what_is_chosen_without_a_fold_has_the_fewest_inner_errors(learner):
    counts = nested_counts_of(nested_run(learner))
    pairs = np.array(counts["pair_errors"], dtype=float)
    inner = np.nansum(pairs, axis=2)  # candidates x folds left out, of 40 rows each
    assert inner.argmin(axis=0).tolist() == counts["candidates_without_fold"]


def test_nested__models_differ_where_it_was_counted():
    run = nested_run()
    fold = certificate_of(run, ONE_FOLD).fold
    pool = digits(200)[2]
    whole, part = (
        model_of(run, deploy).predict(pool) for deploy in (ALL_ROWS, ONE_FOLD)
    )
    assert np.sum(whole != part) == disagreements_without_fold(run)[fold]


@pytest.mark.parametrize("cv", [3, 5])
def test_nested__without_a_pool_the_bound_is_that_of_the_best_fold(cv):
    X, y, _ = digits(200)
    run = run_search(SVC(), DIGITS_GRID, X, y, cv=cv)
    errors = np.array(nested_counts_of(run)["errors_without_fold"])
    rows = results_of(run)["fold_rows"].values.astype(int)
    limits = binomial_tail_inversion(errors, rows, delta=0.05 / cv)
    found = certificate_of(run, ONE_FOLD)
    assert found.bound == pytest.approx(limits.min(), abs=1e-12)
    assert found.fold == limits.argmin()
    assert choice_of(run).certificate.certified


# Other learners, other labels


def test_run__labels_of_any_kind_give_the_same_counts():
    X, y, pool = digits(200)
    words = np.array(["class " + str(label) for label in y])
    rows = (SVC(), DIGITS_GRID, X)
    named = run_search(*rows, words, pool, cv=3)
    assert counts_of(named) == counts_of(run_search(*rows, y, pool, cv=3))
    assert set(model_of(named, ALL_ROWS).predict(pool[:200])) <= set(words)


def test_run__a_list_of_estimators_is_a_grid_of_one_dimension():
    listed = [SVC(C=8.0, gamma=5e-4), LEARNERS["tree"][0], LEARNERS["k-NN"][0]]
    X, y, pool = digits(200)
    run = run_search(None, listed, X, y, pool, certificate="cv_bound", cv=3)
    assert results_of(run)["fold_errors"].dims == ("candidate", "fold")
    alone = run_search(SVC(), {"C": [8.0], "gamma": [5e-4]}, X, y, pool,
                       certificate="cv_bound", cv=3)  # fmt: skip
    first = results_of(run)["fold_errors"].values[0]
    assert first.tolist() == results_of(alone)["fold_errors"].values.ravel().tolist()


def test_run__a_fit_that_fails_rules_its_candidate_out():
    X, y, pool = digits(200)
    tree, grid = LEARNERS["tree"][0], {"max_depth": [4, -1]}
    with pytest.warns(dsel.errors.FitFailedWarning, match="1 of 2 candidates failed"):
        run = run_search(tree, grid, X, y, pool, certificate="cv_bound", cv=3)
    assert results_of(run)["status"].values.tolist() == [0, 2]
    assert choice_of(run).candidate == 0


def test_run__where_every_fit_fails_the_first_message_is_told():
    tree, rows = LEARNERS["tree"][0], digits(200)
    with pytest.raises(dsel.errors.AllFitsFailedError, match="'max_depth' parameter"):
        run_search(tree, {"max_depth": [-1]}, *rows, certificate="cv_bound", cv=3)


def test_seed__another_one_draws_other_folds():
    X, y, pool = digits(200)
    one, other = (
        run_search(SVC(), DIGITS_GRID, X, y, pool, cv=3, random_state=seed)
        for seed in (1, 2)
    )
    assert counts_of(one) != counts_of(other)


EXACT = [name for name in DEPLOYMENTS if name != "nested"]
"""Certificates whose searches choose the same where they prune."""


@pytest.mark.parametrize("run", EXACT, indirect=True)
def test_prune__exact_pruning_keeps_choice_and_bound(run):
    rows = (SVC(), DIGITS_GRID, *digits())
    pruned = run_search(*rows, certificate=run.certificate, cv=5, prune=True)
    (deploy,) = DEPLOYMENTS[run.certificate]
    one, other = certificate_of(run, deploy), certificate_of(pruned, deploy)
    assert (one.candidate, one.bound) == (other.candidate, other.bound)


# The estimator


@pytest.mark.parametrize("learner", LEARNERS)
def test_estimator__with_defaults_chooses_and_certifies(learner):
    estimator, grid = LEARNERS[learner]
    X, y, pool = digits()
    search = fit_facade(estimator, grid, X, y, pool, random_state=0)
    assert search.choice_.certificate.certified
    assert search.best_params_ == search.choice_.params
    labels = digits(1797)[1][400:]
    wrong = (search.predict(pool) != labels).mean()
    assert wrong <= search.choice_.certificate.bound < 1
    assert search.score(pool, labels) == pytest.approx(1 - wrong)
    assert search.classes_.tolist() == list(range(10))


def test_estimator__hands_over_the_model_of_the_plan():
    X, y, pool = digits(200)
    options = {"cv": 3, "random_state": 7, "prune": False}
    search = fit_facade(
        SVC(), DIGITS_GRID, X, y, pool, certificate="cv_bound", **options
    )
    run = run_search(SVC(), DIGITS_GRID, X, y, pool, certificate="cv_bound", cv=3)
    assert search.choice_ == choice_of(run)
    assert (search.predict(pool) == model_of(run, ALL_ROWS).predict(pool)).all()
    table = search.cv_results_
    assert len(table["params"]) == 16
    assert table["mean_test_score"].max() <= 1


def test_estimator__without_a_pool_hands_over_a_model_of_one_fold():
    X, y, _ = digits(200)
    search = fit_facade(
        SVC(), DIGITS_GRID, X, y, certificate="nested", cv=5, random_state=7
    )
    assert search.choice_.certificate.certified
    assert search.choice_.fold in range(5)


@pytest.mark.cluster
def test_estimator__on_the_current_client_is_that_of_threads(processes):
    X, y, pool = digits(200)
    options = {"certificate": "nested", "cv": 3, "random_state": 7}
    rows = (SVC(), DIGITS_GRID, X, y, pool)
    expected = fit_facade(*rows, **options)
    with processes.as_current():
        found = fit_facade(*rows, **options)
    assert found.choice_ == expected.choice_
    assert (found.predict(pool) == expected.predict(pool)).all()
