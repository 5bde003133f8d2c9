"""The search: fits and compares candidates, chooses one, and certifies its models.

How ``SemiSupervisedSearchCV.fit(X, y, pool=)`` becomes a bound:

1. `facade.SemiSupervisedSearchCV.fit` passes its options on, as one record
2. `planning.plan_search.plan_with_options` checks them and decides what will be done;
   nothing is fitted
3. `running.execute.execute` opens the store, and only reads it if its run has ended
4. `running.nested.search_nested` opens the executor and makes the other steps; next to
   the fits `design.assumption_checks.compare_pool` compares the pool with the labeled
   rows
5. `engine.fit_loop.FitLoop.fit` prunes, submits fits, and takes their results, in a
   loop; `engine.fit_loop.FitLoop.next_jobs` decides what is fitted next
6. `engine.fit_batch.FitBatch.run` fits on a worker, each candidate without a pair of
   folds
7. `engine.inner_searches.InnerSearches.choose_candidates` chooses a candidate without
   each fold, and one by all rows
8. `running.fit_chosen.fit_chosen` fits these; the models come back in one message with
   their counts on the folds. Then `running.fit_chosen.choose_deployed_fold` decides by
   labeled rows alone which of them is deployed
9. `running.count_chosen.count_chosen` counts on which pool rows these models differ;
   `engine.count_batch.ChosenCountBatch.run` does it for some slices, on a worker
10. `running.bound_chosen.make_choice` makes the choice of both models, with advice:
    `running.bound_chosen.bound_chosen` bounds them by the loss of the plan

Steps 8 to 10 are made by `running.nested.certify_choices`, also for choices that were
made without fits. What a worker runs is called by `dsel.runtime.tasks.run_here`, and
words such as task, work, context and executor are explained in `dsel.runtime`.

A certificate is an object of `design.certificate_methods`: it decides what ranks
candidates, how they are pruned, which models are trained, and which options it takes.
A search by another certificate than the nested one, or by an estimate, takes
`running.exhaustive.search_exhaustively` in the place of step 4: its loop, in
`engine.exhaustive_search`, extends that of step 5 and counts on the pool for all
candidates, and `running.select.choose` reads the bound (`make_choice` that of a
regressor by a hold-out set).

The packages; each imports only from lines below its own::

    facade | certifying     the estimator; bounds for models that no search has chosen
    planning                what is decided before anything is fitted
    running                 from a plan to an outcome, by one of two ways
    planned_search          the decisions of a plan, and what is known before any fit
    engine | outcomes       the loop of fits and counts; results, and what uses models
    design                  certificates, schemes, comparisons, assumptions

Vocabulary::

    scheme         which models are trained, and on which rows each is tested
    nested         a search with inner searches that leave folds out; others count all
                   candidates on the same splits, and are called exhaustive
    split          one training of a scheme; its number is its place in the scheme, a
                   `SplitIndex`
    part           one of at most two sets of rows on which errors of a split are
                   counted
    subset         rows of the pool that random words select
    random word    64 random bits of a row, by the seed of the plan and its number
    group          candidates that share work and are fitted together
    row groups     groups in which labeled rows come; the option `groups` of users
    fit            one candidate trained on one split, whose numbers are a `FitId` of
                   a `SplitIndex`, or of the `OuterNumber` of an outer split
    fitted group   models of a group, which predict together
    outer split    one that a chosen candidate is fitted on: without one fold, or on all
                   rows; its `OuterNumber` is that of the fold, and else the number of
                   folds; code says by a `ModelRef` which of these models is meant
    chosen         of steps 7 to 9: the chosen candidates and their models
    facts          what is known besides counts: the facts of a plan before any fit,
                   those of the pool once it is checked; the findings of this check are
                   its facts and a sample of rows; the description of a run joins all
                   facts, for the cube and for certificates
    turn           one round of a loop: it submits jobs, and takes results; `on_turn` is
                   called at each
    needed         fits that pruning has not ruled out; those not submitted yet wait
    readable       fits whose counts an inner search may read
    job            a value that describes work
    batch          the jobs of one task, and their work on a worker
    result         what comes back of a job
    fit table      the fits of a search, with their counts; the loop of fits owns it
    slice          consecutive rows of the pool, or of a table that is predicted
    pass           one reading of the slices that are not counted yet
    model set      models that are compared with each other on the pool
    bin            one count of a comparison, such as that of a pair of models, with
                   the number of rows that it is of
    queried rows   pool rows that random words draw where models differ, to be labeled
    kept           what a task leaves on its worker for later tasks; what a run writes
                   into `out` is stored, and candidates that halving keeps survive
    duplicate      a row that equals a labeled one: of the pool, or of another fold
    repeat         a row that equals an earlier one of its table; copies are repeats
                   that independent draws cannot give
    token          a hash of all that the predictions of a model, or of a set, depend on
    key            a text by which a task, a record or a count is found; short names of
                   groups and splits are part of those of tasks
    label          a value of `y` in the words of the user; in code a class has a code
    pool table     the counts of model sets by slice
    SearchCounts   the counts of all candidates, which criteria read; with the evidence
                   the cube is made of it; nested and exhaustive searches have one kind
                   each
    score          the number by which a loss ranks candidates on their test rows
    statistic      what a loss counts, on each fold and on the pool
    evidence       the counts of the chosen models by statistic, which bound them
    limit          an upper limit of one rate, by its own share of delta; limits of the
                   folds and the pool make a bound, the number that a certificate says
    criterion      a formula that makes a number of each candidate's counts; a
                   (certificate) method says how a search uses one
    share          a fraction of delta, in (0, 1]; an amount of it is called ..._delta,
                   and the division of an amount has those of labeled rows and pool
    outcome        cube, choice and bounded models, each of these with its certificate
    caveat         what voids a number, weakens it, or is only information
"""

from dsel.checks import explain_public
from dsel.results.rows import read_rows
from dsel.search.certifying.certify import certify, certify_selection
from dsel.search.facade import SemiSupervisedSearchCV
from dsel.search.outcomes.open_outcome import open_outcome
from dsel.search.outcomes.outcome import Outcome
from dsel.search.outcomes.predict_pool import predict_pool
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_bound import plan_bound
from dsel.search.planning.plan_search import plan_search
from dsel.search.running.select import select

__all__ = [
    "Outcome",
    "Plan",
    "SemiSupervisedSearchCV",
    "certify",
    "certify_selection",
    "open_outcome",
    "plan_bound",
    "plan_search",
    "predict_pool",
    "read_rows",
    "select",
]

explain_public(globals())
