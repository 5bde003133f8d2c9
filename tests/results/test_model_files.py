"""A kept model predicts as before; types that nobody trusts are not built."""

import importlib
import json
import subprocess
import sys
import threading
import warnings
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from skops import io

import dsel
from dsel.cli import encoders as encoders_of_shell
from dsel.cli.named_models import MODELS, build
from dsel.data.column_encoders import days_since_1970
from dsel.errors import DselWarning, StoreMismatchError
from dsel.least_squares import KernelLeastSquaresClassifier
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.results import open_model, open_results, save_model, save_results
from dsel.results.model_files import TRUSTED, dump_model
from dsel.results.place import seal, unseal
from dsel.results.run_store import Store
from tests.object_store import BUCKET


class Squares(FunctionTransformer):
    """An estimator that only its author knows."""


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def open_run(tmp_path):
    return Store(tmp_path / "run", kind="search", identity={"cv": "5"})


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_open_model__predicts_as_the_saved_one(rows, tmp_path, place, request):
    options, place = {}, tmp_path if place == "folder" else f"{BUCKET}/models"
    if place != tmp_path:
        options = {"storage_options": request.getfixturevalue("storage_options")}
    for C in (1.0, 2.0):
        imputer = SimpleImputer(add_indicator=True)
        encoder = OneHotEncoder(handle_unknown="ignore")  # an SVM keeps its sparse rows
        parts = imputer, StandardScaler(), encoder, SVC(C=C)
        model = make_pipeline(*parts).fit(*rows)
        save_model(model, place, **options)
    opened = open_model(place, **options)
    assert opened[-1].C == 2.0
    scores = model.decision_function(rows[0])
    np.testing.assert_array_equal(opened.decision_function(rows[0]), scores)


@pytest.mark.parametrize(
    "model",
    [
        SemiSupervisedLDA(),
        KernelLeastSquaresClassifier(penalty="rkhs"),
        NonconformityClassifier(SVC(), {"C": [0.1, 10.0]}, random_state=3),
    ],
)
def test_save_model__lies_beside_a_cube_and_takes_our_own(rows, cube, tmp_path, model):
    model.fit(*rows)
    save_results(cube, tmp_path)
    save_model(model, tmp_path)
    assert open_results(tmp_path).identical(cube)
    answers = open_model(tmp_path).predict(rows[0])
    np.testing.assert_array_equal(answers, model.predict(rows[0]))


@pytest.mark.parametrize("name", [name for name in TRUSTED if name != "numpy.dtype"])
def test_trusted__are_classes_by_their_own_names(name):
    module, _, last = name.rpartition(".")
    if last == "_RemainderColsList" and not sklearn.__version__.startswith("1.6"):
        pytest.skip("scikit-learn 1.6 alone has it")
    found = getattr(importlib.import_module(module), last)
    assert found.__module__ == module
    days = days_since_1970, encoders_of_shell.days_since_1970
    assert isinstance(found, type) or found in days


def test_days_of_models_that_were_kept_before_are_those_of_today():
    frame = pd.DataFrame({"day": pd.to_datetime(["2026-01-01", None])})
    old = encoders_of_shell.days_since_1970(frame)
    pd.testing.assert_frame_equal(old, days_since_1970(frame))
    assert old.day[0] == 20454


