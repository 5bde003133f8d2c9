"""Searches: candidates are fitted, compared on a pool, and one of them is chosen.

How ``SemiSupervisedSearchCV.fit(X, y, pool=)`` becomes a count:

1. `facade.SemiSupervisedSearchCV.fit` passes its options on
2. `plan.plan_search` checks them and decides what will be done; nothing is fitted
3. `execute.execute` opens the journal and the executor, and runs the other steps
4. `pool_checks.resolve_pool` resolves pool rows that equal labeled ones
5. `engine.driver.Driver.run` submits tasks, takes counts, prunes, and goes on
6. `engine.fits.FitQueue.take` names the fits of the next task
7. `engine.fit_task.fit_jobs` does them on a worker, where the models stay
8. `engine.pool_rounds.next_members` names the candidates of a reading of the pool
9. `engine.count_task.count_spans` counts differing answers on a worker
10. `engine.counts.CountTable.add_span` adds them up by candidate
11. `engine.pruning.final_evidence` gives the counts that a finished run shows
12. `cube.make_results` makes the cube of them, from which `select` chooses

Searches of another kind have rooms of their own, which the engine does not know. To add
one: a `Scheme` (what is trained and compared), a criterion that reads its counts, and a
verb like `plan_search` over them.
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
