"""Which SVCs the family takes, and which it refuses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.families.svm.family import KernelSVMFamily
from dsel.families.svm.settings import resolve_kernel


def candidates_of(*estimators):
    return [Candidate(i, {}, estimator) for i, estimator in enumerate(estimators)]


SCALED = make_pipeline(StandardScaler(), SVC())
REASONS = [
    (SVC(), {}, None),
    (SVC(kernel="poly", degree=2.5), {}, None),
    (SCALED, {}, None),
    (SVC(kernel=np.dot), {}, "the kernel is a function"),
    (SVC(kernel="cosine"), {}, "the kernel 'cosine' is not known"),
    (SVC(break_ties=True), {}, "break_ties=True predicts by confidences"),
    (SVC(probability=True), {}, "needs libsvm's own fit"),
    (make_pipeline(StandardScaler(), SVC(kernel="precomputed")), {}, "pipeline"),
    (SCALED, {"sample_weight": 1}, "fit parameter"),
]


@pytest.mark.parametrize(("estimator", "fit_params", "reason"), REASONS)
def test_refusal__says_why(estimator, fit_params, reason):
    found = KernelSVMFamily(np.arange(2), 0, fit_params).refusal(estimator)
    assert found is None if reason is None else reason in found


def test_assign_families__splits_a_mixed_list():
    mixed = candidates_of(SVC(C=2.0), LogisticRegression(), SVC(break_ties=True))
    machines, others = assign_families(
        mixed, np.eye(4), classes=np.array([0, 1]), seed=0, fit_params={}
    )
    assert machines.family.name == "kernel SVM"
    assert [[c.number for c in group] for group in machines.groups] == [[0]]
    assert "one kernel for all C and folds, 1 in all" in machines.remark
    assert [[c.number for c in group] for group in others.groups] == [[1], [2]]
    assert "break_ties" in others.remark


GRAM = SVC(kernel="precomputed")
FRACTIONAL = SVC(kernel="poly", degree=1.5)
EYE = np.eye(3)
REFUSED = [
    (SVC(C=0.0), EYE, "`C` must be positive"),
    (SVC(C=-1.0), EYE, "`C` must be positive"),
    (SVC(tol=0.0), EYE, "`tol` must be positive"),
    (SVC(max_iter=-2), EYE, "`max_iter` must be >= -1"),
    (SVC(gamma=0.0), EYE, "`gamma` must be positive"),
    (SVC(gamma="large"), EYE, "`gamma` must be one of 'auto', 'scale'"),
    (SVC(kernel="poly", degree=-1), EYE, "`degree` must be positive"),
    (make_pipeline(StandardScaler(), SVC(C=0.0)), EYE, "`C` must be positive"),
    (FRACTIONAL, -EYE, "`degree` must be whole where features"),
    (SVC(kernel="poly", degree=1.5, coef0=-1.0), EYE, "`degree` must be whole"),
    (GRAM, np.ones((3, 2)), "must be the square Gram matrix"),
    (GRAM, np.triu(np.ones((3, 3))), "`X` must be symmetric"),
    (GRAM, sparse.eye_array(3).tocsr(), "must be a dense Gram matrix"),
    (SVC(), EYE * np.nan, "must be finite"),
    (SVC(), EYE * 1e160, "squared lengths of rows must be below 4.5e+307"),
    (SVC(kernel="linear"), EYE * 1e25, "must be below 3.4e+38"),
]


@pytest.mark.parametrize(("estimator", "X", "message"), REFUSED)
def test_check__refuses_what_cannot_work(estimator, X, message):
    family = KernelSVMFamily(np.arange(2), 0)
    family.check(candidates_of(SVC(), make_pipeline(SVC()), GRAM, FRACTIONAL), EYE)
    with pytest.raises((TypeError, ValueError)) as refused:
        family.check(candidates_of(SVC(), estimator), X)
    assert message in str(refused.value)


def test_check_budget__the_budget_holds_the_kernel_matrix():
    family = KernelSVMFamily(np.arange(2), 0)
    family.check_budget(300, 600_000)
    with pytest.raises(MemoryError, match="600,000 bytes, got 599,999"):
        family.check_budget(300, 599_999)


def test_resolve_kernel__gamma_scale_is_that_of_svc(rng):
    X = rng.normal(size=(20, 3))
    for rows in (X, sparse.csr_array(X), np.ones((4, 2))):
        svc = SVC().fit(rows, np.arange(rows.shape[0]) % 2)
        assert resolve_kernel(SVC(), rows).gamma == pytest.approx(svc._gamma, rel=1e-14)
