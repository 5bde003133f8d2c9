"""Predictions that equal no class are errors, whatever they are near to."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, scale
from sklearn.svm import SVC

import dsel
from dsel.data import labeled as labels
from dsel.errors import AllFitsFailedError
from dsel.searches import predict_pool, read_rows

NEAR = {
    "below": (float, lambda label: label - 0.4),
    "a rounding off": (float, lambda label: np.float32(0.1) * label),
    "nan": (float, lambda label: np.full(len(label), np.nan)),
    "text of numbers": (int, lambda label: label.astype(str)),
    "numbers of text": (str, lambda label: label.astype(float)),
    "cut text": (str, lambda label: np.array([text[:-1] for text in label])),
    "none": (int, lambda label: np.array([None] * len(label))),
    "out of range": (int, lambda label: label + 100),
    "between": (int, lambda label: label - 1),
}


class Answering(ClassifierMixin, BaseEstimator):
    """Answers with what a function makes of the right label, which is a column."""

    def __init__(self, kind="below", neighbors=1):
        self.kind, self.neighbors = kind, neighbors

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        label = np.array(self.classes_)[X[:, 0].astype(int)]
        return NEAR[self.kind][1](label) if self.kind in NEAR else label


def labeled(kind, n_rows=60):
    X = np.column_stack([np.arange(n_rows) % 2, np.arange(n_rows)]).astype(float)
    return X, (10 * (1 + X[:, 0])).astype(int).astype(NEAR[kind][0])


@pytest.mark.parametrize("kind", NEAR)
def test_run__counts_what_is_no_class_as_an_error(kind):
    X, y = labeled(kind)
    plan = dsel.plan_search(
        None, [Answering(kind)], X, y, X + [0, 1000], cv=5, random_state=0,
        train_errors=True, criterion="cv_bound",
    )  # fmt: skip
    results = plan.run()
    assert int(results.fold_errors.sum()) == len(y)
    assert int(results.full_train_errors.sum()) == len(y)
    assert dsel.select(results).certificate.unclipped >= 1.0


@pytest.mark.parametrize("kind", NEAR)
def test_search__chooses_whose_answers_are_classes(kind):
    X, y = labeled(kind)
    search = dsel.SemiSupervisedSearchCV(
        Answering(), {"kind": [kind, "right"]}, cv=5, random_state=0
    ).fit(X, y, pool=X + [0, 1000])
    assert search.best_params_ == {"kind": "right"}


def test_run__answers_that_are_no_class_agree_where_they_are_equal():
    X, y = labeled("below")
    plan = dsel.plan_search(
        None, [Answering("below")], X, y, X + [0, 1000], cv=5, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    assert int(plan.run().disagreements.sum()) == 0


class Guessing(Answering):
    """Answers with a number of its own split."""

    def fit(self, X, y):
        self.number_ = X[:, 1].sum()
        return super().fit(X, y)

    def predict(self, X):
        return np.full(len(X), self.number_)


def test_run__answers_that_are_no_class_differ_where_they_are_not_equal():
    X, y = labeled("below")
    plan = dsel.plan_search(
        None, [Guessing()], X, y, X + [0, 1000], cv=5, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    results = plan.run()
    assert int(results.disagreements.sum()) == int(results.pool_rows.sum()) == 60


@pytest.mark.parametrize(
    ("classes", "answers", "codes"),
    [
        ([1, 2], [1.0, 2.0, True], [0, 1, 0]),
        ([0.5, 1.5], [1.5, 0.5], [1, 0]),
        (["no", "yes"], np.array(["yes", "no"], dtype=object), [1, 0]),
        ([False, True], [0, 1], [0, 1]),
    ],
)
def test_codes_of__equal_labels_are_classes_of_any_type(classes, answers, codes):
    found = labels.codes_of(np.asarray(answers), np.array(classes))
    assert found.tolist() == codes


def test_run__takes_answers_as_a_column():
    class Column(KNeighborsClassifier):
        def predict(self, X):
            return super().predict(X)[:, np.newaxis]

    X, y = labeled("below")
    found, expected = (
        dsel.plan_search(None, [each], X, y, cv=5, random_state=0).run().fold_errors
        for each in (Column(3), KNeighborsClassifier(3))
    )
    assert found.values.tolist() == expected.values.tolist()


def test_run__an_answer_for_other_rows_is_an_error_in_each():
    class One(KNeighborsClassifier):
        def predict(self, X):
            return super().predict(X)[:1]

    X, y = labeled("below")
    results = dsel.plan_search(None, [One()], X, y, cv=5, random_state=0).run()
    assert int(results.fold_errors.sum()) == len(y)


@pytest.mark.parametrize(
    "learner",
    [
        make_pipeline(FunctionTransformer(scale), SVC()),
        make_pipeline(FunctionTransformer(scale), LinearDiscriminantAnalysis()),
    ],
    ids=["svm", "linear"],
)
def test_run__refuses_functions_that_look_at_the_rows_of_a_call(learner, rng):
    y = rng.integers(0, 2, 90)
    X = rng.normal(size=(90, 3)) + 2 * y[:, np.newaxis]
    plan = dsel.plan_search(None, [learner], X, y, criterion="cv_error", cv=3)
    with pytest.raises(AllFitsFailedError, match="of 8 rows otherwise alone"):
        plan.run()


def test_run__takes_functions_of_a_row(rng):
    y = rng.integers(0, 2, 90)
    X = rng.normal(size=(90, 3)) + 2 * y[:, np.newaxis]
    learner = make_pipeline(FunctionTransformer(np.tanh), SVC())
    plan = dsel.plan_search(None, [learner], X, y, criterion="best_fold_model", cv=3)
    assert dsel.select(plan.run()).certificate.certified


@pytest.mark.parametrize("kind", NEAR)
def test_predict_pool__writes_minus_two_for_what_is_no_class(kind, tmp_path):
    X, y = labeled(kind)
    predict_pool(Answering(kind).fit(X, y), X, tmp_path / "answers")
    [(_, codes)] = read_rows(tmp_path / "answers", "label")
    np.testing.assert_array_equal(codes, -2)
