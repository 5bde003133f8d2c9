"""The table and the pruner of searches that count all candidates on the pool."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Bools, Floats
from dsel.bounds.cross_validation import best_fold_number
from dsel.criteria import Settings
from dsel.criteria.criterion import Criterion
from dsel.data.pool import PoolSlice
from dsel.data.splits import SplitIndex
from dsel.families.family import FitId
from dsel.results.fit_messages import FitMessage
from dsel.search.design.comparisons import UNKNOWN_FOLD, Comparison
from dsel.search.engine.counts import (
    DataSizes,
    ExhaustiveCounts,
    FitTable,
    PoolTable,
    Records,
)
from dsel.search.engine.jobs import FitResult, FitStatus, join_tokens
from dsel.search.engine.pruning import PruningDecision, first_proofs, margin_above


@dataclass(eq=False)
class ExhaustiveTable(FitTable):
    """Counts of fits and on the pool, by candidate.

    A candidate's models make one model set of the pool table, with its number.
    """

    comparisons: InitVar[tuple[Comparison, ...]]
    """Comparisons of models on the pool; empty without one."""
    slices: InitVar[tuple[PoolSlice, ...]]
    """Slices of the pool; empty without comparisons."""
    tokens: dict[FitId[SplitIndex], str] = field(init=False, default_factory=dict)
    """Token of the model of each fit, which identifies it."""
    changed_candidates: set[int] = field(init=False, default_factory=set)
    """Candidates with a fit that gave another model when it was repeated."""
    pool_table: PoolTable = field(init=False)

    def __post_init__(
        self, comparisons: tuple[Comparison, ...], slices: tuple[PoolSlice, ...]
    ) -> None:
        super().__post_init__()
        tokens = [
            self.token_of_models(candidate) for candidate in range(self.n_candidates)
        ]
        self.pool_table = PoolTable(slices, comparisons, self.candidate_keys, tokens)

    def add_fit(
        self, candidate: int, split_number: SplitIndex, result: FitResult
    ) -> None:
        """Write the result of a fit; drop the counts of its earlier model."""
        fit = FitId(candidate, split_number)
        # Pool rows may have been counted with the former model, which is gone.
        is_again = self.fit_status[fit] == FitStatus.DONE
        if is_again and self.tokens.get(fit, "") != result.token:
            self.changed_candidates.add(candidate)
            self.pool_table.forget_counts(candidate)
        super().add_fit(candidate, split_number, result)
        self.tokens[fit] = result.token
        self.pool_table.tokens[candidate] = self.token_of_models(candidate)

    def token_of_models(self, candidate: int) -> str:
        """Return a text that identifies all models of a candidate."""
        splits = self.scheme.splits_with_models
        tokens: dict[int, str] = {
            split: self.tokens.get(FitId(candidate, split), "") for split in splits
        }
        return join_tokens(tokens)

    @property
    def fitted_candidates(self) -> Bools:
        """Whether all fits of each candidate are done."""
        return np.asarray((self.fit_status == FitStatus.DONE).all(axis=1))

    @property
    def complete_candidates(self) -> Bools:
        """Whether all fits of each candidate are done, and the whole pool counted."""
        return np.asarray(self.fitted_candidates & self.pool_table.is_complete)

    @property
    def failed_candidates(self) -> Bools:
        """Whether each candidate is out because of a failure.

        A candidate that can predict on no fold has failed, too: it gets no pool rows.
        """
        unpredicting = self.fitted_candidates & self.unpredicting_candidates
        return np.asarray(super().failed_candidates | unpredicting)

    @property
    def active_candidates(self) -> Bools:
        """Whether each candidate may still win, and is not complete."""
        is_out = self.pruned_candidates | self.failed_candidates
        return ~(is_out | self.complete_candidates)

    @property
    def status(self) -> NDArray[np.int8]:
        """The status of each candidate, by the codes of the cube."""
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.complete_candidates] = names.STATUS_DONE
        status[self.pruned_candidates] = names.STATUS_PRUNED
        status[self.failed_candidates] = names.STATUS_FAILED
        return status

    def search_counts(
        self,
        data: DataSizes,
        shown: Bools | None = None,
        pool_shown: Bools | None = None,
        *,
        status: NDArray[np.int8] | None = None,
        messages: Mapping[int, FitMessage] | None = None,
    ) -> ExhaustiveCounts:
        """Return the counts by which a criterion compares the candidates.

        The defaults are the `consecutive_fits`, the pool counts of complete candidates,
        their `status` so far, and no messages.
        """
        scheme, k = self.scheme, self.scheme.n_folds
        shown = self.consecutive_fits if shown is None else shown
        pool_shown = self.pool_table.is_complete if pool_shown is None else pool_shown
        errors, train_errors = (
            np.where(shown, self.errors[..., part_number], names.UNCOUNTED)
            for part_number in (0, 1)
        )
        seconds = np.where(shown, self.fit_seconds, np.nan)
        loo = scheme.leave_one_out_number
        # The errors of a regressor are predictions that are no number.
        is_regression = not data.n_classes
        scores = np.where(shown, self.scores[..., 0], np.nan)[:, :k]
        return ExhaustiveCounts(
            data=data,
            status=self.status if status is None else status,
            fold_rows=scheme.fold_rows,
            train_rows=scheme.train_rows,
            fold_errors=None if is_regression else errors[:, :k],
            fold_loss_mean=scores if is_regression else None,
            train_errors=train_errors[:, :k] if scheme.n_halvings else None,
            loo_errors=None if loo is None else errors[:, loo],
            fit_seconds=seconds[:, :k],
            full_fit_seconds=None
            if scheme.all_rows is None
            else seconds[:, scheme.all_rows_number],
            counts_on_pool=self.pool_counts(pool_shown),
            messages=messages or {},
        )

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons, with each candidate's best fold so far."""
        k = self.scheme.n_folds
        best = np.full(self.n_candidates, UNKNOWN_FOLD)
        errors = self.errors[:, :k, 0]
        is_complete = (errors != names.UNCOUNTED).all(axis=1)
        # The best fold is read from the labeled rows alone, so the pool cannot choose
        # it.
        if is_complete.any():
            best[is_complete] = best_fold_number(
                errors[is_complete], self.scheme.fold_rows
            )
        return tuple(c.with_best_folds(best) for c in self.pool_table.comparisons)

    def pool_counts(self, shown: Bools) -> dict[str, NDArray[Any]]:
        """Return pool counts of the `shown` candidates, by the cube's variables."""
        by_variable: dict[str, NDArray[Any]] = {}
        table = self.pool_table
        is_shown = shown[:, np.newaxis]
        for comparison, differences, rows in zip(
            table.comparisons, table.differences, table.pool_rows, strict=True
        ):
            bin_counts = np.where(is_shown, differences, names.UNCOUNTED)
            if comparison.key == names.BEST_FOLD_DISAGREEMENTS:
                by_variable[comparison.key] = bin_counts[:, 0]
                continue
            by_variable[comparison.key] = bin_counts
            by_variable[names.POOL_ROWS] = pool_rows = np.where(is_shown, rows, 0)
            fraction = pool_rows / np.maximum(1, pool_rows.sum(axis=1, keepdims=True))
            spent = fraction * table.seconds[:, np.newaxis]
            by_variable[names.SCORE_SECONDS] = np.where(is_shown, spent, np.nan)
        return by_variable

    def replay(self, records: Records) -> None:
        """Write the records of an earlier run into the table."""
        super().replay(records)
        # The tokens of the fits show which counts on the pool are of these models.
        self.pool_table.replay(records)


