"""Pruning of candidates that cannot win: exactly, or by halving in nested searches.

An exact run drops a candidate as soon as its counts prove that it cannot win. How many
of its fits are counted by then depends on the order in which tasks end. But the cube
must not depend on this order. So of a dropped candidate it shows only the first fits
that suffice to prove it worse than the final winner. Every run has counted these fits,
since it compared the candidate with the best one known at that time, which is at most
as good as the winner. So a run that was killed and resumed ends with the same cube.

Halving drops candidates of an inner search by the counts that this search may use. The
bounds hold nevertheless, since they hold for any choice. It may choose another
candidate than the exhaustive search.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.criteria import Settings
from dsel.criteria.base import TIE_TOLERANCE, CandidateCounts, Criterion
from dsel.errors import AllFitsFailedError
from dsel.option_values import Pruning
from dsel.search.design.folds import CVScheme
from dsel.search.engine.counts import CountTable, KnownCounts, SearchCounts
from dsel.search.engine.job_results import FitStatus

PRUNING_MARGIN: Final = 1e-9
"""A lower bound must exceed the best estimate by more than this to prune; relative to
an estimate above 1, such as a mean square."""

Flags = NDArray[np.bool_]


def margin_above(best: Floats | float) -> Floats:
    """Return the number that a lower bound must exceed to prune a candidate."""
    return np.asarray(best + PRUNING_MARGIN * np.maximum(best, 1.0))


def count_survivors(n_candidates: int) -> int:
    """Return the number of candidates after the first round of halving."""
    return max(1, round(n_candidates / 3))


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

    def find_failed(self, table: CountTable) -> Flags:
        """Return whether a fit of each candidate failed, (n_candidates,).

        A candidate that can predict on no fold has failed, too: it gets no pool rows.
        """
        failed = (table.fit_status == FitStatus.FAILED) & table.in_order
        return np.asarray(failed.any(axis=1) | (table.fitted & table.unpredicting))

    def find_active(self, table: CountTable) -> Flags:
        """Return whether each candidate may still win, and is not complete."""
        return ~(table.pruned | self.find_failed(table) | table.complete)

    def counts(
        self,
        table: CountTable,
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
        status[self.find_failed(table)] = names.STATUS_FAILED
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
            pool=table.pool.by_name(counted),
        )

    def prune(self, table: CountTable) -> Floats:
        """Drop the candidates that cannot win; return the lower bounds.

        With more counts lower bounds only grow and the best estimate only falls, so
        that a dropped candidate would never win later.
        """
        counts = self.counts(table).by_name
        # A count that is not made yet is taken as 0, its smallest possible value.
        lower = self.criterion.lower_bound(counts, self.settings)
        if self.best_first:
            is_beaten = lower > margin_above(self._best(counts))
            table.pruned |= self.find_active(table) & is_beaten
        return np.asarray(lower)

    def _best(self, counts: CandidateCounts) -> float:
        """Return the smallest value of a complete candidate, or infinity."""
        values = self.criterion.evaluate(counts, self.settings).value
        return float(np.min(values[~np.isnan(values)], initial=np.inf))

    def final_counts(self, table: CountTable) -> SearchCounts:
        """Return the counts of a finished run, for the cube."""
        final, shown = self.counts(table), table.in_order
        status, counted = final.status, table.pool.is_complete
        if self.best_first:
            best = self._best(final.by_name)
            undecided = np.ones(table.n_candidates, bool)
            failed = (table.fit_status == FitStatus.FAILED) & shown
            # The fewest splits that prove a candidate worse are the same in every run;
            # how far this run got with it is not.
            for n_splits in range(table.scheme.n_folds + 1):
                first = np.arange(shown.shape[1]) < n_splits
                counts = replace(
                    self.counts(table, shown & first, np.zeros_like(undecided)),
                    status=np.zeros_like(status),
                )
                lower = self.criterion.lower_bound(counts.by_name, self.settings)
                undecided &= ~failed[:, :n_splits].any(axis=1)
                beaten = undecided & (lower > margin_above(best))
                shown[beaten] &= first
                counted[beaten] = False
                status[beaten] = names.STATUS_PRUNED
                undecided &= ~beaten
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


def tie_ranks(scores: Floats) -> NDArray[np.intp]:
    """Return the rank of each score along the last axis; equal scores share one.

    Examples
    --------
    >>> tie_ranks(np.array([[0.3, 0.1, 0.1 + 1e-15, np.inf]])).tolist()
    [[1, 0, 0, 2]]
    """
    order = np.argsort(scores, axis=-1, kind="stable")
    ascending = np.take_along_axis(scores, order, -1)
    with np.errstate(invalid="ignore"):  # of two infinite ones
        differences = np.diff(ascending, axis=-1, prepend=ascending[..., :1])
        is_larger = (differences > TIE_TOLERANCE * ascending) | (differences == np.inf)
    # A run of scores, each within a tie of the one before, has one rank.
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.cumsum(is_larger, axis=-1), -1)
    return ranks


@dataclass(frozen=True)
class ChosenCandidates:
    """The candidates that a nested search has chosen."""

    all_rows: int
    """Candidate that was chosen by all folds."""
    by_fold: tuple[int, ...]
    """Candidates that were chosen without each fold, (n_folds,)."""

    @property
    def by_split(self) -> tuple[int, ...]:
        """Candidates in the order of the last step's splits: all rows come last."""
        return (*self.by_fold, self.all_rows)


