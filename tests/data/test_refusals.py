"""What nobody can open, read, write or split: calls, errors and their words."""

import json
import re
from datetime import date

import dask.array as da
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse
from sklearn.model_selection import GroupKFold

from dsel.data import open_pool, write_pool
from dsel.data.labeled import labeled_rows, match_pool
from dsel.data.open import name_argument
from dsel.data.row_random import seed_from
from dsel.data.splits import holdout_split, random_folds, splits_of_cv
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
    write_pool(X + 1, folder / "w.zarr")
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


def objects(folder):
    np.save(folder / "x.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    return folder / "x.npy"


def cut_header(folder):
    np.save(folder / "x.npy", X)
    (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes().replace(b")", b" "))
    return folder / "x.npy"


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


def matching(pool, X=X):
    frames = isinstance(X, pd.DataFrame)
    labeled = labeled_rows(X, np.arange(len(X)), allow_nan=True, as_frame=frames)
    return match_pool(open_pool(pool), labeled)


def times(zone):
    return pd.DataFrame({"t": pd.date_range("2020", periods=4, tz=zone)})


def given(split):
    return splits_of_cv([split], np.eye(4), [0, 1, 0, 1])


def test_name_argument__names_it_though_another_package_quotes_a_name_of_its_own():
    words = "`pool` 'rows.x' cannot be opened: unknown `codec`"
    with pytest.raises(ValueError, match=words), name_argument("rows.x", "pool"):
        raise ValueError("unknown `codec`")
    for text in ("`path` must end in .npy", "columns of `pool` at x have no names"):
        with pytest.raises(TypeError) as caught, name_argument("rows.x", "pool"):
            raise TypeError(text)
        assert str(caught.value) == text


V, T = ValueError, TypeError
OPENED = [
    (lambda _: "memory://nowhere", V, "'memory.* is no pool"),
    (lambda f: text_file(f, "notes.txt", "no"), V, "notes.txt' cannot .* no rows"),
    (group_of_two, V, "found a, b; name one as"),
    (lambda f: with_head(f, also={"complete": False}), V, "not written to the end"),
    (lambda _: np.array([["a"]]), T, "`pool` must be numeric"),
    (lambda _: ["a.parquet", "b.parquet"], V, "list of 2 .* path of a folder"),
    (lambda _: np.zeros(3), V, r"two-dim.*got shape \(3,\)"),
    (lambda _: dd.from_pandas(TEXT, npartitions=1)["len"], V, "`pool` .*two-dim"),
    (lambda _: 3, T, "`pool` .*got int"),
    (objects, V, "x.npy' cannot be read .*Python objects"),
    (cut_header, V, "x.npy' cannot be read .*check that the file is whole"),
    (lambda _: "simplecache::no://pool", V, "`pool` must be a path"),
    (lambda f: with_attributes(f, units="days since 2000-01-01"), TypeError,
     "p.zarr holds datetime64.* by its attributes .*days since 2000-01-01"),
    (member_of_a_group, V, "g.zarr' .*zarr.json cannot be read"),
    (lambda f: with_head(f, also={"columns": 5}), V,
     "w.zarr is damaged: its attribute 'columns' must be a list of names, got 5"),
    (lambda f: with_head(f, also={"columns": ["a"]}), V,
     "columns of `pool` at .*w.zarr must name each of the 2 columns, got 1"),
    (lambda _: pd.DataFrame(X, columns=["a", "a"]), V, "'a' twice; rename one"),
    (parquet_of, V, "f.parquet' must have columns, got none"),
    *[
        (lambda f, changes=changes: with_head(f, **changes), V,
         "`pool` '.*w.zarr' is no pool: its zarr.json cannot be read .*write the pool")
        for changes in (
            {"head": "{"}, {"attributes": [5]}, {"shape": "x"}, {"codecs": None},
        )
    ],
]  # fmt: skip
OPTIONS = [
    ({"storage_options": 5}, T, "`storage_options` must be a dict of options for fss"),
    ({"columns": list("abc")}, V, "each of the 2 .* got 3 names"),
    ({"columns": []}, V, "`columns` .*leave it out to take all"),
    ({"columns": 5}, T, "`columns` must be a list of names of columns, got 5"),
    ({"columns": "ab"}, T, "`columns` must be a list of names of columns, got 'ab'"),
]
LABELS = [
    (np.array([1, "a", 1, "a"], dtype=object), T, "`y` .* of one type, got 1 and 'a'"),
    (pd.Series([(0, 1), (1, 2), (0, 1), (1, 2)]), T, r"`y` .* one label .* \(0, 1\)"),
    ([b"a", b"b", b"a", b"b"], T, r"got b'a' \(bytes\); .* such as .label.decode"),
    ([1, True, 2, True], T, "`y` .* of one type, got 1 and True"),
    (np.zeros(4, "i4,i4"), T, r"`y` .* one label .* got \(0, 0\) and"),
    (np.array([1j, 0, 1j, 0]), V, "got ndarray: Complex data not supported.$"),
    (np.array([np.int64(-1), "a", "b", "a"], object), V, "`y` holds -1, which marks"),
    (np.array(["a", "b", None, "a"], dtype=object), V,
     "`y` .* row 2 is None; rows without a label belong in the pool"),
    (list("ab") + ["nan", "b"], V, "as a missing label is written"),
    (["a", "b", "", "b"], V, "as a missing label is written"),
    (np.ma.array([0, 1, 1, 0], mask=[0, 0, 1, 0]), V, "`y` .* row 2 is masked"),
    ([0, 1, -1, 0], V, "`y` holds -1, which marks rows without .*pass them as `pool`"),
    (np.array([-1, "a", 1, "a"], object), V, "holds -1, which marks rows without a la"),
    (np.array([-1.0, "a", "b", "a"], object), V, "holds -1.0, which marks rows with"),
    (["-1", "a", "b", "a"], V, "holds '-1', which marks rows without a label; leave"),
    (["-1", "a", "a", "a"], V, "holds '-1', which marks rows without a label"),
    (["-1", "0", "1", "0"], V, "holds '-1', which marks rows without a label"),
    (pd.Series(["-1", "a", "b", "a"], dtype="category"), V, "holds '-1', which marks"),
    *[
        (as_labels(["a", "b", text, "a"]), V,
         f"holds '{text}', as a missing label is .*pandas.Series.y, dtype='category'")
        for text in ("nan", "NaN", "None", "NaT")
        for as_labels in (list, np.array, lambda y: np.array(y, object), pd.Series)
    ],
]  # fmt: skip
ROWS = [
    (lambda: labeled_rows([["red"], ["blue"]], [0, 1]), V,
     "`X` must be a table of numbers, got a table of texts; make a data frame .*"),
    (lambda: labeled_rows(TEXT[:0], [], as_frame=True), V, "0 rows of 2 columns"),
    (lambda: labeled_rows(GAPS[[]], [0, 1], as_frame=True), V, "2 rows of 0 columns"),
    (lambda: labeled_rows(["red", "blue"], [0, 1]), V, "make a data frame of"),
    (lambda: open_pool(GAPS, columns=["a", "a"]), V, "`columns` .*'a' twice; rename"),
    (lambda: matching(TEXT), T, "column 'colour' holds text"),
    (lambda: matching(X[:, :2], pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})), T,
     r"holds number \(float64\) in column 'b', where `X` holds text"),
    (lambda: matching(TEXT, TEXT.assign(colour=3).iloc[[0, 0]]), T,
     r"holds text .*'colour', where `X` holds number \(int64\); convert one"),
    (lambda: matching(times(None), times(None).assign(t=date(2020, 1, 1))), T,
     r"time .*'t', where `X` holds date .object.; .*astype.{'t': 'datetime64.[nu]s.'}"),
    (lambda: matching(GAPS[["a"]], GAPS), V, "lacks the column 'b' of `X`; it has 'a'"),
    (lambda: matching(times("UTC"), times(None)), T,
     "holds time in zone UTC .*'t', where `X` holds time .datetime64"),
    (lambda: open_pool(X[:0]).reduce(len, max), V, "must have rows for a pass"),
    (lambda: random_folds(4, 5, seed=1), V, "got 5 folds for 4 rows"),
    (lambda: holdout_split(9, 9, seed=2), V, r"`n_test` must be in \[1, 8\]"),
    (lambda: splits_of_cv(GroupKFold(2), np.eye(4), [0, 1, 0, 1]), V,
     "GroupKFold.* does not split.*`groups`"),
    (lambda: given(([0, 9], [1])), V, "split 0 does not: index 9"),
    (lambda: given(([0, 1],)), V, "split 0 does not: not enough values"),
    (lambda: given(([0, 0], [1])), V, "training rows of split 0 are given"),
    (lambda: given(([0, 1], [])), V, "test rows of split 0 are none"),
    (lambda: seed_from("seven"), T, "`random_state` must be None, an integer"),
    (lambda: seed_from(-1), V, "`random_state` must be in"),
]  # fmt: skip
READ = [
    (lambda f: text_file(f, "t.csv", "a,b\n1,2\n"), "no", "`target` .*'no'; it has"),
    (lambda f: f / "none.csv", None, "there is nothing at"),
    (lambda f: text_file(f, "t.svm", "1 1:2\n"), "no", "got 'no'; leave it out"),
    (lambda f: text_file(f, "t.doc", ""), None, "must end in one of"),
    (damaged, None, "g.zarr' cannot be read .*Zstd"),
    *[
        (lambda f, y=y, names=names: codes(f, y, names), None, words)
        for y, names, words in [
            ((0, 1, -1, 1), ["no", "yes"], "from 0 to 1, .* -1 in row 2; rows w"),
            ((0, 1, 1, 0), ["no", "no"], "distinct names .* got 1 names"),
            ((np.nan, 1, 1, 0), ["no", "yes"], "float64, nan in row 0"),
            (list("abab"), ["a", "b"], "<U1, a in row 0; .*need no classes"),
        ]
    ],
]  # fmt: skip
WRITTEN = [
    (damaged, {}, V, "rows 0 to 3 cannot be read"),
    (lambda _: sparse.csr_matrix(X), {}, V, "sparse rows.* as the pool"),
    (lambda f: f / "t.csv", {}, OSError, "`source` .*there is nothing at"),
    (lambda _: X[:0], {}, V, "must have rows and columns, got 0"),
    (lambda _: X, {"target": "a"}, V, "`target` .* got 'a'; it has no names"),
    (lambda f: codes(f, [0, 1], "ab"), {"target": "a"}, V, "an array 'a', found X, y"),
    (lambda _: GAPS, {"target": "c"}, V, "must be a column of `source`, got 'c'"),
    (lambda _: X, {"on_progress": 5}, T, "`on_progress` must be callable, got 5"),
    (lambda _: X, {"chunk_rows": 10**14}, V, "`chunk_rows` .* got 10000"),
    (lambda _: TEXT, {}, T, "numeric, but column 'colour' holds text"),
    (lambda _: np.where(X == 5, -np.inf, X), {}, V, "row 2.*is -inf"),
    (lambda _: da.from_array(X).map_blocks(lambda x: x.no, dtype=float), {},
     AttributeError, "no"),
    (lambda _: np.where(X == 3, 300.0, X), {"dtype": "int8"}, V, "int8 cannot hold"),
    (lambda _: np.where(X == 3, np.nan, X), {"dtype": "int8"}, V, "int8 cannot hold"),
    (lambda _: X, {"dtype": "nope"}, T, "`dtype` must be a type of numbers"),
    (lambda _: X, {"dtype": np.longdouble}, T, "`dtype` must be a type of numbers"),
]  # fmt: skip
FROM_CSV = [
    ("a,city\n1,Ulm\n", ".zarr", {}, T, r"'city' holds 'Ulm'; .* \.parquet"),
    ("a,b\n", ".zarr", {}, V, "t.csv' cannot be read: it has a header, but no rows"),
    ("a\n1\n", ".zarr", {"target": "a"}, V, "t.csv' must have columns .* got none"),
    ("a,b\n1,2\n3,-inf\n", ".zarr", {}, T, r"column 'b' holds '-inf'; .* \.parquet"),
    ("a,b\n1,x\n3,y\n", ".zarr", {"target": "a"}, T, "column 'b' holds 'x'"),
    ("a,b\n007,x\n3,y\n", ".zarr", {}, T, "'a' holds '007', column 'b' holds 'x'"),
    ("a\n1\n", ".parquet", {"dtype": "float32"}, V, "may end in .parquet where"),
]
PLACES = [
    (lambda f: text_file(f, "n", "").parent, V, "n is there"),
    (lambda f: with_attributes(f) / "more.zarr", V, "is inside the pool .*choose an"),
    (taken, V, "an empty .*notes.txt is"),
    (lambda f: f / "t.parquet", V, "may end in .parquet where"),
    (lambda f: with_head(f, head="{"), V, "is no pool: .*remove it, or choose another"),
    (with_head, OSError, "holds another pool"),
    (lambda _: 5, T, "`path` must be a path or a URL, got 5"),
    (lambda _: "", V, "`path` must name a place, got ''"),
    (lambda _: "s3:/b/pool.zarr", V, "write 's3://b/pool.zarr'"),
]  # fmt: skip


