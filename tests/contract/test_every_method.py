"""Each method of plans, outcomes and searches, for each certificate and kind of target.

It works, or raises one line of dsel's own; a plan that was made always runs.
"""

import traceback
from functools import cache
from itertools import product

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression, Ridge

import dsel
from tests.contract.runs import CERTIFICATES, EXACT

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

_RNG = np.random.default_rng(0)
X, POOL = _RNG.normal(size=(80, 3)), _RNG.normal(size=(200, 3))
KEYS = np.arange(80) // 2
TWO, NUMBERS = (X[:, 0] > 0).astype(int), X[:, 0] + 0.1 * _RNG.normal(size=80)
CS, ALPHAS = {"C": [0.1, 1.0]}, {"alpha": [0.1, 1.0]}
TARGETS = {
    "two classes": (LogisticRegression(), CS, TWO, {}),
    "three classes": (LogisticRegression(), CS, np.digitize(X[:, 0], [-0.5, 0.5]), {}),
    "numbers": (Ridge(), ALPHAS, NUMBERS, {}),
    "groups": (LogisticRegression(), CS, TWO, {"groups": KEYS}),
    "groups of numbers": (Ridge(), ALPHAS, NUMBERS, {"groups": KEYS}),
}
CRITERIA = ("cv_error", "loo_error", "max_dt_e")
WAYS = {
    **{name: {"certificate": name} for name in CERTIFICATES},
    **{name: {"criterion": name} for name in CRITERIA},
    "default, report": {"report": True},
    "nested, one_fold": {"certificate": "nested", "deploy": "all_rows"},
    "queries": {"n_queries": 5},
}
REFUSED = (TypeError, ValueError)
PLANNED = {
    "with_leave_one_out": lambda plan: plan.with_leave_one_out().run(),
    "fits_range": lambda plan: plan.search.fits_range(),
    "prints": lambda plan: (repr(plan), plan._repr_html_(), plan.shown_rows()),
    "properties": lambda plan: [
        getattr(part, name)
        for part in (plan, plan.search)
        for name in dir(type(part))
        if isinstance(getattr(type(part), name), property)
    ],
    "model": lambda plan: plan.model(1),
    "model of a fold": lambda plan: plan.model(1, 0),
    "models": lambda plan: list(plan.models()),
}
DEPLOYS = (None, "one_fold", "all_rows")
ENDED = {
    "properties": lambda outcome, path: [
        getattr(outcome, name)
        for name in ("certificates", "baseline", "models", "bounded_models")
    ],
    "prints": lambda outcome, path: (repr(outcome), outcome._repr_html_()),
    "query_rows": lambda outcome, path: outcome.query_rows(),
    "labels": lambda outcome, path: outcome.certify_with_labels([1] * 5),
    "monitor": lambda outcome, path: outcome.monitor(POOL),
    "monitor labels": lambda outcome, path: outcome.monitor(X, y=TWO),
    "monitor groups": lambda outcome, path: outcome.monitor(X, y=TWO, groups=KEYS),
    "saved": lambda outcome, path: dsel.save_results(outcome.results, path / "saved"),
    **{f"{method} {deploy}": lambda outcome, path, m=method, d=deploy: getattr(
        outcome, m)(d) for method in ("certified_report", "report_by_value")
        for deploy in DEPLOYS},
    **{f"{method} {deploy}": lambda outcome, path, m=method, d=deploy: getattr(
        outcome, m)(X, deploy=d) for method in ("predict", "predict_interval")
        for deploy in DEPLOYS},
    **{f"predict_table {deploy}": lambda outcome, path, d=deploy: outcome.predict_table(
        X, out=path / f"{d}.csv", deploy=d) for deploy in DEPLOYS},
    **{f"plot {name}": lambda outcome, path, n=name: getattr(outcome.plot, n)()
       for name in ("__call__", "certificates", "folds", "timing")},
    **{f"select {name}": lambda outcome, path, n=name: dsel.select(outcome, n)
       for name in (*CERTIFICATES, *CRITERIA)},
}  # fmt: skip


