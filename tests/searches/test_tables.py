"""Searches over tables: frames reach the estimators whole, whatever holds them."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel

COUNTS = ("fold_errors", "full_train_errors", "disagreements", "pool_rows")
CITIES = ["Ulm", "Bonn", "Kiel", "Jena"]


def table(n_rows, seed=0, cities=CITIES):
    """Numbers, text, a category, a date and gaps; the label depends on two of them."""
    rng = np.random.default_rng(seed)
    city = rng.choice(cities, n_rows)
    age = rng.normal(40, 12, n_rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "visits": rng.integers(0, 9, n_rows),
            "city": city,
            "plan": pd.Categorical(rng.choice(["a", "b"], n_rows), ["a", "b", "c"]),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
        }
    )
    frame.loc[rng.random(n_rows) < 0.05, "city"] = None
    odds = (age - 40) / 12 + 1.5 * (city == "Ulm") + rng.normal(0, 0.5, n_rows)
    return frame, np.where(odds > 0.4, "yes", "no")


def encoder():
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["age", "visits"]),
            (OneHotEncoder(handle_unknown="ignore"), ["city", "plan"]),
        ),
        LogisticRegression(),
    )


def polars_of(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def arrow_of(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


def dask_of(frame):
    dataframe = pytest.importorskip("dask.dataframe")
    return dataframe.from_pandas(frame, npartitions=3, sort=False)


LIBRARIES = [pd.DataFrame, polars_of, arrow_of]
GRID = {"logisticregression__C": [0.01, 1.0]}


def run(X, y, pool, estimator=None, grid=None, **options):
    settings = {"criterion": "cv_bound", "cv": 3, "random_state": 0, "prune": False}
    rows = X, y, pool
    return dsel.plan_search(
        estimator or encoder(), grid or GRID, *rows, **settings | options
    )


def assert_same_counts(one, other):
    for name in COUNTS:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.fixture(scope="module")
def counted():
    (X, y), (pool, _) = table(240), table(2000, seed=1)
    plan = run(X, y, pool)
    return X, y, pool, plan, plan.run()


def assert_counts_as_by_itself(X, y, pool, plan, results):
    """Compare with fits of scikit-learn on the pandas frames themselves."""
    for candidate in [each for group in plan.work.groups for each in group.candidates]:
        model = candidate.estimator
        wanted = results.isel(
            {d: list(results[d].values).index(v) for d, v in candidate.params.items()}
        )
        full = model.fit(X, y).predict(pool)
        for fold, split in enumerate(plan.work.splits[:3]):
            train, test = split.train_rows, split.test_rows
            model.fit(X.iloc[train], y[train])
            errors = np.sum(model.predict(X.iloc[test]) != y[test])
            assert errors == wanted.fold_errors[fold]
            drawn = plan.scheme.comparisons[0].bins(np.arange(len(pool))) == fold
            differ = (model.predict(pool) != full) & drawn
            assert differ.sum() == wanted.disagreements[fold]


def test_search__over_a_table_counts_as_the_pipeline_by_itself(counted):
    assert_counts_as_by_itself(*counted)


@pytest.mark.parametrize("sparse_threshold", [0.0, 1.0])
@pytest.mark.parametrize("of_labeled", LIBRARIES)
def test_search__by_kernel_svms_of_a_table_counts_as_the_pipeline_by_itself(
    of_labeled, sparse_threshold
):
    (X, y), (pool, _) = table(150), table(700, seed=1)
    encode = encoder()[0].set_params(sparse_threshold=sparse_threshold)
    model = make_pipeline(encode, SVC(shrinking=False))
    grid = {"svc__C": [0.1, 10.0], "svc__gamma": [0.05, 1.0]}
    plan = run(of_labeled(X), y, pool, model, grid)
    assert "by kernel SVM: one kernel for all C and folds" in str(plan)
    assert_counts_as_by_itself(X, y, pool, plan, plan.run())


@pytest.mark.parametrize("of_labeled", LIBRARIES)
@pytest.mark.parametrize("of_pool", [*LIBRARIES, dask_of])
def test_search__counts_alike_in_every_library(counted, of_labeled, of_pool):
    X, y, pool, _, results = counted
    assert_same_counts(results, run(of_labeled(X), y, of_pool(pool)).run())


class Seen(LogisticRegression):
    """Remembers what `fit` and `predict` got."""

    frames: ClassVar = []

    def fit(self, X, y):
        self.frames.append(X)
        return super().fit(numbers_of(X), y)

    def predict(self, X):
        self.frames.append(X)
        return super().predict(numbers_of(X))


def numbers_of(X):
    return np.asarray(X[["age", "visits"]], dtype=float)


@pytest.mark.parametrize("of_labeled", [pd.DataFrame, polars_of])
@pytest.mark.parametrize("of_pool", LIBRARIES)
def test_search__gives_names_order_and_types_of_the_labeled_frame(of_labeled, of_pool):
    (X, y), (pool, _) = table(60), table(300, seed=1)
    X = of_labeled(X)
    types = dict(zip(X.columns, X.dtypes, strict=True))
    Seen.frames.clear()
    run(X, y, of_pool(pool), Seen(), {"C": [1.0]}).run()
    assert sum(map(len, Seen.frames)) > 300
    for frame in Seen.frames:
        assert type(frame) is type(X)
        assert dict(zip(frame.columns, frame.dtypes, strict=True)) == types


@pytest.mark.parametrize("of_labeled", LIBRARIES)
def test_search__takes_a_category_that_only_the_pool_has(of_labeled):
    (X, y), (pool, _) = table(120), table(600, 1, [*CITIES, "Rom"])
    as_categories = {"city": "category"}
    X, pool = X.astype(as_categories), pool.astype(as_categories)
    X = of_labeled(X.drop(columns="since"))
    boosting = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=5
    )
    for estimator, grid in ((encoder(), GRID), (boosting, {"max_depth": [2]})):
        results = run(X, y, pool.drop(columns="since"), estimator, grid).run()
        assert int(results.pool_rows.isel(dict.fromkeys(grid, 0)).sum()) == 600


def test_search__names_pool_rows_that_no_model_can_predict():
    (X, y), (pool, _) = table(120), table(600, 1, [*CITIES, "Rom"])
    strict = encoder()
    strict.set_params(columntransformer__onehotencoder__handle_unknown="error")
    plan = run(X.drop(columns="since"), y, pool.drop(columns="since"), strict)
    with pytest.raises(ValueError, match=r"rows 0 to 599: .*Rom.*handle_unknown="):
        plan.run()


def test_search__by_kernel_svms_takes_numbers_and_names_what_is_none():
    (X, y), (pool, _) = table(90), table(300, seed=1)
    numbers = X[["age", "visits"]]
    plan = run(numbers, y, pool[["age", "visits"]], SVC(), {"C": [1.0]})
    array = run(numbers.to_numpy(), y, pool[["age", "visits"]], SVC(), {"C": [1.0]})
    assert_same_counts(plan.run(), array.run())
    with pytest.raises(TypeError, match="column 'city' holds text such as"):
        run(X, y, pool, SVC(), {"C": [1.0]})


def test_search__by_svms_takes_sparse_words():
    words = np.random.default_rng(0).choice([*"abcdef"], (80, 12))
    X, y = pd.DataFrame({"text": map(" ".join, words)}), (words == "a").any(axis=1)
    counts = TfidfVectorizer(token_pattern="[a-z]")
    encode = make_column_transformer((counts, "text"), sparse_threshold=1)
    model = make_pipeline(encode, SVC())
    plan = dsel.plan_search(None, [model], X, y, cv=3, random_state=0)
    for split, errors in zip(plan.work.splits, plan.run().fold_errors[0], strict=False):
        model.fit(X.iloc[split.train_rows], y[split.train_rows])
        wrong = model.predict(X.iloc[split.test_rows]) != y[split.test_rows]
        assert wrong.sum() == errors


def test_search__finds_labeled_rows_in_a_pool_of_frames(counted):
    X, y, pool, _, _ = counted
    mixed = pd.concat([pool, X.iloc[[3, 7]]])
    with pytest.raises(ValueError, match="2 of 240 labeled rows equal one of 2 pool"):
        run(X, y, mixed).run()
    noisy = X.assign(age=X.age + 1e-7)
    with pytest.raises(ValueError, match="near copies of"):
        run(X, y, pd.concat([pool, noisy])).run()
    left_out = run(X, y, mixed, duplicates="exclude").run()
    assert int(left_out.pool_rows.isel(logisticregression__C=0).sum()) == len(pool)


def test_search__rounds_labeled_floats_as_the_pool_does(counted):
    X, y, pool, _, _ = counted
    mixed = pd.concat([pool, X.iloc[[3, 7]]]).astype({"age": "float32"})
    with pytest.raises(ValueError, match="2 of 240 labeled rows equal one of 2 pool"):
        run(X, y, mixed).run()


def test_search__goes_on_from_its_store_and_tells_other_rows(counted, tmp_path):
    X, y, pool, plan, results = counted
    assert_same_counts(results, plan.run(out=tmp_path / "run"))
    assert_same_counts(results, run(X, y, pool.copy()).run(out=tmp_path / "run"))
    other = pool.assign(city=pool.city.replace("Ulm", "Bonn"))
    with pytest.raises(dsel.errors.StoreMismatchError, match="pool"):
        run(X, y, other).run(out=tmp_path / "run")


def test_search__predicts_frames_as_its_model_was_fitted(counted):
    X, y, pool, _, _ = counted
    search = dsel.SemiSupervisedSearchCV(encoder(), GRID, cv=3, random_state=0)
    search.fit(polars_of(X), y, pool)
    assert list(search.best_estimator_.feature_names_in_) == list(X.columns)
    assert (search.predict(pool) == search.predict(polars_of(pool))).all()


def test_search__of_a_numeric_frame_reads_a_pool_of_numbers():
    (X, y), (pool, _) = table(120), table(900, seed=1)
    X, pool = X[["age", "visits"]], pool[["age", "visits"]]
    by_name = make_pipeline(
        make_column_transformer((StandardScaler(), ["visits", "age"])),
        LogisticRegression(),
    )
    frames = run(X, y, pool, by_name).run()
    assert_same_counts(frames, run(X, y, pool.to_numpy(), by_name).run())
    assert_same_counts(frames, run(X, y, dask_of(pool), by_name).run())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: f.drop(columns="age"), ValueError, "lacks the column 'age' of `X`;"),
        (
            lambda f: f.rename(columns={"age": "Age"}),
            ValueError,
            "lacks the column 'age' of `X`, but has 'Age'; rename it",
        ),
        (
            lambda f: f.assign(age=f.age.astype(str)),
            TypeError,
            "holds text .* in column 'age', where `X` holds number",
        ),
        (
            lambda f: f.assign(since=f.since.dt.tz_localize("UTC")),
            TypeError,
            r"holds time in zone UTC .* 'since', where `X` holds time \(datetime",
        ),
        (
            lambda f: f.assign(city=None),
            ValueError,
            "nothing but missing values in column 'city', where `X` holds text",
        ),
        (
            lambda f: f.assign(age=np.nan),
            ValueError,
            "nothing but missing values in column 'age', where `X` holds number",
        ),
        (
            lambda f: f[["age"]].assign(a=1, b=1, c=1, d=1).to_numpy(),
            TypeError,
            "must be of data frames, as `X` is: .* column 'city' of `X` holds text",
        ),
    ],
)
@pytest.mark.parametrize("of_pool", [pd.DataFrame, polars_of, arrow_of])
def test_plan__names_the_column_in_which_the_pool_differs(
    change, error, message, of_pool
):
    (X, y), (pool, _) = table(60), table(90, seed=1)
    changed = change(pool)
    changed = of_pool(changed) if isinstance(changed, pd.DataFrame) else changed
    message = message if of_pool is pd.DataFrame else message.partition(r" \(")[0]
    with pytest.raises(error, match=message) as caught:
        run(X, y, changed)
    assert "\n" not in str(caught.value)


def test_search__takes_nullable_integers_where_labeled_rows_have_plain_ones():
    X = pd.DataFrame({"age": np.arange(60), "visits": np.arange(60) % 7})
    columns = make_column_transformer((SimpleImputer(), ["age", "visits"]))
    model = make_pipeline(columns, LogisticRegression())
    search = dsel.SemiSupervisedSearchCV(
        None, [model], criterion="best_fold_model", random_state=0
    )
    search.fit(X, X.age > 30)
    gaps = X.where(X.visits > 1)
    objects = gaps.astype(object).where(gaps.notna(), None)
    for given in (gaps.convert_dtypes(), objects):
        found = search.predict(given)
        assert (found == search.best_estimator_.predict(gaps)).all()


@pytest.mark.parametrize("of_pool", [pd.DataFrame, arrow_of, polars_of])
def test_search__takes_no_missing_truth_value_for_a_known_one(of_pool):
    X = pd.DataFrame({"age": np.arange(60.0), "member": np.arange(60) % 2 == 0})
    y = np.where(X.member ^ (X.age > 55), "yes", "no")
    columns = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(), ["member"])
    )
    model = make_pipeline(columns, LogisticRegression(C=100.0))
    search = dsel.SemiSupervisedSearchCV(
        None, [model], criterion="best_fold_model", random_state=0
    )
    search.fit(X, y)
    assert (search.predict(of_pool(X)) == search.best_estimator_.predict(X)).all()
    gaps = X.astype({"member": object})
    gaps.loc[::3, "member"] = None
    with pytest.raises(ValueError, match="unknown categories"):
        search.predict(of_pool(gaps))


def test_plan__names_columns_of_one_name():
    (X, y), (pool, _) = table(60), table(90, seed=1)
    X, pool = (f.rename(columns={"plan": "city"}) for f in (X, pool))
    with pytest.raises(ValueError, match=r"unique column names, got: - 'city' 2 times"):
        run(X, y, pool)


def test_plan__names_the_column_with_an_infinite_number():
    (X, y), (pool, _) = table(60), table(90, seed=1)
    with pytest.raises(ValueError, match=r"`X` must .* row 0, column 'age' is inf"):
        run(X.assign(age=np.inf), y, pool)
    with pytest.raises(ValueError, match=r"`pool` must .* row 5, column 'age' is inf"):
        run(X, y, pool.assign(age=np.where(pool.index == 5, np.inf, 1.0))).run()


def test_search__compares_categories_of_polars_by_value(counted):
    polars = pytest.importorskip("polars")
    X, y, pool, _, results = counted
    with_enum = polars_of(X).with_columns(
        polars.col("plan").cast(polars.Enum(["a", "b", "c"]))
    )
    others = polars_of(pool).with_columns(
        polars.col("plan").cast(polars.Enum(["c", "b", "a"]))
    )
    assert_same_counts(results, run(with_enum, y, others).run())


@pytest.fixture
def files(tmp_path):
    """The pool of `counted` as Parquet: files of several row groups, in a folder."""
    pytest.importorskip("pyarrow")
    pool, _ = table(2000, seed=1)
    (tmp_path / "pool").mkdir()
    for number in range(4):
        part = pool.iloc[500 * number : 500 * (number + 1)]
        path = tmp_path / "pool" / f"part-{number}.parquet"
        part.to_parquet(path, index=False, row_group_size=200)
    return tmp_path / "pool"


def test_search__reads_a_folder_of_parquet(counted, files, tmp_path):
    X, y, _, _, results = counted
    assert_same_counts(results, run(X, y, files).run())
    assert_same_counts(results, run(polars_of(X), y, files).run(out=tmp_path / "r"))
    assert_same_counts(results, run(polars_of(X), y, files).run(out=tmp_path / "r"))


@pytest.mark.cluster
def test_search__over_parquet_counts_alike_on_workers(counted, files, processes):
    X, y, pool, _, results = counted
    assert_same_counts(results, run(X, y, files).run(processes))
    assert_same_counts(results, run(polars_of(X), y, pool).run(processes))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: f.rename(columns={"age": "Age"}), ValueError, "lacks .* 'age' of"),
        (
            lambda f: f.astype({"age": str}),
            TypeError,
            "holds text .* in column 'age', where `X` holds number",
        ),
        (
            lambda f: f.assign(plan=None),
            ValueError,
            "holds nothing but missing values in column 'plan'",
        ),
        (
            lambda f: f.assign(since=f.since.dt.tz_localize("Europe/Berlin")),
            TypeError,
            "holds time in zone Europe/Berlin .* in column 'since'",
        ),
    ],
)
def test_plan__names_the_file_in_which_a_column_differs(
    counted, files, change, error, message
):
    X, y, _, _, _ = counted
    for path in files.iterdir():
        change(pd.read_parquet(path)).to_parquet(path, index=False)
    with pytest.raises(error, match=f"^`pool` '.*part-0.parquet' {message}") as caught:
        run(X, y, files)
    assert "\n" not in str(caught.value)


def test_search__encodes_a_block_once_for_pipelines_that_differ_in_the_last_step(
    counted, monkeypatch
):
    X, y, pool, _, results = counted
    n_rows = []
    transform = OneHotEncoder.transform

    def counting(self, rows):
        n_rows.append(len(rows))
        return transform(self, rows)

    plan = run(X, y, pool)
    monkeypatch.setattr(OneHotEncoder, "transform", counting)
    one = run(X, y, pool, grid={"logisticregression__C": [1.0]}).run()
    of_one = sum(n_rows)
    n_rows.clear()
    assert_same_counts(results, plan.run())
    of_fits = 2 * len(X) * 4  # each model predicts the labeled rows, too
    assert sum(n_rows) - of_one < of_fits + len(pool)
    assert_same_counts(results.isel(logisticregression__C=[1]), one)
