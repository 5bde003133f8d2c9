"""Pools as xarray keeps them: in memory, by Dask, and as zarr with its attributes."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from sklearn.linear_model import LogisticRegression

import dsel

RNG = np.random.default_rng(2)
F = np.round(RNG.normal(size=(300, 3)) * 100) / 10
F[3, 1] = np.nan
LABELS = F[:60, 0] > 0
ENCODINGS = {
    "int16 with gaps": {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -9999},
    "float32 with gaps": {"dtype": "float32", "_FillValue": -9999},
    "missing_value": {"dtype": "int16", "scale_factor": 0.1, "missing_value": -1},
    "offset": {
        "dtype": "uint8", "scale_factor": 2.0, "add_offset": -200.0, "_FillValue": 255,
    },
    "unsigned": {
        "dtype": "int8", "_Unsigned": "true", "_FillValue": -1, "scale_factor": 2.0,
        "add_offset": -200.0,
    },
    "as it is": {},
}  # fmt: skip


def rows_of(pool):
    return np.asarray(dsel.open_pool(pool), float)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_open_pool__of_a_path_has_the_rows_that_xarray_reads(
    encoding, version, tmp_path
):
    table = xr.Dataset({"x": (("row", "col"), F)}).chunk(row=100)
    options = {"zarr_format": version, "encoding": {"x": ENCODINGS[encoding]}}
    table.to_zarr(tmp_path / "p", consolidated=False, **options)
    opened = xr.open_zarr(tmp_path / "p", consolidated=False)
    expected = opened.x.to_numpy()
    assert np.isnan(expected[3, 1])
    for source in (
        tmp_path / "p", tmp_path / "p" / "x", opened.x, opened, opened.x.load(),
        zarr.open_group(tmp_path / "p", mode="r")["x"],
    ):  # fmt: skip
        np.testing.assert_array_equal(rows_of(source), expected.astype(float))
    np.testing.assert_array_equal(
        rows_of(dsel.write_pool(tmp_path / "p", tmp_path / "copy")), expected
    )


def test_open_pool__of_truths_that_xarray_wrote(tmp_path):
    table = xr.Dataset({"x": (("row", "col"), F > 0)})
    for version in (2, 3):
        path = tmp_path / f"{version}"
        table.to_zarr(path, zarr_format=version, consolidated=False)
        pool = dsel.open_pool(path)
        assert pool.dtype == xr.open_zarr(path, consolidated=False).x.dtype == bool
        np.testing.assert_array_equal(np.asarray(pool), F > 0)


@pytest.mark.parametrize("version", [2, 3])
def test_open_pool__takes_the_fill_value_of_zarr_for_a_value(version, tmp_path):
    options = {"zarr_format": version, "chunks": (100, 3), "fill_value": 7}
    array = zarr.create_array(tmp_path / "z", shape=F.shape, dtype="i4", **options)
    array[:100] = 3
    pool = dsel.open_pool(array)
    assert np.asarray(pool)[150].tolist() == [7, 7, 7]
    assert pool.dtype == np.int32


def test_open_pool__refuses_numbers_that_are_times_by_name(tmp_path):
    array = zarr.create_array(tmp_path / "z", data=np.ones((9, 2)), chunks=(9, 2))
    array.attrs["units"] = "days since 2000-01-01"
    with pytest.raises(TypeError, match="days since 2000-01-01"):
        dsel.open_pool(tmp_path / "z")
    array.attrs["units"] = "m/s"
    assert dsel.open_pool(tmp_path / "z").n_rows == 9


COLUMNS = {"a": F[:, 0], "b": F[:, 2].astype(int), "c": F[:, 2] > 0}
TABLE = xr.Dataset({name: ("row", each) for name, each in COLUMNS.items()})
FRAME = pd.DataFrame(COLUMNS)


def stored(folder):
    TABLE.chunk(row=70).to_zarr(folder / "t", consolidated=False)
    return folder / "t"


DATASETS = {
    "in memory": lambda _: TABLE,
    "Dask": lambda _: TABLE.chunk(row=70),
    "one of Dask": lambda _: TABLE.assign(a=TABLE.a.chunk(row=50)),
    "coordinates": lambda _: TABLE.assign_coords(
        row=np.arange(300), k=("row", F[:, 1])
    ),
    "opened": lambda f: xr.open_zarr(stored(f), consolidated=False),
    "path": stored,
}


@pytest.mark.parametrize("kind", DATASETS)
def test_open_pool__takes_a_dataset_with_a_variable_for_each_column(kind, tmp_path):
    source = DATASETS[kind](tmp_path)
    assert {*dsel.open_pool(source).columns} == {"a", "b", "c"}
    pool = dsel.open_pool(source, columns=["a", "b", "c"])
    np.testing.assert_array_equal(np.asarray(pool), FRAME.to_numpy(float))
    copy = dsel.write_pool(pool, tmp_path / "copy.zarr")
    np.testing.assert_array_equal(np.asarray(copy), FRAME.to_numpy(float))


@pytest.mark.parametrize("kind", DATASETS)
def test_plan_search__counts_a_dataset_as_the_frame(kind, tmp_path):
    def counts(pool):
        plan = dsel.plan_search(
            LogisticRegression(), {"C": [0.1, 1.0]}, FRAME[:60], LABELS, pool, cv=2,
            random_state=0,
        )  # fmt: skip
        return plan.run(n_jobs=1).results.outer_disagreements.values.tolist()

    assert counts(DATASETS[kind](tmp_path)) == counts(FRAME)


def test_plan_search__refuses_columns_without_an_order_for_rows_without_names():
    rows = LogisticRegression(), {"C": [1.0]}, FRAME[:60].to_numpy(float), LABELS
    with pytest.raises(ValueError, match=r"`pool` has columns by name and in no order"):
        dsel.plan_search(*rows, TABLE)
    ordered = dsel.open_pool(TABLE, columns=["a", "b", "c"])
    assert dsel.plan_search(*rows, ordered).search.pool.n_rows == 300


def test_plan_search__of_a_group_that_changes_ends_with_an_error(tmp_path):
    pool = dsel.open_pool(stored(tmp_path))
    zarr.open_group(tmp_path / "t", mode="r+")["a"][:5] = 1.0
    with pytest.raises(dsel.errors.PoolChangedError, match=r"a/c/0"):
        np.asarray(pool)


def test_open_pool__takes_texts_and_dates_of_a_dataset():
    table = xr.Dataset({
        "text": ("row", np.array(["a", "b", "c"], object)),
        "day": ("row", pd.date_range("2020", periods=3).to_numpy()),
    })  # fmt: skip
    for source in (table, table.chunk(row=2)):
        pool = dsel.open_pool(source)
        assert [each.kind for each in pool.frames.columns] == ["text", "time"]


@pytest.mark.parametrize(
    "table",
    [
        xr.Dataset(),
        xr.Dataset({"a": (("x", "y"), F), "b": ("x", F[:, 0])}),
        xr.Dataset({"a": ("x", F[:, 0]), "b": ("y", F[:, 0])}),
        xr.Dataset({"a": (("x", "y", "z"), F[None])}),
        xr.Dataset({"a": 3.0}),
    ],
)
def test_open_pool__refuses_other_datasets_in_one_line(table, tmp_path):
    for use in (dsel.open_pool, lambda t: dsel.write_pool(t, tmp_path / "p")):
        with pytest.raises(ValueError, match=r"`pool` must be a Dataset with .* got"):
            use(table)


def test_open_pool__of_a_dask_array_of_xarray_stays_lazy():
    def fail(block):
        raise AssertionError("a block was read")

    rows = da.zeros((100, 2), chunks=(10, 2)).map_blocks(fail, meta=np.empty((0, 0)))
    table = xr.Dataset({"x": (("row", "col"), rows)})
    assert dsel.open_pool(table).n_rows == 100
