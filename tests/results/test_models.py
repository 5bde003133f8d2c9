"""A kept model predicts as before; types that nobody trusts are not built."""

import io
import json
import sys
import uuid
import zipfile
from functools import partial

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from dsel.results import open_model, save_model, save_results
from dsel.results.models import model_key
from dsel.results.records import decode, encode


class Squares(FunctionTransformer):
    """An estimator that only its author knows."""


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] > 0, "yes", "no")


@pytest.mark.parametrize("url", [False, True], ids=["directory", "url"])
def test_open_model__predicts_as_the_saved_one(rows, tmp_path, url):
    place = f"memory://{uuid.uuid4().hex}" if url else tmp_path
    X, y = rows
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    save_model(model, place)
    opened = open_model(place)
    np.testing.assert_array_equal(opened.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        opened.decision_function(X), model.decision_function(X)
    )


def test_open_model__trusts_an_imputer(rows, tmp_path):
    X, y = rows
    model = make_pipeline(SimpleImputer(add_indicator=True), SVC()).fit(X, y)
    save_model(model, tmp_path)
    assert open_model(tmp_path).predict(X).tolist() == model.predict(X).tolist()


def test_save_model__replaces_the_one_before(rows, tmp_path):
    for C in (1.0, 2.0, 3.0):
        save_model(LogisticRegression(C=C).fit(*rows), tmp_path)
    assert open_model(tmp_path).C == 3.0


def test_open_model__refuses_types_that_nobody_trusts(rows, tmp_path):
    model = make_pipeline(Squares(np.square), LogisticRegression()).fit(*rows)
    save_model(model, tmp_path)
    name = f"{Squares.__module__}.Squares"
    with pytest.raises(ValueError, match=f"nobody said to trust: {name}; if you know"):
        open_model(tmp_path)
    opened = open_model(tmp_path, trusted=[name])
    np.testing.assert_array_equal(opened.predict(rows[0]), model.predict(rows[0]))


@pytest.mark.parametrize(
    "name", ["fitting_process.subprocess", "execute.open_store", "nothing.at_all"]
)
def test_open_model__trusts_no_name_that_our_files_import(rows, tmp_path, name):
    model = make_pipeline(FunctionTransformer(np.square), LogisticRegression())
    save_model(model.fit(*rows), tmp_path)
    module, last = f"dsel.searches.{name}".rsplit(".", 1)
    path = tmp_path / "model" / "skops.records"
    about, records = decode(path.read_bytes())
    crafted = _renamed(records["model"]["bytes"].tobytes(), module, last)
    record = {"bytes": np.frombuffer(crafted, dtype=np.uint8)}
    path.write_bytes(encode([("model", record)], about=about))
    with pytest.raises(ValueError, match=rf"nobody said to trust: .*{name}"):
        open_model(tmp_path)


def _renamed(payload, module, last):
    """The same file with another function in the place of its first one."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(made, "w") as new:
        for part in old.namelist():
            content = old.read(part)
            if part == "schema.json":
                schema = json.loads(content, object_hook=partial(_put, module, last))
                content = json.dumps(schema).encode()
            new.writestr(part, content)
    return made.getvalue()


def _put(module, last, node):
    if (node.get("__module__"), node.get("__class__")) == ("numpy", "square"):
        return {"__module__": module, "__class__": last, "__loader__": "FunctionNode"}
    return node


def test_open_model__says_where_there_is_none(cube, tmp_path):
    save_results(cube, tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no model; run the search again"):
        open_model(tmp_path)


def test_open_model__finds_damage(rows, tmp_path):
    save_model(LogisticRegression().fit(*rows), tmp_path)
    path = tmp_path / "model" / "skops.records"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"is damaged.*run the same command again"):
        open_model(tmp_path)


def test_save_model__names_the_extra_that_is_missing(rows, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dsel\[models\]'"):
        save_model(LogisticRegression().fit(*rows), tmp_path)


def test_model_key__says_which_model_is_kept(rows, cube, tmp_path):
    save_results(cube, tmp_path)
    assert model_key(tmp_path) is None
    for key in ("one", "other"):
        save_model(LogisticRegression().fit(*rows), tmp_path, key=key)
        assert model_key(tmp_path) == key
