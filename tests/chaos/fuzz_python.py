"""Hand public functions thousands of wrong arguments, and see what they say.

    python -m tests.chaos.fuzz_python [--cases 3000] [--seed 0] [--first 0]

A case is a call of a public name that works, in which one argument, or two, were
replaced by something that a user might pass by mistake. It passes if the call ends, or
if dsel refuses it: by an error that its own code raises, of one line, that names an
argument in backticks. Other errors fail it, as do a hang, and files, threads or
processes that are left. Case N of a seed is always the same.
"""

import argparse
import collections
import datetime as dt
import decimal
import fractions
import io
import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from contextlib import chdir, suppress
from functools import cache, partial
from pathlib import Path

import dask.array as da
import dask.bag
import dask.dataframe as dd
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow as pa
import xarray as xr
import zarr
from joblib.externals.loky import get_reusable_executor
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel import bounds, cluster, co_validation, datasets, losses, plots, results
from dsel.accessor import ResultsAccessor
from dsel.least_squares import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
    select_least_squares,
)
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.report import write_report

MOST_SECONDS = 60
PAIRS = 0.35
"""Part of the cases in which two arguments are wrong."""
HOME = str(Path(dsel.__file__).parent) + os.sep
OURS = (
    AttributeError, LookupError, AssertionError, UnboundLocalError, RecursionError,
    NameError, ZeroDivisionError, OverflowError, MemoryError,
)  # fmt: skip
"""Errors that no message excuses: nobody raises them for an argument."""
ALLOWED = {
    r"^X has \d+ features, but \w+ is expecting \d+ features as input":
        "check_n_features_in asks for this text",
    r"^The feature names should match those that were passed during fit":
        "check_dataframe_column_names_consistency asks for this text",
    r"^Found array with 0 (?:sample|feature)\(s\)":
        "check_estimators_empty_data_messages asks for this text",
    r"^Reshape your data|^Expected 2D (?:array|input), got|^Expected a 2-dim":
        "check_fit2d_predict1d asks for this text",
    r"contains (?:NaN|infinity)|value too large for dtype":
        "check_estimators_nan_inf asks for this text",
    r"^Complex data not supported": "check_complex_data asks for this text",
    r"^could not convert string|^float\(\) argument must be|^cannot use sparse"
    r"|^Sparse data was passed for X":
        "what rows it takes the user's model says",
    r"instance is not fitted yet": "NotFittedError is scikit-learn's for it",
    r"^a block that cannot be read|^no array$":
        "an error of the user's own graph or class stays it",
}  # fmt: skip
"""Texts that scikit-learn raises or asks for, in calls of `predict` and the like."""


class EvilRepr:
    """Nobody can print it."""

    def __repr__(self):
        raise RuntimeError("no repr")


class LongRepr:
    """It prints as several lines."""

    def __repr__(self):
        return "a line\n" * 1000


class EvilLen:
    """Its length is negative, which `len` refuses."""

    def __len__(self):
        return -1

    def __getitem__(self, place):
        raise RuntimeError("no item")


class EvilArray:
    """It says that it is an array, and is none."""

    shape = (24, 3)
    dtype = np.dtype(float)
    ndim = 2

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


class EvilEqual:
    """It answers comparisons by an array, as frames do."""

    def __eq__(self, other):
        return np.zeros(3, bool)

    __hash__ = None


def deep(depth):
    """Return a list in a list in a list."""
    nest = []
    for _ in range(depth):
        nest = [nest]
    return nest


