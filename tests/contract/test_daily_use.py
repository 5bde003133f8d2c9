"""Small stops of daily use: what is passed, what comes back, what a message says."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.search import predict_pool, read_rows
from tests.shell import run, succeed

pytestmark = pytest.mark.contract

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


class AlwaysWrong(ClassifierMixin, BaseEstimator):
    """Predicts what is no class."""

    def __init__(self, label=0):
        self.label = label

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), str(self.label))


@pytest.fixture(scope="module")
def search():
    grid = {"C": [1.0, 10.0]}
    return dsel.SemiSupervisedSearchCV(SVC(), grid, random_state=0).fit(X, NAMES)


def test_select__takes_a_fitted_search(search):
    assert dsel.select(search) == search.choice_
    by_error = dsel.select(search, "cv_error")
    assert by_error == dsel.select(search.results_, "cv_error")
    with pytest.raises(NotFittedError, match="fit"):
        dsel.select(dsel.SemiSupervisedSearchCV(SVC(), {"C": [1]}))


@pytest.mark.parametrize("options", [{}, {"certificate": "cv_bound"}])
def test_prune__true_is_the_default(options):
    rows, labels = make_classification(300, random_state=0)
    plans = [
        dsel.plan_search(
            LogisticRegression(), {"C": [0.1, 1]}, rows[:200], labels[:200], rows[200:],
            random_state=0, **options, **more,
        )
        for more in ({}, {"prune": True}, {"prune": None})
    ]  # fmt: skip
    assert dsel.SemiSupervisedSearchCV(SVC(), {}).get_params()["prune"] is True
    assert len({plan.search.prune for plan in plans}) == 1
    assert plans[0].search.prune
    assert plans[0].facts.identity == plans[1].facts.identity == plans[2].facts.identity


def test_search__has_or_names_what_its_outcome_has(search, tmp_path):
    made = search.predict_table(X, out=tmp_path / "p.csv")
    assert pd.read_csv(made.path)["label"].tolist() == search.predict(X).tolist()
    rows = {"y": NAMES, "level": 0.01}
    assert str(search.monitor(X, **rows)) == str(search.outcome_.monitor(X, **rows))
    for name, way in (
        ("seed", r"it is `outcome_\.seed` here"),
        ("models", "it is `models_` here"),
        ("best_parms_", "did you mean 'best_params_'"),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {way}"):
            getattr(search, name)
    for name in ("choice_", "best_params_"):
        with pytest.raises(AttributeError, match=r"call `fit\(X, y\)` before"):
            getattr(dsel.SemiSupervisedSearchCV(SVC(), {}), name)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        _ = search.predict_proba


def test_outcome__has_the_methods_of_its_model_as_scikit_learn_has_them():
    outcome = dsel.certify(make_pipeline(SVC()), X, NAMES, X, random_state=0)
    assert not hasattr(outcome, "predict_proba")
    with pytest.raises(AttributeError, match="'predict_proba'; Pipeline has none"):
        _ = outcome.predict_proba
    for name, model in outcome.models.items():
        scores = outcome.decision_function(X, deploy=name)
        np.testing.assert_array_equal(scores, model.decision_function(X))
        assert outcome.score(X, NAMES, deploy=name) == model.score(X, NAMES)
    np.testing.assert_array_equal(outcome.classes_, outcome.model.classes_)
    lazy = outcome.decision_function(da.from_array(X, chunks=(50, -1)))
    np.testing.assert_array_equal(lazy.compute(), outcome.decision_function(X))
    weights = np.arange(len(X))
    assert outcome.score(X, NAMES, weights) == outcome.model.score(X, NAMES, weights)
    fitted = SVC().fit(X, NAMES)
    certificate = dsel.certify(fitted, X, NAMES, cv="prefit")
    with pytest.raises(AttributeError, match=r"dsel\.plots\.plot_certificates\(it\)"):
        _ = certificate.plot
    with pytest.raises(AttributeError, match="call `predict` of the model itself"):
        certificate.predict(X)
    outcome = dsel.certify(Ridge(), X, X[:, 0], random_state=0)
    assert outcome.score(X, X[:, 0]) == outcome.model.score(X, X[:, 0])
    assert not hasattr(outcome, "classes_")


def test_outcome__knows_the_columns_of_its_rows_as_scikit_learn_does(tmp_path):
    frame = pd.DataFrame(X).add_prefix("x")
    named = dsel.certify(SVC(), frame, NAMES, random_state=0)
    named.save(tmp_path / "named")
    for outcome in (named, dsel.open_outcome(tmp_path / "named")):
        assert outcome.feature_names_in_.tolist() == [*frame]
        assert outcome.n_features_in_ == frame.shape[1]
    plain = dsel.certify(SVC(), X, NAMES, random_state=0)
    assert plain.n_features_in_ == X.shape[1]
    with pytest.raises(AttributeError, match="the labeled rows had no names"):
        _ = plain.feature_names_in_
    plain.save(tmp_path / "plain")
    with pytest.raises(AttributeError, match="folder has no number of columns"):
        _ = dsel.open_outcome(tmp_path / "plain").n_features_in_


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_array__for_a_model_that_finds_columns_by_name_gets_the_way_out():
    frame = pd.DataFrame(X).add_prefix("x")
    named = make_column_transformer((StandardScaler(), ["x0", "x1"]))
    model = make_pipeline(named, SVC())
    outcome = dsel.certify(model, frame, NAMES, random_state=0)
    search = dsel.SemiSupervisedSearchCV(model, {"svc__C": [1]}, random_state=0)
    words = r"columns by their names, got ndarray; .* x0, .*pass pd\.DataFrame\(X, "
    for predict in (outcome.predict, search.fit(frame, NAMES).predict):
        with pytest.raises(TypeError, match=words):
            predict(X)
        named_rows = pd.DataFrame(X, columns=outcome.input_format.columns)
        assert predict(named_rows).shape == (len(X),)
    words = pd.DataFrame({"text": [f"{name} flower" for name in NAMES]})
    encoder = make_column_transformer((CountVectorizer(), "text"))
    model = make_pipeline(encoder, LogisticRegression())
    outcome = dsel.certify(model, words, NAMES, random_state=0)
    for rows in (words["text"], words["text"].to_list()):
        with pytest.raises(ValueError, match=r"pandas\.DataFrame\(\{'text': X\}\)"):
            outcome.predict(rows)
    with pytest.raises(ValueError, match="NaN"):  # names would not help
        dsel.certify(SVC(), frame, NAMES, random_state=0).predict(np.nan * X)


def test_predict_table__without_a_file_returns_its_columns_as_a_frame(search, tmp_path):
    written = pd.read_csv(search.predict_table(X, out=tmp_path / "p.csv").path)
    for result in (search, search.outcome_):
        predicted = result.predict_table(X)
        pd.testing.assert_frame_equal(predicted, written)
    assert predicted["label"].tolist() == search.predict(X).tolist()
    # The index is that of the table, so that columns can be assigned to it.
    table = pd.DataFrame(X).add_prefix("x").set_index(np.arange(len(X))[::-1])
    outcome = dsel.certify(SVC(), table, NAMES, random_state=0)
    predicted = outcome.predict_table(table)
    assert predicted.index.equals(table.index)


def test_messages__show_no_table_that_was_passed_in_the_place_of_an_argument(search):
    results = search.outcome_, search.results_, search.choice_, X, pd.DataFrame(X)
    for call in (
        lambda value: dsel.open_results(value),
        lambda value: dsel.audit("nested, noise", n_draws=value),
        lambda value: dsel.certify(SVC(), X, NAMES, delta=value),
        lambda value: dsel.certify(SVC(), X, NAMES, cv=value, loss=value),
        lambda value: dsel.plan_search(value, {}, X, NAMES),
        lambda value: dsel.plan_search(SVC(), value, X, NAMES),
        lambda value: dsel.predict_pool(SVC().fit(X, NAMES), X, value),
        lambda value: dsel.select(search, value),
        lambda value: dsel.write_report(search, value),
    ):
        for value in results:
            with pytest.raises((TypeError, ValueError)) as info:
                call(value)
            assert "\n" not in str(info.value)
            assert "Error at most" not in str(info.value)
            assert len(str(info.value)) < 400


def test_predict_pool__returns_where_it_wrote_and_gives_labels(search, tmp_path):
    path = predict_pool(search, X, tmp_path / "labels.zarr", labels=True)
    assert path == str(tmp_path / "labels.zarr")
    labels = np.concatenate([values for _, values in read_rows(path, "label")])
    assert labels.tolist() == search.predict(X).tolist()
    path = predict_pool(search, X, tmp_path / "codes.zarr")
    codes = np.concatenate([values for _, values in read_rows(path, "label")])
    assert (search.classes_[codes] == labels).all()


def test_predictions__by_the_place_of_columns_are_told(search, tmp_path):
    pool = pd.DataFrame(X, columns=["d", "c", "b", "a"])
    with pytest.warns(dsel.errors.GuaranteeWarning, match="in their order: d, c, b, a"):
        path = predict_pool(search, pool, tmp_path / "labels.zarr", labels=True)
    labels = np.concatenate([values for _, values in read_rows(path, "label")])
    assert labels.tolist() == search.predict(X).tolist()
    outcome = dsel.plan_search(SVC(), {"C": [1.0]}, X, NAMES, random_state=0).run()
    with pytest.warns(dsel.errors.GuaranteeWarning, match="in their order: d, c, b, a"):
        made = outcome.predict_table(pool, out=tmp_path / "p.csv")
    assert len(made.notes) == 1


class InPlace(ClassifierMixin, BaseEstimator):
    """Writes into the rows that it predicts."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        X *= self.factor
        return self.classes_[(X[:, 0] > 5).astype(int)]


