"""The model that a search ends with behaves as scikit-learn's SVC does."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order] / 16.0, y[order]


def best_and_reference(digits, svc):
    """The chosen model, and SVC fitted by scikit-learn with the same parameters."""
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        svc, {"C": [1.0, 10.0], "gamma": [0.02, 0.1]}, cv=3, random_state=0
    )
    search.fit(X[:300], y[:300], X[300:800])
    return search, clone(svc).set_params(**search.best_params_).fit(X[:300], y[:300])


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
        {"class_weight": "balanced"},
    ],
)
def test_best_estimator__is_an_svc_with_all_its_attributes(digits, parameters):
    search, svc = best_and_reference(digits, SVC(tol=1e-6, **parameters))
    best, rows = search.best_estimator_, digits[0][800:]
    assert type(best) is SVC
    assert best.get_params() | {"random_state": None} == svc.get_params()
    np.testing.assert_array_equal(best.predict(rows), svc.predict(rows))
    np.testing.assert_array_equal(search.predict(rows), svc.predict(rows))
    for name in ("support_", "n_support_", "support_vectors_", "classes_"):
        np.testing.assert_array_equal(getattr(best, name), getattr(svc, name))
    for name in ("dual_coef_", "intercept_"):
        np.testing.assert_allclose(getattr(best, name), getattr(svc, name), atol=1e-4)
    np.testing.assert_allclose(
        search.decision_function(rows), svc.decision_function(rows), atol=1e-4
    )


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_best_estimator__gives_probabilities_where_asked_to(digits):
    search, svc = best_and_reference(digits, SVC(probability=True, random_state=0))
    rows = digits[0][800:]
    assert search.predict_proba(rows).shape == (len(rows), 10)
    np.testing.assert_allclose(
        search.predict_proba(rows), svc.predict_proba(rows), atol=1e-6
    )


@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 0.1, "coef0": 1.0},
        {"kernel": "sigmoid", "gamma": 0.02},
        {"kernel": "rbf", "gamma": "scale", "class_weight": "balanced"},
    ],
)
def test_model__took_as_many_steps_as_libsvm(digits, kernel):
    X, y = digits
    svc = SVC(shrinking=False, **kernel)
    plan = dsel.plan_search(
        svc, {"C": [0.01, 1.0, 100.0]}, X[:400], y[:400], cv=2, random_state=0
    )
    rows = plan.work.splits[1].train_rows
    for candidate, C in enumerate([0.01, 1.0, 100.0]):
        expected = clone(svc).set_params(C=C).fit(X[rows], y[rows])
        model = plan.model(candidate, fold=1)
        np.testing.assert_array_equal(model.n_iter_, expected.n_iter_)
        np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-9)
