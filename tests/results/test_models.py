"""A kept model predicts as before; types that nobody trusts are not built."""

import importlib
import sys

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.errors import DselWarning, StoreMismatchError
from dsel.least_squares import KernelLeastSquaresClassifier
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.results import open_model, open_results, save_model, save_results
from dsel.results.models import TRUSTED
from dsel.results.place import seal
from dsel.results.store import Store
from tests.object_store import BUCKET

pytest.importorskip("skops")


class Squares(FunctionTransformer):
    """An estimator that only its author knows."""


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


def open_run(tmp_path):
    return Store(tmp_path / "run", kind="search", plan={"cv": "5"})


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
    found = getattr(importlib.import_module(module), last)
    assert found.__module__ == module
    assert isinstance(found, type)


def test_store__gives_the_models_of_its_outcome(rows, tmp_path):
    first, other = open_run(tmp_path), open_run(tmp_path)
    for C, each in ((1.0, first), (2.0, other)):
        each.save_model("one_fold", LogisticRegression(C=C).fit(*rows))
        each.save_model("all_rows", LogisticRegression(C=C + 5).fit(*rows))
    for each in (first, other):
        each.save_outcome({"deploy": "all_rows"})
    assert other.load_model("one_fold").C == 1.0
    with pytest.raises(KeyError):
        other.load_model("vote")
    assert open_model(tmp_path / "run").C == 6.0
    assert open_model(tmp_path / "run", name="one_fold").C == 1.0


def test_run__without_skops_is_told_and_makes_models_again(rows, tmp_path):
    plan = dsel.plan_search(SVC(), {"C": [1.0, 9.0]}, *rows, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "skops", None)
        with pytest.warns(DselWarning, match=r"not kept .*'dsel\[models\]'"):
            before = plan.run(out=tmp_path).model
    with pytest.raises(FileNotFoundError, match="the same line makes them again"):
        open_model(tmp_path)
    again = plan.run(out=tmp_path).model
    assert (again.predict(rows[0]) == before.predict(rows[0])).all()


def test_open_model__asks_before_it_builds_what_nobody_trusts(rows, tmp_path):
    model = make_pipeline(Squares(np.square), LogisticRegression()).fit(*rows)
    save_model(model, tmp_path)
    name = f"{Squares.__module__}.Squares"
    with pytest.raises(ValueError, match=f"nobody said to trust: {name}; if you know"):
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
    save_model(model.fit(*rows), tmp_path)
    with pytest.raises(ValueError, match=f"nobody said to trust: .*{name}"):
        open_model(tmp_path)


def test_models__are_refused_in_one_line(rows, cube, tmp_path, monkeypatch):
    model = LogisticRegression().fit(*rows)
    save_results(cube, tmp_path / "cube")
    open_run(tmp_path).save_outcome({"deploy": "one_fold"})
    for place, words in (
        ("cube", "holds no model .*it has none; `save_model` keeps one"),
        ("run", r"holds no model .*it has none; .* same line .*'dsel\[models\]'"),
        ("nothing", "nothing: it does not exist, or holds"),
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
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dsel\[models\]'"):
        save_model(model, tmp_path / "kept")
