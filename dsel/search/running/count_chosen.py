"""The counts of chosen models on the pool.

All rows are compared by the models that `fit_chosen` has fitted: each fold's with that
of all rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dsel.data.duplicate_rows import duplicate_finder
from dsel.data.pool import PoolSlice
from dsel.losses.joint import Evidence
from dsel.losses.protocols import PoolCounts, Statistic
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.search.design.comparisons import AllFolds, QueriedRows, QueryDraw
from dsel.search.design.cv_schemes import ALL_ROWS_MODEL, CVScheme, ModelRef
from dsel.search.engine.count_batch import (
    CHOSEN_SET,
    ChosenCountBatch,
    ComparedModels,
    JoinedModels,
    ModelSets,
    UnpredictablePoolError,
)
from dsel.search.engine.counts import PoolTable
from dsel.search.engine.job_queue import Engine
from dsel.search.engine.jobs import (
    ChosenFit,
    FitStatus,
    JobContext,
    UnpredictedRows,
    join_tokens,
)
from dsel.search.engine.pool_pass import PoolPass
from dsel.search.running.fit_chosen import FittedModels
from dsel.search.running.procedures import unwrap_model
from dsel.search.running.run import replay_counts
from dsel.typing import Model


@dataclass(frozen=True, kw_only=True)
class PoolPassResult:
    """The result of a pass over the pool by chosen models; empty without a pass."""

    counts_of: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    queried: QueriedRows = field(default_factory=QueriedRows)
    """Pool rows to label."""
    unpredicted: UnpredictedRows = field(default_factory=UnpredictedRows)
    """Pool rows on which a model raised."""
    refusal: str = ""
    """Why the models could not be counted on the pool, if they raised on many rows. The
    model of all rows then has no bound, and the one of a fold needs no pool."""


@dataclass(frozen=True)
class ChosenModels:
    """The fitted models of chosen candidates, with all counts that bound them."""

    fitted: FittedModels
    """The models, with their counts on the folds."""
    deployed_fold: int
    """The fold whose model is that of ``one_fold``."""
    on_pool: PoolPassResult = PoolPassResult()
    """Empty without a pool, or without a model of all rows."""

    @property
    def models(self) -> dict[ModelRef, Model]:
        """The fitted estimators; that of all rows is left out where no pool bounds it.

        An estimator that wraps a function is among them as it is.
        """
        models = dict(self.fitted.models)
        if self.on_pool.refusal:
            del models[ALL_ROWS_MODEL]
        return models

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.fitted.fold_counts_of, self.on_pool.counts_of)

    @property
    def ref_by_name(self) -> dict[str, ModelRef]:
        """Which model each name of a certificate stands for."""
        ref_of: dict[str, ModelRef] = {ONE_FOLD: self.deployed_fold}
        if ALL_ROWS_MODEL in self.models:
            ref_of[ALL_ROWS] = ALL_ROWS_MODEL
        return ref_of

    @property
    def models_by_name(self) -> dict[str, Model]:
        """The models that get a bound, by name; a procedure has returned its model."""
        models = self.models
        return {
            name: unwrap_model(models[ref]) for name, ref in self.ref_by_name.items()
        }


def count_chosen(
    context: JobContext,
    engine: Engine,
    fitted: FittedModels,
    deployed_fold: int,
    *,
    slices: tuple[PoolSlice, ...],
    n_duplicates: int,
    query_draw: QueryDraw,
    on_turn: Callable[[int, int], object],
) -> ChosenModels:
    """Return the fitted models with their counts on the pool, if there is one.

    The models are compared on all `slices` of the pool, except those that an earlier
    run has counted. `n_duplicates` is the number of pool rows that equal labeled rows,
    for which the bounds allow. Rows to label are drawn where the model of all rows
    differs from that of `deployed_fold`. `on_turn` is called with the numbers of fits
    and of counted slices at each turn. The pass compares the sampled rows of `context`
    with the rows that it reads.
    """
    pool = engine.pool
    # Where the model of all rows failed, that of one fold still has its bound.
    if pool is None or ALL_ROWS_MODEL not in fitted.models:
        return ChosenModels(fitted, deployed_fold)
    comparison = AllFolds(
        context.scheme.all_rows_number,
        fitted.fold_counts_of,
        # Without any duplicate the pass does not search for them.
        duplicate_finder(pool, context.labeled) if n_duplicates else None,
        deployed_fold,
        query_draw,
    )
    token = token_of_fits(context.scheme, fitted.chosen_fits)
    key = key_of_chosen(fitted)
    if query_draw.n_queries:  # the rows that were drawn depend on this fold
        key += f"-deployed-{deployed_fold}"
    table = PoolTable(slices, (comparison,), [key], [token])
    if engine.store is not None:
        replay_counts(engine.store, table)
    models = ModelSets((CHOSEN_SET,), join_models(context, fitted.chosen_fits.values()))
    compared = ComparedModels(
        [models], (token,), table.comparisons, context.reading, context.labeled.y.dtype
    )
    n_fits = len(fitted.chosen_fits)
    pool_pass = PoolPass(
        engine,
        table,
        ChosenCountBatch,
        on_turn=lambda: on_turn(n_fits, int(table.is_counted.sum())),
        context_key=engine.executor.put(compared),
    )
    try:
        for counted_job in pool_pass.run((CHOSEN_SET,)):
            pool_pass.add_counts(counted_job)
    except UnpredictablePoolError as error:
        # All fits are made, and the bound of one fold's model needs no pool.
        return ChosenModels(fitted, deployed_fold, PoolPassResult(refusal=str(error)))
    [bin_counts] = table.whole_counts(CHOSEN_SET)
    on_pool = PoolPassResult(
        counts_of=comparison.unpack(bin_counts, pool.n_rows, n_duplicates),
        queried=table.queried,
        unpredicted=table.unpredicted,
    )
    return ChosenModels(fitted, deployed_fold, on_pool)


def token_of_fits(scheme: CVScheme, chosen_fits: Mapping[ModelRef, ChosenFit]) -> str:
    """Return the token of all chosen models."""
    # Stores know models by the numbers of their outer splits.
    return join_tokens(
        {
            scheme.outer_split(ref).number: fit.result.token
            for ref, fit in chosen_fits.items()
        }
    )


def join_models(context: JobContext, chosen_fits: Iterable[ChosenFit]) -> JoinedModels:
    """Return the models of all chosen candidates, which predict together."""
    done = [fit for fit in chosen_fits if fit.result.status is FitStatus.DONE]
    # Models of one candidate share work when they predict.
    by_candidate: dict[int, list[ChosenFit]] = {}
    for fit in done:
        by_candidate.setdefault(fit.job.candidate_number, []).append(fit)
    joined_groups = []
    for candidate, fits in by_candidate.items():
        fitted_groups = [fit.fitted_group for fit in fits]
        joined = fitted_groups[0]
        if len(fitted_groups) > 1:
            family = context.candidate_group_of(candidate).family
            joined = family.join(fitted_groups, [candidate])
        joined_groups.append(joined)
    return JoinedModels(tuple(joined_groups), context.labeled.y.dtype)


def key_of_chosen(fitted: FittedModels) -> str:
    """Return the key under which the store has counts of these models.

    Slices that an earlier run counted are of these models only if the same fits failed.
    """
    chosen_candidates = fitted.chosen_candidates
    candidate_numbers = (
        *chosen_candidates.by_fold,
        chosen_candidates.candidate_of_all_rows,
    )
    key = f"chosen-{'-'.join(map(str, candidate_numbers))}"
    folds = range(len(chosen_candidates.by_fold))
    failed = (fold for fold in folds if fold not in fitted.models)
    return key + "".join(f"-without-{fold}" for fold in failed)
