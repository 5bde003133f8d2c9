"""MCPL estimators as candidates of a search."""

import numpy as np
import pytest
from scipy import sparse

from dsel.data import open_pool
from dsel.data.cache import process_cache
from dsel.data.splits import Split
from dsel.families.family import FIT_DONE, FIT_FAILED, Candidate
from dsel.families.linear import LinearStack
from dsel.models import (
    SemiSupervisedLDA,
    SemiSupervisedNearestMean,
    SemiSupervisedQDA,
)
from dsel.models.mcpl import saddle_point
from dsel.models.mcpl.family import MCPLFamily
from dsel.models.mcpl.pool_passes import read_first_pass
from dsel.searches import plan_search


@pytest.fixture
def rows(rng):
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + 2.0 * (y == 1)[:, None] - (y == 2)[:, None]
    pool = rng.normal(size=(800, 3)) + 2.0 * rng.integers(0, 2, (800, 1))
    return X, y, pool


def make_splits(n_rows):
    every = np.arange(n_rows)
    return [
        Split(k, f"fold-{k}", every[every % 4 != k], every[every % 4 == k])
        for k in range(4)
    ]


def make_candidates(ridges):
    return [
        Candidate(number, {"ridge": ridge}, SemiSupervisedLDA(ridge=ridge))
        for number, ridge in enumerate(ridges)
    ]


def fit(rows, ridges, splits):
    X, y, pool = rows
    family = MCPLFamily(np.array(["a", "b", "c"]))
    group = family.groups(make_candidates(ridges))[0]
    return family.fit(group, X, y, splits, pool=open_pool(pool), budget=process_cache())


def test_fit__all_together_is_the_same_as_one_by_one(rows):
    X, y, pool = rows
    splits = make_splits(len(X))
    together = fit(rows, [0.0, 1.0, 5.0], splits)
    labels = np.array(["a", "b", "c"])[y]
    for (candidate, number), model in together.models.items():
        chosen = splits[number].train_rows
        alone = SemiSupervisedLDA(ridge=[0.0, 1.0, 5.0][candidate])
        alone.fit(X[chosen], labels[chosen], pool=pool)
        np.testing.assert_array_equal(model.means_, alone.means_)
        np.testing.assert_array_equal(model.covariance_, alone.covariance_)
        assert model.contrast_lower_ == alone.contrast_lower_


def test_fit__counts_errors(rows):
    X, y, _ = rows
    splits = make_splits(len(X))
    fitted = fit(rows, [0.0, 1.0], splits)
    assert (fitted.counts.status == FIT_DONE).all()
    model = fitted.model(1, 2)
    held = splits[2].test_rows
    wrong = np.sum(model.predict(X[held]) != np.array(["a", "b", "c"])[y[held]])
    assert fitted.counts.test_errors[1, 2] == wrong


def test_fit__a_singular_candidate_fails_alone(rows):
    X, y, pool = rows
    X[:, 1] = X[:, 0]
    fitted = fit((X, y, pool), [0.0, 1.0], make_splits(len(X)))
    assert (fitted.counts.status == [[FIT_FAILED] * 4, [FIT_DONE] * 4]).all()
    assert "is singular" in fitted.counts.messages[0, 3]


def test_fit__bad_parameters_fail_alone(rows):
    fitted = fit(rows, [-1.0, 1.0], make_splits(60))
    assert (fitted.counts.status == [[FIT_FAILED] * 4, [FIT_DONE] * 4]).all()
    assert "`ridge`" in fitted.counts.messages[0, 0]


def test_join__linear_models_become_one_product(rows):
    X, _, _ = rows
    splits = make_splits(len(X))
    fitted = fit(rows, [0.0, 1.0], splits)
    family = MCPLFamily(np.array(["a", "b", "c"]))
    joined = family.join([fitted])
    assert isinstance(joined, LinearStack)
    which = [np.array(2), np.arange(60) % 4]
    np.testing.assert_array_equal(joined.predict(X, which), fitted.predict(X, which))


@pytest.mark.parametrize("Estimator", [SemiSupervisedLDA, SemiSupervisedNearestMean])
def test_plan_search__splits_the_pool_and_gives_a_certificate(rows, Estimator):
    X, y, pool = rows
    plan = plan_search(
        Estimator(),
        {"tol": [1e-4, 1e-6]},
        X,
        y,
        pool,
        cv=5,
        random_state=0,
        criterion="cv_bound",
    )
    assert plan.work.fitting_pool.n_rows + plan.pool.n_rows == len(pool)
    results = plan.run()
    assert (results.status == 0).all()
    assert np.isfinite(results.estimate).any()


def test_plan_search__reads_a_sparse_pool_as_a_dense_one(rows):
    X, y, pool = rows
    counts = [
        plan_search(
            SemiSupervisedQDA(), {"ridge": [0.5]}, X, y, given, cv=5, random_state=0,
            criterion="cv_bound",
        ).run().disagreements.values
        for given in (pool, sparse.csr_matrix(pool))
    ]  # fmt: skip
    np.testing.assert_array_equal(*counts)


def test_plan_search__uses_the_fitting_part_alone(rows):
    X, y, pool = rows
    plan = plan_search(
        SemiSupervisedLDA(), {"ridge": [0.5]}, X, y, pool, cv=5, random_state=0,
        train_errors=True, criterion="cv_bound",
    )  # fmt: skip
    full = SemiSupervisedLDA(ridge=0.5).fit(X, y, pool=plan.work.fitting_pool)
    errors = int(np.sum(full.predict(X) != y))
    assert int(plan.run().full_train_errors.item()) == errors


def test_plan_search__all_fits_of_a_grid_share_the_reads_of_the_pool(rows, monkeypatch):
    X, y, pool = rows
    reads = []

    def counted(source, labelings, **options):
        reads.append(len(labelings))
        return read_first_pass(source, labelings, **options)

    monkeypatch.setattr(saddle_point, "read_first_pass", counted)
    grid = {"ridge": [0.1, 1.0]}

    results = plan_search(
        SemiSupervisedLDA(),
        grid,
        X,
        y,
        pool,
        cv=3,
        prune=False,
        random_state=0,
        criterion="cv_bound",
    ).run()

    assert (results.status == 0).all()
    assert reads == [2 * 4]
