"""The three MCPL estimators as scikit-learn estimators, on pools of every kind."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel.errors import GuaranteeWarning
from dsel.models import (
    SemiSupervisedLDA,
    SemiSupervisedNearestMean,
    SemiSupervisedQDA,
)

ESTIMATORS = [SemiSupervisedLDA, SemiSupervisedQDA, SemiSupervisedNearestMean]


@parametrize_with_checks([Estimator() for Estimator in ESTIMATORS])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator__passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    y = np.repeat(["a", "b", "c"], 12)
    X = rng.normal(size=(36, 3)) + 2 * (y == "b")[:, None] - (y == "c")[:, None]
    pool = rng.normal(size=(900, 3)) + 2 * rng.integers(0, 2, (900, 1))
    return X, y, pool


@pytest.mark.parametrize("Estimator", ESTIMATORS)
@pytest.mark.parametrize("pool", [None, np.empty((0, 3))])
def test_fit__without_pool_rows_is_the_supervised_fit(rows, Estimator, pool):
    X, y, _ = rows
    model = Estimator().fit(X, y, pool=pool)
    expected = [X[y == label].mean(axis=0) for label in "abc"]
    np.testing.assert_allclose(model.means_, expected)
    assert (model.duality_gap_, model.contrast_lower_, model.n_passes_) == (0, 0, 0)


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_fit__certificate_holds_for_the_true_labels(rows, rng, Estimator):
    X, y, pool = rows
    model, supervised = Estimator().fit(X, y, pool=pool), Estimator().fit(X, y)
    everything = np.vstack([X, pool])
    for _ in range(20):
        labels = np.append(y, rng.choice(list("abc"), len(pool)))
        gain = model.log_likelihood(everything, labels)
        gain -= supervised.log_likelihood(everything, labels)
        assert gain >= model.contrast_lower_ > 0.0


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_fit__reaches_the_gap_asked_for(rows, Estimator, tol):
    X, y, pool = rows
    assert Estimator(tol=tol).fit(X, y, pool=pool).duality_gap_ <= tol


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_fit__is_the_same_on_every_kind_of_pool(rows, tmp_path, Estimator):
    X, y, pool = rows
    zarr.create_array(tmp_path / "pool.zarr", data=pool, chunks=(100, 3))
    expected = Estimator(tol=1e-9).fit(X, y, pool=pool)
    for other in (
        da.from_array(pool, chunks=(70, 3)),
        str(tmp_path / "pool.zarr"),
        sparse.csr_matrix(pool),
    ):
        model = Estimator(tol=1e-9).fit(X, y, pool=other)
        np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-6)
        assert model.contrast_lower_ == pytest.approx(expected.contrast_lower_)


@pytest.mark.cluster
@pytest.mark.parametrize("start_rows", [0, 200])
def test_fit__is_the_same_on_a_cluster(rows, tmp_path, start_rows):
    from distributed import Client

    X, y, pool = rows
    zarr.create_array(tmp_path / "pool.zarr", data=pool, chunks=(100, 3))
    model = SemiSupervisedLDA(start_rows=start_rows)
    expected = model.fit(X, y, pool=str(tmp_path / "pool.zarr")).means_
    with Client(processes=False, dashboard_address="127.0.0.1:0"):
        found = model.fit(X, y, pool=str(tmp_path / "pool.zarr")).means_
    np.testing.assert_array_equal(found, expected)


def test_fit__does_not_depend_on_the_chunks(rows, rng):
    X, y, pool = rows
    expected = SemiSupervisedLDA().fit(X, y, pool=pool)
    for _ in range(5):
        edges = np.sort(rng.choice(np.arange(1, len(pool)), 6, replace=False))
        chunks = tuple(np.diff([0, *edges, len(pool)]).tolist())
        model = SemiSupervisedLDA().fit(X, y, pool=da.from_array(pool, (chunks, 3)))
        np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-8)


def test_fit__large_offsets_cost_no_digits(rows):
    X, y, pool = rows
    plain = SemiSupervisedLDA(tol=1e-9).fit(X, y, pool=pool)
    moved = SemiSupervisedLDA(tol=1e-9).fit(X + 1e6, y, pool=pool + 1e6)
    assert moved.contrast_lower_ == pytest.approx(plain.contrast_lower_, abs=1e-6)
    np.testing.assert_allclose(moved.means_ - 1e6, plain.means_, atol=1e-4)


def test_fit__supervised_lda_predicts_as_scikit_learn(rows):
    X, y, pool = rows
    model = SemiSupervisedLDA().fit(X, y)
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_array_equal(model.predict(pool), reference.predict(pool))


def test_fit__ridge_makes_few_rows_enough(rows):
    X, y, pool = rows
    few = [0, 1, 12, 24]
    model = SemiSupervisedLDA(ridge=0.5).fit(X[few], y[few], pool=pool)
    assert model.contrast_lower_ > 0.0


@pytest.mark.parametrize(
    ("Estimator", "needed"), [(SemiSupervisedLDA, 6), (SemiSupervisedQDA, 4)]
)
def test_fit__singular_covariance_says_how_many_rows_are_needed(
    rows, Estimator, needed
):
    X, y, pool = rows
    few = [0, 1, 12, 24]
    with pytest.raises(ValueError, match=rf"at least {needed} .* `ridge`"):
        Estimator().fit(X[few], y[few], pool=pool)


def test_fit__the_class_of_a_singular_covariance_is_named(rows):
    X, y, pool = rows
    few = [*np.flatnonzero(y != "b"), *np.flatnonzero(y == "b")[:3]]
    with pytest.raises(ValueError, match="the one of class 'b' is singular: it has 3"):
        SemiSupervisedQDA().fit(X[few], y[few], pool=pool)


def test_fit__constant_features_are_named(rows):
    X, y, pool = rows
    X[:, 1] = 7.3
    with pytest.raises(ValueError, match="column 1 is the same"):
        SemiSupervisedLDA().fit(X, y, pool=pool)


def test_fit__a_feature_constant_within_each_class_is_singular(rows):
    X, y, pool = rows
    X[:, 1] = np.where(y == "a", 0.1, 0.3)
    with pytest.raises(ValueError, match="is singular"):
        SemiSupervisedLDA().fit(X, y, pool=pool)


def test_fit__one_class_is_an_error(rows):
    X, _, pool = rows
    with pytest.raises(ValueError, match="`y` must hold at least two classes"):
        SemiSupervisedLDA().fit(X, np.zeros(len(X)), pool=pool)


def test_fit__a_pool_with_other_columns_is_an_error(rows):
    X, y, pool = rows
    with pytest.raises(ValueError, match="`pool` has 2 columns but `X` has 3"):
        SemiSupervisedLDA().fit(X, y, pool=pool[:, :2])


def test_fit__a_pool_with_columns_in_another_order_is_an_error(rows):
    X, y, pool = rows
    labeled = pd.DataFrame(X, columns=["a", "b", "c"])
    other = pd.DataFrame(pool, columns=["a", "c", "b"])
    with pytest.raises(ValueError, match="`pool` has 'c' as column 1 where `X` has"):
        SemiSupervisedLDA().fit(labeled, y, pool=other)


def test_fit__a_pool_with_nan_is_an_error(rows):
    X, y, pool = rows
    pool[5, 1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        SemiSupervisedLDA().fit(X, y, pool=pool)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tol": 0.0}, "`tol`"),
        ({"ridge": -1.0}, "`ridge`"),
        ({"max_passes": 0}, "`max_passes`"),
    ],
)
def test_fit__bad_parameters_are_errors(rows, params, message):
    X, y, pool = rows
    with pytest.raises(ValueError, match=message):
        SemiSupervisedLDA(**params).fit(X, y, pool=pool)


@pytest.mark.parametrize("ridge", [None, "much", True])
def test_fit__a_ridge_that_is_no_number_is_an_error(rows, ridge):
    X, y, pool = rows
    with pytest.raises(TypeError, match="`ridge` must be a number"):
        SemiSupervisedQDA(ridge=ridge).fit(X, y, pool=pool)


def test_fit__without_a_certified_gain_it_is_supervised_and_says_so(rng):
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    pool = rng.normal(size=(50, 3))
    with pytest.warns(GuaranteeWarning, match="supervised estimate could be certified"):
        model = SemiSupervisedLDA(max_passes=1).fit(X, y, pool=pool)
    np.testing.assert_array_equal(model.means_, SemiSupervisedLDA().fit(X, y).means_)


def test_fit__too_few_passes_warn_and_stay_certified(rows):
    X, y, pool = rows
    with pytest.warns(GuaranteeWarning, match="duality gap"):
        model = SemiSupervisedLDA(tol=1e-12, max_passes=2).fit(X, y, pool=pool)
    assert model.contrast_lower_ >= 0.0
    assert model.solver_status_ == "out of passes"


def test_log_likelihood__is_the_mean_log_density(rows):
    X, y, pool = rows
    model = SemiSupervisedNearestMean().fit(X, y, pool=pool)
    steps = X - model.means_[np.searchsorted(model.classes_, y)]
    expected = -np.log(3) - 1.5 * np.log(2 * np.pi) - 0.5 * (steps**2).sum(axis=1)
    assert model.log_likelihood(X, y) == pytest.approx(expected.mean())


def test_log_likelihood__unknown_labels_are_an_error(rows):
    X, y, pool = rows
    model = SemiSupervisedLDA().fit(X, y, pool=pool)
    with pytest.raises(ValueError, match="`y` must hold labels that have labeled rows"):
        model.log_likelihood(X, np.where(y == "a", "z", y))


def test_predict_proba__agrees_with_predict(rows):
    X, y, pool = rows
    model = SemiSupervisedQDA().fit(X, y, pool=pool)
    probabilities = model.predict_proba(pool)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    labels = model.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(labels, model.predict(pool))
