"""The three estimators as scikit-learn estimators, on pools of every kind."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel.data.cache import process_cache
from dsel.errors import GuaranteeWarning
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.results import open_model, save_model
from tests.mcpl import definition

ESTIMATORS = [MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA]


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


@pytest.mark.parametrize("pool", [None, np.empty((0, 3))])
def test_fit__without_pool_rows_is_the_supervised_fit(rows, pool):
    X, y, _ = rows
    model, supervised = SemiSupervisedLDA().fit(X, y, pool), MaximumLikelihoodLDA()
    np.testing.assert_array_equal(model.means_, supervised.fit(X, y).means_)
    assert (model.duality_gap_, model.contrast_lower_, model.n_passes_) == (0, 0, 0)


def test_fit__is_the_same_on_every_kind_of_pool(rows, tmp_path):
    X, y, pool = rows
    zarr.create_array(tmp_path / "pool.zarr", data=pool, chunks=(100, 3))
    expected = SemiSupervisedLDA(tol=1e-9).fit(X, y, pool)
    for other in (
        da.from_array(pool, chunks=(70, 3)),
        str(tmp_path / "pool.zarr"),
        sparse.csr_matrix(pool),
        pd.DataFrame(pool),
    ):
        process_cache.cache_clear()  # or its moments would be those of the first
        model = SemiSupervisedLDA(tol=1e-9).fit(X, y, other)
        np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-6)
        assert model.contrast_lower_ == pytest.approx(expected.contrast_lower_)


@pytest.mark.cluster
@pytest.mark.parametrize("start_rows", [0, 200])
def test_fit__is_the_same_on_a_cluster(rows, tmp_path, start_rows, processes):
    X, y, pool = rows
    zarr.create_array(tmp_path / "pool.zarr", data=pool, chunks=(100, 3))
    model = SemiSupervisedLDA(start_rows=start_rows)
    expected = model.fit(X, y, str(tmp_path / "pool.zarr")).means_
    with processes.as_current():
        found = model.fit(X, y, str(tmp_path / "pool.zarr")).means_
    np.testing.assert_array_equal(found, expected)


def test_fit__a_pool_that_was_written_anew_is_read_anew(rows, tmp_path):
    X, y, pool = rows
    store = zarr.create_array(tmp_path / "pool.zarr", data=pool, chunks=(100, 3))
    SemiSupervisedLDA().fit(X, y, str(tmp_path / "pool.zarr"))
    store[:] = pool[::-1] * 2.0
    found = SemiSupervisedLDA().fit(X, y, str(tmp_path / "pool.zarr"))
    expected = SemiSupervisedLDA().fit(X, y, pool[::-1] * 2.0)
    np.testing.assert_allclose(found.means_, expected.means_, rtol=1e-8)


def test_fit__large_offsets_cost_no_digits(rows):
    X, y, pool = rows
    plain = SemiSupervisedLDA(tol=1e-9).fit(X, y, pool)
    moved = SemiSupervisedLDA(tol=1e-9).fit(X + 1e6, y, pool + 1e6)
    assert moved.contrast_lower_ == pytest.approx(plain.contrast_lower_, abs=1e-6)
    np.testing.assert_allclose(moved.means_ - 1e6, plain.means_, atol=1e-4)


def test_fit__without_a_certified_gain_it_is_supervised_and_says_so(rng):
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    pool = rng.normal(size=(50, 3))
    with pytest.warns(GuaranteeWarning, match="supervised estimate could be certified"):
        model = SemiSupervisedLDA(max_passes=1).fit(X, y, pool)
    np.testing.assert_array_equal(model.means_, SemiSupervisedLDA().fit(X, y).means_)


def changed(array, column, values):
    result = array.copy()
    result[:, column] = values
    return result


FEW = [0, 1, 12, 24]
REFUSED = {
    "tol": ({"tol": 0.0}, {}, "`tol` must be positive"),
    "ridge": ({"ridge": -1.0}, {}, "`ridge` must be >= 0"),
    "word": ({"ridge": "much"}, {}, "`ridge` must be a number"),
    "passes": ({"max_passes": 0}, {}, "`max_passes`"),
    "few": ({}, {"X": lambda X: X[FEW], "y": lambda y: y[FEW]},
            "at least 6 .* `ridge`"),
    "constant": ({}, {"X": lambda X: changed(X, 1, 7.3)}, "column 1 is the"),
    "constant in classes": ({}, {"X": lambda X: changed(X, 1, np.arange(36) < 12)},
                            "is singular"),
    "one class": ({}, {"y": lambda y: y == "d"}, "at least two classes"),
    "narrow": ({}, {"pool": lambda U: U[:, :2]}, "has 2 columns but `X` has 3"),
    "names": ({}, {"X": lambda X: pd.DataFrame(X, columns=list("abc")),
                   "pool": lambda U: pd.DataFrame(U, columns=list("acd"))},
              "lacks the column 'b' of `X`; it has"),
    "gaps": ({}, {"pool": lambda U: changed(U, 1, np.nan)}, "finite"),
    "large": ({}, {"pool": lambda U: U * 1e200}, "values that can be squared"),
    "labels": ({}, {"pool_labels": ["a"] * 899 + ["z"]},
               "got 'z'; a class without labeled rows"),
    "no labels": ({}, {"pool_labels": None}, "one label for each of the 900 rows"),
    "word of the oracle": ({"ridge": "much"}, {"pool_labels": ["a"] * 900},
                           "`ridge` must be a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_fit__refuses(rows, case):
    params, changes, words = REFUSED[case]
    arguments = dict(zip(("X", "y", "pool"), rows, strict=True))
    for name, change in changes.items():
        arguments[name] = change(arguments[name]) if callable(change) else change
    Estimator = OracleLDA if "pool_labels" in changes else SemiSupervisedLDA
    with pytest.raises((TypeError, ValueError), match=words):
        Estimator(**params).fit(**arguments)


def test_oracle__is_the_fit_to_all_labels(rows, rng):
    X, y, pool = rows
    truth = rng.choice(list("abc"), len(pool))
    model = OracleLDA().fit(X, y, da.from_array(pool, chunks=(70, 3)), truth)
    expected = MaximumLikelihoodLDA().fit(np.vstack([X, pool]), np.append(y, truth))
    np.testing.assert_allclose(model.means_, expected.means_)
    np.testing.assert_allclose(model.covariance_, expected.covariance_)


def test_log_likelihood__is_the_mean_log_density(rows):
    X, y, pool = rows
    model = SemiSupervisedLDA().fit(X, y, pool)
    codes = np.searchsorted(model.classes_, y)
    theta = model.priors_, model.means_, model.covariance_
    expected = definition.log_joint(theta, X)[np.arange(len(y)), codes].mean()
    assert model.log_likelihood(X, y) == pytest.approx(expected)
    with pytest.raises(ValueError, match="`y` must hold labels that have labeled rows"):
        model.log_likelihood(X, np.where(y == "a", "z", y))


@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_predict__is_the_likeliest_class(rows, labels):
    X, y, pool = rows
    kept = np.isin(y, list(labels))
    model = SemiSupervisedLDA().fit(X[kept], y[kept], pool)
    joint = definition.log_joint((model.priors_, model.means_, model.covariance_), pool)
    shares = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(pool), shares, atol=1e-12)
    np.testing.assert_array_equal(model.predict(pool), model.classes_[shares.argmax(1)])


def test_predict__of_dask_rows_is_lazy_and_of_a_kept_model_the_same(rows, tmp_path):
    X, y, pool = rows
    model = SemiSupervisedLDA().fit(X, y, pool)
    save_model(model, tmp_path / "model")
    opened = open_model(tmp_path / "model")
    found = opened.predict(da.from_array(pool, chunks=(100, 3)))
    assert isinstance(found, da.Array)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(found.compute(), model.predict(pool))
