"""Calls that plan more labels have all options of the run that change the answer."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.report import write_report

N_LABELED = 360
CALL = re.compile(r"dsel\.plan_bound\([^)]*\)")
N_GROUPS = 90
MEASURED = ("error", "wanted", "disagreement")
"""Options that only a run knows."""


def rows(n, seed):
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n) % 2, 1.0, -1.0)
    a = side * (1.0 + rng.random(n))
    return pd.DataFrame({"a": a, "b": rng.normal(size=n), "site": np.arange(n) % 3})


X = rows(N_LABELED, 0)
POOL = rows(3_000, 1)
# The best models err on 42% of the rows, however many folds there are.
Y = np.where((X["a"] > 0) ^ (np.arange(N_LABELED) % 50 < 21), "yes", "no")
RUNS = [
    {},
    {"cv": 10},
    {"cv": 3, "delta": 0.01},
    {"report": True},
    {"report": True, "cv": 10, "delta": 0.2},
    {"report_by": "site"},
    {"n_queries": 40},
    {"groups": np.arange(N_LABELED) % N_GROUPS},
    {"certificate": "cv_bound", "cv": 4},
]


def planned(options):
    pool = None if "groups" in options else POOL
    grid = {"C": [0.1, 1.0]}
    return dsel.plan_search(
        LogisticRegression(), grid, X, Y, pool, random_state=1, **options
    )


def only_call(text):
    shown = text.replace("<wbr>", "")  # where a page may break a line
    [call] = {re.sub(r"\s+", " ", call) for call in CALL.findall(shown)}
    words = call[:-1].partition("(")[2].split(", ")
    n_labeled, n_unlabeled = map(int, words[:2])
    options = {name: text for name, _, text in (w.partition("=") for w in words[2:])}
    whole = ("n_candidates", "cv", "n_queries")
    numbers = {k: int(v) if k in whole else float(v) for k, v in options.items()}
    return (n_labeled, n_unlabeled), numbers


@pytest.mark.parametrize("options", RUNS, ids=lambda options: ",".join(options))
def test_calls__of_plan_and_outcome_are_about_runs_like_this_one(options):
    plan = planned(options)
    outcome = plan.run(n_jobs=1)
    sizes, arguments = only_call(str(outcome))
    assert sizes == (
        N_GROUPS if "groups" in options else N_LABELED,
        outcome.certificate.n_unlabeled,
    )
    bounds = dsel.plan_bound(*sizes, **arguments).bound.isel(n_folds=0)
    for name, certificate in outcome.certificates.items():
        row = name if certificate.method == "nested" else certificate.method
        expected = bounds.sel(certificate=row).item()
        assert expected == pytest.approx(certificate.bound, rel=0.09)  # of one run
    if "certificate" in options:  # a plan has the calls of nested searches
        return
    of_plan = only_call(str(plan))
    known = {k: v for k, v in arguments.items() if k not in MEASURED}
    assert of_plan == (sizes, {**known, "error": 0.15})


def test_page__has_the_whole_call_where_the_bound_needs_no_advice(tmp_path):
    y = np.where((X["a"] > 0) ^ (np.arange(N_LABELED) % 10 < 1), "yes", "no")
    for options, loss in (({"cv": 3, "report": True}, None), ({}, "recall:yes")):
        plan = dsel.plan_search(
            LogisticRegression(),
            {"C": [0.1, 1.0]},
            X,
            y,
            random_state=1,
            loss=loss,
            **options,
        )
        outcome = plan.run(n_jobs=1)
        assert "plan_bound" not in str(outcome)
        page = write_report(outcome, tmp_path / "page.html").read_text("utf-8")
        assert "dsel plan-bound" not in page
        sizes, arguments = only_call(page)
        of_plan = only_call(str(plan))
        known = {k: v for k, v in arguments.items() if k not in MEASURED}
        assert of_plan == (sizes, {**known, "error": 0.15})
        assert ("its delta is what the report leaves" in page) == ("report" in options)
        expected = dsel.plan_bound(*sizes, **arguments).bound.sel(
            certificate="one_fold"
        )
        assert expected.item() == pytest.approx(outcome.certificate.bound, rel=0.15)


def test_plan_bound__of_queried_rows_divides_delta_as_a_run_does():
    outcome = planned({"n_queries": 40}).run(n_jobs=1)
    sizes, arguments = only_call(str(outcome))
    assert arguments["n_queries"] == 40
    bounds = dsel.plan_bound(*sizes, **arguments).bound.isel(n_folds=0)
    without = dsel.plan_bound(*sizes, **arguments | {"n_queries": 0}).bound
    without = without.isel(n_folds=0)
    assert bounds.sel(certificate="one_fold") > without.sel(certificate="one_fold")
    differ, shown = outcome.choice.queries, bounds.sel(certificate="all_rows").item()
    assert shown == pytest.approx(differ.expected, rel=0.09)
    assert np.isnan(bounds.sel(certificate="cv_bound").item())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_unlabeled": 0, "error": 0.1}, "40 queries and no pool rows"),
        ({"error": 0.1, "class_share": 0.2}, "40 queries with `class_share`"),
        ({"error_quantile": 0.9}, "`n_queries` is of classifiers"),
    ],
)
def test_plan_bound__refuses_queries_that_no_search_has(options, words):
    sizes = {"n_labeled": 400, "n_unlabeled": 900, "n_candidates": 2}
    with pytest.raises(ValueError, match=words):
        dsel.plan_bound(**{**sizes, **options}, n_queries=40)
