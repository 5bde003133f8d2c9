"""Public names are documented, and bounds say what they guarantee and assume."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import pytest

import dsel

LEAD_WORDS = ["Guarantee:", "Assumes:", "Source:"]
# The seams of criteria and the look-up of one by name are no formulas.
SEAMS = {"dsel.criteria", "dsel.criteria.base"}


def _rooms():
    found = pkgutil.iter_modules(dsel.__path__, "dsel.")
    return [importlib.import_module(info.name) for info in found if info.ispkg]


def _public(room):
    """Functions and classes in the room's `__all__`, by their dotted name."""
    for name in getattr(room, "__all__", []):
        value = getattr(room, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield pytest.param(value, id=f"{room.__name__}.{name}")


def _is_record(value):
    """Values that travel together; what returns them states the claim."""
    if not inspect.isclass(value) or hasattr(value, "evaluate"):
        return False
    return issubclass(value, tuple) or dataclasses.is_dataclass(value)


PUBLIC = [case for room in _rooms() for case in _public(room)]
FUNCTIONS = [case for case in PUBLIC if inspect.isfunction(case.values[0])]
FORMULAS = [
    case
    for room in ("dsel.bounds", "dsel.criteria")
    for case in _public(importlib.import_module(room))
    if case.values[0].__module__ not in SEAMS and not _is_record(case.values[0])
]


def _section(docstring, title):
    """Text of one numpydoc section, up to the next underlined heading."""
    pattern = rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)"
    found = re.search(pattern, inspect.cleandoc(docstring), re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


@pytest.mark.parametrize("value", PUBLIC)
def test_public_names__have_a_docstring(value):
    assert value.__doc__
    assert value.__doc__.strip()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_public_functions__describe_every_parameter(function):
    described = _section(function.__doc__, "Parameters")
    parameters = inspect.signature(function).parameters
    missing = [
        name
        for name in parameters
        if len(parameters) > 1  # of a single one the summary line speaks
        and not re.search(rf"^[*\w, ]*\b{name}\b", described, re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize("value", FORMULAS)
def test_bounds_and_criteria__state_guarantee_assumptions_and_source(value):
    notes = _section(value.__doc__, "Notes")
    assert [word for word in LEAD_WORDS if word not in notes] == []
