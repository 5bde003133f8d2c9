"""Grids of odd values: what scikit-learn's loop counts, and what a store gives back."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import dsel

pytestmark = pytest.mark.contract

X, Y = make_classification(90, 5, n_informative=4, n_redundant=0, flip_y=0.2,
                           random_state=0)  # fmt: skip
SPLITS = list(KFold(3, shuffle=True, random_state=0).split(X))
READABLE = (bool, int, float, str, bytes, tuple, list, type(None))


class Odd(ClassifierMixin, BaseEstimator):
    """A rule that the type and the text of a parameter decide."""

    def __init__(self, value=None, learner=None):
        self.value = value
        self.learner = learner

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        text = repr(self.value) if not callable(self.value) else repr(self.value(7))
        self.place_ = sum(map(ord, f"{type(self.value).__name__} {text}"))
        self.sign_ = 1
        if self.learner is not None:
            self.learner.fit(X, y)  # where it is shared, this is seen
            self.place_ += self.learner.get_depth()
        return self

    def predict(self, X):
        column, place = self.place_ % X.shape[1], self.place_ // X.shape[1] % 9
        return self.classes_[(X[:, column] > (place - 4) / 4).astype(int)]


def first(x):
    return x


VALUES = st.one_of(
    st.integers(-2, 3),
    st.integers(-2, 3).map(float),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
    st.text(max_size=4),
    st.sampled_from(["1", "1.0", "None", "nan", "True", "a/b", "x  # 2", "'q'", "$x$"]),
    st.integers(-2, 3).map(np.int64),
    st.floats(-1, 1, width=32).map(np.float32),
    st.tuples(st.integers(0, 2), st.text(max_size=2)),
    st.lists(st.integers(0, 2), max_size=2),
    st.sampled_from([first, lambda x: x, lambda x: -x]),
)
LISTS = st.lists(VALUES, min_size=1, max_size=4)
TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = st.lists(st.sampled_from([1, 2, 5, None]), min_size=1, max_size=3)
ESTIMATORS = {
    "": Odd(),
    "odd/1__": Pipeline([("pre%/s", StandardScaler()), ("odd/1", Odd())]),
    "estimator__": BaggingClassifier(Odd(), n_estimators=2, random_state=0),
}


@st.composite
def searches(draw):
    """Return an estimator and a grid, or a list of grids."""
    prefix = draw(st.sampled_from(list(ESTIMATORS)))
    grids = []
    for _ in range(draw(st.integers(1, 2))):
        grid = {f"{prefix}value": draw(LISTS)}
        if draw(st.booleans()):
            grid[f"{prefix}learner"] = [
                TREE,
                draw(st.sampled_from([TREE, clone(TREE)])),
            ]
            grid[f"{prefix}learner__max_depth"] = draw(DEPTHS)
        grids.append(grid)
    is_list = len(grids) > 1 or draw(st.booleans())
    return ESTIMATORS[prefix], grids if is_list else grids[0]


def errors_by_scikit_learn(estimator, grid):
    errors = []
    for params in ParameterGrid(grid):
        for train, test in SPLITS:
            model = clone(estimator).set_params(**clone(params, safe=False))
            predicted = model.fit(X[train], Y[train]).predict(X[test])
            errors.append(int((predicted != Y[test]).sum()))
    return errors


@given(case=searches())
@settings(max_examples=12, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
def test_grid__is_counted_as_by_scikit_learn_and_comes_back_from_a_store(
    case, tmp_path_factory
):
    estimator, grid = case
    out = tmp_path_factory.mktemp("grid") / "out"
    search = dsel.SemiSupervisedSearchCV(
        estimator, grid, cv=SPLITS, prune=False, random_state=0, n_jobs=1
    )
    with warnings.catch_warnings(action="ignore"):  # of models that skops does not take
        search.fit(X, Y, out=out)
    errors = search.results_["fold_errors"].transpose(..., "fold").values
    assert errors.ravel().astype(int).tolist() == errors_by_scikit_learn(
        estimator, grid
    )
    assert TREE.get_params() == DecisionTreeClassifier(random_state=0).get_params()
    for name, value in search.best_estimator_.get_params(deep=True).items():
        if name in search.best_params_ and isinstance(value, READABLE):
            assert repr(value) == repr(search.best_params_[name])
    opened = dsel.open_results(out)
    assert opened.identical(search.results_)
    for each in opened.indexes.values():
        assert each.is_unique
    best = search.best_params_
    for choice in (dsel.select(opened), dsel.select(opened, "cv_error")):
        assert choice.params.keys() == best.keys()
        assert choice.candidate == search.best_index_
        for name, value in choice.params.items():
            given_value = getattr(best[name], "item", lambda name=name: best[name])()
            if isinstance(given_value, READABLE):
                assert repr(value) == repr(given_value)
    table = search.results_.dsel.table()
    assert len(table) == len(ParameterGrid(grid))


def test_grid__labels_of_generators_have_no_memory_address():
    """numpy writes the address of a generator in capital letters."""
    label, other = (
        dsel.SemiSupervisedSearchCV(
            DecisionTreeClassifier(),
            {"random_state": [np.random.RandomState(0), 1]},
            random_state=0,
            n_jobs=1,
        )
        .fit(X, Y)
        .results_.random_state.values[0]
        for _ in range(2)
    )
    assert label == other == "RandomState(MT19937)"
