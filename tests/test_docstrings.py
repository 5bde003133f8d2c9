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


def _section(docstring, title):
    """Text of one numpydoc section, up to the next underlined heading."""
    pattern = rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)"
    found = re.search(pattern, inspect.cleandoc(docstring), re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


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
