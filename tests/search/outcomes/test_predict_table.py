"""`Outcome.predict_table`: files of predictions of what lies in memory and in files."""

import threading
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import dsel
from dsel.data.cache import process_cache
from dsel.errors import GuaranteeWarning
from dsel.runtime.clients import count_threads

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "id": [f"{number:03d}" for number in range(240)],
    "x": RNG.normal(size=240),
    "town": RNG.choice(["Bonn", "Ulm"], 240),
})  # fmt: skip
LABELS = np.where(FRAME["x"] + (FRAME["town"] == "Ulm") > 0.3, "yes", "no")
FEATURES = FRAME[["x", "town"]]


def search(X, model=None, y=LABELS):
    if model is None:
        encoder = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
        )
        model = make_pipeline(encoder, LogisticRegression())
    return dsel.plan_search(None, [model], X[:120], y[:120], cv=3, random_state=0).run()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_predict_table__notes_an_order_of_files_in_which_2_follows_10(tmp_path, ending):
    outcome = search(FEATURES)
    folder = tmp_path / "new"
    folder.mkdir()
    for number in range(12):
        rows = FRAME[number * 20 : number * 20 + 20]
        path = folder / f"part-{number}.{ending}"
        write = rows.to_parquet if ending == "parquet" else rows.to_csv
        write(path, index=False)
    words = f"such as part-10.{ending} before part-2.{ending}"
    with pytest.warns(GuaranteeWarning, match=words):
        outcome.predict_table(folder, out=tmp_path / "p.csv")
    with_ids = outcome.predict_table(folder, out=tmp_path / "i.parquet", id="id")
    assert with_ids.notes == []
    found = pd.read_parquet(with_ids.path)
    expected = pd.Series(outcome.predict(FEATURES), index=FRAME["id"])
    assert (found["label"] == expected[found["id"]].to_numpy()).all()
    for number in range(12):
        path = folder / f"part-{number}.{ending}"
        path.rename(folder / f"part-{number:02}.{ending}")
    made = outcome.predict_table(folder, out=tmp_path / "o.parquet")
    assert made.notes == []
    assert (pd.read_parquet(made.path)["label"] == expected.to_numpy()).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("is_new_pandas", [False, True])
def test_predict_table__gives_the_model_frames_of_its_library(
    tmp_path, library, is_new_pandas
):
    as_library = pl.from_pandas if library == "polars" else pd.DataFrame
    outcome = search(as_library(FEATURES))
    new = FRAME if is_new_pandas else as_library(FRAME)
    made = outcome.predict_table(new, out=tmp_path / "p.parquet", id=["id"])
    found = pd.read_parquet(made.path)
    assert (found["id"] == FRAME["id"]).all()
    expected = outcome.model.predict(as_library(FEATURES))
    assert (found["label"] == expected).all()
    assert made.n_rows == 240
    assert made.unused == ()