# Each makes what is passed anew: some of it can be read once only.
VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    **{
        f"number {number!r}": partial(lambda value: value, number)
        for number in (
            0, 1, -1, 3, 2.5, 1.0, 0.05, 1e300, -1e300, 5e-324, 2**70, -(2**70), 2**63,
            float("nan"), float("inf"), float("-inf"), 1j, np.int64(3), np.int64(-1),
            np.uint8(2), np.float64("nan"), np.float32(0.5), np.bool_(True),
            decimal.Decimal("0.1"), decimal.Decimal("NaN"), decimal.Decimal(3),
            fractions.Fraction(1, 3), np.float16("inf"), np.longdouble(0.3),
        )
    },
    **{
        f"text {text[:12]!r} {len(text)}": partial(lambda value: value, text)
        for text in (
            "", " ", "x", "5", "nan", "-1", "auto", "error", "a\nb", "`x`", "{x}",
            "\u00e9\0", "\ud800", "x" * 300, "a/" * 3000, "s3://", "s3://a:b@c/x", "tcp://",
            "http://[", "http://localhost:1/x.zarr", "file:///nowhere", "nope://x/y",
            "tcp://localhost:1", "s3:/bucket/x", "~", "*", "/dev/null",
        )
    },
    **{
        f"place {name}": partial(lambda value: value, name)
        for name in (
            "folder", "folder.npy", "folder.csv", "folder.parquet", "folder.zarr",
            "folder.npz", "folder.svm", "folder.jsonl", "folder.feather", "folder.yaml",
            "folder.json", "note", "note.npy", "note.zarr", "note.parquet", "note.csv",
            "note.npz", "note.svm", "note.jsonl", "note.feather", "note.yaml",
            "note.json", "empty.csv", "empty.npy", "empty.yaml", "empty.npz",
            "empty.jsonl", "empty.svm", "empty.feather", "empty.parquet",
            "note/under", "no/where.zarr", "flat.npy", "objects.npy", "words.npy",
            "list.yaml", "loop", "locked", "rows.csv", "pool.zarr", "results", "model",
        )
    },
    "Path .": lambda: Path(),
    "Path nowhere": lambda: Path("nowhere"),
    "Path folder.npy": lambda: Path("folder.npy"),
    "Path NUL": lambda: Path("a\0b"),
    "Path s3": lambda: Path("s3://bucket/x"),
    "bytes": lambda: b"pool.zarr",
    "bytes, empty": lambda: b"",
    "bytearray": lambda: bytearray(b"x"),
    "memoryview": lambda: memoryview(b"abcdef"),
    "date": lambda: dt.date(2020, 1, 1),
    "datetime": lambda: dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "timedelta": lambda: dt.timedelta(1),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
    "datetime64 NaT": lambda: np.datetime64("NaT"),
    "Period": lambda: pd.Period("2020-01"),
    "np.str_": lambda: np.str_("x"),
    "np.bytes_": lambda: np.bytes_(b"x"),
    "void": lambda: np.void(b"abc"),
    "ma.masked": lambda: np.ma.masked,
    # Containers
    "list, empty": lambda: [],
    "tuple, empty": lambda: (),
    "dict, empty": lambda: {},
    "set, empty": lambda: set(),
    "set": lambda: {1, 2},
    "frozenset": lambda: frozenset("ab"),
    "dict 1: 2": lambda: {1: 2},
    "dict 1: [1]": lambda: {1: [1]},
    "dict None: [1]": lambda: {None: [1]},
    "dict a: 1": lambda: {"a": 1},
    "dict a: []": lambda: {"a": []},
    "dict C: [nan]": lambda: {"C": [float("nan")]},
    "dict C: text": lambda: {"C": "abc"},
    "dict C: deep": lambda: {"C": [[[1]]]},
    "dict C: None": lambda: {"C": None},
    "dict C: generator": lambda: {"C": (c for c in (1, 2))},
    "dict C: frame": lambda: {"C": pd.DataFrame({"C": [1.0]})},
    "dict C: evil": lambda: {"C": [EvilRepr(), 1.0]},
    "dict address: 5": lambda: {"address": 5},
    "dict class: 5": lambda: {"class": 5},
    "dict class: list": lambda: {"class": ["a"]},
    "dict class: adapt": lambda: {"class": "distributed.LocalCluster", "adapt": 5},
    "dict class: patience": lambda: {
        "class": "distributed.LocalCluster", "patience": "x",
    },
    "dict class: key": lambda: {"class": "distributed.LocalCluster", 1: 2},
    "dict class: unknown": lambda: {"class": "distributed.LocalCluster", "nope": 2},
    "dict class: workers": lambda: {"class": "distributed.LocalCluster", "workers": 2.5,
    },
    "dict nested": lambda: {"a": {"b": {"c": {}}}},
    "ordered dict": lambda: collections.OrderedDict(a=[1]),
    "mapping proxy": lambda: types.MappingProxyType({"a": [1]}),
    "list of numbers": lambda: [1, 2, 3],
    "list of texts": lambda: ["a", "b"],
    "list of bytes": lambda: [b"a", b"b"],
    "list of None": lambda: [None],
    "list of nan": lambda: [float("nan")] * 24,
    "list, ragged": lambda: [[1, 2], [3]],
    "list of lists": lambda: [[[1]]],
    "list, mixed": lambda: [1, "a", None, 2.5],
    "list of dicts": lambda: [{"C": [1]}, {"D": [1]}],
    "list of evil": lambda: [EvilRepr()] * 24,
    "list of huge": lambda: [2**70] * 24,
    "list of dates": lambda: [dt.date(2020, 1, day + 1) for day in range(24)],
    "list of decimals": lambda: [decimal.Decimal(day % 2) for day in range(24)],
    "list of paths": lambda: [Path("a"), Path("b")],
    "list of pairs": lambda: [(0, 1), (1, 0)],
    "list of arrays": lambda: [np.zeros(3), np.zeros(2)],
    "list of bools": lambda: [True, False] * 12,
    "list, deep": lambda: deep(60),
    "list, too deep": lambda: deep(3000),
    "range": lambda: range(3),
    "range, empty": lambda: range(0),
    "range, huge": lambda: range(2**62),
    "iterator": lambda: iter([1, 2]),
    "generator": lambda: (row for row in ([1, 2, 3], [4, 5, 6])),
    "map": lambda: map(str, [1, 2]),
    "zip": lambda: zip([1], [2], strict=True),
    "count": lambda: itertools.repeat(1, 24),
    "slice": lambda: slice(3),
    "deque": lambda: collections.deque([1, 2]),
    # Things
    "lambda": lambda: lambda *a, **k: None,
    "function of 3": lambda: lambda a, b, c: a,
    "type int": lambda: int,
    "object": object,
    "module": lambda: np,
    "Ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "evil repr": EvilRepr,
    "long repr": LongRepr,
    "evil len": EvilLen,
    "evil array": EvilArray,
    "evil equal": EvilEqual,
    "exception": lambda: ValueError("x"),
    "lock": threading.Lock,
    "StringIO": lambda: io.StringIO("a,b\n1,2\n"),
    "Generator": lambda: np.random.default_rng(0),
    "RandomState": lambda: np.random.RandomState(0),
    "SVC class": lambda: SVC,
    "SVC": SVC,
    "SVC of nan": lambda: SVC(C=float("nan")),
    "dummy": DummyClassifier,
    "regressor": LinearRegression,
    "clusterer": lambda: KMeans(2),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC()),
    "KFold": lambda: KFold(3),
    "a search": lambda: GridSearchCV(SVC(), {"C": [1]}, cv=2),
    # Arrays
    "array 0-d": lambda: np.array(3),
    "array of 1": lambda: np.array([3]),
    "array, empty": lambda: np.array([]),
    "array 0 x 3": lambda: np.zeros((0, 3)),
    "array 3 x 0": lambda: np.zeros((3, 0)),
    "array 2 x 2 x 2": lambda: np.zeros((2, 2, 2)),
    "array 24 x 3": lambda: np.zeros((24, 3)),
    "array 24 x 2": lambda: np.zeros((24, 2)),
    "array 24": lambda: np.zeros(24),
    "array -1": lambda: np.full(24, -1),
    "array of nan": lambda: np.full((24, 3), np.nan),
    "array of inf": lambda: np.full((24, 3), np.inf),
    "array of 1e308": lambda: np.full((24, 3), 1e308),
    "array, complex": lambda: np.zeros((24, 3), complex),
    "array, bool": lambda: np.zeros((24, 3), bool),
    "array, object": lambda: np.full((24, 3), None),
    "array, evil": lambda: np.array([EvilRepr()] * 24, dtype=object),
    "array of text": lambda: np.full((24, 3), "a"),
    "array of texts": lambda: np.array(["a", "b"] * 12),
    "array of bytes": lambda: np.array([b"a", b"b"] * 12),
    "array of dates": lambda: np.arange(24).astype("datetime64[D]"),
    "array of spans": lambda: np.arange(24).astype("timedelta64[D]"),
    "array of records": lambda: np.zeros(24, [("a", int), ("b", float)]),
    "array, float16": lambda: np.ones((24, 3), np.float16),
    "array, uint64": lambda: np.full(24, 2**64 - 1, np.uint64),
    "masked": lambda: np.ma.masked_less(np.arange(72).reshape(24, 3), 5),
    "masked labels": lambda: np.ma.masked_less(np.arange(24), 5),
    "matrix": lambda: np.asmatrix(np.zeros((24, 3))),
    "csr": lambda: sparse.csr_matrix(np.eye(24, 3)),
    "coo array": lambda: sparse.coo_array(np.eye(24, 3)),
    "sparse, empty": lambda: sparse.csr_matrix((0, 3)),
    "sparse of nan": lambda: sparse.csr_matrix(np.full((24, 3), np.nan)),
    "sparse 1-d": lambda: sparse.coo_array(np.ones(24)),
    # Frames
    "frame, empty": lambda: pd.DataFrame(),
    "frame, no rows": lambda: pd.DataFrame({"a": [], "b": []}),
    "frame, no columns": lambda: pd.DataFrame(index=range(24)),
    "frame": lambda: pd.DataFrame(np.zeros((24, 3)), columns=list("abc")),
    "frame of text": lambda: pd.DataFrame({"a": ["x"] * 24, "b": ["y"] * 24}),
    "frame, a twice": lambda: pd.DataFrame(np.zeros((24, 3)), columns=list("aab")),
    "frame, levels": lambda: pd.DataFrame(
        np.zeros((24, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    ),
    "frame of objects": lambda: pd.DataFrame({"a": [{}] * 24, "b": [[1]] * 24}),
    "frame, evil": lambda: pd.DataFrame({"a": [EvilRepr()] * 24}),
    "frame, names None": lambda: pd.DataFrame(np.zeros((24, 2)), columns=[None, 1]),
    "frame of dates": lambda: pd.DataFrame({"a": pd.date_range("2020", periods=24)}),
    "series": lambda: pd.Series(np.zeros(24)),
    "series, empty": lambda: pd.Series([], dtype=object),
    "series, NA": lambda: pd.Series([1, None] * 12, dtype="Int64"),
    "index": lambda: pd.Index(range(24)),
    "dates": lambda: pd.date_range("2020", periods=24),
    "levels": lambda: pd.MultiIndex.from_product([["a", "b"], range(12)]),
    "categories": lambda: pd.Categorical(["a", "b"] * 12),
    "categories of dates": lambda: pd.Series(
        pd.Categorical([dt.date(2020, 1, 1), dt.date(2020, 1, 2)] * 12)
    ),
    "categories of times": lambda: pd.Categorical(
        pd.DatetimeIndex(["2020", "2021"] * 12)
    ),
    "periods": lambda: pd.period_range("2020", periods=24, freq="D"),
    "polars": lambda: pl.DataFrame({"a": [1.0] * 24}),
    "polars, empty": pl.DataFrame,
    "polars, lazy": lambda: pl.LazyFrame({"a": [1.0] * 24}),
    "polars, series": lambda: pl.Series("a", [1, 2] * 12),
    "polars, lists": lambda: pl.DataFrame({"a": [[1, 2]] * 24}),
    "arrow": lambda: pa.table({"a": [1.0] * 24}),
    "arrow, empty": lambda: pa.table({}),
    "arrow, column": lambda: pa.chunked_array([[1, 2] * 12]),
    "arrow, batch": lambda: pa.record_batch({"a": [1.0] * 24}),
    # Lazy and labeled arrays
    "Dataset": xr.Dataset,
    "Dataset of a": lambda: xr.Dataset({"a": ("row", np.zeros(24))}),
    "Dataset, odd": lambda: xr.Dataset({"a": ("x", [1.0]), "b": ("y", [1, 2])}),
    "Dataset 0-d": lambda: xr.Dataset({"a": 1}),
    "DataArray": lambda: xr.DataArray(np.zeros((24, 3)), dims=("row", "column")),
    "DataArray 0-d": lambda: xr.DataArray(5),
    "dask": lambda: da.zeros((24, 3), chunks=(7, 2)),
    "dask 1-d": lambda: da.zeros(24, chunks=5),
    "dask, unknown": lambda: da.from_array(np.arange(6.0))[da.ones(6) > 0],
    "dask of text": lambda: da.from_array(np.full((24, 3), "a")),
    "dask, failing": lambda: da.zeros((24, 3)).map_blocks(fail, dtype=float),
    "dask frame": lambda: dd.from_pandas(
        pd.DataFrame(np.zeros((24, 3)), columns=list("abc")), npartitions=2
    ),
    "dask bag": lambda: dask.bag.from_sequence([1, 2]),
    "delayed": lambda: dask.delayed(int)(3),
    "zarr 1-d": lambda: zarr.array(np.zeros(24)),
    "zarr": lambda: zarr.array(np.zeros((24, 3))),
    "zarr of text": lambda: zarr.open_array("flat.zarr", mode="r"),
    "zarr group": lambda: zarr.open_group("group.zarr", mode="r"),
    # Of dsel, and in the wrong place
    "cube": lambda: base().outcome.results,
    "cube, nested": lambda: base().nested.results,
    "cube, regression": lambda: base().least_squares,
    "cube, co-validation": lambda: base().halves,
    "cube without attributes": lambda: base().outcome.results.drop_attrs(),
    "cube without variables": lambda: base().outcome.results[[]],
    "cube of nan": lambda: base().outcome.results * np.nan,
    "cube, one variable": lambda: base().outcome.results["status"],
    "cube, empty": lambda: base().outcome.results.isel(C=slice(0)),
    "audit": lambda: base().audit,
    "plan of bounds": lambda: base().bounds,
    "outcome": lambda: base().outcome,
    "comparison": lambda: base().comparison,
    "pool": lambda: dsel.open_pool(np.zeros((24, 3))),
    "pool of 2": lambda: dsel.open_pool(np.zeros((24, 2))),
    "pool of text": lambda: dsel.open_pool(pd.DataFrame({"a": ["x"] * 24})),
    "plan": lambda: dsel.plan_search(SVC(), {"C": [1.0]}, *base().rows, base().pool),
    "loss": lambda: losses.recall(1),
    "axes": lambda: plt.Figure().subplots(),
    "figure": plt.Figure,
}  # fmt: skip


def fail(*_):
    raise OSError("a block that cannot be read\nof two lines")


@cache
def base():
    """Return what calls are made with, and what functions are given that read it."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(24, 2)), np.arange(24) % 3])
    y = (X[:, 0] + 0.3 * rng.normal(size=24) > 0).astype(int)
    pool = np.column_stack([rng.normal(size=(60, 2)), np.arange(60) % 3])
    folder = Path(tempfile.mkdtemp())
    with chdir(folder), warnings.catch_warnings(action="ignore"):
        grid = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}
        outcome = dsel.plan_search(
            SVC(), grid, X, y, pool, cv=3, certificate="cv_bound", random_state=0
        ).run()
        nested = dsel.plan_search(
            SVC(),
            grid,
            X,
            y,
            pool,
            cv=3,
            certificate="nested",
            report=True,
            report_by=2,
            random_state=0,
        ).run()
        dsel.save_results(outcome.results, "results")
        results.save_model(outcome.models["all_rows"], "model")
        dsel.write_pool(pool, "pool.zarr")
        regression = LeastSquaresSearch([1.0], [0.1, 1.0], cv=3).fit(X, X[:, 0])
        halves = dsel.covalidate(SVC(), {"C": [0.1, 1.0]}, X, y, pool, repeats=2)
        audit = dsel.audit(["best_fold, tiny folds"], n_draws=2, delta=0.2)
        plan = dsel.plan_bound(24, 60, n_candidates=2, error=0.1)
        models = [GaussianNB().fit(X, y), DummyClassifier().fit(X, y)]
        comparison = dsel.compare_models(*models, pool, n_queries=2)
        co_validation.write_row_disagreement(
            GaussianNB(), X, y, pool, "disputed.zarr", n_models=2
        )
        for ending in ("", ".npy", ".csv", ".parquet", ".zarr", ".npz", ".svm",
                       ".jsonl", ".feather", ".yaml", ".json"):  # fmt: skip
            Path(f"folder{ending}").mkdir()
            Path(f"note{ending}").write_text("a note\n")
            if ending:
                Path(f"empty{ending}").touch()
        np.save("flat.npy", np.zeros(3))
        np.save("words.npy", np.full((3, 2), "a"))
        np.save("objects.npy", np.array([[None, 1]]), allow_pickle=True)
        zarr.create_array("flat.zarr", data=np.full((24, 3), "a"))
        zarr.open_group("group.zarr", mode="w").create_array("a", data=np.zeros(3))
        Path("list.yaml").write_text("[1, 2]\n")
        Path("loop").symlink_to("loop")
        Path("rows.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
        Path("locked").mkdir(mode=0)
        Path("data").mkdir()
    return types.SimpleNamespace(
        X=X, y=y, rows=(X, y), pool=pool, folder=folder, outcome=outcome, nested=nested,
        least_squares=regression.results_, halves=halves, audit=audit,
        bounds=plan, models=models, comparison=comparison, grid=grid,
    )  # fmt: skip


def fitted(make, *args):
    """Return an estimator that was fitted once, for calls of its methods."""
    if make not in FITTED:
        with warnings.catch_warnings(action="ignore"):
            FITTED[make] = make().fit(*args)
    return FITTED[make]


FITTED = {}


def construct_and_fit(make, fit_names, **given):
    """Construct an estimator and fit it: scikit-learn's check nothing before."""
    fit = {name: given.pop(name) for name in fit_names if name in given}
    return make(**given).fit(**fit)


def estimator(make, init, fit):
    """Return a call that makes an estimator and fits it."""
    return partial(construct_and_fit, make, tuple(fit)), {**init, **fit}


@cache
def calls():
    """Return a function and arguments that work, by name."""
    b = base()
    X, y, pool = b.X, b.y, b.pool
    rows = {"X": X, "y": y}
    differ = {
        "disagreements": np.array([[1, 2, 0]]), "pool_rows": 60, "delta": 0.05
    }  # fmt: skip
    folds = {"fold_errors": np.array([[1, 2, 0]]), "fold_rows": np.array([8, 8, 8])}
    search = {
        "estimator": SVC(), "param_grid": {"C": [0.1, 1.0]}, "certificate": "cv_bound",
        "deploy": None, "cv": 3, "delta": 0.05, "prune": False,
        "max_pool_rows": 50, "loss": "error", "report": False, "report_by": None,
        "random_state": 0,
    }  # fmt: skip
    plain = {k: v for k, v in search.items() if k not in ("report", "report_by")}
    widths = {"widths": [1.0], "regularizations": [0.1, 1.0], "cv": 3}
    regression = {"X": X, "y": X[:, 0]}
    active = {
        "estimator": GaussianNB(), "pool": pool, "label_of": lambda rows: rows % 2,
    }  # fmt: skip
    found = {
        "SemiSupervisedSearchCV": estimator(
            dsel.SemiSupervisedSearchCV, {**search, "n_jobs": 1, "verbose": 0},
            {**rows, "pool": pool, "groups": None},
        ),
        "audit": (dsel.audit, {
            "settings": ["best_fold, tiny folds"], "delta": 0.2, "n_draws": 1,
            "random_state": 0, "n_jobs": 1,
        }),
        "certify": (dsel.certify, {
            "model": GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, cv=2),
            **rows, "pool": pool, "cv": 3, "deploy": "all_rows", "client": None,
            "random_state": 0, "groups": None,
        }),
        "certify, fitted": (dsel.certify, {
            "model": GaussianNB().fit(X[:12] + 1.0, y[:12]), **rows, "cv": "prefit",
            "delta": 0.05, "groups": None,
        }),
        "compare_models": (dsel.compare_models, {
            "old": b.models[0], "new": b.models[1], "pool": pool, "n_queries": 2,
            "classes": [0, 1], "X_seen": X, "random_state": 0,
        }),
        "ModelComparison.certify": (
            b.comparison.certify_with_labels, {"labels": [0, 1]}
        ),
        "covalidate": (dsel.covalidate, {
            "estimator": SVC(), "param_grid": {"C": [0.1, 1.0]}, **rows, "pool": pool,
            "repeats": 2, "criterion": "max_dt_e", "random_state": 0, "out": None,
            "storage_options": None,
        }),
        "plan_covalidation": (co_validation.plan_covalidation, {
            "estimator": SVC(), "param_grid": {"C": [0.1, 1.0]}, **rows, "pool": pool,
            "repeats": 2, "criterion": "max_dt_e", "random_state": 0,
            "leave_one_out": False, "picked": False, "prune": False,
        }),
        "open_pool": (dsel.open_pool, {
            "source": "pool.zarr", "columns": None, "storage_options": None,
            "other_records": None,
        }),
        "open_results": (dsel.open_results, {
            "place": "results", "chunks": None, "storage_options": None,
        }),
        "save_results": (dsel.save_results, {
            "results": b.outcome.results, "place": "out", "storage_options": None,
        }),
        "open_model": (results.open_model, {
            "place": "model", "name": None, "trusted": (), "storage_options": None,
        }),
        "save_model": (results.save_model, {
            "model": b.models[0], "place": "out", "storage_options": None,
        }),
        "plan_bound": (dsel.plan_bound, {
            "n_labeled": 24, "n_unlabeled": 60, "n_candidates": 3, "error": 0.1,
            "disagreement": 0.1, "class_share": 0.4, "cv": 5, "delta": 0.05,
            "wanted": 0.3,
        }),
        "plan_search": (dsel.plan_search, {
            **plain, **rows, "pool": pool, "groups": None,
        }),
        "Plan.run": (
            lambda **k: dsel.plan_search(**plain, X=X, y=y, pool=pool).run(**k),
            {"client": None, "out": "out"},
        ),
        "select": (dsel.select, {
            "results": b.outcome.results, "criterion": "cv_bound", "delta": 0.05,
        }),
        "select, nested": (dsel.select, {
            "results": b.nested.results, "criterion": "cv_error", "delta": 0.05,
        }),
        "results.dsel.select": (
            lambda **k: b.outcome.results.dsel.select(**k),
            {"criterion": "cv_bound", "delta": 0.05},
        ),
        "results.dsel.bound": (
            lambda **k: b.outcome.results.dsel.bound(**k),
            {"criterion": "cv_bound", "delta": 0.05},
        ),
        "results.dsel.table": (
            lambda results: ResultsAccessor(results).table(),
            {"results": b.outcome.results},
        ),
        "write_pool": (dsel.write_pool, {
            "source": pool, "path": "out.zarr", "target": None, "dtype": None,
            "chunk_rows": 20, "storage_options": None, "client": None,
            "on_progress": None,
        }),
        "write_pool, text": (dsel.write_pool, {
            "source": "rows.csv", "path": "out.parquet", "target": "label",
            "dtype": None,
        }),
        "write_report": (write_report, {
            "results": b.outcome.results, "path": "page.html",
        }),
        # Bounds
        **{
            name: (getattr(bounds, name), {**folds, **differ, "label_share": 0.9})
            for name in ("best_fold", "cv_bound", "nested_all_rows")
        },
        "nested_one_fold": (bounds.nested_one_fold, {**folds, "delta": 0.05}),
        "pair_error_bound": (bounds.pair_error_bound, differ),
        "error_variance_from_pairs": (bounds.error_variance_from_pairs, {
            name: differ[name] for name in ("disagreements", "pool_rows")
        }),
        "upper_pool_rows": (bounds.upper_pool_rows, {
            "n_unlabeled": 60, "n_duplicates": 2, "counted_duplicates": 1,
        }),
        "mean_difference_limit": (bounds.mean_difference_limit, {
            "n_only_f_right": [3], "n_queries": 10, "delta": 0.05,
        }),
        "queried_difference": (bounds.queried_difference, {
            "mean_limit": [0.1], "n_differ": 10, "n_unlabeled": 60, "delta": 0.05,
            "n_duplicates": 2, "n_duplicates_differ": 1,
        }),
        "sign_test_limit": (bounds.sign_test_limit, {
            "n_only_g_right": [3], "n_only_f_right": [5], "n_queries": 10,
            "delta": 0.05,
        }),
        "binomial_tail_inversion": (bounds.binomial_tail_inversion, {
            "n_errors": [1, 2], "n_samples": [10, 10], "delta": 0.05,
        }),
        "holdout_bound": (bounds.holdout_bound, {
            "n_errors": [1], "n_rows": 10, "delta": 0.05,
        }),
        "fold_shares": (bounds.fold_shares, {"n_folds": 3}),
        **{
            name: (getattr(bounds, name), {"disagreement": [0.1]})
            for name in (
                "error_ends_from_disagreement", "error_variance_from_disagreement"
            )
        },
        "error_from_disagreement": (bounds.error_from_disagreement, {
            "disagreement": [0.1], "n_classes": 3,
        }),
        "threshold_bound": (bounds.threshold_bound, {
            "counts": [3], "n_validation": 20, "n_models": 2, "delta": 0.05,
        }),
        # Losses
        "balanced": (losses.balanced, {"classes": ["a", "b"]}),
        "cost": (losses.cost, {"costs": [[0, 1], [2, 0]], "classes": ["a", "b"]}),
        "precision": (losses.precision, {"label": 1}),
        "recall": (losses.recall, {"label": 1}),
        # Other systems
        "KernelLeastSquares": estimator(KernelLeastSquares, {
            "width": 1.0, "regularization": 1.0, "penalty": "coefficients",
            "fit_intercept": False, "n_centers": None, "centers": None,
            "random_state": 0,
        }, regression),
        "KernelLeastSquaresClassifier": estimator(KernelLeastSquaresClassifier, {
            "width": 1.0, "regularization": 1.0, "penalty": "coefficients",
            "fit_intercept": False, "n_centers": None, "centers": None,
            "random_state": 0,
        }, rows),
        "LeastSquaresSearch": estimator(LeastSquaresSearch, widths, regression),
        "StreamedLeastSquaresSearch": estimator(
            StreamedLeastSquaresSearch, {k: v for k, v in widths.items() if k != "cv"},
            {"X": da.from_array(X), "y": da.from_array(X[:, 0])},
        ),
        "select_least_squares": (select_least_squares, {
            "results": b.least_squares, "criterion": None, "fold": None,
        }),
        "MaximumLikelihoodLDA": estimator(MaximumLikelihoodLDA, {"ridge": 0.1}, rows),
        "OracleLDA": estimator(
            OracleLDA, {"ridge": 0.1},
            {**rows, "pool": pool, "pool_labels": (pool[:, 0] > 0).astype(int)},
        ),
        "SemiSupervisedLDA": estimator(
            SemiSupervisedLDA,
            {"tol": 1e-3, "ridge": 0.1, "max_passes": 5, "start_rows": 100},
            {**rows, "pool": pool},
        ),
        "NonconformityClassifier": estimator(
            NonconformityClassifier,
            {
                "estimator": SVC(), "param_grid": {"C": [1.0]}, "validation_size": 8,
                "ties": "random", "random_state": 0,
            },
            rows,
        ),
        "learn_actively": (learn_all, {
            **active, "n_start": 6, "n_rows": 8, "batch": 1, "random_state": 0,
        }),
        "sample_uncertain": (co_validation.sample_uncertain, {
            **active, "n_start": 6, "n_rows": 8, "batch": 1, "random_state": 0,
        }),
        "most_disputed": (co_validation.most_disputed, {
            "path": "disputed.zarr", "n_rows": 3,
        }),
        "write_row_disagreement": (co_validation.write_row_disagreement, {
            "estimator": GaussianNB(), **rows, "pool": pool, "path": "out.zarr",
            "n_models": 2, "random_state": 0, "client": None,
        }),
        # Plots
        **{
            name: (getattr(plots, name), {argument: value, "ax": None})
            for name, argument, value in (
                ("plot_audit_failures", "report", b.audit),
                ("plot_bound_plan", "plan", b.bounds),
                ("plot_certificates", "results", b.outcome.results),
                ("plot_loss_curves", "results", b.least_squares),
                ("plot_comparison", "comparison", b.comparison),
                ("plot_certified_report", "report", b.nested.certified_report()),
                ("plot_report_by_value", "report", b.nested.report_by_value()),
            )
        },
        "plot_surface": (plots.plot_surface, {
            "results": b.outcome.results, "criterion": "cv_bound", "ax": None,
            "x": "C", "y": "gamma",
        }),
        "plot_terms": (plots.plot_terms, {
            "results": b.outcome.results, "criterion": "cv_bound", "n_best": 2,
            "ax": None,
        }),
        # Data sets and clusters
        "NonconformityClassifier.certify": (
            fitted(make_nonconformity, *b.rows).certify,
            {"X": pool[:20], "y": y[:20], "delta": 0.05, "allow_equal_rows": False},
        ),
        "load_digits_problem": (datasets.load_digits_problem, {"n_labeled": 100}),
        "load_set": (datasets.load_set, {"name": "nowhere", "folder": "data"}),
        "data_folder": (datasets.data_folder, {"folder": "data"}),
        "check_files": (datasets.check_files, {"wanted": ["x"], "folder": "data"}),
        "connect": (open_and_close, {
            "scheduler": "tcp://127.0.0.1:1", "tls": None, "timeout": 0.2,
        }),
        "connect, here": (open_and_close, {"workers": "one", "memory": "nothing"}),
        "connect, class": (open_and_close, {
            "scheduler": {"class": "distributed.LocalCluster", "n_workers": "x"},
        }),
    }  # fmt: skip
    methods = {
        "SemiSupervisedSearchCV": (make_search, (*b.rows, b.pool)),
        "KernelLeastSquares": (KernelLeastSquares, (X, X[:, 0])),
        "KernelLeastSquaresClassifier": (KernelLeastSquaresClassifier, b.rows),
        "LeastSquaresSearch": (make_regression, (X, X[:, 0])),
        "SemiSupervisedLDA": (SemiSupervisedLDA, (*b.rows, b.pool)),
        "NonconformityClassifier": (make_nonconformity, b.rows),
    }
    for name, (make, args) in methods.items():
        model = fitted(make, *args)
        for method in ("predict", "decision_function", "predict_proba"):
            if hasattr(model, method):
                # `score` is scikit-learn's own.
                found[f"{name}.{method}"] = getattr(model, method), {"X": X}
    return found