def test_models__that_write_into_rows_are_refused_with_the_way_out(tmp_path):
    way = r"`predict` of InPlace must work on a copy, such as X\.copy\(\)"
    plan = dsel.plan_search(InPlace(), {"factor": [1.0]}, X, NAMES, random_state=0)
    with pytest.raises(dsel.errors.AllFitsFailedError, match=rf"{way} \(test_daily"):
        plan.run(n_jobs=1)
    model, other = InPlace().fit(X, NAMES), SVC().fit(X, NAMES)
    with pytest.raises(ValueError, match=way):
        predict_pool(model, X, tmp_path / "labels.zarr")
    with pytest.raises(ValueError, match=way):
        dsel.compare_models(model, other, X)


def test_weights__that_are_passed_in_the_place_of_a_pool_are_told():
    weights = np.linspace(0.5, 1.5, len(X))
    search = dsel.SemiSupervisedSearchCV(SVC(), {"C": [1.0]}, random_state=0)
    with pytest.raises(ValueError, match="have a name: sample_weight=weights"):
        search.fit(X, NAMES, weights)


def test_choice__says_why_its_bound_says_nothing():
    plan = dsel.plan_search(
        AlwaysWrong(), {"label": [9]}, X[:100], NAMES[:100], random_state=0
    )
    lines = str(plan.run().choice).splitlines()
    assert any(
        line.startswith("No bound below 100% for the error: no ") for line in lines
    )
    assert sum("only a better model makes it small" in line for line in lines) == 1
    assert not any("more lab" in line for line in lines)


