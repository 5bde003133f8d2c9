"""What nobody can open, read, write or split: calls, errors and their words."""

import json
import re

import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.model_selection import GroupKFold

from dsel.data import open_pool, write_pool
from dsel.data.labeled import labeled_rows, matching_pool
from dsel.data.row_random import seed_from
from dsel.data.splits import given_splits, holdout_split, random_folds
from dsel.data.tables import read_table

X = np.arange(8.0).reshape(4, 2)
TEXT = pd.DataFrame({"len": [1.0], "colour": ["red"]})
GAPS = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})


def text_file(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def group_of_two(folder):
    group = zarr.create_group(folder / "g.zarr")
    group.create_array("a", data=X)
    group.create_array("b", data=X)
    return folder / "g.zarr"


def with_attributes(folder, **attributes):
    zarr.create_array(folder / "p.zarr", data=X, attributes=attributes)
    return folder / "p.zarr"


def with_head(folder, head=None, **changes):
    """Return a pool that dsel wrote, with another head or some of it changed."""
    write_pool(X, folder / "w.zarr")
    file = folder / "w.zarr" / "zarr.json"
    was = json.loads(file.read_text())
    was["attributes"] |= changes.pop("also", {})
    file.write_text(json.dumps(was | changes) if head is None else head)
    return folder / "w.zarr"


def member_of_a_group(folder):
    (group_of_two(folder) / "a" / "zarr.json").write_text("{")
    return folder / "g.zarr"


def parquet_of(folder, **columns):
    pd.DataFrame(columns, index=range(4)).to_parquet(folder / "f.parquet")
    return folder / "f.parquet"


def spoilt(folder, by):
    np.save(folder / "x.npy", X)
    whole = (folder / "x.npy").read_bytes()
    at = whole.index(b"}")
    (folder / "x.npy").write_bytes(whole[:at] + by + whole[at + 2 :])
    return folder / "x.npy"


def objects(folder, name):
    save = np.save if name.endswith("npy") else lambda path, X, **_: np.savez(path, X=X)
    save(folder / name, np.array([[{}]], dtype=object), allow_pickle=True)
    return folder / name


def damaged(folder):
    zarr.create_group(folder / "g.zarr").create_array("X", data=X)
    (folder / "g.zarr" / "X" / "c" / "0" / "0").write_bytes(b"no zstd")
    return folder / "g.zarr"


def codes(folder, y, classes):
    np.savez(folder / "t.npz", X=X, y=np.array(y), classes=np.array(classes))
    return folder / "t.npz"


def taken(_):
    fsspec.filesystem("memory").pipe("/taken/notes.txt", b"mine")
    return "memory://taken"


def write_twice(source, path):
    for _ in range(2):
        write_pool(source, path)


def write(rows, folder, **options):
    return write_pool(rows, folder / "pool.zarr", **options)


def of_zeros(**options):
    return open_pool(np.zeros((5, 2)), **options)


def matching(pool, X=X, **options):
    return matching_pool(open_pool(pool), labeled_rows(X, np.arange(len(X)), **options))


def given(split):
    return given_splits([split], np.eye(4), [0, 1, 0, 1])


OPENING = {
    "names": (lambda _: of_zeros(columns=list("abc")), "each of the 2 .* got 3 names"),
    "nothing at a URL": (lambda _: open_pool("memory://nowhere"), "'memory.* is no p"),
    "folder": (lambda f: open_pool(f), "is no pool"),
    "notes": (lambda f: open_pool(text_file(f, "notes.txt", "no")), "is no pool"),
    "two tables": (lambda f: open_pool(group_of_two(f)), "found a, b; name one as"),
    "begun": (
        lambda f: open_pool(with_head(f, also={"complete": False})),
        "was not written to the end",
    ),
    "text": (lambda _: open_pool(np.array([["a"]])), "`pool` must be numeric"),
    "complex": (lambda _: open_pool(da.zeros((2, 2), dtype=complex)), "be numeric"),
    "vector": (lambda _: open_pool(np.zeros(3)), r"two-dim.*got shape \(3,\)"),
    "number": (lambda _: open_pool(3), "`pool` .*got int"),
    "pickles": (lambda f: open_pool(objects(f, "x.npy")), "is no pool"),
    "chain": (lambda _: open_pool("simplecache::no://pool"), "`pool` must be a path"),
    "header": (lambda f: open_pool(spoilt(f, b"\n(")), "is no pool: .* Save a numeric"),
    "no rows": (lambda _: open_pool(X[:0]).reduce(len, max), "must have rows for a p"),
    "packed": (
        lambda f: open_pool(with_attributes(f, scale_factor=1e-3)), "packed numbers",
    ),
    "group": (lambda f: open_pool(member_of_a_group(f)), "g.zarr' .*zarr.json cannot"),
    "no list": (
        lambda f: open_pool(with_head(f, also={"columns": 5})),
        "w.zarr is damaged: its attribute 'columns' must be a list of names, got 5",
    ),
    "too few": (
        lambda f: open_pool(with_head(f, also={"columns": ["a"]})),
        "columns of `pool` at .*w.zarr must name each of the 2 columns, got 1",
    ),
    "names twice": (
        lambda _: open_pool(pd.DataFrame(X, columns=["a", "a"])),
        "`pool` must have distinct names, got 'a' twice; rename one",
    ),
    "columns of nothing": (
        lambda f: open_pool(parquet_of(f)), "f.parquet' must have columns, got none",
    ),
    "options": (
        lambda _: open_pool("memory://p", storage_options=5),
        "`storage_options` must be a dict of options for fsspec",
    ),
    "columns=[]": (lambda _: of_zeros(columns=[]), "`columns` .*leave it out to tak"),
} | {
    f"columns={value}": (
        lambda _, value=value: of_zeros(columns=value),
        f"`columns` must be a list of names of columns, got {value!r}",
    )
    for value in (5, "ab")
} | {
    f"head {name}": (
        lambda f, changes=changes: open_pool(with_head(f, **changes)),
        "`pool` '.*w.zarr' is no pool: its zarr.json cannot be read .*write the pool a",
    )
    for name, changes in {
        "cut": {"head": "{"}, "deep": {"head": "[" * 10**5},
        "attributes": {"attributes": [5]}, "shape": {"shape": "x"},
        "size": {"shape": [10**30, 2]}, "codecs": {"codecs": None},
        "chunks": {"chunk_grid": {
            "name": "regular", "configuration": {"chunk_shape": [0, 2]}}},
    }.items()
}  # fmt: skip
LABELED = {
    "labels of two types": (
        lambda _: labeled_rows(X, np.array([1, "a", 1, "a"], dtype=object)),
        "`y` .* and labels of one type, got 1 and 'a'",
    ),
    "pairs": (
        lambda _: labeled_rows(X, pd.Series([(0, 1), (1, 2), (0, 1), (1, 2)])),
        r"`y` must hold one label .* got \(0, 1\)",
    ),
    "None": (
        lambda _: labeled_rows(X, np.array(["a", "b", None, "a"], dtype=object)),
        "`y` .* row 2 is None; rows without a label belong into the pool",
    ),
    "nan as text": (lambda _: labeled_rows(X, list("ab") + ["nan", "b"]), "as a missi"),
    "no text": (lambda _: labeled_rows(X, ["a", "b", "", "b"]), "a missing label is"),
    "masked": (
        lambda _: labeled_rows(X, np.ma.array([0, 1, 1, 0], mask=[0, 0, 1, 0])),
        "`y` .* row 2 is masked",
    ),
    "-1": (lambda _: labeled_rows(X, [0, 1, -1, 0]), "pass them as `pool`"),
    "text in X": (
        lambda _: labeled_rows([["red"], ["blue"]], [0, 1]),
        "`X` must be a table of numbers.*data frame.*ColumnTransformer.*string",
    ),
    "no rows": (
        lambda _: labeled_rows(TEXT[:0], [], as_frame=True), "got 0 rows of 2 columns"
    ),
    "no columns": (
        lambda _: labeled_rows(GAPS[[]], [0, 1], as_frame=True), "2 rows of 0 columns"
    ),
    "texts": (lambda _: labeled_rows(["red", "blue"], [0, 1]), "make a data frame of"),
    "text of a pool": (lambda _: matching(TEXT), "column 'colour' holds text"),
    "numbers of a pool": (
        lambda _: matching(X[:, :2], pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
                           as_frame=True),
        "must be of data frames.* where column 'b' of `X` holds text",
    ),
    "kinds": (
        lambda _: matching(TEXT, TEXT.assign(colour=3).iloc[[0, 0]], as_frame=True),
        r"holds text .*'colour', where `X` holds number \(int64\); convert one",
    ),
    "one lacks": (
        lambda _: matching(GAPS[["a"]], GAPS, allow_nan=True),
        "`pool` lacks the column 'b' of `X`; write it too",
    ),
    "zones": (
        lambda _: matching(*(
            pd.DataFrame({"t": pd.date_range("2020", periods=4, tz=zone)})
            for zone in ("UTC", None)
        ), as_frame=True),
        "holds time in zone UTC .*'t', where `X` holds time .datetime64",
    ),
    "structs": (
        lambda f: matching(parquet_of(f, t=[{"u": 1}] * 4),
                           pd.DataFrame({"t": list("abcd")}), as_frame=True),
        "holds lists or structs .*'t', where `X` holds text",
    ),
}  # fmt: skip
TABLES = {
    "target": (
        lambda f: read_table(text_file(f, "t.csv", "a,b\n1,2\n"), target="class"),
        "`target` .* got 'class'; it has a, b",
    ),
    "no table": (lambda f: read_table(f / "none.csv"), "there is nothing at"),
    "target of svmlight": (
        lambda f: read_table(text_file(f, "t.svm", "1 1:2\n"), target="label"),
        "begin with their label, got 'label'; leave it out",
    ),
    "ending": (lambda f: read_table(text_file(f, "t.doc", "")), r"must end in one of"),
    "damaged": (
        lambda f: read_table(damaged(f)),
        "g.zarr' cannot be read .*Zstd",
    ),
    "pickles": (lambda f: read_table(objects(f, "t.npz")), "allow_pickle=False"),
} | {
    f"codes {y}": (lambda f, y=y, names=names: read_table(codes(f, y, names)), words)
    for y, names, words in [
        ((0, 1, -1, 1), ["no", "yes"], r"1 rows have others \(row 2 has -1\)"),
        ((0, 1, 1, 0), ["no", "no"], "distinct names in its array classes"),
        ((np.nan, 1, 1, 0), ["no", "yes"], "whole numbers from 0 to 1, got float64"),
        (("no", "a", "no", "a"), ["a", "no"], "leave out classes where y holds"),
    ]
}
WRITING = {
    "another pool": (
        lambda f: (write(X, f), write(X + 1, f)),
        "`path` must be free, .* holds another pool",
    ),
    "a folder": (lambda f: write_pool(X, text_file(f, "n", "").parent), "n is there"),
    "type of Parquet": (
        lambda f: write_pool(
            text_file(f, "t.csv", "a,b\n1,2\n"), f / "t.parquet", dtype="float32"
        ),
        "`path` may end in .parquet where .*`dtype` and `chunk_rows` are left out",
    ),
    "damaged": (lambda f: write(damaged(f), f), "rows 0 to 3 cannot be read"),
    "sparse": (lambda f: write(sparse.csr_matrix(X), f), "sparse rows.* as the pool"),
    "nothing": (lambda f: write(f / "t.csv", f), "`source` .*nothing is at"),
    "into a pool": (
        lambda f: write_pool(X, with_attributes(f) / "more.zarr"),
        "`path` .* lies in the pool .*choose another",
    ),
    "others' files": (lambda f: write_pool(X, taken(f)), "an empty .*notes.txt is"),
    "taken parquet": (
        lambda f: write_twice(text_file(f, "s.csv", "a\n1\n"), f / "s.parquet"),
        "`path` must be free, but .*s.parquet' is there",
    ),
    "text of a file": (
        lambda f: write(text_file(f, "t.csv", "a,city\n1,Ulm\n"), f),
        r"'city' holds 'Ulm'; write it to a path .* \.parquet",
    ),
    "no text": (lambda f: write_pool(X, f / "t.parquet"), "may end in .parquet where"),
    "over a damaged one": (
        lambda f: write_pool(X, with_head(f, head="{")),
        "`path` '.*w.zarr' is no pool: .*remove it, or choose another path",
    ),
    "head only": (
        lambda f: write(text_file(f, "t.csv", "a,b\n"), f),
        "`source` '.*t.csv' must have rows, but has a head only",
    ),
    "labels only": (
        lambda f: write(text_file(f, "t.csv", "a\n1\n"), f, target="a"),
        "`source` '.*t.csv' must have columns beside 'a', got none",
    ),
    "no rows": (lambda f: write(X[:0], f), "must have rows and columns, got 0"),
    "target": (lambda f: write(X, f, target="a"), "`target` 'a' names .* leave it out"),
    "other target": (
        lambda f: write(GAPS, f, target="c"), "must be a column of `source`, got 'c'",
    ),
    "progress": (lambda f: write(X, f, on_progress=5), "`on_progress` .*callable, g"),
    "path": (lambda _: write_pool(X, 5), "`path` must be a path or a URL, got 5"),
    "empty path": (lambda _: write_pool(X, ""), "`path` must name a place, got ''"),
    "chunks": (lambda f: write(X, f, chunk_rows=10**14), "`chunk_rows` .* got 10000"),
    "slash": (lambda _: write_pool(X, "s3:/b/pool.zarr"), "write 's3://b/pool.zarr'"),
    "text": (lambda f: write(TEXT, f), "numeric, but column 'colour' holds text"),
    "infinite": (lambda f: write(np.where(X == 5, -np.inf, X), f), "row 2.*is -inf"),
    "infinite beside text": (
        lambda f: write_pool(
            text_file(f, "t.csv", "a,b\nx,2\ny,-inf\n"), f / "t.parquet"
        ),
        r"`source` .*row 1, column 'b' is -inf",
    ),
    "infinite in a file": (
        lambda f: write(text_file(f, "t.csv", "a,b\n1,2\n3,-inf\n"), f),
        "row 1, column 'b' is -inf",
    ),
    "broken": (
        lambda f: write(da.from_array(X).map_blocks(lambda x: x.no, dtype=float), f),
        "no",
    ),
    "another type": (
        lambda f: write_pool(
            text_file(f, "t.csv", "age\n" + "1\n" * 50_000 + "old\n"), f / "t.parquet"
        ),
        "`source` must have one type in a column, .*column age",
    ),
} | {
    f"int8 {value}": (
        lambda f, value=value: write(np.where(X == 3, value, X), f, dtype="int8"),
        f"`dtype` int8 cannot hold {value}",
    )
    for value in (300.0, np.nan)
} | {
    f"type {dtype}": (
        lambda f, dtype=dtype: write(X, f, dtype=dtype),
        "`dtype` must be a type of numbers",
    )
    for dtype in ("nope", np.longdouble)
}  # fmt: skip
SPLITTING = {
    "folds": (lambda _: random_folds(4, 5, seed=1), "got 5 folds for 4 rows"),
    "all": (lambda _: holdout_split(9, 9, seed=2), r"`n_test` must be in \[1, 8\]"),
    "groups": (
        lambda _: given_splits(GroupKFold(2), np.eye(4), [0, 1, 0, 1]),
        "GroupKFold.* does not split.*`groups`",
    ),
    "row 9": (lambda _: given(([0, 9], [1])), "split 0 does not: index 9"),
    "no test": (lambda _: given(([0, 1],)), "split 0 does not: not enough values"),
    "twice": (lambda _: given(([0, 0], [1])), "training rows of split 0 are given"),
    "none": (lambda _: given(([0, 1], [])), "test rows of split 0 are none"),
    "seed": (lambda _: seed_from("seven"), "`random_state` must be None, an integer"),
    "negative": (lambda _: seed_from(-1), "`random_state` must be in"),
}  # fmt: skip
TYPES = {
    "text", "complex", "number", "labels of two types", "pairs", "kinds",
    "text of a pool", "numbers of a pool", "another type", "seed", "type nope",
    "text of a file", "zones", "structs", "path", "progress", "options",
    "columns=5", "columns=ab",
}  # fmt: skip
"""Names of what is of the wrong kind; all else has a wrong value."""
CALLS = {
    f"{room}, {name}": (name, *case)
    for room, cases in {
        "open": OPENING, "match": LABELED, "read": TABLES, "write": WRITING,
        "split": SPLITTING,
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_data__refuses(case, tmp_path, monkeypatch):
    name, call, words = CALLS[case]
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError, OSError, AttributeError)) as caught:
        call(tmp_path)
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    if name in TYPES:
        assert isinstance(caught.value, TypeError)
    if case.startswith("write") and name != "another pool":
        assert not (tmp_path / "pool.zarr").exists()
        assert not (tmp_path / "t.parquet").exists()
