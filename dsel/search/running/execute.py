"""Execution of a plan: on a cluster or on this machine, with or without a store.

A stored certificate is final: another run of the same plan in the same folder reads it.
Bounded models are kept next to it. If one cannot be stored, the run still completes,
but the user is warned before hours of fits.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import xarray as xr
from sklearn.base import clone

from dsel import names
from dsel.arrays import Estimator
from dsel.data.query_rows import with_pool_index
from dsel.errors import (
    DselWarning,
    NewerRecordError,
    PoolChangedError,
    explain_interrupt,
    warn,
)
from dsel.results import Choice
from dsel.results.model_files import (
    IMPORTABLE,
    dump_model,
    script_types,
    untrusted_types,
    warn_that_models_are_lost,
)
from dsel.results.place import CUBE, PAIRS, Place, check_claim
from dsel.results.query_files import read_labeled_result
from dsel.results.run_store import Store, check_names, read_query_rows
from dsel.runtime.progress import progress_display
from dsel.search.outcomes.outcome import Outcome, write_outcome
from dsel.search.planned_search import PlanFacts, PlannedSearch
from dsel.search.running.exhaustive import refit_chosen_model, search_exhaustively
from dsel.search.running.nested import (
    read_queried_rows,
    refit_nested_models,
    search_nested,
)
from dsel.search.running.procedures import FunctionEstimator
from dsel.search.running.run import (
    Run,
    RunOptions,
    make_outcome,
    row_tokens,
)
from dsel.typing import Model, PathLike
from dsel.zarr_stores import BAD_HEADER

MOST_TRIED: Final = 16
"""Most estimators that are written and read back before a run, one of each kind."""
CHANGED_POOL_KEY: Final = "pool/changed"
"""Key of a record that marks all counts in the store as invalid."""


def execute(
    search: PlannedSearch, plan_facts: PlanFacts, options: RunOptions
) -> Outcome:
    """Run a plan; see `Plan.run`."""
    with ExitStack() as stack:
        store, why_unstored = None, ""
        if options.out is not None:
            check_names((*search.axes.sizes, *search.axes.coords), "param_grid")
            fitting_pool = search.context.fitting_pool
            tokens = row_tokens(
                search.labeled, search.pool, fitting_pool, client=options.client
            )
            store = stack.enter_context(
                Store(
                    options.out,
                    kind="search",
                    identity={**plan_facts.identity, **tokens},
                    storage_options=options.storage_options,
                    columns=search.labeled.columns or (),
                )
            )
            if CHANGED_POOL_KEY in store.records:
                raise ValueError(
                    f"`out` {store.place} holds counts of a pool that was written "
                    f"while a run read it; delete it, or choose another `out`."
                )
            cube = store.dataset(CUBE)
            # The outcome is written last: without one a killed run continues.
            if store.outcome is not None and cube is not None:
                run = Run(search, plan_facts, options)
                return open_finished_run(run, store, cube)
            # Hours of fits should not end with models that cannot be written.
            why_unstored = check_estimators(search.context.estimators, store.place)
        on_progress = options.on_progress
        if on_progress is None:
            display = progress_display(options.verbose, options.notes)
            on_progress = stack.enter_context(display)
        run = Run(search, plan_facts, options, store, on_progress)
        run_search = search_nested if search.method.is_nested else search_exhaustively
        stack.enter_context(explain_interrupt(_how_to_resume(store, search.seed)))
        try:
            outcome = run_search(run)
            if search.pool is not None:  # learners may have read it last
                search.pool.check_for_changes()
        except PoolChangedError:
            if store is not None:  # a later run must not use counts of changed rows
                store.append(CHANGED_POOL_KEY, {})
            raise
        if store is not None:
            outcome = store_outcome(run, outcome, store, why_unstored)
    return outcome


def _how_to_resume(store: Store | None, seed: int) -> str:
    """Return the text for an interrupted run: how to resume it."""
    if store is None:
        return (
            "Nothing of the interrupted run is kept, since it had no `out`: with "
            "out='results' whatever has ended is stored, and the same call goes on."
        )
    return (
        f"Whatever has ended is kept in `out` {store.place}: the same call with "
        f"random_state={seed} goes on from there."
    )


def check_out(search: PlannedSearch, plan_facts: PlanFacts, out: PathLike) -> None:
    """Raise if a run of the plan would refuse `out`, before anything is printed.

    Raises StoreMismatchError if `out` belongs to another plan. Nothing is written, and
    the pool is not read.
    """
    fitting_pool = search.context.fitting_pool
    tokens = row_tokens(search.labeled, search.pool, fitting_pool, may_read=False)
    columns = search.labeled.columns or ()
    check_claim(Place(out), "search", {**plan_facts.identity, **tokens}, columns)


def store_outcome(
    run: Run, outcome: Outcome, store: Store, why_unstored: str
) -> Outcome:
    """Write the outcome, make it final, and return the final one.

    `why_unstored` is the reason why models cannot be stored, if it is known already.
    """
    record = write_outcome(outcome, store, why_unstored)
    final = Choice.from_json(record["choice"])
    if final.certificates == outcome.choice.certificates:
        return outcome
    # Another run of this plan was first: its certificate is the one that holds.
    cube = store.dataset(CUBE) or outcome.results
    return open_finished_run(run, store, cube)


def open_finished_run(run: Run, store: Store, cube: xr.Dataset) -> Outcome:
    """Return the outcome of a run that had ended; models are loaded or fitted again."""
    assert store.outcome is not None  # else the run has not ended
    # Models that are fitted again are not stored, and show no progress.
    run = replace(run, store=None, on_progress=None)
    search = run.search
    try:
        choice = Choice.from_json(store.outcome["choice"])
        # Labels of queried rows, which may have come later, make a bound smaller.
        if (labeled := read_labeled_result(store.place, Choice)) is not None:
            choice = labeled
            cube = cube.assign_attrs({names.CHOICE: choice.to_json()})
        candidates = search.axes.candidates
        # A procedure's parameters are in the record: the grid sets none of them.
        models = {
            name: replace(model, params=candidates[model.candidate] or model.params)
            for name, model in choice.bounded_models.items()
        }
    except NewerRecordError:
        raise  # the message of the error names the version
    except BAD_HEADER as error:
        raise ValueError(
            f"the outcome at {store.place} is not what dsel wrote there; bring it back "
            f"from a copy, or choose another place."
        ) from error
    choice = replace(choice, bounded_models=models)
    make_models: Callable[[], Mapping[str, Model]] = partial(
        refit_models, run, cube, choice
    )
    # Some models are not stored, are damaged, or have a type that is not trusted.
    with suppress(KeyError, ValueError):
        trusted = trusted_types(search.context.estimators)
        stored = {name: store.load_model(name, trusted) for name in choice.certificates}
        make_models = partial(dict, stored)
    rows = None
    if choice.queries is not None and choice.queries.rows:
        rows = read_query_rows(store.place)
        pool = search.queried_pool
        if rows is None and pool is not None:
            rows = read_queried_rows(choice.queries, pool, run.options.client)
        elif pool is not None:  # older versions stored row numbers only
            rows = with_pool_index(rows, pool)
    return make_outcome(
        cube,
        choice,
        make_models,
        labeled=search.labeled,
        loss=search.context.losses.main,
        row_groups=search.row_groups,
        identity=run.identity,
        pair_results=store.dataset(PAIRS),
        queried_rows=rows,
    )


def refit_models(run: Run, cube: xr.Dataset, choice: Choice) -> Mapping[str, Model]:
    """Fit the models of a choice again, and repeat all their counts.

    Raises RuntimeError if a count differs, since the model is then another one.
    """
    refit = refit_nested_models if run.search.method.is_nested else refit_chosen_model
    refitted = refit(run, cube, choice)
    # Residuals of a fold with fewer rows than others end with NaN.
    if not all(np.array_equal(*pair, equal_nan=True) for pair in refitted.count_pairs):
        raise RuntimeError(
            "the models were fitted anew and are others than those that were counted, "
            "so no certificate is about them: the learner draws without a seed, or "
            "another kind of processor has worked. Give it a `random_state`, and "
            "search in another `out`."
        )
    return refitted.models


def check_estimators(estimators: Iterable[Estimator], place: object) -> str:
    """Return why models cannot be stored, "" if no reason is known; warn of it.

    Estimators are written before they are fitted. This finds functions without a name
    and classes of a script. Objects that only a fit makes are checked after the run.
    """
    for estimator in _one_of_each(estimators):
        try:
            content = dump_model(clone(estimator))
        except ValueError as error:
            warn_that_models_are_lost(str(error), place)
            return str(error)
        except Exception:  # its fit will report that it cannot be cloned
            continue
        if types := script_types(content):
            warn(
                f"models with {types[0]} are kept in `out` {place}, but no other "
                f"process finds what a script or notebook defines; {IMPORTABLE}.",
                DselWarning,
            )
            break
    return ""


def trusted_types(estimators: Iterable[Estimator]) -> list[str]:
    """Return the types that a user trusts by searching with these estimators."""
    types: set[str] = set()
    for estimator in _one_of_each(estimators):
        with suppress(Exception):  # one that cannot be written has no kept model
            types |= {*untrusted_types(estimator)}
    return sorted(types)


def _one_of_each(estimators: Iterable[Estimator]) -> list[Estimator]:
    """Return one estimator of each kind, by its type and those of its parts."""
    kinds: dict[str, Estimator] = {}
    for estimator in estimators:
        if isinstance(estimator, FunctionEstimator):
            continue  # the model that its function returns is kept
        parts = [estimator, *estimator.get_params(deep=True).values()]
        types = [type(part) for part in parts if hasattr(part, "get_params")]
        kinds.setdefault(str(types), estimator)
    return list(kinds.values())[:MOST_TRIED]
