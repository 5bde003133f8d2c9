"""Wrong arguments end in one line that names the argument, before work starts."""

import datetime as dt
import decimal
from functools import partial

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.cluster import connect

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


def fit(X=X, y=Y, grid=None):
    grid = grid or {"max_depth": [1]}
    search = dsel.SemiSupervisedSearchCV(DecisionTreeClassifier(), grid, cv=2, n_jobs=1)
    return search.fit(X, y)


def labels(two):
    return [two[number] for number in Y]


class Lazy:
    """A lazy frame, as of polars."""

    def collect(self):
        raise AssertionError("nothing may be computed")


class Unprintable:
    """Its `repr` fails, as that of a half-made object may."""

    def __repr__(self):
        raise RuntimeError("no repr")


def outcome():
    plan = dsel.plan_search(
        DecisionTreeClassifier(), {"max_depth": [1]}, X, Y, X, cv=2,
        certificate="cv_bound",
    )  # fmt: skip
    return plan.run()


def bound_plan():
    return dsel.plan_bound(40, 40, n_candidates=1, error=0.1)


NUMBERS = (np.inf, np.nan, 2.5, "3", True, 2**70, [3], X)
DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]
NUL, LONG = "\u00e9\0", "a" * 300
CASES = [
    *[("param_grid", lambda name=name: fit(grid={name: [1]}))
      for name in (1, None, ("a",), b"max_depth")],
    ("param_grid", lambda: fit(grid=[{1: [1]}, {"max_depth": [1]}])),
    *[("X", lambda X=X: fit(X=X))
      for X in ([], {}, {1: 2}, {1, 2}, object(), np.array(3.0), Lazy(), iter([[1]]))],
    *[("y", lambda two=two: fit(y=labels(two))) for two in (
        DAYS, [pd.Timestamp(each) for each in DAYS], [b"a", b"b"], [1j, 2j],
        [pd.Period("2020-01"), pd.Period("2020-02")],
        [decimal.Decimal(1), decimal.Decimal(2)],
    )],
    *[("y", lambda kind=kind: fit(y=kind(labels(DAYS)))) for kind in (
        pd.DatetimeIndex, pd.Categorical, partial(np.array, dtype="datetime64[D]"),
        lambda days: pd.Series(pd.Categorical(pd.DatetimeIndex(days))),
        lambda days: pd.DatetimeIndex(days, tz="UTC"),
        lambda days: pd.DatetimeIndex(days) - pd.Timestamp("2020"),
    )],
    *[("y", lambda y=y: fit(y=y)) for y in ([Unprintable()] * 40, range(2**62))],
    ("y", lambda: fit(y={1: 2})),
    ("y", lambda: fit(y=np.c_[Y, Y])),
    *[("n_jobs", lambda n=n: dsel.audit(n_jobs=n))
      for n in (np.inf, np.nan, 2.5, "3", True, 0)],
    *[("place", lambda path=path: dsel.open_results(path))
      for path in (NUL, LONG, "\ud800")],
    *[("path", lambda path=path: dsel.write_pool(X, path)) for path in (NUL, LONG)],
    *[("pool", lambda path=path: dsel.open_pool(path))
      for path in (NUL, LONG, "a/" * 3000, "a\nb", xr.Dataset())],
    *[("source", lambda path=path: dsel.write_pool(path, "out.zarr"))
      for path in (NUL, LONG, "a/" * 3000)],
    *[("path", lambda path=path: dsel.write_pool(X, path))
      for path in ("pool.npy", "pool.csv", "POOL.NPZ")],
    ("pool", lambda: dsel.open_pool(dask.delayed(X))),
    ("client", lambda: dsel.write_pool(X, "out.zarr", client=DecisionTreeClassifier)),
    ("pool", lambda: dsel.write_pool(xr.Dataset(), "out.zarr")),
    *[("n_draws", lambda n=n: dsel.audit(n_draws=n)) for n in NUMBERS],
    *[("chunk_rows", lambda n=n: dsel.write_pool(X, "out.zarr", chunk_rows=n))
      for n in NUMBERS],
    *[("max_pool_rows", lambda n=n: dsel.plan_search(
        DecisionTreeClassifier(), {"max_depth": [1]}, X, Y, X, max_pool_rows=n
    )) for n in NUMBERS],
    *[("n_folds", lambda value=value: dsel.bounds.fold_shares(value))
      for value in (X, pd.DataFrame(X), Unprintable(), xr.Dataset())],
    *[("n_errors", lambda value=value: dsel.bounds.holdout_bound(
        value, 10, delta=0.05
    )) for value in (range(2**62), xr.Dataset(), [[1, 2], [3]], None, iter([1]))],
    ("disagreements", lambda: dsel.bounds.cv_bound(
        [[1, 2], [1, 0]], 9, [1, 2], [9, 9, 9], delta=0.1
    )),
    ("criterion", lambda: dsel.select(outcome().results, X)),
    ("ax", lambda: dsel.plots.plot_bound_plan(bound_plan(), ax="left")),
    ("plan", lambda: dsel.plots.plot_bound_plan({})),
    ("report", lambda: dsel.plots.plot_audit_failures(bound_plan())),
    ("n_labeled", lambda: dsel.datasets.load_digits_problem(n_labeled=2.5)),
    ("fit_intercept", lambda: dsel.least_squares.KernelLeastSquares(
        fit_intercept="no"
    ).fit(X, Y)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_wrong_argument__is_named(number):
    name, call = CASES[number]
    with pytest.raises((TypeError, ValueError), match=rf"^`{name}`") as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["class: 5", "class:", "class: [1]", "class: ..x.y"])
def test_connect__names_a_class_that_is_none(text, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="`class` must be"), connect(path):
        pass


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "feather", "jsonl", "svm"])
@pytest.mark.parametrize("read", [dsel.open_pool, "write"])
def test_folder__named_as_a_file_is_refused(tmp_path, ending, read):
    (tmp_path / f"x.{ending}").mkdir()
    name, call = "pool", read
    if read == "write":
        name, call = "source", lambda path: dsel.write_pool(path, tmp_path / "out")
    with pytest.raises(IsADirectoryError, match=f"`{name}` .*is a folder"):
        call(tmp_path / f"x.{ending}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("address: 5", "address"),
        ("- 1\n- 2", "scheduler"),
        ("", "scheduler"),
        ("5: 3\nclass: x", "scheduler"),
        ("class: distributed.LocalCluster\nadapt: 5", "adapt"),
        ("class: distributed.LocalCluster\npatience: x", "patience"),
        ("class: distributed.LocalCluster\nworkers: 2.5", "workers"),
        ("class: distributed.SpecCluster\nnope: 5", "scheduler"),
    ],
)
def test_cluster_file__of_wrong_contents_is_refused(tmp_path, text, name):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises((TypeError, ValueError), match=f"`{name}`") as info:
        connect(path).__enter__()
    assert "\n" not in str(info.value)


IRIS = load_iris(return_X_y=True)
RECORDS = np.rec.array([(1, 2.0)] * 3, dtype=[("a", int), ("b", float)])


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "`X` must hold rows", lambda s: s.predict(RECORDS)),
        (
            TypeError,
            "`X` must hold rows",
            lambda s: s.predict(pd.MultiIndex.from_tuples([(1, 2), (3, 4)])),
        ),
        (
            TypeError,
            "`cv` must be a number",
            lambda s: dsel.certify(
                s.best_estimator_, *load_iris(return_X_y=True), cv=RECORDS
            ),
        ),
        (
            ValueError,
            "`place` must be a path or a URL",
            lambda s: dsel.results.save_model(s.best_estimator_, "http://["),
        ),
    ],
)
def test_records_indexes_and_broken_urls_are_refused_in_one_line(error, words, call):
    search = dsel.SemiSupervisedSearchCV(
        DecisionTreeClassifier(), {"max_depth": [2]}, random_state=0
    ).fit(*IRIS)
    with pytest.raises(error, match=words) as caught:
        call(search)
    assert "\n" not in str(caught.value)
