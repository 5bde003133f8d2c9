"""Counts are found again for the same rows and candidates, and for no others."""

import functools
import os
import shutil

import cloudpickle
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.errors import StoreMismatchError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] > 0).astype(int)
ROWS = RNG.normal(size=(4000, 4))
CHANGED = (slice(500, 1500), slice(None))  # neither first, middle nor last row


def plan_of(pool, estimator=None, grid=None, **options):
    settings = {"criterion": "cv_bound", "cv": 3, "random_state": 0, "delta": 0.1}
    return dsel.plan_search(
        estimator or LogisticRegression(), grid or {"C": [1.0]}, X, Y, pool,
        **settings | options,
    )  # fmt: skip


def local_zarr(folder):
    array = zarr.create_array(folder / "a", data=ROWS.copy(), chunks=(500, 4))
    return array, array


def memory_zarr(folder):
    array = zarr.create_array(
        zarr.storage.MemoryStore(), data=ROWS.copy(), chunks=(500, 4)
    )
    return array, array


def path_of_zarr(folder):
    array, _ = local_zarr(folder)
    return str(folder / "a"), array


def dask_of_zarr(folder):
    array, _ = local_zarr(folder)
    return da.from_zarr(str(folder / "a")), array


def dask_of_memory(folder):
    array, _ = memory_zarr(folder)
    return da.from_array(array, chunks=(500, 4), name="rows"), array


def array(folder):
    array = ROWS.copy()
    return array, array


def writable_map(folder):
    array = np.lib.format.open_memmap(folder / "a.npy", "w+", shape=ROWS.shape)
    array[:] = ROWS
    return array, array


def csr(folder):
    matrix = sparse.csr_matrix(ROWS)
    return matrix, matrix.data.reshape(ROWS.shape)


def written_pool(folder):
    dsel.data.write_pool(ROWS, folder / "a", chunk_rows=500)
    return dsel.open_pool(folder / "a"), zarr.open_array(folder / "a", mode="r+")


SOURCES = [
    *(local_zarr, memory_zarr, path_of_zarr, dask_of_zarr, dask_of_memory, array),
    *(writable_map, csr, written_pool),
]


@pytest.mark.parametrize("make", SOURCES)
def test_run__refuses_counts_of_a_pool_that_was_written_anew(make, tmp_path):
    source, rows = make(tmp_path)
    first = plan_of(source).run(out=tmp_path / "run")
    again = plan_of(source).run(out=tmp_path / "run")
    assert again.disagreements.equals(first.disagreements)
    rows[CHANGED] = -5.0 * ROWS[CHANGED]
    with pytest.raises(StoreMismatchError, match="pool: "):
        plan_of(source).run(out=tmp_path / "run")


@pytest.mark.parametrize("make", SOURCES)
def test_run__of_the_same_plan_sees_that_the_pool_was_written_anew(make, tmp_path):
    source, rows = make(tmp_path)
    plan = plan_of(dsel.open_pool(source))
    plan.run(out=tmp_path / "run")
    rows[CHANGED] = -5.0 * ROWS[CHANGED]
    with pytest.raises(StoreMismatchError, match="pool: "):
        plan.run(out=tmp_path / "run")


def test_run__keeps_counts_by_the_rows_that_it_has_read(tmp_path):
    rows = ROWS.copy()
    plan = plan_of(rows)
    rows[CHANGED] = -5.0 * ROWS[CHANGED]
    plan.run(out=tmp_path)
    with pytest.raises(StoreMismatchError, match="pool: "):
        plan_of(ROWS).run(out=tmp_path)
    plan_of(rows).run(out=tmp_path)


def test_run__keeps_counts_by_the_labeled_rows_that_it_has_read(tmp_path):
    labeled, weights = X.copy(), np.ones(len(X))
    plans = [
        dsel.plan_search(
            *(LogisticRegression(), {"C": [1.0]}, labeled, Y, ROWS),
            **{"cv": 3, "random_state": 0, "fit_params": {"sample_weight": weights}},
        )
        for _ in range(3)
    ]
    plans[0].run(out=tmp_path)
    labeled[0] += 1.0
    with pytest.raises(StoreMismatchError, match="labeled: "):
        plans[1].run(out=tmp_path)
    labeled[0] = X[0]
    weights[0] = 3.0
    with pytest.raises(StoreMismatchError, match="fit_params: "):
        plans[2].run(out=tmp_path)


def test_run__refuses_a_pool_of_another_shape_than_was_opened(tmp_path):
    source, _ = local_zarr(tmp_path)
    plan = plan_of(source)
    shutil.rmtree(tmp_path / "a")
    zarr.create_array(tmp_path / "a", data=ROWS[:3000], chunks=(500, 4))
    with pytest.raises(ValueError, match=r"`pool` at .* was written anew .*open it"):
        plan.run()


def test_search__counts_anew_with_the_same_pool_object(tmp_path):
    source, rows = local_zarr(tmp_path)
    pool = dsel.open_pool(source)
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(), {"C": [1.0]}, cv=3, random_state=0
    )
    search.fit(X, Y, pool=pool, out=tmp_path / "run")
    rows[CHANGED] = -5.0 * ROWS[CHANGED]
    with pytest.raises(StoreMismatchError, match="pool: "):
        search.fit(X, Y, pool=pool, out=tmp_path / "run")


