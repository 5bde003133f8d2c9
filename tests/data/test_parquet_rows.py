from operator import add

import fsspec
import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from dsel import plan_search
from dsel.data import open_pool

pytest.importorskip("pyarrow")


def table(n_rows=30, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Ulm", "Bonn"], n_rows)
    year = rng.integers(2020, 2023, n_rows)
    return pd.DataFrame({"age": rng.normal(size=n_rows), "city": city, "year": year})


EXPECTED = pd.concat([table(30, n) for n in range(3)]).reset_index(drop=True)


@pytest.fixture
def folder(tmp_path):
    """Three files of two row groups each, in the order of their names."""
    place = tmp_path / "rows"
    place.mkdir()
    for number in range(3):
        path = place / f"part-{number}.parquet"
        table(30, number).to_parquet(path, row_group_size=20, index=False)
    (place / "_SUCCESS").touch()
    (place / "_metadata.parquet").write_bytes(b"no data")
    return place


def whole(pool):
    pool = pool.with_schema(pool.frames)
    parts = pool.reduce(lambda X, rows: [X.native], add, allow_nan=True)
    return pd.concat(parts, ignore_index=True)


def test_open_pool__reads_files_and_folders_here_and_at_a_url(folder):
    fsspec.filesystem("memory").put(str(folder), "/parquet-pool", recursive=True)
    for place in (folder, "memory://parquet-pool"):
        pool = open_pool(place)
        assert (pool.n_rows, pool.columns) == (90, ("age", "city", "year"))
        assert whole(pool).equals(EXPECTED)
    assert pool.boundaries.tolist() == [0, 20, 30, 50, 60, 80, 90]
    assert open_pool(folder / "part-1.parquet").n_rows == 30


def test_open_pool__splits_a_large_row_group_into_parts(tmp_path):
    rows = table(100_000).assign(
        age=lambda t: t.age.where(t.index > 70_000),
        year=lambda t: t.year.astype("Int64").where(t.index < 70_000),
        when=pd.Timestamp("2024-02-29"),
        kept=lambda t: t.index % 3 == 0,
    )
    rows.to_parquet(tmp_path / "one.parquet", index=False)
    rows.to_parquet(tmp_path / "many.parquet", index=False, row_group_size=999)
    one, many = (open_pool(tmp_path / f"{name}.parquet") for name in ("one", "many"))
    # One task for 100,000 rows would keep one core busy, and its progress at zero.
    assert len(one.slices(8_192)) >= 10
    assert np.diff(one.boundaries).max() <= 10_000
    assert len(many.boundaries) - 1 == 101
    assert whole(one).equals(whole(many))
    assert whole(one.with_columns(["year", "city"]))["year"].isna().sum() == 30_000
    table(30).to_parquet(tmp_path / "small.parquet")
    assert open_pool(tmp_path / "small.parquet").boundaries.tolist() == [0, 30]


def test_open_pool__reads_a_row_group_again_where_it_changed(tmp_path):
    for seed in range(2):
        table(20_000, seed).to_parquet(tmp_path / "rows.parquet", index=False)
        assert whole(open_pool(tmp_path / "rows.parquet")).equals(table(20_000, seed))


def test_open_pool__reads_some_columns_of_parquet(folder):
    pool = open_pool(folder, columns=["year", "age"])
    assert pool.columns == ("year", "age")
    assert pool.dtype == np.float64
    np.testing.assert_array_equal(pool.as_array().compute(), EXPECTED[["year", "age"]])
    with pytest.raises(ValueError, match=r"rows' lacks the column 'label'"):
        open_pool(folder, columns=["label"])


def test_with_columns__reads_blocks_of_the_rows_that_are_wanted(tmp_path):
    path, rows = tmp_path / "rows.parquet", table(1_000)
    rows.to_parquet(path, row_group_size=600, index=False)
    pool = open_pool(path).with_columns(rows.columns, block_rows=250)
    assert pool.boundaries.tolist() == [0, 200, 400, 600, 800, 1000]
    assert whole(pool).equals(rows)
    assert whole(pool.with_columns(["year"], block_rows=600)).equals(rows[["year"]])


def test_open_pool__takes_columns_from_the_names_of_folders(tmp_path):
    frame = table(40).assign(age=np.arange(40.0))
    frame.to_parquet(tmp_path / "rows", partition_cols=["year", "city"])
    found = whole(open_pool(tmp_path / "rows"))
    assert found.dtypes["year"] == np.int64
    expected = frame[["age", "year", "city"]]
    assert found.sort_values("age").reset_index(drop=True).equals(expected)


def test_open_pool__does_not_walk_a_disk(folder):
    deep = folder.joinpath("disk", *["d"] * 100)
    deep.mkdir(parents=True)
    table(30, 0).to_parquet(deep / "t.parquet")
    with pytest.raises(ValueError, match="is no pool"):
        open_pool(folder / "disk")


def test_open_pool__tells_parquet_by_its_files(folder):
    pool = open_pool(folder)
    assert pool.token == open_pool(folder).token
    assert pool.token != open_pool(folder, columns=["age"]).token
    table(30, 9).to_parquet(folder / "part-1.parquet", row_group_size=20, index=False)
    assert open_pool(folder).token != pool.token


@pytest.mark.parametrize(
    ("name", "kind"), [("city", "category"), ("city", object), ("year", float)]
)
def test_open_pool__joins_types_of_one_kind(folder, name, kind):
    one = table(30, 1).astype({name: kind})
    one.to_parquet(folder / "part-1.parquet", index=False)
    assert (whole(open_pool(folder))[name].to_numpy() == EXPECTED[name]).all()


def test_open_pool__takes_a_file_without_any_value_of_a_column(folder):
    for number in (1, 0):
        empty = table(30, number).assign(city=None)
        empty.to_parquet(folder / f"part-{number}.parquet", index=False)
        assert whole(open_pool(folder)).city.isna().sum() == 30 * (2 - number)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: f.drop(columns="age"), ValueError, "part-1.* lacks .*'age' that .*"),
        (lambda f: f.assign(x=1), ValueError, "part-0.* lacks the column 'x' that .*1"),
        (lambda f: f.astype({"age": str}), TypeError,
         "part-1.* other types than .*part-0.*age has .* types: double vs .*string"),
        (None, ValueError, "part-1.parquet'"),
    ],
)  # fmt: skip
def test_open_pool__names_the_file_of_another_schema(folder, change, error, words):
    if change is None:
        (folder / "part-1.parquet").write_bytes(b"no")
    else:
        change(table(30, 1)).to_parquet(folder / "part-1.parquet", index=False)
    with pytest.raises(error, match=words) as caught:
        open_pool(folder)
    assert "\n" not in str(caught.value)


def test_fit__counts_the_same_on_one_row_group_and_on_many(tmp_path):
    values = np.random.default_rng(0).normal(size=(30_200, 3))
    X = pd.DataFrame(values, columns=[*"abc"])
    y, pool = (X.a + X.b > 0).to_numpy()[:200], X[200:].reset_index(drop=True)
    pool.to_parquet(tmp_path / "one.parquet", index=False)
    pool.to_parquet(tmp_path / "many.parquet", index=False, row_group_size=700)
    certificates = []
    for source in (tmp_path / "one.parquet", tmp_path / "many.parquet", pool):
        grid = {"var_smoothing": [1e-9, 1e-2, 0.5]}
        plan = plan_search(GaussianNB(), grid, X[:200], y, source, random_state=0)
        assert len(plan.search.slices) > 1
        certificates.append(plan.run().certificates["all_rows"])
    first, *others = [each.bound for each in certificates]
    assert first < 1
    assert others == [first, first]
    assert {each.to_json() for each in certificates} == {certificates[0].to_json()}
