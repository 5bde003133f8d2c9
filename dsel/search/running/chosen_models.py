"""The models that a search has chosen, with their counts: what bounds are read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from dsel import names
from dsel.arrays import Floats
from dsel.checks import listing
from dsel.criteria.base import CandidateCounts
from dsel.losses.base import FoldCounts, PoolCounts, Statistic
from dsel.losses.error_rate import ERROR
from dsel.losses.joint import Evidence, ModelBounds
from dsel.results.caveats import Caveat, Effect
from dsel.results.fit_messages import FitMessage
from dsel.rounded_texts import count_of
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.engine.counts import SearchCounts
from dsel.search.engine.nested_pruner import ChosenCandidates
from dsel.search.running.evaluate import cv_error
from dsel.typing import Model

if TYPE_CHECKING:
    from dsel.search.planning.plan import Plan

MOST_FOLDS_NAMED: Final = 3
"""Most folds that a warning names."""


@dataclass(frozen=True)
class ChosenModels:
    """The fitted models of the chosen candidates, with all counts of them."""

    candidates: ChosenCandidates
    """The chosen candidates: one for each fold, and one by all rows."""
    models: Mapping[int, Model]
    """Fitted estimators by fold; that of all rows, if there is one, has the key k."""
    folds: Mapping[Statistic, FoldCounts]
    """Counts of the models without a fold on this fold."""
    scores: Floats
    """The ranking loss of each model on its fold, (n_folds,)."""
    deployed_fold: int
    """The fold whose model is deployed: labeled rows decide it, before the pool."""
    failures: tuple[str, ...] = ()
    """Cause, if the fit on all rows failed."""
    failed_folds: Mapping[int, str] = field(default_factory=dict)
    """Cause by fold, where the fit without it failed, or its model cannot predict it:
    then all of its rows count as errors."""
    messages: Mapping[int, FitMessage] = field(default_factory=dict)
    """The first message of completed fits by candidate, such as an early stop."""
    pool: Mapping[Statistic, PoolCounts] = field(default_factory=dict)
    """Counts on the pool; empty without a pool, or without a model of all rows."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Pool rows to label."""

    @property
    def evidence(self) -> Evidence:
        """The counts from which losses bound the models."""
        return Evidence(self.folds, self.pool)

    def without_failed_folds(self, statistic: Statistic) -> FoldCounts:
        """Return the counts of the folds that a model has predicted."""
        folds = self.folds[statistic]
        kept = sorted({*range(len(folds.n_rows))} - self.failed_folds.keys())
        return FoldCounts(folds.counts[kept], folds.n_rows[kept])


def add_chosen(
    plan: "Plan", counts: SearchCounts, chosen: ChosenModels
) -> SearchCounts:
    """Return the counts of inner searches, completed by those of the chosen models."""
    if plan.n_candidates == 1:  # inner searches have counted nothing
        errors, n_rows = chosen.folds.get(ERROR.statistic), counts.fold_rows
        counts = replace(
            counts,
            fold_errors=None if errors is None else errors.integers[np.newaxis],
            fold_answers=n_rows[np.newaxis],
            fold_loss_mean=chosen.scores[np.newaxis],
        )
    if names.FOLD_LOSS_MEAN not in plan.criterion.needs:  # errors say the same
        counts = replace(counts, fold_loss_mean=None)
    return replace(
        counts,
        messages={**chosen.messages, **counts.messages},
        outer_candidate=np.array(chosen.candidates.by_fold),
        evidence=chosen.evidence,
    )


def mean_inner_loss(counts: CandidateCounts, candidate: int) -> float:
    """Return the mean over folds of the loss by which inner searches ranked it."""
    means = counts.get(names.FOLD_LOSS_MEAN)
    if means is None:
        return cv_error(counts, candidate)
    return float(means[candidate].mean())


def warn_of_failed_folds(
    plan: "Plan", failed: Mapping[int, str], bounds: ModelBounds
) -> list[Caveat]:
    """Return a warning if fits without a fold, or predictions of it, have failed."""
    if not failed:
        return []
    # A failed fit keeps its share of delta: leaving its fold out would divide delta
    # after the fits.
    n_rows = int(plan.scheme.fold_rows[list(failed)].sum())
    rows = count_of(n_rows, "row" if plan.groups is None else "group")
    causes = [f"fold {fold}: {why}" for fold, why in failed.items()]
    is_too_large = "is"
    if np.isfinite(bounds.expected_holdout) and not plan.scheme.is_holdout:
        is_too_large = "and the comparison with a hold-out set are"
    is_error = repr(plan.context.losses.main) == "error"
    end = f"the estimate {is_too_large} too large"
    if np.isinf(bounds.estimate):
        end = "the estimate is without them"
    text = (
        f"{len(failed)} of {plan.scheme.n_folds} fits failed "
        f"({listing(causes, MOST_FOLDS_NAMED)}); "
        f"{'its' if len(failed) == 1 else 'their'} {rows} count as "
        f"{'errors' if is_error else 'the largest loss'}, so {end}"
    )
    return [Caveat(Effect.WARNS, text)]