@dataclass(frozen=True)
class NestedPruner:
    """Decides which fits inner searches still need: exactly, by halving, or all.

    The winner of the search without fold i is a function of the fits without i and one
    other fold that succeeded and of their errors on that other fold. Nothing else may
    drop a candidate there: not its errors on fold i, nor what other fits did. An error
    of `fit` fails the candidate in both searches that would read it; an error of
    `predict` counts all rows as errors in the search that reads them.
    """

    scheme: CVScheme
    prune_by: Pruning

    @property
    def best_first(self) -> bool:
        """Whether counts decide what is fitted next."""
        return self.prune_by == Pruning.EXACT

    def find_failed(self, table: CountTable) -> Flags:
        """Return whether a fit of each candidate failed in a search, (n_candidates,).

        A later fit than one that has not ended does not count yet.
        """
        failed = (table.fit_status == FitStatus.FAILED) & table.in_order
        return np.asarray(failed.any(axis=1))

    def find_active(self, table: CountTable) -> Flags:
        """Return whether each candidate has fits that searches wait for."""
        waiting = (table.fit_status == FitStatus.OPEN) | (
            table.fit_status == FitStatus.SUBMITTED
        )
        return np.asarray(waiting.any(axis=1) & ~table.pruned)

    def scores(self, table: CountTable, shown: Flags) -> tuple[Floats, Flags]:
        """Return scores with missing losses at 0, and whether none is missing.

        Both (n_searches, n_candidates): the searches without each fold, then the one by
        all folds. A score is the mean of the losses over the tests of the search;
        infinity if a fit failed.
        """
        everything, by_all = self.scheme.inner_tests, self.scheme.n_folds
        scores = np.zeros((by_all + 1, table.n_candidates))
        complete = np.ones(scores.shape, bool)
        for search, (score, is_complete) in enumerate(
            zip(scores, complete, strict=True)
        ):
            # What the search without a fold may see is decided here and nowhere else:
            # nothing that was counted on its fold. The proof (docs/theory/nested.md)
            # needs only this.
            tests = [t for t in everything if search in (by_all, t.search)]
            if not tests:  # a single candidate is chosen unseen
                continue
            splits, parts = zip(*((t.split, t.part) for t in tests), strict=True)
            is_known = shown[:, splits]
            losses = table.scores[:, splits, parts]
            score[:] = np.where(is_known, losses, 0.0).mean(axis=1)
            status = np.where(is_known, table.fit_status[:, splits], FitStatus.OPEN)
            score[(status == FitStatus.FAILED).any(axis=1)] = np.inf
            is_complete[:] = (status == FitStatus.DONE).all(axis=1)
        return scores, complete

    def prune(self, table: CountTable) -> Floats:
        """Prune candidates, or begin the second round; return the smallest scores."""
        if self.prune_by == Pruning.HALVING:
            self.open_second_round(table)
            return np.zeros(table.n_candidates)
        return self.drop_losers(table)

    def open_second_round(self, table: CountTable) -> None:
        """Hold all fits except those of the first round; then open those of survivors.

        A fit of the second round is made if a search that uses it has kept its
        candidate.
        """
        first = list(self.scheme.first)
        status, is_first = table.fit_status, np.zeros(table.fit_status.shape, bool)
        is_first[:, first] = True
        status[~is_first & (status == FitStatus.OPEN)] = FitStatus.HELD
        # All first fits must be there: else what ends early would decide who survives.
        if not table.ended[:, first].all():
            return
        kept, tests = self.survivors(table), self.scheme.inner_tests
        for split in range(len(first), len(self.scheme.splits)):
            readers = [test.search for test in tests if test.split == split]
            # Two searches may use the fit, and one of them may have dropped it.
            is_needed = kept[readers].any(axis=0)
            is_held = status[:, split] == FitStatus.HELD
            status[is_needed & is_held, split] = FitStatus.OPEN

    def drop_losers(self, table: CountTable) -> Floats:
        """Drop the candidates that can win no search; return the smallest scores.

        An exhaustive search drops none.
        """
        lower, complete = self.scores(table, table.in_order)
        if self.prune_by == Pruning.EXACT:
            best = np.where(complete, lower, np.inf).min(axis=1, keepdims=True)
            is_beaten = (lower > margin_above(best)).all(axis=0)
            table.pruned |= self.find_active(table) & is_beaten
        return np.asarray(lower.min(axis=0))

    def survivors(self, table: CountTable) -> Flags:
        """Return which candidates each search keeps, (n_searches, n_candidates).

        The search by all folds, the last one, drops none, and needs no other fits.
        """
        shown = np.zeros(table.fit_status.shape, bool)
        shown[:, list(self.scheme.first)] = True
        scores, _ = self.scores(table, shown)
        if self.prune_by != Pruning.HALVING or not self.scheme.inner_tests:
            return np.ones(scores.shape, bool)
        # Rates that are equal up to rounding keep the order of the grid on every
        # machine.
        order = np.argsort(tie_ranks(scores), axis=1, kind="stable")
        kept = np.zeros(scores.shape, bool)
        survivors = order[:, : count_survivors(table.n_candidates)]
        np.put_along_axis(kept, survivors, True, axis=1)
        kept[-1] = True
        return kept

    def finalists(self, table: CountTable, shown: Flags) -> Flags:
        """Return the candidates among which the search by all folds chooses.

        They have every fit; with halving those with the most fits, which most searches
        kept.
        """
        failed = (table.fit_status == FitStatus.FAILED) & shown
        done = (table.fit_status == FitStatus.DONE) & shown
        n_fits = np.where(failed.any(axis=1), -1, done.sum(axis=1))
        n_all = n_fits.max() if self.prune_by == Pruning.HALVING else done.shape[1]
        return np.asarray(n_fits == n_all)

    def choose_candidates(self, table: CountTable) -> ChosenCandidates:
        """Return the chosen candidates, by all folds and without each.

        Raises AllFitsFailedError if a search has no candidate left.
        """
        shown = table.ended
        scores, complete = self.scores(table, shown)
        # Any function of the labeled rows may choose here.
        complete[-1] = self.finalists(table, shown)
        eligible = np.where(complete & self.survivors(table), scores, np.inf)
        is_empty = np.asarray(np.isinf(eligible).all(axis=1))
        if is_empty.any():
            which = f"without fold {is_empty.argmax()}"
            if is_empty[-1]:
                which = "by all folds"
            texts = (message.text for message in table.messages.values())
            some = next(texts, "no message")
            raise AllFitsFailedError(
                f"no candidate can be chosen {which}: a fit of each has failed, such "
                f"as {some}"
            )
        # The first number of a tie: neither the order of tasks nor of sums decides.
        *by_fold, all_rows = np.argmin(tie_ranks(eligible), axis=1).tolist()
        return ChosenCandidates(all_rows, tuple(by_fold))

    def final_counts(self, table: CountTable, known: KnownCounts) -> SearchCounts:
        """Return errors on each fold of the models without it, and status.

        Every fitted model without this fold and another one predicts each of its rows.
        """
        scheme, n = self.scheme, table.n_candidates
        # Only fits that every run of this plan has made.
        shown = table.ended
        if self.prune_by == Pruning.EXACT:
            shown = table.in_order
            scores, complete = self.scores(table, shown)
            best = np.where(complete, scores, np.inf).min(axis=1, keepdims=True)
            undecided = np.ones(n, bool)
            for n_splits in range(shown.shape[1] + 1):
                first = np.arange(shown.shape[1]) < n_splits
                lower, _ = self.scores(table, shown & first)
                beaten = undecided & (lower > margin_above(best)).all(axis=0)
                shown[beaten] &= first
                undecided &= ~beaten
        status = np.full(n, names.STATUS_PRUNED, np.int8)
        done = self.finalists(table, shown)
        if (
            self.prune_by == Pruning.HALVING
        ):  # others are dropped: no search has kept them
            done |= self.survivors(table)[:-1].any(axis=0)
        status[done] = names.STATUS_DONE
        failed = (table.fit_status == FitStatus.FAILED) & shown
        status[failed.any(axis=1)] = names.STATUS_FAILED
        # A row of a fold has k - 1 predictions: one of each model without this fold and
        # another one.
        errors, answers = np.zeros((2, n, scheme.n_folds), np.int64)
        losses, models = np.zeros((2, n, scheme.n_folds))
        for test in scheme.inner_tests:
            is_done = shown[:, test.split] & (
                table.fit_status[:, test.split] == FitStatus.DONE
            )
            errors[is_done, test.fold] += table.errors[is_done, test.split, test.part]
            answers[is_done, test.fold] += test.n_rows
            losses[is_done, test.fold] += table.scores[is_done, test.split, test.part]
            models[is_done, test.fold] += 1
        means = np.where(models > 0, losses / np.maximum(models, 1), np.nan)
        return SearchCounts(
            known,
            status,
            scheme.fold_rows,
            np.array([len(split.train_rows) for split in scheme.held_out]),
            # Predictions of numbers are not right or wrong.
            fold_errors=np.where(answers > 0, errors, names.UNCOUNTED)
            if known.n_classes
            else None,
            fold_answers=answers,
            fold_loss_mean=means,
            messages=table.first_messages(shown),
        )


Pruner = ExactPruner | NestedPruner