def test_days_since_1970__takes_times_of_python_in_any_zone(recwarn):
    noon = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    frame = pd.DataFrame({"seen": pd.Series([noon, None, noon], dtype=object)})
    found = days_since_1970(frame)["seen"]
    expected = (noon - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    assert found[0] == found[2] == expected
    assert np.isnan(found[1])
    assert not recwarn.list


def test_store__gives_the_models_of_its_outcome(rows, tmp_path):
    first, other = open_run(tmp_path), open_run(tmp_path)
    for C, each in ((1.0, first), (2.0, other)):
        for name, other_C in (("one_fold", C), ("all_rows", C + 5)):
            each.save_model(name, dump_model(LogisticRegression(C=other_C).fit(*rows)))
    for each in (first, other):
        each.save_outcome({"deploy": "all_rows"})
    assert other.load_model("one_fold").C == 1.0
    with pytest.raises(KeyError):
        other.load_model("vote")
    assert open_model(tmp_path / "run").C == 6.0
    assert open_model(tmp_path / "run", name="one_fold").C == 1.0


class Holder(LogisticRegression):
    """An estimator whose fit makes what no file can hold."""

    def fit(self, X, y):
        self.lock_ = threading.Lock()
        return super().fit(X, y)


class Forgetful(LogisticRegression):
    """An estimator that predicts something else when it was read back."""

    def __setstate__(self, state):
        super().__setstate__(state | {"intercept_": state.get("intercept_", 0) - 1e3})


class Counted(LogisticRegression):
    """An estimator that says when it is fitted."""

    fits = 0

    def fit(self, X, y):
        Counted.fits += 1
        return super().fit(X, y)


def unnamed():
    return make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression())


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (unnamed(), r"it holds .*<lambda>, which has no name .*; define functions"),
        (Holder(), r"skops cannot write it and read it back \(.*lock.*\)"),
        (Forgetful(), "it predicts something else when it is read back"),
    ],
)
def test_run__tells_once_that_a_model_cannot_be_kept(rows, tmp_path, estimator, why):
    plan = dsel.plan_search(None, [estimator], *rows, random_state=0)
    with pytest.warns(DselWarning, match=f"cannot be kept in `out` .*{why}") as told:
        before = plan.run(out=tmp_path, n_jobs=1).model
    assert len(told) == 1
    with pytest.raises(FileNotFoundError, match=f"could not be kept: {why}.*again"):
        open_model(tmp_path)
    again = plan.run(out=tmp_path).model
    assert (again.predict(rows[0]) == before.predict(rows[0])).all()


def test_run__says_before_the_first_fit_that_models_cannot_be_kept(rows, tmp_path):
    plan = dsel.plan_search(None, [unnamed()], *rows, random_state=0)
    with (
        warnings.catch_warnings(action="error", category=DselWarning),
        pytest.raises(DselWarning, match="cannot be kept"),
    ):
        plan.run(out=tmp_path, on_progress=lambda progress: pytest.fail("it began"))


def test_run__trusts_the_types_of_its_estimators_when_it_resumes(rows, tmp_path):
    plan = dsel.plan_search(None, [Counted()], *rows, random_state=0)
    before = plan.run(out=tmp_path, n_jobs=1).model
    Counted.fits = 0
    again = plan.run(out=tmp_path, n_jobs=1).model
    assert Counted.fits == 0
    assert (again.predict(rows[0]) == before.predict(rows[0])).all()


SCRIPT = """
import sys, warnings
import dsel, numpy as np
from sklearn.linear_model import LogisticRegression

class Own(LogisticRegression):
    pass

X = np.random.default_rng(0).normal(size=(60, 3))
plan = dsel.plan_search(None, [Own()], X, X[:, 0] > 0, random_state=0)
with warnings.catch_warnings(record=True, action="always") as told:
    plan.run(out=sys.argv[1], n_jobs=1)
print(*(each.message for each in told))
"""


def test_run__says_that_nobody_finds_the_classes_of_a_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", tmp_path / "out"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "models with __main__.Own are kept" in shown
    with pytest.raises(ValueError, match=r"cannot be built here: .*__main__.*Own"):
        open_model(tmp_path / "out", trusted=["__main__.Own"])


@pytest.mark.parametrize("name", list(MODELS))
def test_open_model__trusts_the_models_of_dsel_select(tmp_path, rng, name):
    X = pd.DataFrame({
        "age": rng.normal(size=200),
        "city": rng.choice(["Ulm", "Bonn"], 200),
        "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(range(200), unit="D"),
    })  # fmt: skip
    X.loc[::9, "age"] = np.nan
    y = np.where(X["age"].fillna(0) + (X["city"] == "Ulm") > 0.5, "yes", "no")
    estimator, grid, _ = build(name, (), X)
    params = {key: values[0] for key, values in grid.items()}
    model = estimator.set_params(**params).fit(X, y)
    save_model(model, tmp_path)
    assert (open_model(tmp_path).predict(X) == model.predict(X)).all()


def test_certify__keeps_what_a_function_returns(rows, tmp_path):
    def select(X, y):  # which no other process finds
        return LogisticRegression().fit(X, y)

    outcome = dsel.certify(select, *rows, out=tmp_path, random_state=0)
    opened = open_model(tmp_path)
    assert type(opened) is LogisticRegression
    assert (opened.coef_ == outcome.model.coef_).all()
    again = dsel.certify(select, *rows, out=tmp_path, random_state=0)
    assert (opened.coef_ == again.model.coef_).all()


