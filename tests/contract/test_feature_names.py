"""Models of a search of a data frame know its columns, as scikit-learn's do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.least_squares import LeastSquaresSearch, StreamedLeastSquaresSearch

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["a", "b", "c"])
LABELS = np.where(FRAME["a"] > FRAME["b"] + 0.3 * RNG.normal(size=300), "yes", "no")
ROWS, POOL = FRAME[:120], FRAME[120:]
ESTIMATORS = {
    "svm": SVC(),
    "svm by scikit-learn": SVC(kernel="sigmoid"),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "pipeline that skips its steps": make_pipeline("passthrough", SVC()),
    "pipeline of frames": make_pipeline(StandardScaler(), SVC()).set_output(
        transform="pandas"
    ),
    "nested pipeline": make_pipeline(make_pipeline(StandardScaler(), PCA(2)), SVC()),
    "logistic regression": LogisticRegression(),
    "search": GridSearchCV(SVC(), {"C": [1, 10]}),
}


def outcome_of(estimator, X=ROWS, pool=POOL, **options):
    plan = dsel.plan_search(
        None, [estimator], X, LABELS[: len(X)], pool, random_state=0, cv=3, **options
    )
    return plan.run()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("error")
def test_models_of_a_frame_find_its_columns_by_name(name):
    estimator = ESTIMATORS[name]
    outcome = outcome_of(estimator)
    for model in outcome.models.values():
        last = model[-1] if name == "pipeline that skips its steps" else model
        assert list(last.feature_names_in_) == list("abc")
        model.predict(POOL)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(POOL[["c", "b", "a"]])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("error")
def test_models_of_an_array_take_an_array(name):
    estimator = ESTIMATORS[name]
    outcome = outcome_of(estimator, ROWS.to_numpy(), POOL.to_numpy())
    of_frame = outcome_of(estimator)
    for kept, model in outcome.models.items():
        assert not hasattr(model, "feature_names_in_")
        labels = model.predict(POOL.to_numpy())
        assert (of_frame.models[kept].predict(POOL) == labels).all()
    assert of_frame.choice.bound == outcome.choice.bound


@pytest.mark.filterwarnings("error")
def test_names_are_kept_in_stored_models_and_read_by_name_from_tables(tmp_path):
    plan = dsel.plan_search(SVC(), {"C": [1, 9]}, ROWS, LABELS[:120], random_state=0)
    labels = plan.run(out=tmp_path / "out").model.predict(POOL)
    outcome = dsel.open_outcome(tmp_path / "out")
    assert list(outcome.model.feature_names_in_) == list("abc")
    POOL[["c", "a", "b"]].to_csv(tmp_path / "new.csv", index=False)
    made = outcome.predict_table(tmp_path / "new.csv", out=tmp_path / "p.csv")
    assert (pd.read_csv(made.path)["label"] == labels).all()
    assert (outcome.predict(POOL) == labels).all()


@pytest.mark.parametrize("is_key", [True, False])
def test_certify_prefit__looks_for_keys_in_the_named_column(is_key):
    rng = np.random.default_rng(0)
    few, many = np.arange(200) // 4, rng.normal(size=200)
    key, other = (few, many) if is_key else (many, few)
    rows = pd.DataFrame({"other": other, "x": rng.normal(size=200), "client_no": key})
    model = LogisticRegression().fit(rows[["client_no", "x"]], rows.x > 0)
    made = dsel.certify(model, rows, rows.x > 0.1, cv="prefit", random_state=0)
    assert ("if rows of one client_no belong together" in str(made)) == is_key


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
@pytest.mark.filterwarnings("error")
def test_an_outcome_finds_columns_by_name_as_certify_does(frame):
    outcome = dsel.certify(
        SVC(), frame(ROWS), LABELS[:120], frame(POOL[["c", "a", "b"]]), random_state=0
    )
    labels = outcome.predict(frame(POOL))
    other = frame(POOL[["c", "b", "a"]].assign(more=1))
    assert (outcome.predict(other) == labels).all()
    fitted = LogisticRegression().fit(ROWS, LABELS[:120])
    made = [
        dsel.certify(fitted, frame(rows), LABELS[120:], cv="prefit").bound
        for rows in (POOL, POOL[["c", "b", "a"]].assign(more=1))
    ]
    assert made[0] == made[1]
    for lacks in (
        lambda rows: outcome.predict(rows),
        lambda rows: dsel.certify(fitted, rows, LABELS[120:], cv="prefit"),
    ):
        with pytest.raises(
            ValueError, match=r"^`X` lacks the column 'b' of .*'a', 'c'"
        ):
            lacks(frame(POOL[["a", "c"]]))


def test_an_outcome_says_which_shape_is_wrong():
    outcome = outcome_of(LogisticRegression())
    with pytest.raises(ValueError, match=r"Series of 3 values; .* df.iloc\[\[0\]\]"):
        outcome.predict(POOL.iloc[0])
    with pytest.warns(UserWarning, match="but LogisticRegression was fitted") as seen:
        outcome.predict(POOL.to_numpy())
    assert len(seen) == 1


@pytest.mark.filterwarnings("error")
def test_polars_frames_have_names_and_columns_that_are_no_texts_have_none():
    frame = pl.from_pandas(ROWS), pl.from_pandas(POOL)
    model = outcome_of(SVC(), *frame).model
    assert list(model.feature_names_in_) == list("abc")
    numbered = ROWS.set_axis([0, 1, 2], axis=1)
    assert not hasattr(outcome_of(SVC(), numbered, None).model, "feature_names_in_")


@pytest.mark.filterwarnings("error")
def test_the_best_estimator_of_a_search_has_the_names_of_the_search():
    search = dsel.SemiSupervisedSearchCV(SVC(), {"C": [1, 9]}, random_state=0)
    search.fit(ROWS, LABELS[:120], pool=POOL)
    names = [*search.feature_names_in_]
    assert [*search.best_estimator_.feature_names_in_] == names == list("abc")
    assert (search.best_estimator_.predict(POOL) == search.predict(POOL)).all()


@pytest.mark.parametrize(
    "search",
    [
        LeastSquaresSearch([1.0, 2.0], [0.1]),
        LeastSquaresSearch([1.0], [0.1], penalty="rkhs", certificate="nested"),
        StreamedLeastSquaresSearch([1.0], [0.1], random_state=0),
    ],
    ids=["estimates", "certified", "streamed"],
)
@pytest.mark.filterwarnings("error")
def test_closed_forms_give_their_models_the_names(search):
    search.fit(ROWS, ROWS["a"] - ROWS["b"])
    models = [search.best_estimator_, *getattr(search, "models_", {}).values()]
    for model in models:
        assert list(model.feature_names_in_) == list("abc")
    expected = search.best_estimator_.predict(POOL)
    assert (search.predict(POOL) == expected).all()
    if search.get_params().get("certificate"):
        ends = search.predict_interval(POOL)
        assert ((ends[:, 0] < expected) & (expected < ends[:, 1])).all()


FITTED = LogisticRegression().fit(FRAME, LABELS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dsel.certify(SVC(), LABELS, FRAME), "did you swap them"),
        (lambda: dsel.certify(FITTED, LABELS, FRAME, cv="prefit"), "swap them"),
        (
            lambda: dsel.certify(SVC(), [["a", "b"]] * 300, LABELS),
            "got a table of texts",
        ),
        (
            lambda: dsel.certify(
                SVC(), FRAME.assign(note=[f"row {i}" for i in range(300)]), LABELS
            ),
            r"make_pipeline\(make_column_transformer\(\(TfidfVectorizer\(\), 'note'\)",
        ),
        (
            lambda: dsel.certify(
                SVC(), FRAME.assign(day=pd.date_range("2026", periods=300)), LABELS
            ),
            r"make_pipeline\(dsel.data.make_encoder\(X\), estimator\)",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_what_to_do(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
