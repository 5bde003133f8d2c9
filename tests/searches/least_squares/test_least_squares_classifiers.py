"""The main search with least-squares classifiers."""

import numpy as np
import pytest

import dsel
from dsel.errors import FitFailedWarning
from dsel.models.least_squares import fits
from dsel.models.least_squares.estimators import KernelLeastSquaresClassifier
from tests.executors import faulty_threads

GRID = {"width": [0.5, 1.0, 2.0], "regularization": [1e-3, 1e-1, 10.0]}


@pytest.fixture
def tables(rng):
    def draw(n):
        X = rng.normal(size=(n, 2))
        return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")

    X, y = draw(120)
    return X, y, draw(2000)[0]


def planned(tables, estimator, **options):
    settings = {"criterion": "cv_bound", "cv": 5, "delta": 0.1, "random_state": 3}
    return dsel.plan_search(estimator, GRID, *tables, **settings | options)


class Refitted(KernelLeastSquaresClassifier):
    """Another class, so that the generic family fits it model by model."""


def test_plan_search__counts_equal_those_of_refits(tables):
    fast = planned(tables, KernelLeastSquaresClassifier(penalty="rkhs"), prune=False)
    slow = planned(tables, Refitted(penalty="rkhs"), prune=False)
    assert {group.family.name for group in fast.work.groups} == {"kernel least squares"}
    assert {group.family.name for group in slow.work.groups} != {"kernel least squares"}
    one, two = fast.run(), slow.run()
    for name in (
        "fold_errors",
        "train_errors",
        "disagreements",
        "best_fold_disagreements",
    ):
        np.testing.assert_array_equal(one[name], two[name])
    assert dsel.select(one).certificate.certified


def test_plan_search__decomposes_once_a_width(tables, monkeypatch):
    calls = []
    original = fits.decompose_gram

    def counted(gram, *, penalty):
        calls.append(len(gram))
        return original(gram, penalty=penalty)

    monkeypatch.setattr(fits, "decompose_gram", counted)
    # Rows of its own: the process keeps decompositions of rows that it has met.
    X, y, pool = tables
    plan = planned(
        (X + 0.25, y, pool), KernelLeastSquaresClassifier(penalty="rkhs"), prune=False
    )
    plan.run()
    assert calls == [120] * 3


def test_plan_search__centers_at_labeled_rows_are_never_certified(tables):
    results = planned(tables, KernelLeastSquaresClassifier()).run()
    certificate = dsel.select(results).certificate
    assert not certificate.certified
    assert "kernels at held-out rows" in repr(certificate)


def test_plan_search__centers_from_elsewhere_are_certified(tables, rng):
    estimator = KernelLeastSquaresClassifier(centers=rng.normal(size=(30, 2)))
    assert dsel.select(planned(tables, estimator).run()).certificate.certified


def test_plan_search__a_width_out_of_range_is_recorded_not_raised(tables):
    X, y, pool = tables
    plan = dsel.plan_search(
        KernelLeastSquaresClassifier(penalty="rkhs"),
        {"width": [-1.0, 1.0], "regularization": [0.1]}, X, y, pool, cv=5,
        random_state=0, criterion="cv_bound",
    )  # fmt: skip
    with pytest.warns(FitFailedWarning, match="`width` must be positive"):
        results = plan.run()
    assert dsel.select(results).params["width"] == 1.0


def test_run__one_task_fits_all_splits_of_a_width(tables):
    submitted = []

    def counted(task):
        if task.key.startswith("fit-"):
            submitted.append(task.arguments[0])

    plan = planned(tables, KernelLeastSquaresClassifier(penalty="rkhs"))
    plan.run(faulty_threads(counted))
    groups = [{job.group for job in jobs} for jobs in submitted]
    assert sum(map(len, groups)) == len(GRID["width"])
    assert sum(map(len, submitted)) == len(GRID["width"]) * 6