def make_search():
    return dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [0.1, 1.0]}, certificate="cv_bound", cv=3, random_state=0
    )


def learn_all(**given):
    return list(co_validation.learn_actively(**given))


def make_nonconformity():
    return NonconformityClassifier(SVC(), {"C": [1.0]}, random_state=0)


def make_regression():
    return LeastSquaresSearch([1.0], [0.1, 1.0], cv=3)


def open_and_close(**given):
    with cluster.connect(**given):
        pass


def run_case(number, seed):
    """Run one case in this folder; return what was called, its end, and what is wrong.

    The end is "taken", "refused" or "failed".
    """
    rng = np.random.default_rng([seed, number])
    names = sorted(calls())
    name = names[rng.integers(len(names))]
    function, given = calls()[name]
    n_wrong = min(len(given), 1 + int(rng.random() < PAIRS))
    wrong = rng.choice(sorted(given), n_wrong, replace=False).tolist()
    kinds = [list(VALUES)[rng.integers(len(VALUES))] for _ in wrong]
    title = (
        f"{name}({', '.join(f'{a}={k}' for a, k in zip(wrong, kinds, strict=True))})"
    )
    with warnings.catch_warnings(action="ignore"):  # numpy dislikes matrices
        values = {a: VALUES[kind]() for a, kind in zip(wrong, kinds, strict=True)}
    before = here()
    try:
        with warnings.catch_warnings(action="ignore"):
            function(**(given | values))
    except SlowError:
        raise
    except BaseException as error:
        fault = fault_of(error)
        if fault is None and (left := here() - before):
            fault = f"left {sorted(left)[:5]}"
        return title, "refused" if fault is None else "failed", fault
    return title, "taken", None


