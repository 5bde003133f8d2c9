import json

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dsel.cli.audit import command, in_words
from dsel.models.base import Candidate
from dsel.searches import audit
from dsel.searches.auditing.audit import controls, failure_interval, synthetic_labels
from dsel.searches.auditing.claims import CLAIMS, pooled_binomial
from dsel.searches.auditing.controls import EqualClassifiers, repeated_looks
from dsel.searches.auditing.counts import join
from dsel.searches.auditing.replay import Population, Replay

DELTAS = (0.1, 0.3, 0.5)
RARE_CLASSES = pytest.mark.filterwarnings("ignore:The least populated class")


@pytest.fixture(scope="module")
def hard():
    """Draws of populations on which selection makes folds depend on each other."""
    return {
        n_folds: EqualClassifiers(
            error_rate=0.3,
            n_classifiers=3,
            n_candidates=2,
            n_labeled=100,
            n_unlabeled=400,
            n_folds=n_folds,
        ).draw(2000, seed=20_260_923)
        for n_folds in (2, 5)
    }


def failures(claims):
    return int(claims.has_failed.sum())


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("certificate", list(CLAIMS))
def test_certificates__fail_at_most_delta(hard, n_folds, delta, certificate):
    counts = hard[n_folds]
    failed = failures(CLAIMS[certificate](counts, delta, 0.8))
    low, _ = failure_interval(np.array(failed), counts.n_draws)
    assert low <= delta


@pytest.mark.parametrize(
    ("certificate", "n_folds"),
    [
        ("cv_bound", 2),
        ("merged_folds", 2),
        ("leaders", 2),
        ("averaged_disagreement", 2),
        ("best_fold", 5),
        ("cv_interval", 2),
        ("transductive", 5),
        ("holdout_bound", 5),
        ("select_then_certify", 5),
    ],
)
def test_certificates__could_have_failed(hard, certificate, n_folds):
    # At twice and more the share that it may spend each of them fails visibly.
    claims = CLAIMS[certificate](hard[n_folds], 0.95, 0.95)
    assert failures(claims) > 0.01 * hard[n_folds].n_draws


def test_controls__catch_both_broken_bounds():
    found = controls(seed=1)
    assert found.control.values.tolist() == ["pooled_binomial", "repeated_looks"]
    assert found.control_caught.all()
    assert (found.control_failure_rate > 0.15).all()


def test_controls__let_the_valid_bounds_pass_on_the_same_draws():
    draws = EqualClassifiers(0.3, 20, 1, 100, 500, 20).draw(500, seed=1)
    for claim in CLAIMS.values():
        low, _ = failure_interval(np.array(failures(claim(draws, 0.1, 0.95))), 500)
        assert low <= 0.1
    assert failures(pooled_binomial(draws, 0.1, 0.95)) > 90


def test_repeated_looks__fail_far_more_often_than_one_look():
    claims = repeated_looks(1000, 3, disagreement=0.2, n_unlabeled=400, delta=0.1)
    assert failures(claims) > 300


def replay(cv, n_candidates=1, **changes):
    """Sixty equally likely classes and features that say nothing."""
    estimator = DummyClassifier(strategy="most_frequent")
    given = {
        "candidates": tuple(Candidate(j, {}, estimator) for j in range(n_candidates)),
        "population": Population("classes", np.zeros((60, 1)), np.arange(60)),
        "n_labeled": 600,
        "n_unlabeled": 50,
        "cv": cv,
        "seed": 5,
    }
    return Replay(**given | changes)


def fold_bound_failures(cv, n_draws):
    counts = replay(cv).draws(0, n_draws)
    return failures(CLAIMS["holdout_bound"](counts, 0.05, 0.5)) / n_draws


@RARE_CLASSES
def test_stratified_folds__break_the_fold_bound_and_plain_ones_do_not():
    assert fold_bound_failures(StratifiedKFold(2), 150) > 0.13
    assert fold_bound_failures(2, 150) < 0.1


@RARE_CLASSES
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stratified_folds__fail_as_often_as_was_found():
    assert fold_bound_failures(StratifiedKFold(2), 4000) == pytest.approx(
        0.239, abs=0.02
    )
    assert fold_bound_failures(2, 4000) == pytest.approx(0.031, abs=0.01)


def table(rng, n_rows=300):
    X = rng.normal(size=(n_rows, 3))
    noisy = X[:, 0] + 0.7 * rng.normal(size=n_rows) > 0
    return X, np.where(noisy, "yes", "no")