def write(path, text):
    path.write_text(text)
    return path


BLANKS = "a b label\n" + "".join(f"{n} {n % 7} {n % 2}\n" for n in range(60))


@pytest.mark.parametrize("sign", [" ", ":"])
def test_select__hints_at_the_separator(tmp_path, sign):
    table = write(tmp_path / "t.csv", BLANKS.replace(" ", sign))
    found = run("select", table, "--target", "label")
    assert found.exit_code == 1
    assert f"--sep {sign!r}" in found.stderr
    succeed("select", table, "--target", "label", "--sep", sign, "--quiet")


def test_pool_build__tells_of_the_first_pass(tmp_path):
    source = tmp_path / "t.csv"
    pd.DataFrame({"a": range(500), "b": range(500)}).to_csv(source, index=False)
    told = []
    dsel.write_pool(
        source, tmp_path / "pool.zarr",
        on_progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told[0] == (500, None)
    assert told[-1] == (500, 500)


def test_select__says_which_types_must_be_trusted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    write(
        tmp_path / "my_models.py",
        "from sklearn.linear_model import LogisticRegression\n"
        "class Mine(LogisticRegression):\n    pass\n",
    )
    table = write(tmp_path / "t.csv", BLANKS.replace(" ", ","))
    options = ["--target", "label", "--model", "my_models:Mine", "--out", "results"]
    found = succeed("select", table, *options)
    assert "--trust my_models.Mine" in found.stderr
    new = ["predict", "results", table, "--out", "p.csv"]
    assert run(*new).exit_code == 1
    assert run(*new, "--trust", "my_models.Mine").exit_code == 0


def test_outcome__has_the_names_of_a_search_and_a_search_saves_its_outcome(tmp_path):
    X, y = load_iris(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(
        LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, random_state=0
    ).fit(X, y)
    outcome = search.outcome_
    assert outcome.bound == outcome.certificate.bound == search.certificate_.bound
    assert outcome.best_params_ == search.best_params_
    assert outcome.best_estimator_ is search.best_estimator_
    search.save(tmp_path / "kept")
    opened = dsel.open_outcome(tmp_path / "kept")
    assert opened.choice == search.choice_
    assert opened.best_params_ == search.best_params_
