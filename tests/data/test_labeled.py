from operator import add

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

import dsel
from dsel.data import open_pool, write_pool
from dsel.data.frames import number_matrix
from dsel.data.labeled import check_labels, labeled_rows, match_pool

X = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b", "b"], ["a", "b"]),
        (np.array(["b", "a", "b", "b"], dtype=object), ["a", "b"]),
        (np.array([7, 3, 7, 7]), [3, 7]),
        (pd.Series([7, 3, 7, 7], dtype="Int64"), [3, 7]),
        (pd.Series([True, False, True, True]), [False, True]),
        (pd.Series(["b", "a", "b", "b"], dtype="category"), ["a", "b"]),
    ],
)
def test_labeled_rows__codes_labels_in_sorted_order(y, classes):
    rows = labeled_rows(X, y)
    assert rows.classes.tolist() == classes
    assert rows.y.tolist() == [1, 0, 1, 1]
    assert rows.classes[rows.y].tolist() == list(y)
    assert rows.classes.dtype == np.array(classes).dtype


@pytest.mark.parametrize(
    "y",
    [
        [-1, 1, -1, 1],
        [-1.0, 1.0, 1.0, -1.0],
        ["-1", "1", "1", "-1"],
        ["NA", "null", "N/A", "NA"],
        pd.Series(["None", "NA", "nan", "NaT"], dtype="category"),
        pl.Series(["NA", "null", "a", "b"]),
    ],
    ids=str,
)
def test_labeled_rows__takes_classes_that_look_missing_and_are_not(y):
    rows = labeled_rows(X, y)
    assert rows.classes[rows.y].tolist() == list(y)


def test_labeled_rows__entries_of_one_place_are_summed():
    entries = [1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]
    given = sparse.csr_matrix(entries, shape=(2, 2))
    rows = labeled_rows(given, [0, 1])
    assert (rows.X.data.tolist(), given.nnz) == ([3.0, 5.0], 3)


def test_labeled_rows__token_changes_with_labels_and_names():
    tokens = {
        labeled_rows(X, [0, 1, 0, 1]).token,
        labeled_rows(X, [0, 1, 1, 1]).token,
        labeled_rows(X, [0, 2, 0, 2]).token,
        labeled_rows(pd.DataFrame(X, columns=["a", "b"]), [0, 1, 0, 1]).token,
    }
    assert len(tokens) == 4
    assert labeled_rows(X.copy(), [0, 1, 0, 1]).token in tokens


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [pd.DataFrame, np.asarray, sparse.csr_matrix])
def test_labeled_rows__names_row_and_column_of_a_bad_value(bad, make):
    values = X.copy()
    values[2, 1] = bad
    with pytest.raises(ValueError, match=r"row 2, column '?1'? is (NaN|inf)"):
        labeled_rows(make(values), [0, 1, 0, 1])


def test_labeled_rows__takes_long_numbers_of_arrow():
    table = pa.table({"id": [2**60, None, 3, 4], "flag": [True, None, False, True]})
    found = labeled_rows(
        table, list("abab"), allow_nan=True, as_frame=True
    ).X.encoded_rows
    assert found[0].tolist() == [2.0**60, 1.0]
    assert np.isnan(found[1]).all()


def as_parquet(pool, folder):
    pool.to_parquet(folder / "pool.parquet")
    return folder / "pool.parquet"


