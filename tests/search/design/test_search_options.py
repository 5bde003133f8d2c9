"""The options of a search, of which some callers give a few."""

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.search.design.search_options import SearchOptions

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(120, 2)).round(1), RNG.normal(size=(200, 2))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
WAYS = (
    {"certificate": "cv_bound", "prior": [1, 2], "cv": 3, "prune": False},
    {"deploy": "all_rows", "n_queries": 5, "delta": 0.1, "max_pool_rows": 150},
    {"loss": "balanced", "report": True},
    {"report_by": 1},
)


def test_defaults__are_those_of_plan_search():
    parameters = signature(dsel.plan_search).parameters
    options = {field.name: field.default for field in fields(SearchOptions)}
    assert options == {name: parameters[name].default for name in options}


@pytest.mark.parametrize("options", WAYS)
def test_search__passes_its_options_to_the_plan(options):
    arguments = DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}
    search = dsel.SemiSupervisedSearchCV(*arguments, **options, random_state=3)
    plan = dsel.plan_search(*arguments, X, Y, POOL, **options, random_state=3)
    made = search.fit(X, Y, POOL).plan_
    assert made.facts.identity == plan.facts.identity
    default = dsel.plan_search(*arguments, X, Y, POOL, random_state=3)
    assert made.facts.identity != default.facts.identity


def test_ways__have_all_options_of_a_search():
    options = {*SearchOptions.__dataclass_fields__} & {
        *signature(dsel.SemiSupervisedSearchCV).parameters
    }
    assert options == {"random_state"}.union(*WAYS)
