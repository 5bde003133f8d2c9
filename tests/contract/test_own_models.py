"""Models of the user's own, on every path from the search to new rows."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import dsel

pytestmark = pytest.mark.contract

X, CODES = make_classification(
    800, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
)
NAMES = np.array(["a", "b", "c"])[CODES]
NUMBERS = X @ np.arange(6.0)
LABELED, NEW = slice(0, 200), slice(500, 800)


class OwnNames:
    """Keeps what it has learned under a name without an underscore, and nothing else.

    As CatBoost with several classes, it can predict a column.
    """

    def __init__(self, max_depth=3, has_column=False):
        self.max_depth = max_depth
        self.has_column = has_column

    def fit(self, X, y):
        tree = self.TREE(max_depth=self.max_depth, random_state=0)
        self.tree = tree.fit(X, y)
        return self

    def predict(self, X):
        predicted = self.tree.predict(X)
        return predicted[:, np.newaxis] if self.has_column else predicted


class OwnClassifier(OwnNames, ClassifierMixin, BaseEstimator):
    TREE = DecisionTreeClassifier

    @property
    def classes_(self):
        return self.tree.classes_


class OwnRegressor(OwnNames, RegressorMixin, BaseEstimator):
    TREE = DecisionTreeRegressor


KINDS = pytest.mark.parametrize(
    ("kind", "y"), [(OwnClassifier, NAMES), (OwnRegressor, NUMBERS)]
)


@KINDS
@pytest.mark.parametrize("has_column", [False, True])
def test_new_rows__are_predicted_and_counted_as_the_search_counted(kind, y, has_column):
    outcome = dsel.certify(
        kind(has_column=has_column),
        *(X[LABELED], y[LABELED], X[200:500]),
        random_state=0,
        n_jobs=1,
    )
    tree = outcome.model.tree
    expected = tree.predict(X[NEW])
    assert np.array_equal(outcome.predict(X[NEW]), expected)
    lazy = outcome.predict(da.from_array(X[NEW], chunks=(100, 6)))
    assert np.array_equal(lazy.compute(), expected)
    table = outcome.predict_table(X[NEW])
    assert list(table.iloc[:, 1]) == list(expected)
    report = outcome.monitor(X[NEW], y[NEW])
    by_name = {test.name: test for test in report.tests}
    wrong = expected != y[NEW]
    if kind is OwnRegressor:
        wrong = np.abs(expected - y[NEW]) > outcome.certificate.bound
    assert by_name["error of one_fold"].seen == np.mean(wrong)


@KINDS
def test_search__predicts_one_label_for_each_row(kind, y):
    search = dsel.SemiSupervisedSearchCV(
        kind(has_column=True), {"max_depth": [2, 3]}, random_state=0, n_jobs=1
    ).fit(X[LABELED], y[LABELED])
    expected = search.best_estimator_.tree.predict(X[NEW])
    assert np.array_equal(search.predict(X[NEW]), expected)


def test_fitted_models__may_keep_what_they_learned_under_any_name(tmp_path):
    old, new = (
        OwnClassifier(max_depth).fit(X[LABELED], NAMES[LABELED]) for max_depth in (1, 4)
    )
    rows = X[NEW], NAMES[NEW]
    certificate = dsel.certify(new, *rows, cv="prefit", baseline=old)
    assert certificate.estimate == np.mean(new.predict(X[NEW]) != NAMES[NEW])
    comparison = dsel.compare_models(old, new, X[NEW])
    assert comparison.n_differ == np.sum(old.predict(X[NEW]) != new.predict(X[NEW]))
    dsel.predict_pool(new, X[NEW], tmp_path / "predictions")
    dsel.certify(lambda X, y: new, *rows, random_state=0, n_jobs=1)


@pytest.mark.parametrize("model", [OwnClassifier(), SVC()])
def test_unfitted_models__are_refused(tmp_path, model):
    rows = X[NEW], NAMES[NEW]
    for call in (
        lambda: dsel.certify(model, *rows, cv="prefit"),
        lambda: dsel.predict_pool(model, X[NEW], tmp_path / "predictions"),
        lambda: dsel.certify(lambda X, y: model, *rows, random_state=0, n_jobs=1),
    ):
        with pytest.raises(Exception, match="not fitted"):
            call()