def test_audit__reports_every_certificate_on_both_populations(rng):
    X, y = table(rng)
    found = audit(
        DecisionTreeClassifier(),
        {"max_depth": [1, 3]},
        X,
        y,
        n_labeled=60,
        n_unlabeled=80,
        cv=3,
        n_draws=30,
        random_state=7,
    )
    assert found.failures.dims == ("population", "certificate", "delta")
    assert found.certificate.values.tolist() == list(CLAIMS)
    assert found.holds.all()
    assert found.has_power.all()
    assert (found.slack > 0).sum() > found.slack.size / 2
    assert found.refused == ""


@RARE_CLASSES
@pytest.mark.slow
def test_audit__refuses_stratified_folds_and_shows_the_failures():
    y = np.repeat(np.arange(60), 2)
    found = audit(
        None,
        [DummyClassifier(strategy="most_frequent")],
        np.zeros((120, 1)),
        y,
        n_labeled=600,
        n_unlabeled=50,
        cv=StratifiedKFold(2),
        delta=0.05,
        n_draws=150,
        random_state=0,
    )
    cell = found.sel(population="labeled rows", certificate="holdout_bound", delta=0.05)
    assert not cell.holds
    assert "unless it assigns rows at random" in str(found.refused.values)


def test_replay__draws_do_not_depend_on_how_they_are_cut():
    whole = replay(5, n_labeled=40).draws(0, 6)
    parts = join([replay(5, n_labeled=40).draws(*ends) for ends in [(0, 1), (1, 6)]])
    for name, values in vars(whole).items():
        np.testing.assert_array_equal(values, getattr(parts, name))


def test_replay__counts_agree_with_each_other(rng):
    X, y = table(rng, 200)
    codes = (y == "yes").astype(np.int64)
    estimators = (GaussianNB(), DecisionTreeClassifier())
    counts = Replay(
        tuple(Candidate(j, {}, each) for j, each in enumerate(estimators)),
        Population("table", X, codes),
        n_labeled=50,
        n_unlabeled=90,
        cv=4,
        seed=3,
    ).draws(0, 5)
    assert (counts.fold_rows == [13, 13, 12, 12]).all()
    assert (counts.histogram.sum(axis=2) == 90).all()
    total = (counts.histogram * np.arange(5)).sum(axis=2)
    assert (total == counts.fold_disagreements.sum(axis=2)).all()
    assert (counts.disagreements <= 90 - counts.histogram[..., 0]).all()
    assert (counts.certify_rows == 10).all()


def test_synthetic_labels__are_far_from_what_a_model_could_learn_perfectly(rng):
    X = rng.normal(size=(2000, 4))
    labels = synthetic_labels(X, 1)
    assert 0.4 < labels.mean() < 0.6
    assert (synthetic_labels(X, 1) == labels).all()


@pytest.mark.cluster
def test_audit__is_the_same_on_a_cluster(rng):
    from distributed import Client

    X, y = table(rng)
    given = {"n_labeled": 40, "n_unlabeled": 50, "n_draws": 60, "random_state": 7}
    local = audit(None, [GaussianNB()], X, y, **given)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        remote = audit(None, [GaussianNB()], X, y, client=client, **given)
    assert local.identical(remote)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_draws": 0}, ValueError, "`n_draws` must be >= 1"),
        ({"n_labeled": 4}, ValueError, "`n_labeled` must be >= 5"),
        ({"cv": 1}, ValueError, "`cv` must be in"),
        ({"delta": 0.0}, ValueError, "`delta` must be strictly"),
        ({"label_share": 1.0}, ValueError, "`label_share` must be strictly"),
    ],
)
def test_audit__refuses_bad_input(rng, change, error, message):
    X, y = table(rng, 30)
    with pytest.raises(error, match=message):
        audit(None, [GaussianNB()], X, y, **change)


def test_in_words__puts_what_is_wrong_first(rng):
    X, y = table(rng, 80)
    given = {"n_labeled": 30, "n_unlabeled": 40, "n_draws": 4, "random_state": 7}
    found = audit(None, [GaussianNB()], X, y, cv=2, **given)
    assert in_words(found)[0].startswith("Every certificate held in 4 draws")
    assert any("repeated_looks" in line for line in in_words(found))
    broken = found.assign(holds=xr.zeros_like(found.holds), refused="stratified")
    assert in_words(broken)[0] == "dsel certifies no such search: stratified."
    assert in_words(broken)[2].startswith("FAILED more often than delta allows")


@pytest.mark.cluster
def test_audit_command__runs_on_workers_and_prints_json(rng, tmp_path):
    X, y = table(rng, 80)
    path = tmp_path / "table.npz"
    np.savez(path, X=X, y=(y == "yes").astype(int))
    arguments = [str(path), "--rows", "30", "--pool-rows", "40", "--draws", "4"]
    arguments += ["--cv", "2", "--workers", "1", "--json"]
    shown = CliRunner().invoke(command, arguments)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["data_vars"]["n_draws"]["data"] == 4
