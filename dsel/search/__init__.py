"""The main job: candidates are fitted, compared, chosen; what comes of it is certified.

How ``SemiSupervisedSearchCV.fit(X, y, pool=)`` becomes a bound:

1. `facade.SemiSupervisedSearchCV.fit` passes its options on
2. `plan.plan_search` checks them and decides what will be done; nothing is fitted
3. `execute.execute` opens the store, or reads what has ended there
4. `nested.search_nested` opens the executor and makes the other steps; next to the fits
   `assumptions.look_at_pool` compares the pool with the labeled rows
5. `engine.Search.run` submits jobs, takes their results and prunes, in a loop
6. `jobs.FitBatch.run` fits on a worker, each candidate without a pair of folds
7. `pruning.NestedPruner.choices` says what is chosen without each fold, and by all rows
8. `nested.fit_chosen` fits that; the models come back in one message with their counts
9. `jobs.CountBatch.run` counts on a slice of the pool where these models differ
10. `nested.choose_models` bounds both models by the loss of the plan

A certificate is an object of `certificate_methods`: it says what ranks candidates, how
they are pruned, which models are trained, and which options it takes. A search by
another certificate than the nested one, or by an estimate, takes
`exhaustive.search_all` in the place of step 4: in its loop `jobs.CountBatch.run` counts
on the pool for all candidates, and `select.choose` reads the bound.

Vocabulary: a *scheme* says which models are trained, and on which rows each is tested;
a *split* is one training of it; a *job* is a value that says what is to be done; a
*batch* has the jobs of one task, and runs them on a worker; a *result* is what comes
back; a *slice* is a part of the pool; the *table* has all counts of a search; an
*outcome* is cube, choice and *deployed models*, each with its certificate; a *caveat*
voids a number, weakens it, or is good to know.
"""

from dsel.results.rows import read_rows
from dsel.search.certify import certify, certify_selection
from dsel.search.facade import SemiSupervisedSearchCV
from dsel.search.outcome import Outcome
from dsel.search.plan import Plan, plan_search
from dsel.search.plan_bound import plan_bound
from dsel.search.predict_pool import predict_pool
from dsel.search.select import select

__all__ = [
    "Outcome",
    "Plan",
    "SemiSupervisedSearchCV",
    "certify",
    "certify_selection",
    "plan_bound",
    "plan_search",
    "predict_pool",
    "read_rows",
    "select",
]
