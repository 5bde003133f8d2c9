"""The maximum margin classifier against its definition."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel.searches.nonconformity.maximum_margin import (
    MaximumMarginClassifier,
    hyperplane_norm,
)


def table(n_classes=2):
    return make_classification(
        200, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )


@parametrize_with_checks(
    [MaximumMarginClassifier(LogisticRegression(), {"C": [0.01, 1.0]})]
)
def test_maximum_margin_classifier__keeps_the_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("margin", ["functional", "geometric"])
def test_predict__follows_the_largest_margin(margin):
    X, y = table()
    grid = {"C": [0.1, 10.0], "gamma": [0.01, 1.0]}
    model = MaximumMarginClassifier(SVC(), grid, margin=margin).fit(X[:120], y[:120])
    svms = model.models_.models()
    f = np.array([svm.decision_function(X) for svm in svms])
    size = np.abs(f)
    if margin == "geometric":
        size /= np.array([rkhs_norm(svm) for svm in svms])[:, np.newaxis]

    chosen = model.chosen_model(X)

    np.testing.assert_array_equal(chosen, size.argmax(axis=0))
    np.testing.assert_array_equal(model.predict(X), f[chosen, range(200)] > 0)


def rkhs_norm(svm):
    vectors = svm.support_vectors_
    distances = ((vectors[:, np.newaxis] - vectors) ** 2).sum(axis=2)
    alpha = svm.dual_coef_[0]
    return np.sqrt(alpha @ np.exp(-svm.gamma * distances) @ alpha)


def test_predict__takes_the_largest_gap_of_many_classes():
    X, y = table(3)
    model = MaximumMarginClassifier(SVC(), {"C": [0.1, 10.0]}).fit(X[:120], y[:120])
    scores = np.array([svm.decision_function(X) for svm in model.models_.models()])
    top = np.sort(scores, axis=2)

    chosen = (top[..., -1] - top[..., -2]).argmax(axis=0)

    np.testing.assert_array_equal(model.chosen_model(X), chosen)


def test_hyperplane_norm__looks_into_pipelines_and_linear_models():
    X, y = table()
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(X, y)
    linear = LogisticRegression().fit(X, y)
    svc = SVC(kernel="linear").fit(csr_matrix(X), y)

    assert hyperplane_norm(svc) == pytest.approx(np.linalg.norm(svc.coef_.toarray()))
    assert hyperplane_norm(pipeline) == pytest.approx(rkhs_norm(pipeline[-1]))
    assert hyperplane_norm(linear) == pytest.approx(np.linalg.norm(linear.coef_))


@pytest.mark.parametrize(
    ("model", "n_classes", "error", "message"),
    [
        (
            MaximumMarginClassifier(SVC(), {"C": [1.0]}, margin="geometric"),
            3,
            NotImplementedError,
            "defined for two classes",
        ),
        (
            MaximumMarginClassifier(
                RandomForestClassifier(5), {"max_depth": [2]}, margin="geometric"
            ),
            2,
            TypeError,
            "linear model or a kernel machine",
        ),
        (
            MaximumMarginClassifier(SVC(), {"C": [1.0]}, margin="wide"),
            2,
            ValueError,
            "`margin` must be one of",
        ),
    ],
)
def test_fit__refuses_margins_that_are_not_defined(model, n_classes, error, message):
    X, y = table(n_classes)
    with pytest.raises(error, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("norm", [1.0, 2.0, 50.0])
def test_predict__labels_compete_by_the_norm_of_their_margins(norm):
    X, y = make_classification(200, 4, flip_y=0.2, random_state=3)
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 1.0, 20.0]}
    model = MaximumMarginClassifier(SVC(), grid, norm=norm).fit(X[:100], y[:100])
    scores = np.array(
        [each.decision_function(X[100:]) for each in model.models_.models()]
    )
    positive, negative = (
        (np.where(sign * scores > 0, np.abs(scores), 0.0) ** norm).sum(axis=0)
        for sign in (1, -1)
    )
    np.testing.assert_array_equal(model.predict(X[100:]), positive > negative)
    chosen = model.chosen_model(X[100:])
    own = scores[chosen, np.arange(100)] > 0
    np.testing.assert_array_equal(own, positive > negative)
    largest = MaximumMarginClassifier(SVC(), grid).fit(X[:100], y[:100])
    if norm == 50.0:
        np.testing.assert_array_equal(model.predict(X), largest.predict(X))


def test_fit__refuses_a_norm_below_one():
    with pytest.raises(ValueError, match="`norm` must be at least 1"):
        MaximumMarginClassifier(SVC(), {"C": [1.0]}, norm=0.5).fit([[0], [1]], [0, 1])


def test_fit__refuses_weights_of_another_length():
    X, y = make_classification(60, random_state=0)
    with pytest.raises(ValueError, match="one weight for each of the 60 labeled rows"):
        MaximumMarginClassifier(SVC(), {"C": [1.0]}).fit(X, y, sample_weight=[1.0, 2.0])