def here():
    """Return the files and folders of this folder, but those of locked ones."""
    return {str(path) for path in Path().rglob("*")}


def fault_of(error):
    """Return what is wrong with an error that a user sees; None where nothing is."""
    text, frames = str(error), traceback.extract_tb(error.__traceback__)
    kind = type(error).__name__
    if any(re.search(pattern, text) for pattern in ALLOWED):
        return None
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    ours = [frame for frame in frames if frame.filename.startswith(HOME)]
    last = f" below {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    told = f"{kind} at {where}{last}: {text[:300]!r}"
    if not frames[-1].filename.startswith(HOME):
        return f"raw {told}"
    if isinstance(error, OURS) or not isinstance(error, Exception):
        return f"internal {told}"
    if len(text.splitlines()) != 1:
        return f"not one line: {told}"
    if not re.search("`[^`]+`", text):
        return f"names no argument: {told}"
    if len(text) > 1500:
        return f"{len(text)} characters: {told}"
    return None


class SlowError(BaseException):
    """A case takes too long; no function foresees it."""


def interrupt(*_):
    raise SlowError


def children():
    """Return the numbers of the processes that this one has started."""
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found |= {int(number) for number in path.read_text().split()}
    return found


def leftovers(threads, processes):
    """Return a text about threads that would keep Python alive, and processes."""
    # joblib keeps the processes of an audit for the next call, and ends them at exit.
    get_reusable_executor().shutdown()
    for _ in range(50):
        # Threads of pools wait for more work, and end with the process.
        new = [
            thread for thread in set(threading.enumerate()) - threads
            if not (thread.daemon or thread.name.startswith("ThreadPoolExecutor"))
        ]  # fmt: skip
        started = [n for n in children() - processes if not is_tracker(n)]
        if not new and not started:
            return ""
        time.sleep(0.1)
    return f"left running: {new} {started}"