def test_open_model__asks_before_it_builds_what_nobody_trusts(rows, tmp_path):
    model = make_pipeline(Squares(np.square), LogisticRegression()).fit(*rows)
    save_model(model, tmp_path)
    name = f"{Squares.__module__}.Squares"
    with pytest.raises(
        ValueError, match=f"types that are not trusted: {name}; if you know"
    ):
        open_model(tmp_path)
    answers = open_model(tmp_path, trusted=[name]).predict(rows[0])
    np.testing.assert_array_equal(answers, model.predict(rows[0]))


FOREIGN = ["dsel.mcpl.estimators.np", "dsel.results.place.shutil", "dsel.no.thing"]


@pytest.mark.parametrize("name", FOREIGN)
def test_open_model__trusts_no_name_that_our_files_import(rows, tmp_path, name):
    def foreign(X):
        return X

    foreign.__module__, _, foreign.__name__ = name.rpartition(".")
    model = make_pipeline(FunctionTransformer(foreign), LogisticRegression())
    save_model(LogisticRegression().fit(*rows), tmp_path)
    [file] = (tmp_path / "models").iterdir()
    file.write_bytes(seal(io.dumps(model.fit(*rows))))  # as somebody else may
    with pytest.raises(ValueError, match=f"types that are not trusted: .*{name}"):
        open_model(tmp_path)


def test_models__are_refused_in_one_line(rows, cube, tmp_path, monkeypatch):
    model = LogisticRegression().fit(*rows)
    save_results(cube, tmp_path / "cube")
    open_run(tmp_path).save_outcome({"deploy": "one_fold"})
    open_run(tmp_path / "begun")
    for place, words in (
        ("begun/run", "it has none; its run has not ended; run the same command again"),
        ("cube", "holds no model .*it has none; `save_model` keeps one"),
        ("run", r"holds no model .*it has none; the script .* makes them again"),
        ("nothing", "`place` must have results of dsel, but there is nothing at"),
    ):
        with pytest.raises(FileNotFoundError, match=words):
            open_model(tmp_path / place)
    with pytest.raises(StoreMismatchError, match="holds another plan"):
        save_model(model, tmp_path / "run")
    save_model(model, tmp_path / "kept")
    [file] = (tmp_path / "kept" / "models").iterdir()
    for harmed in (file.read_bytes()[:-1], seal(b"no model")):
        file.write_bytes(harmed)
        with pytest.raises(ValueError, match=r"^.* is damaged; run the same .*$"):
            open_model(tmp_path / "kept")


def changed(content, name, change):
    """Return a skops file in which the text of an entry is another one."""
    old, new = ZipFile(BytesIO(unseal(content))), BytesIO()
    with ZipFile(new, "w") as archive:
        for each in old.namelist():
            body = old.read(each)
            archive.writestr(each, change(body) if each == name else body)
    return seal(new.getvalue())


def test_open_model__says_what_is_newer_in_one_line(rows, tmp_path):
    save_model(SVC().fit(*rows), tmp_path)
    [file] = (tmp_path / "models").iterdir()
    whole = file.read_bytes()

    def newer(body):
        schema = json.loads(body) | {"protocol": 99, "_skops_version": "99.1"}
        text = json.dumps(schema).replace('"ObjectNode"', '"NewNode"')
        return text.encode()

    file.write_bytes(changed(whole, "schema.json", newer))
    with pytest.raises(ValueError, match=r"skops 99.1, and this is .*skops>=99.1'"):
        open_model(tmp_path)
    file.write_bytes(
        changed(
            whole, "schema.json",
            lambda body: body.replace(sklearn.__version__.encode(), b"1.2.3"),
        )
    )  # fmt: skip
    with pytest.warns(DselWarning, match=r"by scikit-learn 1.2.3, and") as told:
        opened = open_model(tmp_path)
    assert len(told) == 1
    assert (opened.predict(rows[0]) == rows[1]).mean() > 0.8


@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_open_outcome__predicts_by_a_certified_search_without_asking(
    rows, tmp_path, scoring
):
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, scoring=scoring, cv=3)
    outcome = dsel.certify(search, *rows, out=tmp_path, random_state=0)
    opened = dsel.open_outcome(tmp_path)
    assert (opened.predict(rows[0]) == outcome.predict(rows[0])).all()
