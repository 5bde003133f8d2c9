"""The pruner of searches that count all candidates: it drops those that cannot win."""

from dataclasses import dataclass, replace

import numpy as np

from dsel import names
from dsel.criteria import Settings
from dsel.criteria.base import CandidateCounts, Criterion
from dsel.search.engine.counts import KnownCounts, SearchCounts
from dsel.search.engine.exhaustive_table import ExhaustiveTable
from dsel.search.engine.pruning import Flags, Standing, first_proofs, margin_above


@dataclass(frozen=True)
class ExactPruner:
    """Drops candidates that cannot win by one criterion."""

    criterion: Criterion
    settings: Settings
    """Shares of delta of the candidates."""
    known: KnownCounts
    """Counts that are known in advance, such as the number of pool rows."""
    may_prune: bool
    """False for the exhaustive search."""

    @property
    def best_first(self) -> bool:
        """Whether any candidate is ever dropped."""
        return self.may_prune and self.criterion.can_prune

    def failed_candidates(self, table: ExhaustiveTable) -> Flags:
        """Return whether a fit of each candidate failed, (n_candidates,).

        A candidate that can predict on no fold has failed, too: it gets no pool rows.
        """
        failed = table.failed & table.in_order
        return np.asarray(failed.any(axis=1) | (table.fitted & table.unpredicting))

    def active_candidates(self, table: ExhaustiveTable) -> Flags:
        """Return whether each candidate may still win, and is not complete."""
        return ~(table.pruned | self.failed_candidates(table) | table.complete)

    def compare(self, table: ExhaustiveTable) -> Standing:
        """Return lower bounds of the criterion, and the fits that are still needed.

        With more counts lower bounds only grow and the best estimate only falls, so
        that a dropped candidate would never win later.
        """
        counts = self.counts(table).by_name
        lower = np.asarray(self.criterion.lower_bound(counts, self.settings))
        needed = table.needed
        # Complete candidates stay: their counts are there, and the cube shows them.
        if self.best_first:
            is_beaten = lower > margin_above(self._best(counts))
            is_lost = self.active_candidates(table) & is_beaten
            needed = needed & ~is_lost[:, np.newaxis]
        return Standing(lower, needed)

    def _best(self, counts: CandidateCounts) -> float:
        """Return the smallest value of a complete candidate, or infinity."""
        values = self.criterion.evaluate(counts, self.settings).value
        return float(np.min(values[~np.isnan(values)], initial=np.inf))

    def counts(
        self,
        table: ExhaustiveTable,
        shown: Flags | None = None,
        counted: Flags | None = None,
    ) -> SearchCounts:
        """Return the counts of a table, for the criterion.

        By default those of the fits `in_order`, (n_candidates, n_splits), and the pool
        counts of complete candidates.
        """
        scheme, k = table.scheme, table.scheme.n_folds
        shown = table.in_order if shown is None else shown
        counted = table.pool.is_complete if counted is None else counted
        status = np.full(table.n_candidates, names.STATUS_MISSING, np.int8)
        status[table.complete] = names.STATUS_DONE
        status[table.pruned] = names.STATUS_PRUNED
        status[self.failed_candidates(table)] = names.STATUS_FAILED
        errors, train_errors = (
            np.where(shown, table.errors[..., part], names.UNCOUNTED) for part in (0, 1)
        )
        seconds = np.where(shown, table.fit_seconds, np.nan)
        full, loo = scheme.all_rows_number, scheme.leave_one_out
        # The errors of a regressor are predictions that are no number.
        is_regression = not self.known.n_classes
        losses = np.where(shown, table.scores[..., 0], np.nan)[:, :k]
        return SearchCounts(
            self.known,
            status,
            scheme.fold_rows,
            np.array([len(split.train_rows) for split in scheme.splits[:k]]),
            fold_errors=None if is_regression else errors[:, :k],
            fold_loss_mean=losses if is_regression else None,
            train_errors=train_errors[:, :k] if scheme.n_halvings else None,
            loo_errors=None if loo is None else errors[:, loo],
            fit_seconds=seconds[:, :k],
            full_fit_seconds=None if full is None else seconds[:, full],
            pool=table.pool_counts(counted),
        )

    def final_counts(self, table: ExhaustiveTable) -> SearchCounts:
        """Return the counts of a finished run, for the cube."""
        final, shown = self.counts(table), table.in_order
        status, counted = final.status, table.pool.is_complete
        if self.best_first:
            best = self._best(final.by_name)
            failed = table.failed & shown
            none_counted = np.zeros(table.n_candidates, bool)

            def is_beaten(fits: Flags) -> Flags:
                # By these fits alone, whatever this run has found out by others.
                counts = replace(
                    self.counts(table, fits, none_counted),
                    status=np.zeros_like(status),
                )
                lower = self.criterion.lower_bound(counts.by_name, self.settings)
                is_worse = lower > margin_above(best)
                return np.asarray(is_worse & ~(failed & fits).any(axis=1))

            shown, beaten = first_proofs(shown, table.scheme.n_folds, is_beaten)
            counted &= ~beaten
            status[beaten] = names.STATUS_PRUNED
        return replace(
            self.counts(table, shown, counted),
            status=status,
            messages=table.first_messages(shown),
        )

    def choose_candidate(self, counts: SearchCounts) -> tuple[int, float]:
        """Return the candidate with the smallest number of the criterion, and this."""
        terms = self.criterion.evaluate(counts.by_name, self.settings)
        number = self.criterion.choose(terms, counts.by_name)
        return number, float(terms.value[number])