def is_tracker(number):
    """Return whether a process is over, or Python's own that removes files at last."""
    with suppress(psutil.Error):
        process = psutil.Process(number)
        words = " ".join(process.cmdline())
        return process.status() == "zombie" or "resource_tracker" in words
    return True


def fuzz(cases, seed=0, say=lambda _: None, until=float("inf")):
    """Run cases; return how many ended how, and what failed."""
    mpl.use("agg")
    base(), calls()
    before = signal.signal(signal.SIGALRM, interrupt)
    ends, failed = collections.Counter(), []
    folder = Path(tempfile.mkdtemp()) / "case"
    for number in cases:
        if time.monotonic() > until:
            break
        threads, processes = set(threading.enumerate()), children()
        if not folder.exists():
            shutil.copytree(base().folder, folder, symlinks=True)
            content = {path: os.lstat(path).st_mtime_ns for path in folder.rglob("*")}
        signal.alarm(MOST_SECONDS)
        with chdir(folder):
            try:
                title, end, fault = run_case(number, seed)
            except SlowError:
                title, end, fault = "?", "failed", f"hangs\n{traceback.format_exc()}"
        signal.alarm(0)
        plt.close("all")
        if content != {path: os.lstat(path).st_mtime_ns for path in folder.rglob("*")}:
            shutil.rmtree(folder, ignore_errors=True)
        fault = fault or leftovers(threads, processes)
        ends["failed" if fault else end] += 1
        if fault:
            failed.append(f"case {number}: {title}\n    {fault}")
            say(failed[-1])
    signal.signal(signal.SIGALRM, before)
    shutil.rmtree(folder.parent)
    return ends, failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Call functions by wrong arguments.")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    ends, failed = fuzz(
        range(options.first, options.first + options.cases),
        options.seed,
        partial(print, flush=True),
        time.monotonic() + 60 * options.minutes,
    )
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(f"seed {options.seed}: {ends.total()} cases: {told}")
    sys.exit(bool(failed))
