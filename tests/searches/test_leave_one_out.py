"""Leave-one-out errors against a fit for every row."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import dsel
from dsel.candidates import make_candidates


def table(n=40, n_classes=2, seed=0):
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2,
        random_state=seed,
    )  # fmt: skip


def leave_one_out_errors(model, grid, X, y):
    """Count by a search that looks at nothing else of interest."""
    model, grid = (None, [model]) if grid is None else (model, grid)
    plan = dsel.plan_search(
        model, grid, X, y, criterion="loo_error", cv=2, prune=False, random_state=0
    )
    return plan.run().loo_errors.values.ravel()


def brute_force(estimator, grid, X, y):
    rows = np.arange(len(y))
    return [
        sum(
            candidate.estimator.fit(X[rows != i], y[rows != i]).predict(X[[i]])[0]
            != y[i]
            for i in rows
        )
        for candidate in make_candidates(estimator, grid)
    ]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_leave_one_out__equals_a_fit_for_every_row(n_classes, kernel):
    X, y = table(n_classes=n_classes)
    X = X - X.min(axis=0)
    svc = SVC(kernel=kernel, gamma=0.3, coef0=1.0, degree=2, tol=1e-6)
    grid = {"C": [0.1, 10.0]}

    found = leave_one_out_errors(svc, grid, X, y)

    np.testing.assert_array_equal(found, brute_force(svc, grid, X, y))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.bool_])
def test_leave_one_out__counts_small_integers_as_numbers(kind):
    X, y = table()
    rows = np.round(60 * (X - X.min(axis=0)) / np.ptp(X, axis=0)).astype(kind)
    svc = SVC(kernel="linear", C=2.0**-8, tol=1e-6)

    found = leave_one_out_errors(svc, None, rows, y)

    np.testing.assert_array_equal(found, brute_force(None, [svc], rows, y))


def test_leave_one_out__takes_fractional_degrees():
    X, y = table()
    X = np.abs(X)
    degrees = [0.5, 1.5, 2.5]
    svc = SVC(kernel="poly", gamma=0.5, tol=1e-6)

    found = leave_one_out_errors(svc, {"degree": degrees}, X, y)

    # scikit-learn takes such degrees only as a kernel function.
    kernels = [lambda A, B, d=degree: (0.5 * A @ B.T) ** d for degree in degrees]
    machines = [SVC(kernel=kernel, tol=1e-6) for kernel in kernels]
    np.testing.assert_array_equal(found, brute_force(None, machines, X, y))


def test_leave_one_out__a_class_of_one_row_is_an_error():
    X, y = table(n_classes=2, n=30)
    y[0] = 2
    svc = SVC(gamma=0.3, tol=1e-6)

    found = leave_one_out_errors(svc, None, X, y)

    np.testing.assert_array_equal(found, brute_force(None, [svc], X, y))


def test_leave_one_out__of_any_classifier():
    X, y = table(n=40)
    model = LogisticRegression()
    wrong = [
        model.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] != y[i]
        for i in range(40)
    ]

    assert leave_one_out_errors(model, None, X, y).tolist() == [sum(wrong)]


def test_leave_one_out__takes_missing_values_that_a_pipeline_fills():
    X, y = load_iris(return_X_y=True)
    X = np.where(np.arange(150)[:, np.newaxis] % 9 == 0, np.nan, X)[::5]
    model = make_pipeline(SimpleImputer(), KNeighborsClassifier())
    found = cross_val_predict(model, X, y[::5], cv=LeaveOneOut())
    assert leave_one_out_errors(model, None, X, y[::5]) == [np.sum(found != y[::5])]