def columns(first, last):
    return ColumnTransformer([("some", StandardScaler(), slice(first, last))])


def scaled(X, by):
    return by * X


def keeping(column):
    return lambda X: X[:, [column]]


class Own(ClassifierMixin, BaseEstimator):
    """Answers by a function of the rows."""

    def __init__(self, function=None):
        self.function = function

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[self.function(X).astype(int)]


STEPS = {
    "slice": (columns(0, 2), columns(2, 4)),
    "partial": tuple(
        FunctionTransformer(functools.partial(scaled, by=by)) for by in (1.0, 0.0)
    ),
    "lambda": (
        FunctionTransformer(lambda X: X[:, :2]),
        FunctionTransformer(lambda X: X[:, 2:]),
    ),
    "closure": tuple(FunctionTransformer(keeping(kept)) for kept in (0, 3)),
}


@pytest.mark.parametrize("last", [LogisticRegression(), SVC()])
@pytest.mark.parametrize("kind", STEPS)
def test_run__counts_an_edited_step_anew(kind, last, tmp_path):
    pipelines = [make_pipeline(step, last) for step in STEPS[kind]]
    alone, other = (
        dsel.plan_search(
            None, [each], X, Y, ROWS, cv=3, random_state=0, criterion="cv_bound"
        )
        for each in pipelines
    )
    expected = other.run()
    assert not alone.run(out=tmp_path).fold_errors.equals(expected.fold_errors)
    found = dsel.plan_search(
        None, pipelines[1:], X, Y, ROWS, cv=3, random_state=0, criterion="cv_bound"
    )
    results = found.run(out=tmp_path)
    assert results.fold_errors.values.tolist() == expected.fold_errors.values.tolist()


@pytest.mark.parametrize("kind", ["slice", "lambda", "partial"])
def test_run__counts_steps_of_one_grid_apart(kind):
    one, other = STEPS[kind]
    estimator = make_pipeline(one, SVC())
    name = estimator.steps[0][0]
    results = plan_of(ROWS, estimator, {name: [one, other]}, prune=False).run()
    alone = plan_of(ROWS, make_pipeline(other, SVC()), {"svc__C": [1.0]}).run()
    found = results.fold_errors.values.reshape(2, 3)[1]
    assert found.tolist() == alone.fold_errors.values.ravel().tolist()


def test_run__counts_another_function_of_an_estimator_anew(tmp_path):
    def plan(function):
        return plan_of(ROWS, Own(), {"function": [function]})

    first = plan(lambda X: X[:, 0] > 0).run(out=tmp_path)
    second = plan(lambda X: X[:, 1] > 0).run(out=tmp_path)
    assert int(first.fold_errors.sum()) == 0
    assert int(second.fold_errors.sum()) > 20


def test_run__refuses_counts_of_another_series_of_weights(tmp_path):
    def plan(weights):
        return plan_of(ROWS, fit_params={"sample_weight": pd.Series(weights)})

    plan(np.ones(len(X))).run(out=tmp_path)
    plan(np.ones(len(X))).run(out=tmp_path)
    with pytest.raises(StoreMismatchError, match="fit_params: "):
        plan(1.0 + X[:, 1] ** 2).run(out=tmp_path)


def test_run__never_finds_again_what_cannot_be_pickled(tmp_path):
    def plan():
        lines = iter(["no", "pickle"])  # a generator would do as well
        return plan_of(
            ROWS,
            Own(),
            {"function": [lambda X, _=(each for each in lines): X[:, 0] > 0]},
        )

    said = " ".join(repr(plan()).split())
    assert "cannot be pickled: another run with the same `out`" in said
    plan().run(out=tmp_path)
    assert int(plan().run(out=tmp_path).fold_errors.sum()) == 0


def test_run__finds_counts_again_after_its_classes_were_sent(tmp_path):
    class Rule:  # of no module, so cloudpickle sends it with its methods
        def __init__(self):
            super().__init__()

        def __call__(self, X):
            super().__init__()
            return X[:, 0] > 0

    plan = plan_of(ROWS, Own(), {"function": [Rule()]})
    first = plan.run(out=tmp_path)
    cloudpickle.loads(cloudpickle.dumps(Rule()))  # as where workers return a model
    again = plan_of(ROWS, Own(), {"function": [Rule()]}).run(out=tmp_path)
    assert (again.fit_seconds == first.fit_seconds).all()


def test_run__that_has_ended_is_opened_without_reading_its_pool(tmp_path, rng):
    X = rng.normal(size=(400, 3))
    dsel.write_pool(X[60:], tmp_path / "pool.zarr")
    chunk = max(
        (path for path in (tmp_path / "pool.zarr").rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size,
    )
    pool = dsel.open_pool(tmp_path / "pool.zarr")
    plan = dsel.plan_search(
        None, [GaussianNB()], X[:60], X[:60, 0] > 0, pool, cv=3, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    first = plan.run(out=tmp_path / "run")
    times = chunk.stat().st_atime_ns, chunk.stat().st_mtime_ns
    chunk.write_bytes(b"x" * chunk.stat().st_size)  # whoever reads it fails
    os.utime(chunk, ns=times)
    assert plan.run(out=tmp_path / "run").disagreements.equals(first.disagreements)
