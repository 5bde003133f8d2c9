"""Searches: candidates are fitted, compared on a pool, and one of them is chosen.

How ``SemiSupervisedSearchCV.fit(X, y, pool=)`` becomes a count:

1. `facade.SemiSupervisedSearchCV.fit` passes its options on
2. `plan.plan_search` checks them and decides what will be done; nothing is fitted
3. `execute.execute` opens the store and the executor, and runs the other steps
4. `pool_checks.resolve_pool` finds pool rows that equal labeled ones
5. `engine.driver.Driver.run` submits tasks, takes their counts and prunes, in a loop
6. `engine.fit_queue.FitQueue.take` chooses the fits of the next task
7. `engine.fit_task.fit_jobs` does them on a worker, where the models are kept
8. `engine.pool_rounds.Scoring.next_members` chooses the candidates of the next round
9. `engine.count_task.count_spans` counts disagreements over pool rows on a worker
10. `engine.counts.CountTable.add_span` adds them up by candidate
11. `engine.pruning.Pruning.evidence` returns the counts that the cube will show
12. `cube.make_results` makes the cube of them, from which `select` chooses

Searches of other kinds have folders of their own, which the engine does not import. To
add one: a `Scheme` (what is trained and compared), a criterion that reads its counts,
and a function like `plan_search`.
"""

from dsel.results.rows import read_rows
from dsel.searches.auditing.audit import audit
from dsel.searches.certify_selection import certify_selection
from dsel.searches.co_validation.active_learning import (
    learn_actively,
    sample_uncertain,
)
from dsel.searches.co_validation.covalidate import covalidate, plan_covalidation
from dsel.searches.co_validation.row_disagreement import (
    most_disputed,
    write_half_disagreement,
    write_row_disagreement,
)
from dsel.searches.engine.stages import PoolReading
from dsel.searches.execute import Outcome, execute
from dsel.searches.facade import SemiSupervisedSearchCV
from dsel.searches.plan import Plan, plan_search
from dsel.searches.plan_bound import plan_bound
from dsel.searches.pool_predictions import predict_pool
from dsel.searches.select import select

__all__ = [
    "Outcome",
    "Plan",
    "PoolReading",
    "SemiSupervisedSearchCV",
    "audit",
    "certify_selection",
    "covalidate",
    "execute",
    "learn_actively",
    "most_disputed",
    "plan_bound",
    "plan_covalidation",
    "plan_search",
    "predict_pool",
    "read_rows",
    "sample_uncertain",
    "select",
    "write_half_disagreement",
    "write_row_disagreement",
]