CALLS = [
    *[(lambda f, m=m: open_pool(m(f)), *told) for m, *told in OPENED],
    *[(lambda _, o=o: open_pool(X, **o), *told) for o, *told in OPTIONS],
    *[(lambda _, y=y: labeled_rows(X, y), *told) for y, *told in LABELS],
    *[(lambda _, call=call: call(), *told) for call, *told in ROWS],
    *[
        (lambda f, m=m, t=t: read_table(m(f), target=t), (V, OSError), words)
        for m, t, words in READ
    ],
    *[
        (lambda f, m=m, o=o: write_pool(m(f), f / "pool.zarr", **o), *told)
        for m, o, *told in WRITTEN
    ],
    *[
        (lambda f, t=t, end=end, o=o: write_pool(
            text_file(f, "t.csv", t), f / f"pool{end}", **o), *told)
        for t, end, o, *told in FROM_CSV
    ],
    *[(lambda f, m=m: write_pool(X, m(f)), *told) for m, *told in PLACES],
    (lambda f: write_pool(text_file(f, "s.csv", "a\n1\n"), parquet_of(f, a=1)),
     FileExistsError, "must be free, but .*f.parquet' is"),
    (lambda f: matching(parquet_of(f, len=1, colour=[{"u": 1}] * 4), TEXT.iloc[[0, 0]]),
     T, "lists or structs .*, where `X` holds text"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), CALLS)
def test_data__refuses(call, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    assert not list(tmp_path.glob("pool*"))  # nothing is left of what was begun