KINDS = {
    "frame": lambda pool, _: pool,
    "zarr": lambda pool, folder: write_pool(pool, folder / "pool.zarr"),
    "Parquet": as_parquet,
    "Dask": lambda pool, _: dd.from_pandas(pool, npartitions=2),
    "CSR": lambda pool, _: open_pool(sparse.csr_matrix(pool), columns=pool.columns),
}


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_matching_pool__finds_columns_by_their_names(kind, as_frame, tmp_path, rng):
    whole = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("dcba"))
    labeled = labeled_rows(whole[["a", "c"]], np.arange(50) % 2, as_frame=as_frame)
    opened = open_pool(KINDS[kind](whole, tmp_path))
    pool = match_pool(opened, labeled)
    found = pool.reduce(lambda X, rows: [number_matrix(X)], add)
    dense = [x.toarray() if sparse.issparse(x) else x for x in found]
    assert (np.concatenate(dense) == whole[["a", "c"]].to_numpy()).all()
    assert (pool.columns, pool.n_columns) == (("a", "c"), 2)
    assert pool.token != opened.token


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.table])
def test_matching_pool__keeps_numbers_that_the_type_does_not_hold(library):
    X = pd.DataFrame({"n": np.arange(4, dtype="int8"), "none": 5})
    labeled = labeled_rows(library(X), [0, 1, 0, 1], as_frame=True)
    pool = match_pool(open_pool(pd.DataFrame({"n": [1, 300], "none": None})), labeled)
    found = pool.reduce(lambda X, rows: X.native, max, allow_nan=True)
    assert np.asarray(found["n"]).tolist() == [1, 300]
    assert np.isnan(np.asarray(found["none"], float)).all()


def test_matching_pool__makes_missing_what_is_no_category():
    X, rows = (pd.DataFrame({"n": pd.Categorical(n)}) for n in ([1, 2], [2, None, 3]))
    labeled = labeled_rows(X, [0, 1], as_frame=True)
    pool = match_pool(open_pool(rows), labeled)
    found = pool.reduce(lambda X, rows: X.native["n"], max, allow_nan=True)
    assert found.dtype == X["n"].dtype
    assert found.cat.codes.tolist() == [1, -1, -1]


@pytest.mark.parametrize("kind", [list, tuple, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("labels", [[1, "a"], ["1", 1], [True, "a"]])
def test_labels__of_two_types_are_refused_and_not_made_texts(kind, labels):
    with pytest.raises(TypeError, match="labels of one type, got"):
        check_labels(kind(labels * 10))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "a\0", "b"] * 10, dtype=object),
        [2**53, 2**53 + 1, 1.0] * 10,
        pd.Series([2**53, 2**53 + 1, 1.0] * 10, dtype=object),
    ],
    ids=["zero byte", "list", "objects"],
)
def test_labels__that_would_become_one_are_refused(labels):
    with pytest.raises(TypeError, match=r"numpy keeps apart, but .* and .* become"):
        dsel.plan_search(LogisticRegression(), {"C": [1]}, np.ones((30, 2)), labels)


@pytest.mark.parametrize("kind", ["uint64", object])
def test_targets__that_float64_would_round_are_refused(kind):
    targets = (2**63 + np.arange(30, dtype="uint64") * 2048).astype(kind)
    rows = np.ones((30, 2))
    dsel.plan_search(Ridge(), {"alpha": [1]}, rows, targets)  # float64 has these
    targets[3] += 1
    with pytest.raises(ValueError, match=r"row 3 is 9223372036854781953, which"):
        dsel.plan_search(Ridge(), {"alpha": [1]}, rows, targets)


def test_targets__beyond_the_largest_float_are_refused():
    targets = [10**400, *range(29)]
    with pytest.raises(ValueError, match="`y` must hold numbers below 1e308"):
        dsel.plan_search(Ridge(), {"alpha": [1]}, np.ones((30, 2)), targets)


def test_certify__takes_numbers_of_another_byte_order(rng):
    rows = rng.normal(size=(120, 2))
    y = np.where(rows[:, 0] > 0, "a", "b")
    bounds = [
        dsel.certify(LogisticRegression(), X, y, X, random_state=0).certificate.bound
        for X in (rows, rows.astype(">f8"))
    ]
    assert bounds[0] == bounds[1] < 0.3


@pytest.mark.parametrize("names", [["b", "a"], [2, 1], [0.5, 0.25]])
def test_certify__finds_the_columns_of_labeled_and_new_tables_of_xarray(names, rng):
    values = rng.normal(size=(120, 2))
    table = xr.DataArray(values, dims=("row", "name"), coords={"name": names})
    turned = table.isel(name=[1, 0])
    y = np.where(values[:, 0] > 0, "a", "b")
    found = dsel.certify(LogisticRegression(), table, y, turned, random_state=0)
    assert found.certificate.certified  # else labeled rows and pool would differ
    assert (found.predict(turned) == found.predict(table)).all()
    assert (found.predict(table) == y).mean() > 0.9
