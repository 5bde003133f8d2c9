"""Searches: which candidates to fit, the plan, and its execution.

A plan is made and checked before anything runs. `execute` drives it: one loop submits
fits and spans of the pool, on a Dask cluster or on local threads, takes the counts
that come back, and drops candidates that cannot win any more. `select` turns the cube's
counts into a choice, for any criterion and delta, without a fit.

Vocabulary: a *job* is a group of candidates on one training; a *round* is one reading
of the pool for some candidates, a *span* the part of it that one task reads; a
*comparison* says which two models answer a row and where a difference is counted; the
*board* holds the counts so far, the *referee* says who may still win.

Rooms inside this one: `engine` says what is trained and counted and holds the loop;
tasks run in `dsel.runtime`. Searches of another kind than cross-validation have rooms
of their own, which the engine does not know.

To add a kind of search: a `Scheme` (trainings and comparisons), a criterion that reads
its counts, and a verb like `plan_search` over them.
"""

from dsel.searches.auditing.audit import audit
from dsel.searches.co_validation.active import sample_uncertain
from dsel.searches.co_validation.active_learning import learn_actively
from dsel.searches.co_validation.covalidate import covalidate, plan_covalidation
from dsel.searches.co_validation.row_disagreement import (
    most_disputed,
    write_half_disagreement,
    write_row_disagreement,
)
from dsel.searches.compare import compare_pairs
from dsel.searches.execute import Outcome, execute
from dsel.searches.facade import SemiSupervisedSearchCV
from dsel.searches.least_squares.cube import select_least_squares
from dsel.searches.least_squares.search import LeastSquaresSearch
from dsel.searches.least_squares.streamed import StreamedLeastSquaresSearch
from dsel.searches.leave_one_out import leave_one_out_errors
from dsel.searches.nonconformity.classifier import NonconformityClassifier
from dsel.searches.nonconformity.maximum_margin import MaximumMarginClassifier
from dsel.searches.plan import Plan, plan_search
from dsel.searches.plan_bound import plan_bound
from dsel.searches.pool_reading import PoolReading
from dsel.searches.pool_rows import read_rows
from dsel.searches.select import select

__all__ = [
    "LeastSquaresSearch",
    "MaximumMarginClassifier",
    "NonconformityClassifier",
    "Outcome",
    "Plan",
    "PoolReading",
    "SemiSupervisedSearchCV",
    "StreamedLeastSquaresSearch",
    "audit",
    "compare_pairs",
    "covalidate",
    "execute",
    "learn_actively",
    "leave_one_out_errors",
    "most_disputed",
    "plan_bound",
    "plan_covalidation",
    "plan_search",
    "read_rows",
    "sample_uncertain",
    "select",
    "select_least_squares",
    "write_half_disagreement",
    "write_row_disagreement",
]
