import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dsel.data import open_pool, write_pool
from dsel.data.frames import numbers
from dsel.data.labeled import labeled_rows, matching_pool

X = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b", "b"], ["a", "b"]),
        (np.array(["b", "a", "b", "b"], dtype=object), ["a", "b"]),
        (np.array([7, 3, 7, 7]), [3, 7]),
        (pd.Series([True, False, True, True]), [False, True]),
        (pd.Series(["b", "a", "b", "b"], dtype="category"), ["a", "b"]),
    ],
)
def test_labeled_rows__codes_labels_in_sorted_order(y, classes):
    rows = labeled_rows(X, y)

    assert rows.classes.tolist() == classes
    assert rows.y.tolist() == [1, 0, 1, 1]
    assert rows.classes[rows.y].tolist() == list(y)


def test_labeled_rows__takes_names_from_a_frame():
    frame = pd.DataFrame(X, columns=["len", "width"])

    assert labeled_rows(frame, [0, 1, 0, 1]).columns == ("len", "width")


def test_labeled_rows__entries_of_one_place_are_summed():
    entries = [1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]
    given = sparse.csr_matrix(entries, shape=(2, 2))
    rows = labeled_rows(given, [0, 1])
    assert (rows.X.data.tolist(), given.nnz) == ([3.0, 5.0], 3)


def test_labeled_rows__keeps_sparse_rows_as_csr():
    rows = labeled_rows(sparse.coo_matrix(X), [0, 1, 0, 1])

    assert rows.X.format == "csr"
    assert rows.token != labeled_rows(X, [0, 1, 0, 1]).token


def test_labeled_rows__token_changes_with_labels_and_names():
    tokens = {
        labeled_rows(X, [0, 1, 0, 1]).token,
        labeled_rows(X, [0, 1, 1, 1]).token,
        labeled_rows(X, [0, 2, 0, 2]).token,
        labeled_rows(X, [0, 1, 0, 1], columns=["a", "b"]).token,
    }

    assert len(tokens) == 4
    assert labeled_rows(X.copy(), [0, 1, 0, 1]).token in tokens


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_labeled_rows__names_row_and_column_of_a_bad_value(bad, make):
    values = X.copy()
    values[2, 1] = bad

    with pytest.raises(ValueError, match=r"row 2, column 1 \('width'\) is (nan|inf)"):
        labeled_rows(make(values), [0, 1, 0, 1], columns=["len", "width"])


def test_labeled_rows__lets_missing_values_pass_if_allowed():
    values = X.copy()
    values[2, 1] = np.nan

    rows = labeled_rows(values, [0, 1, 0, 1], allow_nan=True)

    assert np.isnan(rows.X[2, 1])


def test_labeled_rows__refuses_one_class():
    with pytest.raises(ValueError, match="got one class only: 'a'"):
        labeled_rows(X, ["a"] * 4)


def test_labeled_rows__refuses_labels_of_mixed_type():
    with pytest.raises(TypeError, match="`y` must hold labels of one type, got 1 and"):
        labeled_rows(X, np.array([1, "a", 1, "a"], dtype=object))


def test_labeled_rows__refuses_several_values_as_a_label():
    pairs = pd.Series([(0, 1), (1, 2), (0, 1), (1, 2)])
    with pytest.raises(TypeError, match=r"`y` must hold one label .* got \(0, 1\)"):
        labeled_rows(X, pairs)


def test_labeled_rows__takes_long_numbers_of_arrow():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": [2**60, None, 3, 4], "flag": [True, None, False, True]})
    found = labeled_rows(table, list("abab"), allow_nan=True, as_frame=True).X.encoded
    assert found[0].tolist() == [2.0**60, 1.0]
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("missing", [None, np.nan])
def test_labeled_rows__refuses_missing_labels(missing):
    with pytest.raises(ValueError, match="row 2 is"):
        labeled_rows(X, np.array(["a", "b", missing, "a"], dtype=object))


@pytest.mark.parametrize("missing", [np.nan, "", pd.NA])
def test_labeled_rows__refuses_texts_of_missing_labels(missing):
    texts = np.array(["yes", str(missing), "no"])
    with pytest.raises(ValueError, match="as a missing label is written"):
        labeled_rows(np.zeros((3, 1)), texts)


