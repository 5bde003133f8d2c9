"""Errors of a user's MODULE:OBJECT, and where an error comes from."""

import subprocess
import sys
from types import ModuleType

import cloudpickle
import pytest

from dsel.errors import AllFitsFailedError, DselError, UserCodeError
from tests.shell import run

MODULE = """
from sklearn.base import BaseEstimator, ClassifierMixin

def make():
    return helper(0)

def helper(x):
    return 1 / x

def wants(argument):
    return argument

class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return helper(0)
"""
MODELS = {
    "whole:make": ["whole.py", "in helper", "return 1 / x"],
    "whole:Broken": ["whole.py", "in helper", "return 1 / x"],
    "at_import:make": ["at_import.py", "1 / 0"],
    "imports_nothing:make": ["imports_nothing.py", "import no_such_module"],
    "no_syntax:make": ["no_syntax.py", "def f(:"],
    "exits:make": ["exits.py", "sys.exit(3)"],
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "whole": MODULE,
        "at_import": "1 / 0\n",
        "imports_nothing": "import no_such_module\n",
        "no_syntax": "def f(:\n",
        "exits": "import sys\nsys.exit(3)\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    rows = "".join(f"{i},{i % 2}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"a,label\n{rows}")
    return ["t.csv", "--target", "label"]


@pytest.mark.parametrize("model", MODELS)
def test_select__shows_where_the_users_code_has_raised(table, model):
    found = run("select", *table, "--model", model)
    assert found.exit_code == 1
    assert "Traceback (most recent call last):" in found.stderr
    for words in MODELS[model]:
        assert words in found.stderr
    assert "dsel/cli" not in found.stderr
    last = found.stderr.splitlines()[-1]
    assert last.startswith(f"Error: `--model` {model} raised ")


@pytest.mark.parametrize(
    "model", ["whole:nothing", "nothing:x", ":x", ".:x", "whole:wants"]
)
def test_select__names_a_model_that_is_not_there_in_one_line(table, model):
    found = run("select", *table, "--model", model)
    assert found.exit_code == 2
    assert "Traceback" not in found.stderr
    assert f"Invalid value for --model: '{model}'" in found.stderr


ERRORS = [
    ["select", "t.csv", "--target", "other"],
    ["select", "t.csv", "--magic"],
    ["select", "t.csv"],
    ["pool", "info", "nowhere"],
    ["pool", "build", "nowhere", "out"],
    ["report", "nowhere"],
    ["plan-bound", "0", "0"],
    ["audit", "--delta", "x"],
]


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("words", ERRORS, ids=" ".join)
def test_traceback__is_shown_for_every_error_that_asks_for_it(table, words, place):
    plain = run(*words)
    order = ["--traceback", *words] if place == "first" else [*words, "--traceback"]
    found = run(*order)
    assert "Traceback" not in plain.stderr
    assert found.stderr.startswith("Traceback (most recent call last):")
    assert "dsel" in found.stderr
    # The command that goes on has the option, as what was written has it.
    shown = found.stderr.replace("--traceback ", "")
    assert shown.endswith(plain.stderr.splitlines()[-1] + "\n")
    assert found.exit_code == plain.exit_code != 0


def test_traceback__is_taken_from_the_words_of_the_process(table):
    words = [sys.executable, "-m", "dsel", "--traceback", "pool", "info", "nowhere"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1].startswith("Error: Invalid value for 'PATH'")


def test_errors__have_a_base_and_kinds_of_python():
    assert issubclass(AllFitsFailedError, DselError)
    assert issubclass(AllFitsFailedError, ValueError)
    assert issubclass(UserCodeError, DselError)


@pytest.mark.parametrize(
    ("folder", "is_sent"), [(".", True), (".venv/lib/python3/site-packages", False)]
)
def test_select__sends_only_the_users_own_modules_by_value(
    table, tmp_path, monkeypatch, folder, is_sent
):
    name = f"learners_{is_sent}"
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / f"{name}.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier as Learner\n"
    )
    monkeypatch.syspath_prepend(tmp_path / folder)
    known = cloudpickle.list_registry_pickle_by_value()
    try:
        # Environments often lie in the folder of the user's code.
        found = run("select", *table, "--model", f"{name}:Learner")
        assert found.exit_code == 0, found.stderr
        sent = cloudpickle.list_registry_pickle_by_value() - known
        assert (sent, name in sys.modules) == (
            {name} if is_sent else set(),
            not is_sent,
        )
    finally:
        for module in cloudpickle.list_registry_pickle_by_value() - known:
            cloudpickle.unregister_pickle_by_value(ModuleType(module))
        sys.modules.pop(name, None)
