"""The table and the pruner of searches that count all candidates, on the pool, too.

The pruner drops those that cannot win.
"""

from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold_number
from dsel.criteria import Settings
from dsel.criteria.base import CandidateCounts, Criterion
from dsel.data.pool import PoolSlice
from dsel.families.family import FitId
from dsel.search.design.comparisons import Comparison
from dsel.search.engine.counts import (
    DataCounts,
    FitTable,
    PoolTable,
    Records,
    SearchCounts,
)
from dsel.search.engine.jobs import FitResult, FitStatus, join_tokens
from dsel.search.engine.pruning import Flags, Standing, first_proofs, margin_above


@dataclass(eq=False)
class ExhaustiveTable(FitTable):
    """Counts of fits and on the pool, by candidate.

    A candidate's models make one model set of the pool table, with its number.
    """

    comparisons: InitVar[tuple[Comparison, ...]]
    """Comparisons of models on the pool; empty without one."""
    slices: InitVar[tuple[PoolSlice, ...]]
    """Slices of the pool; empty without comparisons."""
    tokens: dict[FitId, str] = field(init=False, default_factory=dict)
    """Token of the model of each fit, which identifies it."""
    redrawn_candidates: set[int] = field(init=False, default_factory=set)
    """Candidates with a fit that was made again and gave another model."""
    pool_table: PoolTable = field(init=False)

    def __post_init__(
        self, comparisons: tuple[Comparison, ...], slices: tuple[PoolSlice, ...]
    ) -> None:
        super().__post_init__()
        # It asks for tokens when a slice arrives, because fits may have been repeated
        # by then.
        self.pool_table = PoolTable(slices, comparisons, self.keys, self.joined_token)

    def add_fit(self, number: int, split_number: int, result: FitResult) -> None:
        """Write the result of a fit; drop the counts of its earlier model."""
        fit = FitId(number, split_number)
        # The pool may be counted with the former model, which is gone.
        is_again = self.fit_status[fit] == FitStatus.DONE
        if is_again and self.tokens.get(fit, "") != result.token:
            self.redrawn_candidates.add(number)
            self.pool_table.forget_counts(number)
        super().add_fit(number, split_number, result)
        self.tokens[fit] = result.token

    def joined_token(self, number: int) -> str:
        """Return a text that identifies all models of a candidate."""
        splits = self.scheme.splits_with_models
        tokens = {split: self.tokens.get(FitId(number, split), "") for split in splits}
        return join_tokens(tokens)

    @property
    def fitted_candidates(self) -> NDArray[np.bool_]:
        """Whether all fits of each candidate are done."""
        return np.asarray((self.fit_status == FitStatus.DONE).all(axis=1))

    @property
    def complete_candidates(self) -> NDArray[np.bool_]:
        """Whether all fits of each candidate are done, and the whole pool counted."""
        return np.asarray(self.fitted_candidates & self.pool_table.is_complete)

    @property
    def failed_candidates(self) -> NDArray[np.bool_]:
        """Whether each candidate is out because of a failure.

        A candidate that can predict on no fold has failed, too: it gets no pool rows.
        """
        unpredicting = self.fitted_candidates & self.unpredicting_candidates
        return np.asarray(super().failed_candidates | unpredicting)

    @property
    def active_candidates(self) -> NDArray[np.bool_]:
        """Whether each candidate may still win, and is not complete."""
        is_out = self.pruned_candidates | self.failed_candidates
        return ~(is_out | self.complete_candidates)

    def counts(
        self,
        data: DataCounts,
        shown: Flags | None = None,
        pool_shown: Flags | None = None,
    ) -> SearchCounts:
        """Return the counts by which a criterion compares the candidates.

        By default those of the `consecutive_fits`, and the pool counts of complete
        candidates.
        """
        scheme, k = self.scheme, self.scheme.n_folds
        shown = self.consecutive_fits if shown is None else shown
        pool_shown = self.pool_table.is_complete if pool_shown is None else pool_shown
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.complete_candidates] = names.STATUS_DONE
        status[self.pruned_candidates] = names.STATUS_PRUNED
        status[self.failed_candidates] = names.STATUS_FAILED
        errors, train_errors = (
            np.where(shown, self.errors[..., part], names.UNCOUNTED) for part in (0, 1)
        )
        seconds = np.where(shown, self.fit_seconds, np.nan)
        loo = scheme.leave_one_out_number
        # The errors of a regressor are predictions that are no number.
        is_regression = not data.n_classes
        losses = np.where(shown, self.losses[..., 0], np.nan)[:, :k]
        return SearchCounts(
            data,
            status,
            scheme.fold_rows,
            np.array([len(split.train_rows) for split in scheme.held_out]),
            fold_errors=None if is_regression else errors[:, :k],
            fold_loss_mean=losses if is_regression else None,
            train_errors=train_errors[:, :k] if scheme.n_halvings else None,
            loo_errors=None if loo is None else errors[:, loo],
            fit_seconds=seconds[:, :k],
            full_fit_seconds=None if scheme.all_rows is None else seconds[:, k],
            pool_counts=self.pool_counts(pool_shown),
        )

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons, with each candidate's best fold so far."""
        k, best = self.scheme.n_folds, np.full(self.n_candidates, -1)
        errors = self.errors[:, :k, 0]
        is_complete = (errors >= 0).all(axis=1)
        # The best fold is read from the labeled rows alone, so the pool cannot choose
        # it.
        if is_complete.any():
            best[is_complete] = best_fold_number(
                errors[is_complete], self.scheme.fold_rows
            )
        return tuple(c.at_best_folds(best) for c in self.pool_table.comparisons)

    def pool_counts(self, shown: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """Return pool counts by the cube's variables; -1 for candidates not `shown`."""
        named: dict[str, NDArray[Any]] = {}
        table, is_shown = self.pool_table, shown[:, np.newaxis]
        for comparison, differences, rows in zip(
            table.comparisons, table.differences, table.pool_rows, strict=True
        ):
            counts = np.where(is_shown, differences, names.UNCOUNTED)
            if comparison.key == names.BEST_FOLD_DISAGREEMENTS:
                named[comparison.key] = counts[:, 0]
                continue
            named[comparison.key] = counts
            named[names.POOL_ROWS] = pool_rows = np.where(is_shown, rows, 0)
            fraction = pool_rows / np.maximum(1, pool_rows.sum(axis=1, keepdims=True))
            spent = fraction * table.seconds[:, np.newaxis]
            named[names.SCORE_SECONDS] = np.where(is_shown, spent, np.nan)
        return named

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
    data: DataCounts
    """Counts of the data, such as the number of pool rows."""
    may_prune: bool
    """False for the exhaustive search."""

    @property
    def best_first(self) -> bool:
        """Whether any candidate is ever dropped."""
        return self.may_prune and self.criterion.can_prune

    def compare(self, table: ExhaustiveTable) -> Standing:
        """Return lower bounds of the criterion, and the fits that are still needed.

        With more counts lower bounds only grow and the best estimate only falls, so
        that a dropped candidate would never win later.
        """
        counts = table.counts(self.data).by_name
        lower = np.asarray(self.criterion.lower_bound(counts, self.settings))
        needed = table.needed_fits
        # Complete candidates stay: their counts are there, and the cube shows them.
        if self.best_first:
            is_beaten = lower > margin_above(self._best(counts))
            is_lost = table.active_candidates & is_beaten
            needed = needed & ~is_lost[:, np.newaxis]
        return Standing(lower, needed)

    def _best(self, counts: CandidateCounts) -> float:
        """Return the smallest value of a complete candidate, or infinity."""
        values = self.criterion.evaluate(counts, self.settings).value
        return float(np.min(values[~np.isnan(values)], initial=np.inf))

    def final_counts(self, table: ExhaustiveTable) -> SearchCounts:
        """Return the counts of a finished run, for the cube."""
        final, shown = table.counts(self.data), table.consecutive_fits
        status, pool_shown = final.status, table.pool_table.is_complete
        if self.best_first:
            best = self._best(final.by_name)
            failed = table.failed_fits & shown
            none_counted = np.zeros(table.n_candidates, bool)

            def is_beaten(fits: Flags) -> Flags:
                # By these fits alone: the cube must not depend on which other fits this
                # run has happened to make.
                counts = replace(
                    table.counts(self.data, fits, none_counted),
                    status=np.zeros_like(status),
                )
                lower = self.criterion.lower_bound(counts.by_name, self.settings)
                is_worse = lower > margin_above(best)
                return np.asarray(is_worse & ~(failed & fits).any(axis=1))

            shown, beaten = first_proofs(shown, table.scheme.n_folds, is_beaten)
            pool_shown &= ~beaten
            status[beaten] = names.STATUS_PRUNED
        return replace(
            table.counts(self.data, shown, pool_shown),
            status=status,
            messages=table.first_messages(shown),
        )

    def choose_candidate(self, counts: SearchCounts) -> tuple[int, float]:
        """Return the candidate with the smallest number of the criterion, and this."""
        terms = self.criterion.evaluate(counts.by_name, self.settings)
        number = self.criterion.choose(terms, counts.by_name)
        return number, float(terms.value[number])
