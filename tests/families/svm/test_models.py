"""The scikit-learn estimators that are made of a kernel SVM."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import dsel


@pytest.mark.parametrize(("max_iter", "status"), [(1, 1), (-1, 0)])
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
def test_model__says_whether_it_has_converged(max_iter, status):
    X, y = load_iris(return_X_y=True)
    estimator = SVC(max_iter=max_iter)
    made = dsel.plan_search(estimator, {"C": [1.0]}, X, y, random_state=0).model(0)
    assert made.fit_status_ == status == estimator.fit(X, y).fit_status_


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        SVC(gamma="auto"),
        SVC(kernel="linear", class_weight="balanced"),
        SVC(kernel="poly", gamma=0.1),
    ],
)
def test_model__has_the_attributes_of_a_fitted_one(estimator, n_classes, as_rows):
    X, y = load_iris(return_X_y=True)
    X, y = as_rows(X[y < n_classes]), y[y < n_classes]
    made = vars(dsel.plan_search(estimator, {"C": [2.0]}, X, y).model(0))
    fitted = vars(estimator.set_params(C=2.0).fit(X, y))
    assert made.keys() == fitted.keys()
    for name, expected in fitted.items():
        if name == "_gamma" and estimator.kernel == "linear":
            continue  # nothing reads it
        value = made[name]
        if sparse.issparse(expected):
            assert sparse.issparse(value), name
            value, expected = value.toarray(), expected.toarray()
        assert type(value) is type(expected), name
        if not isinstance(expected, np.ndarray):
            assert value == expected, name
            continue
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(value, expected, atol=1e-3, err_msg=name)