@dataclass(frozen=True)
class ExactPruner:
    """Drops candidates that cannot win by one criterion."""

    criterion: Criterion
    settings: Settings
    """Delta of each candidate."""
    data: DataSizes
    """Sizes of the data, such as the number of pool rows."""
    may_prune: bool
    """False where all fits are needed."""

    @property
    def best_first(self) -> bool:
        """Whether any candidate is ever dropped."""
        return self.may_prune and self.criterion.can_prune

    def decide(self, table: ExhaustiveTable) -> PruningDecision:
        """Return lower bounds of the criterion, and which candidates are beaten.

        With more counts lower bounds only grow and the best estimate only falls, so
        that a dropped candidate would never win later.
        """
        search_counts = table.search_counts(self.data)
        lower = self._lower_bounds(search_counts)
        beaten = np.zeros(table.n_candidates, bool)
        # Complete candidates stay: their counts are there, and the cube shows them.
        if self.best_first:
            is_worse = lower > margin_above(self._best(search_counts))
            beaten = table.active_candidates & is_worse
        return PruningDecision(lower, np.ones(table.fit_status.shape, bool), beaten)

    def _lower_bounds(self, search_counts: ExhaustiveCounts) -> Floats:
        """Return a lower bound of the value of each candidate."""
        return self.criterion.lower_bound(search_counts.by_name, self.settings)

    def _best(self, search_counts: ExhaustiveCounts) -> float:
        """Return the smallest value of a complete candidate, or infinity."""
        terms = self.criterion.evaluate(search_counts.by_name, self.settings)
        return float(np.nanmin(terms.value, initial=np.inf))

    def final_counts(self, table: ExhaustiveTable) -> ExhaustiveCounts:
        """Return the counts of a finished run, for the cube."""
        status, shown = table.status, table.consecutive_fits
        pool_shown = table.pool_table.is_complete
        if self.best_first:
            best = self._best(table.search_counts(self.data))
            failed = table.failed_fits & shown
            none_counted = np.zeros(table.n_candidates, bool)

            def is_beaten(fits: Bools) -> Bools:
                # These fits alone decide: the cube must not depend on which other fits
                # this run has happened to make.
                search_counts = table.search_counts(
                    self.data, fits, none_counted, status=np.zeros_like(status)
                )
                is_worse = self._lower_bounds(search_counts) > margin_above(best)
                return np.asarray(is_worse & ~(failed & fits).any(axis=1))

            shown, beaten = first_proofs(shown, table.scheme.n_folds, is_beaten)
            # The last fit may prove it, as the only one of a hold-out set does: then
            # nothing was left out.
            if not table.pool_table.comparisons:
                beaten &= ~shown.all(axis=1)
            pool_shown &= ~beaten
            status[beaten] = names.STATUS_PRUNED
        messages = table.first_messages(shown)
        return table.search_counts(
            self.data, shown, pool_shown, status=status, messages=messages
        )

    def choose_candidate(self, search_counts: ExhaustiveCounts) -> tuple[int, float]:
        """Return the chosen candidate, and its value of the criterion.

        It has the smallest value; the criterion decides among equal ones.
        """
        by_name = search_counts.by_name
        terms = self.criterion.evaluate(by_name, self.settings)
        candidate = self.criterion.choose(terms, by_name)
        return candidate, float(terms.value[candidate])