@cache
def planned(target, way, has_pool):
    """Return a plan, or the error that refuses it."""
    learner, grid, y, options = TARGETS[target]
    pool = POOL if has_pool else None
    try:
        return dsel.plan_search(
            learner, grid, X, y, pool, random_state=0, **options, **WAYS[way]
        )
    except REFUSED as error:
        return error


def check_refusal(error):
    """Assert that an error is one line that dsel itself has raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert "/dsel/" in last.filename.replace("\\", "/"), repr(error)
    assert "\n" not in str(error)
    assert str(error).endswith((".", "?")), str(error)


def figures_of(plot):
    """Return the names of all figures."""
    return [name for name in vars(type(plot)) if not name.startswith("_")]


def check_figures(plot):
    """Assert that exactly the figures that can be drawn are offered."""
    offered, shown = dir(plot), repr(plot)
    for name in figures_of(plot):
        is_drawn = True
        try:
            getattr(plot, name)()
        except REFUSED as error:
            check_refusal(error)
            is_drawn = False
        assert (name in offered) == (f"plot.{name}()" in shown) == is_drawn, name
        plt.close("all")


@pytest.mark.parametrize(
    ("target", "way", "has_pool"), [*product(TARGETS, WAYS, (False, True))]
)
def test_every_method__works_or_is_refused_in_one_line(target, way, has_pool, tmp_path):
    plan = planned(target, way, has_pool)
    if isinstance(plan, Exception):
        check_refusal(plan)
        return
    for call in PLANNED.values():
        try:
            call(plan)
        except REFUSED as error:
            check_refusal(error)
    outcome = plan.run()
    drawn_below = {f"plot {name}" for name in figures_of(outcome.plot)}
    for name in ENDED.keys() - drawn_below:
        try:
            ENDED[name](outcome, tmp_path)
        except REFUSED as error:
            check_refusal(error)
    check_figures(outcome.plot)


def test_every_method__most_combinations_work():
    made = [planned(*case) for case in product(TARGETS, WAYS, (False, True))]
    assert sum(not isinstance(plan, Exception) for plan in made) > 50


OF_OTHERS = (
    *(f"select {name}" for name in EXACT), "with_leave_one_out", "certified_report",
    "report_by_value", "select loo_error", "select max_dt_e",
)  # fmt: skip
"""Beginnings of calls that are for other plans than a nested search with a pool."""
REFUSED_BY = {
    ("two classes", "nested"): (
        *OF_OTHERS, "query_rows", "labels", "monitor groups", "predict_interval",
    ),
    ("numbers", "nested"): (
        *OF_OTHERS, "query_rows", "labels", "monitor groups", "select cv_error",
    ),
    ("groups", "nested"): (
        *OF_OTHERS, "query_rows", "labels", "predict_interval", "predict all_rows",
        "predict_table all_rows",
    ),
    ("two classes", "queries"): (*OF_OTHERS, "monitor groups", "predict_interval"),
}  # fmt: skip


@pytest.mark.parametrize(("target", "way"), REFUSED_BY)
def test_every_method__no_other_is_refused(target, way, tmp_path):
    plan = planned(target, way, True)
    outcome = plan.run()
    calls = {name: (call, (plan,)) for name, call in PLANNED.items()} | {
        name: (call, (outcome, tmp_path)) for name, call in ENDED.items()
    }
    for name, (call, arguments) in calls.items():
        if not name.startswith(REFUSED_BY[target, way]):
            call(*arguments)
    plt.close("all")


@pytest.mark.parametrize(
    ("target", "way"),
    [("two classes", "nested"), ("numbers", "holdout"), ("groups", "holdout")],
)
def test_with_leave_one_out__is_refused_before_any_fit(target, way):
    with pytest.raises(ValueError, match="leave-one-out errors"):
        planned(target, way, False).with_leave_one_out()