def test_labeled_rows__refuses_measurements():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        labeled_rows(X, [0.5, 1.5, 0.25, 2.5])


def test_labeled_rows__refuses_other_lengths():
    with pytest.raises(ValueError, match="got 3 labels"):
        labeled_rows(X, [0, 1, 0])


def test_matching_pool__compares_number_and_names():
    rows = labeled_rows(X, [0, 1, 0, 1], columns=["len", "width"])

    matching_pool(open_pool(X), rows)
    with pytest.raises(ValueError, match="`pool` has 3 columns but `X` has 2"):
        matching_pool(open_pool(np.zeros((2, 3))), rows)
    with pytest.raises(ValueError, match="lacks the column 'len' of `X`, but has 'a'"):
        matching_pool(open_pool(X, columns=["width", "a"]), rows)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([["red"], ["blue"]], "data frame.*ColumnTransformer.*string"),
        ([1.0, 2.0], "1D array"),
        (np.empty((0, 3)), "0 "),
    ],
)
def test_labeled_rows__says_what_features_must_be(X, said):
    with pytest.raises(ValueError, match=f"`X` must be a table of numbers.*{said}"):
        labeled_rows(X, [0, 1])


def test_labeled_rows__keeps_whole_numbers_that_may_be_missing():
    y = pd.Series([1, 2, 1], dtype="Int64")
    assert labeled_rows(np.eye(3), y).classes.dtype.kind == "i"


def test_labeled_rows__of_minus_one_are_refused_or_a_class():
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="pass them as `pool`"):
        labeled_rows(X, [0, 1, -1, 0])
    assert labeled_rows(X, [-1, 1, -1, 1]).classes.tolist() == [-1, 1]
    assert labeled_rows(X, ["-1", "0", "1", "0"]).classes.tolist() == ["-1", "0", "1"]
    assert labeled_rows(X, [-2, -1, 0, 1]).classes.tolist() == [-2, -1, 0, 1]


def test_labeled_rows__refuses_masked_labels():
    y = np.ma.masked_array([0, 1, 1], mask=[False, False, True])
    with pytest.raises(ValueError, match="row 2 is masked"):
        labeled_rows([[0.0], [1.0], [2.0]], y)


def as_zarr(pool, folder):
    return write_pool(pool, folder / "pool.zarr")


def as_parquet(pool, folder):
    pool.to_parquet(folder / "pool.parquet")
    return folder / "pool.parquet"


def as_dask_frame(pool, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(pool, npartitions=2)


def as_csr(pool, folder):
    return open_pool(sparse.csr_matrix(pool), columns=list(pool.columns))


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(
    "kind", [lambda pool, _: pool, as_zarr, as_parquet, as_dask_frame, as_csr]
)
def test_matching_pool__finds_columns_by_their_names(kind, as_frame, tmp_path, rng):
    whole = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("dcba"))
    labeled = labeled_rows(whole[["a", "c"]], np.arange(50) % 2, as_frame=as_frame)
    opened = open_pool(kind(whole, tmp_path))

    pool = matching_pool(opened, labeled)

    found = pool.reduce(lambda X, rows: [numbers(X)], lambda a, b: a + b)
    dense = [x.toarray() if sparse.issparse(x) else x for x in found]
    assert (np.concatenate(dense) == whole[["a", "c"]].to_numpy()).all()
    assert (pool.columns, pool.n_columns) == (("a", "c"), 2)
    assert pool.token != opened.token


def test_matching_pool__finds_columns_of_text_by_their_names(tmp_path):
    whole = pd.DataFrame({"b": ["x", "y"] * 5, "n": range(10), "a": ["u"] * 10})
    labeled = labeled_rows(whole[["a", "b"]], np.arange(10) % 2, as_frame=True)
    for given in (whole, as_parquet(whole, tmp_path), as_dask_frame(whole, tmp_path)):
        pool = matching_pool(open_pool(given), labeled)
        (found,) = pool.reduce(lambda X, rows: [X.native], lambda a, b: [*a, *b])[:1]
        assert list(found.columns) == ["a", "b"]
        assert found.b.tolist() == ["x", "y"] * (len(found) // 2)
