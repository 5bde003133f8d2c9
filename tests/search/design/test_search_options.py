"""The options of a search, of which some callers give a few."""

from dataclasses import fields
from inspect import signature

import dsel
from dsel.search.design.search_options import SearchOptions


def test_defaults__are_those_of_plan_search():
    parameters = signature(dsel.plan_search).parameters
    options = {field.name: field.default for field in fields(SearchOptions)}
    assert options == {name: parameters[name].default for name in options}
