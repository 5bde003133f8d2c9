"""The main job: candidates are fitted, compared, chosen; what comes of it is certified.

How ``SemiSupervisedSearchCV.fit(X, y, pool=)`` becomes a bound:

1. `facade.SemiSupervisedSearchCV.fit` passes its options on
2. `plan.plan_search` checks them and decides what will be done; nothing is fitted
3. `execute.execute` opens the store and the executor, and runs the other steps
4. `assumptions.look_at_pool` compares the pool with the labeled rows in one pass
5. `driver.Driver.run` submits fits, takes their counts and drops candidates, in a loop
6. `tasks.fit_jobs` makes them on a worker: each without a pair of folds
7. `pruning.NestedRace.choices` says what is chosen without each fold, and by all rows
8. `tasks.fit_chosen` fits that; the models come to the driver with their counts
9. `tasks.count_chosen` counts on a block of the pool where these models differ
10. `execute.nested_choice` reads both bounds out of the counts

A search by another certificate ends after step 5, in which `tasks.count_spans` counts
on the pool for all candidates, and `select.choose` reads the bound.

Vocabulary: a *layout* says which models are trained; a *job* is candidates of a group
on one split; a *span* is the part of the pool that a task counts; a *race* says which
candidates are still needed; an *outcome* is cube, choice, certificates and models.
"""

from dsel.results.rows import read_rows
from dsel.search.certify_selection import certify_selection
from dsel.search.execute import Outcome
from dsel.search.facade import SemiSupervisedSearchCV
from dsel.search.plan import Plan, plan_search
from dsel.search.plan_bound import plan_bound
from dsel.search.predict_pool import predict_pool
from dsel.search.select import select

__all__ = [
    "Outcome",
    "Plan",
    "SemiSupervisedSearchCV",
    "certify_selection",
    "plan_bound",
    "plan_search",
    "predict_pool",
    "read_rows",
    "select",
]
