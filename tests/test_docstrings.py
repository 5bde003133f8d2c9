"""Public names are documented, and bounds say what they guarantee and assume."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import textwrap

import pytest

import dsel
from dsel.results.renderings import INTERNAL
from dsel.search.outcomes.certified_models import CertifiedModels

LEAD_WORDS = ["Guarantee:", "Assumes:", "Source:"]
# The seams of criteria and the look-up of one by name are no formulas.
SEAMS = {"dsel.criteria", "dsel.criteria.criterion"}


def _public(room):
    """Functions and classes in a room's `__all__`."""
    names = (getattr(room, name) for name in getattr(room, "__all__", []))
    return [each for each in names if inspect.isfunction(each) or inspect.isclass(each)]


def _is_record(value):
    """Values that travel together; what returns them states the claim."""
    if not inspect.isclass(value) or hasattr(value, "evaluate"):
        return False
    return issubclass(value, tuple) or dataclasses.is_dataclass(value)


ROOMS = [each for each in pkgutil.iter_modules(dsel.__path__, "dsel.") if each.ispkg]
PUBLIC = [
    value for room in ROOMS for value in _public(importlib.import_module(room.name))
]
FORMULAS = [
    value
    for room in (dsel.bounds, dsel.criteria)
    for value in _public(room)
    if value.__module__ not in SEAMS and not _is_record(value)
]


def _methods(value):
    """Public methods of a class that take arguments, as (name, function)."""
    for name, method in vars(value).items():
        is_public = inspect.isfunction(method) and not name.startswith("_")
        if is_public and len(inspect.signature(method).parameters) > 1:
            yield name, method


METHODS = {
    f"{value.__name__}.{name}": method
    for value in (*PUBLIC, CertifiedModels)  # an `Outcome` has its methods
    if inspect.isclass(value)
    and not value.__module__.startswith(("dsel.criteria", "dsel.families"))
    for name, method in _methods(value)
    if name not in INTERNAL
}


def _section(docstring, title):
    """Text of one numpydoc section, up to the next underlined heading."""
    pattern = rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)"
    found = re.search(pattern, inspect.cleandoc(docstring), re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


FUNCTIONS = {each.__name__: each for each in PUBLIC if inspect.isfunction(each)}


@pytest.mark.parametrize("name", FUNCTIONS | METHODS)
def test_public_functions__that_check_their_arguments_say_what_they_raise(name):
    function = inspect.unwrap((FUNCTIONS | METHODS)[name])
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [getattr(each, "id", getattr(each, "attr", "")) for each in called]
    # What a subclass has to write raises NotImplementedError.
    errors = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    raises = any(getattr(error, "id", "") != "NotImplementedError" for error in errors)
    raises |= any(each.lstrip("_").startswith("check_") for each in names)
    assert not raises or _section(function.__doc__, "Raises")


@pytest.mark.parametrize("value", PUBLIC, ids=lambda value: value.__name__)
def test_public_names__have_a_docstring_that_describes_every_parameter(value):
    assert (value.__doc__ or "").strip()
    parameters = inspect.signature(value).parameters
    if inspect.isclass(value) or len(parameters) == 1:
        return  # of a single one the summary line speaks
    described = _section(value.__doc__, "Parameters")
    assert [
        name
        for name in parameters
        if not re.search(rf"^[*\w, ]*\b{name}\b", described, re.MULTILINE)
    ] == []


@pytest.mark.parametrize("value", FORMULAS, ids=lambda value: value.__name__)
def test_bounds_and_criteria__state_guarantee_assumptions_and_source(value):
    notes = _section(value.__doc__, "Notes")
    assert [word for word in LEAD_WORDS if word not in notes] == []


@pytest.mark.parametrize("name", dsel.bounds.__all__)
def test_bounds__describe_what_they_take_and_return(name):
    value = getattr(dsel.bounds, name)
    if inspect.isfunction(value):
        titles = ("Parameters", "Returns", "Examples")
        assert [t for t in titles if not _section(value.__doc__, t)] == []


@pytest.mark.parametrize("name", METHODS)
def test_public_methods__describe_their_arguments_and_what_they_return(name):
    method = METHODS[name]
    titles = ["Parameters"]
    if method.__annotations__["return"] not in (None, "None"):
        titles.append("Returns")
    assert [title for title in titles if not _section(method.__doc__, title)] == []


FIRST_USED = {
    f"{value.__name__}.{name}": method
    for value in (dsel.SemiSupervisedSearchCV, dsel.search.Outcome, CertifiedModels)
    for name, method in vars(value).items()
    if inspect.isfunction(method) and not name.startswith("_")
} | {
    name: value
    for name in dsel.__all__
    if not inspect.ismodule(value := getattr(dsel, name))
}


@pytest.mark.parametrize("name", FIRST_USED)
def test_names_that_users_meet_first__have_an_example(name):
    assert ">>>" in _section(FIRST_USED[name].__doc__, "Examples")