class OwnClassifier(BaseEstimator, ClassifierMixin):
    """A classifier whose tags scikit-learn does not find, by the order of its bases."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_predict_table__knows_classifiers_by_any_order_of_their_bases(tmp_path):
    made = search(FEATURES[["x"]], OwnClassifier()).predict_table(
        FEATURES[["x"]], out=tmp_path / "p.csv"
    )
    assert made.columns == ("row", "label")


@pytest.mark.parametrize("deploy", ["one_fold", "all_rows"])
def test_predict_table__applies_the_deployment_that_is_asked_for(tmp_path, deploy):
    X = FEATURES[["x"]].to_numpy()
    plan = dsel.plan_search(
        None, [SVC(gamma=5.0)], X[:60], LABELS[:60], X[60:], cv=3, random_state=0
    )
    outcome = plan.run()
    made = outcome.predict_table(X, out=tmp_path / "p.csv", deploy=deploy)
    found = pd.read_csv(made.path)
    assert (found["label"] == outcome.models[deploy].predict(X)).all()
    with pytest.raises(ValueError, match="`deploy` must be one of"):
        outcome.predict_table(X, out=tmp_path / "q.csv", deploy="best_fold")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=2, max_depth=1, random_state=0),
        HistGradientBoostingClassifier(max_iter=2, random_state=0),
        LogisticRegression(C=1e-13),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predict_table__labels_are_those_of_predict_where_scores_are_tied(
    tmp_path, model, n_classes
):
    X = FEATURES[["x"]]
    y = np.clip(np.digitize(FRAME["x"], [-0.4, 0.4]), 0, n_classes - 1)
    outcome = search(X, model, y)
    # A tree of two trees has equal shares of both classes in some rows.
    made = outcome.predict_table(X, out=tmp_path / "p.parquet")
    found = pd.read_parquet(made.path)
    labels = outcome.model.predict(X)
    assert (found["label"] == labels).all()
    assert found["label"].dtype == labels.dtype
    shares = found[[f"probability_{k}" for k in range(n_classes)]]
    np.testing.assert_allclose(shares, outcome.model.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"x": pd.Timestamp("2020-01-01")},
            ValueError,
            "column 'x' holds numbers in the labeled table and time in `source`",
        ),
        (
            {"x": "much"},
            ValueError,
            "column 'x' of .* has 'much' in row 0; it holds",
        ),
        (
            {"x": np.inf},
            ValueError,
            "^`source` .* must hold finite numbers, but row 0, column 'x'",
        ),
    ],
)
def test_predict_table__names_column_and_value_that_are_of_another_kind(
    tmp_path, change, error, message
):
    outcome = search(FEATURES)
    FRAME.assign(**change).to_parquet(tmp_path / "new.parquet")
    with pytest.raises(error, match=message):
        outcome.predict_table(tmp_path / "new.parquet", out=tmp_path / "p.csv")
    assert [each.name for each in tmp_path.iterdir()] == ["new.parquet"]


def test_predict_table__finds_columns_by_name(tmp_path):
    X = FRAME[["x"]].assign(z=RNG.normal(size=240))
    outcome = search(X, SVC())
    made = outcome.predict_table(X[["z", "x"]], out=tmp_path / "p.csv")
    expected = outcome.model.predict(X)
    assert (pd.read_csv(made.path)["label"] == expected).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predict_table__warns_of_values_that_no_labeled_row_has(tmp_path, library):
    as_library = pl.from_pandas if library == "polars" else pd.DataFrame
    outcome = search(as_library(FEATURES))
    new = FEATURES.assign(town=FEATURES["town"].replace("Ulm", "Rome"))
    n_rows = int((new["town"] == "Rome").sum())
    with pytest.warns(
        dsel.errors.GuaranteeWarning, match=rf"^In {n_rows} rows column 'town' .*'Rome'"
    ):
        made = outcome.predict_table(as_library(new), out=tmp_path / "p.csv")
    assert [each.column for each in made.unknown] == ["town"]


def many_lines(place, line):
    """Return a text table of 100,000 rows, one of which is this line."""
    lines = [f"{x},Ulm\n" for x in range(100_000)]
    lines[place] = f"{line}\n"
    return "x,town\n" + "".join(lines)


def test_predict_table__of_a_long_text_file_has_its_order(tmp_path):
    (tmp_path / "new.csv").write_text(many_lines(90_000, '-1,"Bonn\nam Rhein"'))
    outcome = search(FEATURES)
    with pytest.warns(GuaranteeWarning) as told:
        made = outcome.predict_table(tmp_path / "new.csv", out=tmp_path / "p.parquet")
    texts = [str(each.message) for each in told]
    assert any(text.startswith("In 1 row column 'town'") for text in texts)
    assert any(" column 'x' is beyond the labeled rows, " in text for text in texts)
    found = pd.read_parquet(made.path)
    assert (found["row"] == np.arange(100_000)).all()
    X = pd.DataFrame({"x": np.arange(100_000.0), "town": "Ulm"})
    X.loc[90_000] = [-1.0, "Bonn am Rhein"]
    assert (found["label"] == outcome.predict(X)).all()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "its line 90002 has 1 value, but the header has 2"),
        ("much,Ulm", "column 'x' of .* has 'much' in line 90002; it holds numbers"),
    ],
)
def test_predict_table__names_the_line_of_a_long_text_file(tmp_path, line, message):
    (tmp_path / "new.csv").write_text(many_lines(90_000, line))
    with pytest.raises(ValueError, match=message):
        search(FEATURES).predict_table(tmp_path / "new.csv", out=tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


TWO, HAVE_MET = threading.Barrier(2), threading.Event()


class WaitsForAnother(DummyClassifier):
    """A model that predicts once a second thread predicts, too."""

    def predict(self, X):
        if len(X) > 1000 and not (TWO.broken or HAVE_MET.is_set()):
            with suppress(threading.BrokenBarrierError):
                TWO.wait(20)
                HAVE_MET.set()
        return np.where(X["x"] > 0.5, "yes", "no")


@pytest.mark.skipif(count_threads() < 2, reason="there is only one processor")
def test_predict_table__of_one_row_group_takes_all_threads(tmp_path):
    new = pd.DataFrame({"x": RNG.random(4 * 2**16), "town": "Ulm"})
    new.to_parquet(tmp_path / "new.parquet")
    outcome = search(FEATURES, WaitsForAnother())
    made = outcome.predict_table(tmp_path / "new.parquet", out=tmp_path / "p.parquet")
    assert HAVE_MET.is_set()
    found = pd.read_parquet(made.path)
    assert (found["row"] == np.arange(len(new))).all()
    assert (found["label"] == np.where(new["x"] > 0.5, "yes", "no")).all()


class CountsRows(DummyClassifier):
    """A model that knows the most rows that it has predicted at once."""

    most = 0

    def predict(self, X):
        CountsRows.most = max(CountsRows.most, len(X))
        return super().predict(X)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_predict_table__of_a_text_file_has_about_three_blocks_for_each_thread(
    n_threads, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "dsel.search.outcomes.table_rows.count_threads", lambda: n_threads
    )
    n_rows = 2**18
    (tmp_path / "new.csv").write_text("x,town\n" + f"0.{10**60},Ulm\n" * n_rows)
    outcome, CountsRows.most = search(FEATURES, CountsRows()), 0
    outcome.predict_table(tmp_path / "new.csv", out=tmp_path / "p.parquet")
    assert CountsRows.most == pytest.approx(n_rows / (3 * n_threads), rel=0.05)


def test_predict_table__drops_row_groups_that_have_been_read(tmp_path, monkeypatch):
    rows = (2**13, 2**13)
    monkeypatch.setattr("dsel.search.outcomes.table_rows.BLOCK_ROWS", rows)
    new = pd.DataFrame({"x": RNG.random(16 * 2**15), "town": "Ulm"})
    new.to_parquet(tmp_path / "new.parquet", row_group_size=2**15)
    outcome, before = search(FEATURES, OwnClassifier()), process_cache().held
    outcome.predict_table(tmp_path / "new.parquet", out=tmp_path / "p.parquet")
    assert process_cache().held - before < new.memory_usage().sum() / 3


@pytest.mark.parametrize("separator", [",", ";"])
def test_predict_table__writes_probabilities_to_csv_with_the_digits_of_float32(
    tmp_path, separator
):
    outcome = search(FEATURES)
    form = {"index": False, "sep": separator, "decimal": ".,"[separator == ";"]}
    FEATURES.to_csv(tmp_path / "new.csv", **form)
    files = [tmp_path / "p.csv", tmp_path / "p.parquet"]
    for out in files:
        outcome.predict_table(tmp_path / "new.csv", out=out)
    text, whole = (
        pd.read_csv(files[0], dtype=str, sep=separator),
        pd.read_parquet(files[1]),
    )
    names = [name for name in whole if name.startswith("probability_")]
    assert names
    for name in names:
        shown = text[name].str.replace(",", ".").astype(np.float32)
        assert (shown == whole[name].astype(np.float32)).all()
        digits = text[name].str.replace(r"e.*|\D", "", regex=True).str.lstrip("0")
        assert digits.str.len().max() <= 9
    proba = outcome.model.predict_proba(FEATURES)
    np.testing.assert_array_equal(whole[names], proba)
    assert (text["label"].astype(str) == whole["label"].astype(str)).all()


@pytest.mark.parametrize("index", [
    pd.Index([f"K{n}" for n in range(120)], name="key"),
    pd.Index(np.arange(120)[::-1]),
    pd.MultiIndex.from_product([["a", "b"], range(60)], names=["site", None]),
])  # fmt: skip
def test_predict_table__a_file_has_the_index_of_a_frame(tmp_path, index):
    outcome = search(FEATURES)
    frame = FEATURES[:120].set_axis(index, axis=0)
    made = outcome.predict_table(frame, out=tmp_path / "p.csv")
    written = pd.read_csv(made.path)
    expected = outcome.predict_table(frame).drop(columns="row").reset_index()
    pd.testing.assert_frame_equal(written, expected)
    assert tuple(written.columns) == made.columns
    made = outcome.predict_table(frame.reset_index(drop=True), out=tmp_path / "r.csv")
    assert made.columns[0] == "row"
    with pytest.raises(ValueError, match="has an index named 'label', as a column"):
        outcome.predict_table(
            FEATURES[1:9].rename_axis("label"), out=tmp_path / "l.csv"
        )
    assert not (tmp_path / "l.csv").exists()
