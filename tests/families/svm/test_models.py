"""The scikit-learn estimators that are made of a kernel SVM."""

import pytest
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
