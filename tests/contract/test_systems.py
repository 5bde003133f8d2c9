"""The other systems, each through its public names."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.bounds import (
    binomial_tail_inversion,
    error_from_disagreement,
    fold_shares,
    holdout_bound,
    threshold_bound,
)
from tests.contract import runs
from tests.contract.runs import HALF_CRITERIA, LEARNERS, digits, labels_of_digits

pytestmark = pytest.mark.contract

# Co-validation

HALVED = {
    "SVC": {"C": [1.0, 8.0], "gamma": [2e-4, 1e-3]},
    "tree": {"max_depth": [2, 8]},
}
HALF_COUNTS = ["fold_errors", "train_errors", "disagreements"]


def covalidate(learner="SVC", **options):
    X, y, pool = digits(100)
    rows = (LEARNERS[learner][0], HALVED[learner], X, y, pool[:400])
    return runs.covalidate(*rows, **{"repeats": 4, **options})


@pytest.mark.parametrize("learner", HALVED)
def test_covalidate__counts_errors_and_disagreement_of_random_halves(learner, tmp_path):
    cube = covalidate(learner, out=tmp_path)
    grid = tuple(HALVED[learner])
    assert cube["fold_errors"].dims == (*grid, "repeat", "half")
    assert cube["disagreements"].dims == (*grid, "repeat")
    assert (cube["fold_rows"] == 50).all()
    assert (cube["disagreements"] <= 400).all()
    for other in (covalidate(learner), covalidate(learner, out=tmp_path)):
        assert other[HALF_COUNTS].equals(cube[HALF_COUNTS])


def test_covalidate__estimates_are_functions_of_the_counts():
    cube = covalidate()
    share = cube["disagreements"].mean("repeat") / 400
    rates = cube["fold_errors"] / cube["fold_rows"]
    expected = {
        "disagreement": share,
        "dis_error": error_from_disagreement(share.values, n_classes=10),
        "two_fold_cv": rates.mean(("repeat", "half")),
    }
    for name, numbers in expected.items():
        assert np.allclose(cube["estimate"].sel(criterion=name), numbers, atol=1e-12)
    for name in HALF_CRITERIA[:-1]:
        choice = dsel.select(cube, name)
        assert choice.candidate == cube["estimate"].sel(criterion=name).values.argmin()
        assert not choice.certificate.certified


def test_covalidate__has_no_folds_to_choose_by():
    with pytest.raises(ValueError, match="needs folds, and `results` are of random"):
        dsel.select(covalidate("tree"), "cv_error")


@pytest.mark.cluster
def test_covalidate__worker_processes_count_the_same(processes):
    cube, found = covalidate("tree"), covalidate("tree", client=processes)
    assert found[HALF_COUNTS].equals(cube[HALF_COUNTS])


@pytest.mark.parametrize(
    ("learner", "name", "options"),
    [
        (SVC(gamma=5e-4), "C", [1.0, 8.0]),
        (KNeighborsClassifier(), "n_neighbors", [1, 3]),
    ],
)
def test_loo_error__counts_what_refits_count(learner, name, options):
    X, y, _ = digits(60)
    rows = (learner, {name: options}, X, y)
    counted = runs.run_search(*rows, criterion="loo_error").results["loo_errors"]
    for option, count in zip(options, counted.values.ravel(), strict=True):
        model = clone(learner).set_params(**{name: option})
        assert count == (cross_val_predict(model, X, y, cv=LeaveOneOut()) != y).sum()


# Nonconformity


@pytest.fixture(scope="module", params=["random", "literal"])
def nonconformity(request):
    return runs.nonconformity_model(request.param).fit(*digits(200)[:2])


def test_nonconformity__predicts_labels_and_knows_how_typical_they_are(nonconformity):
    pool, labels = digits(200)[2][:300], labels_of_digits(200)[:300]
    predicted = nonconformity.predict(pool)
    assert (predicted == labels).mean() > 0.85
    p_values = nonconformity.p_values(pool)
    assert p_values.shape == (300, 10)
    assert ((p_values > 0) & (p_values <= 1)).all()
    if nonconformity.ties == "random":
        likeliest = nonconformity.classes_[p_values.argmax(axis=1)]
        assert (likeliest == predicted).mean() > 0.9
    epsilon = nonconformity.critical_epsilon(pool)
    assert ((epsilon >= 0) & (epsilon <= 1)).all()
    for level in (0.05, 0.3):
        assert (nonconformity.predict_set(pool, level) == (p_values >= level)).all()
    lazy = nonconformity.predict(da.from_array(pool, chunks=(70, 64)))
    assert (lazy.compute() == predicted).all()


def test_nonconformity__bounds_are_those_of_the_formulas(nonconformity):
    pool, labels = digits(200)[2], labels_of_digits(200)
    certificate = nonconformity.certify(pool, labels)
    wrong = int((nonconformity.predict(pool) != labels).sum())
    expected = holdout_bound(wrong, len(pool), delta=0.05)
    assert certificate.bound == pytest.approx(float(expected), abs=1e-12)
    counts = np.rint(nonconformity.critical_epsilon(pool[:20]) * 40).astype(int)
    limits = threshold_bound(counts, 40, n_models=9, delta=0.05)
    assert np.allclose(nonconformity.bound_threshold(pool[:20]), limits, atol=1e-12)


# Semi-supervised discriminant analysis


@pytest.mark.parametrize("kind", ["supervised", "semi-supervised"])
def test_lda__without_a_pool_is_that_of_scikit_learn(kind):
    X, y, pool, _ = runs.three_classes()
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    model = runs.fit_lda(kind, X, y, None)
    assert np.allclose(model.means_, reference.means_, atol=1e-9)
    assert (model.predict(pool) == reference.predict(pool)).all()


# Any selection procedure


def best_of_two(X, y):
    """Choose between two learners by hand."""
    learners = [KNeighborsClassifier(1), make_pipeline(StandardScaler(), SVC())]
    models = [learner.fit(X[::2], y[::2]) for learner in learners]
    return max(models, key=lambda model: model.score(X[1::2], y[1::2]))


def test_certify__hands_over_the_procedure_and_its_bound():
    X, y, pool = digits(300)
    found = runs.certify_grid_search(X, y, pool)
    assert isinstance(found.model, GridSearchCV)
    assert found.certificate.certified
    wrong = (found.model.predict(pool) != labels_of_digits(300)).mean()
    assert wrong <= found.certificate.bound < 1


def test_certify__without_a_pool_bounds_the_best_fold_by_its_errors():
    found = runs.certify_grid_search(*digits(300)[:2])
    errors = found.results["fold_errors"].values.ravel().astype(int)
    limits = binomial_tail_inversion(errors, 100, delta=0.05 * fold_shares(3))
    assert found.certificate.bound == pytest.approx(limits.min(), abs=1e-12)


def test_certify__takes_a_function():
    X, y, pool = digits(300)
    found = dsel.certify(best_of_two, X, y, pool, cv=3, random_state=0)
    handed_over = found.models["all_rows"].predict(pool)
    assert (handed_over == best_of_two(X, y).predict(pool)).all()
    assert found.certificate.certified


@pytest.mark.cluster
def test_certify__worker_processes_count_the_same(processes):
    rows = digits(200)
    found = runs.certify_grid_search(*rows, client=processes)
    assert found.certificate == runs.certify_grid_search(*rows).certificate


# The audit


def test_audit__counts_failures_where_the_truth_is_known():
    names = [f"{name}, lucky folds" for name in ("cv_bound", "best_fold", "nested")]
    report = dsel.audit(names, delta=0.2, n_draws=20, random_state=0)
    assert (report["certified"] == 20).all()
    assert (report["failures"] <= 8).all()
    assert report["holds"].all()
