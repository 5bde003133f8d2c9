"""The inner searches of a nested search: needed fits, choices and counts.

Halving drops candidates of an inner search by the counts that this search may use. The
bounds hold nevertheless, since they hold for any choice. A search with halving may
choose another candidate than one without pruning.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Bools, Floats, Integers
from dsel.criteria.criterion import TIE_TOLERANCE
from dsel.errors import AllFitsFailedError
from dsel.option_values import Pruning
from dsel.rounded_texts import name_folds
from dsel.search.design.cv_schemes import (
    ALL_ROWS_MODEL,
    CVScheme,
    InnerTest,
    ModelRef,
)
from dsel.search.engine.counts import DataSizes, FitTable, NestedCounts
from dsel.search.engine.jobs import FitStatus
from dsel.search.engine.pruning import PruningDecision, first_proofs, margin_above

BY_ALL_FOLDS: Final = -1
"""Position of the search by all folds on axes of searches, (n_searches, ...): it
follows those without each fold, whose positions are the numbers of the folds."""


def count_survivors(n_candidates: int) -> int:
    """Return the number of candidates after the first round of halving.

    Examples
    --------
    >>> [count_survivors(n) for n in (2, 4, 5, 9, 25, 100)]
    [1, 1, 2, 2, 6, 25]
    """
    # scikit-learn's halving keeps a third. In 62 searches with 9 to 25 candidates a
    # quarter took 5 to 9% fewer fits, and the chosen candidates made as many errors:
    # 1.0014 times those of a search without halving, after a third as well as after a
    # quarter.
    return max(1 if n_candidates < 5 else 2, round(n_candidates / 4))


def tie_ranks(scores: Floats) -> NDArray[np.intp]:
    """Return the rank of each score along the last axis; equal scores share one.

    A score that is not known, NaN, comes after all others.

    Examples
    --------
    >>> tie_ranks(np.array([[0.3, 0.1, 0.1 + 1e-15, np.nan, np.inf]])).tolist()
    [[1, 0, 0, 3, 2]]
    """
    # Sorting places NaN last.
    order = np.argsort(scores, axis=-1, kind="stable")
    ascending = np.take_along_axis(scores, order, -1)
    with np.errstate(invalid="ignore"):  # infinity less infinity is NaN
        differences = np.diff(ascending, axis=-1, prepend=ascending[..., :1])
        is_larger = (differences > TIE_TOLERANCE * ascending) | (differences == np.inf)
    is_unknown = np.isnan(ascending)
    is_larger[..., 1:] |= is_unknown[..., 1:] & ~is_unknown[..., :-1]
    # A run of scores, each within a tie of the one before, has one rank.
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.cumsum(is_larger, axis=-1), -1)
    return ranks


def mean_on_all_tests(scores: Floats, is_known: Bools) -> Floats:
    """Return the mean score of each candidate on all tests, where some lack tests.

    A candidate and a test each add a number of their own to a score, by least squares
    over those that are known. By plain means a candidate would lead because it lacks
    the tests on hard rows.

    Parameters
    ----------
    scores, is_known
        A score, and whether it is known, (n_candidates, n_tests). Each candidate has
        one that is known.

    Examples
    --------
    The second test is harder than the first one by 0.2.

    >>> scores = np.array([[0.1, 0.3], [0.2, 9.0]])
    >>> mean_on_all_tests(scores, np.array([[True, True], [True, False]])).tolist()
    [0.2, 0.3]
    """
    means = np.full(len(scores), np.inf)
    # A score may be infinite, such as a mean square: such a candidate cannot lead.
    is_finite = (np.isfinite(scores) | ~is_known).all(axis=1)
    known, scores = is_known[is_finite], np.where(is_known, scores, 0.0)[is_finite]
    n_known = known.sum(axis=1, keepdims=True)
    own_means = scores.sum(axis=1, keepdims=True) / n_known
    # The normal equations of the tests, without the candidates. The shortest solution
    # has the mean 0.
    normal = np.diag(known.sum(axis=0)) - known.T @ (known / n_known)
    right = np.where(known, scores - own_means, 0.0).sum(axis=0)
    of_tests = np.linalg.lstsq(normal, right, rcond=None)[0]
    means[is_finite] = own_means[:, 0] - known @ of_tests / n_known[:, 0]
    # Rounded, so that equal candidates tie, also where both are without an error.
    largest = np.abs(scores).max(initial=0.0) or 1.0
    return np.asarray(means.round(12 - math.ceil(math.log10(largest))))


@dataclass(frozen=True)
class ChosenCandidates:
    """The candidates that a nested search has chosen."""

    candidate_of_all_rows: int
    """Candidate that was chosen by all folds."""
    by_fold: tuple[int, ...]
    """Candidates that were chosen without each fold, (n_folds,)."""

    def candidate_of(self, ref: ModelRef) -> int:
        """Return the candidate that was chosen for a model."""
        if ref is ALL_ROWS_MODEL:
            return self.candidate_of_all_rows
        return self.by_fold[ref]


class SearchTests(NamedTuple):
    """The tests of some searches, of which each has equally many."""

    searches: slice
    """Positions of the searches among all, of which the one by all folds is last."""
    split_numbers: Integers
    """Split of each test, (n_searches, n_tests)."""
    part_numbers: Integers
    """Part of its test rows, in the same shape."""

    @classmethod
    def of(cls, searches: slice, lists: Sequence[Sequence[InnerTest]]) -> "SearchTests":
        """Return the tests of searches that have one list each."""
        return cls(
            searches,
            np.array([[test.split_number for test in tests] for tests in lists]),
            np.array([[test.part_number for test in tests] for tests in lists]),
        )


@dataclass(frozen=True)
class InnerSearches:
    """The searches without a fold, and the one by all folds, of one fit table.

    They decide which fits are still needed (exactly, by halving, or all), choose the
    candidates, and make the final counts.

    The winner of the search without fold i is a function of the fits without i and one
    other fold that succeeded and of their errors on that other fold. Nothing else may
    drop a candidate there: not its errors on fold i, nor what other fits did. An error
    of `fit` fails the candidate in both searches that would read it; an error of
    `predict` counts all rows as errors in the search that reads them.
    """

    scheme: CVScheme
    pruning: Pruning

    @property
    def best_first(self) -> bool:
        """Whether counts decide what is fitted next."""
        return self.pruning == Pruning.EXACT

    def decide(self, table: FitTable) -> PruningDecision:
        """Return lower bounds of mean scores, needed fits, and beaten candidates.

        The bounds are 0 where no count drops a candidate.
        """
        n, is_needed = table.n_candidates, np.ones(table.fit_status.shape, bool)
        if self.pruning == Pruning.HALVING:
            first = list(self.scheme.first_round)
            is_needed[:] = False
            is_needed[:, first] = True
            # All fits of the first round must be done: otherwise the order of tasks
            # would decide which candidates survive.
            if table.finished_fits[:, first].all():
                survives = self.survivors(table)
                # A fit of the second round is made if a search that uses it has kept
                # its candidate: of two that use it, one may have dropped it.
                for test in self.scheme.inner_tests:
                    is_needed[:, test.split_number] |= survives[test.left_out_fold]
        if self.pruning != Pruning.EXACT:
            return PruningDecision(np.zeros(n), is_needed, np.zeros(n, bool))
        lower, complete = self.mean_scores(table, table.consecutive_fits)
        best = np.where(complete, lower, np.inf).min(axis=1, keepdims=True)
        # A fit serves two searches: a candidate is dropped where it can win none.
        is_beaten = table.active_candidates & self._is_beaten(lower, best)
        return PruningDecision(lower.min(axis=0), is_needed, is_beaten)

    @staticmethod
    def _is_beaten(lower: Floats, best: Floats) -> Bools:
        """Return whether each candidate is worse than the best one in all searches."""
        return np.asarray((lower > margin_above(best)).all(axis=0))

    @cached_property
    def tests_of_searches(self) -> tuple["SearchTests", "SearchTests"]:
        """The tests of the searches without each fold, and those of the one by all."""
        # This property alone decides what the search without a fold may read: nothing
        # that was counted on its fold. The proof (docs/theory/nested.md) needs only
        # this.
        by_fold: list[list[InnerTest]] = [[] for _ in range(self.scheme.n_folds)]
        for test in self.scheme.inner_tests:
            by_fold[test.left_out_fold].append(test)
        n_folds, by_all = self.scheme.n_folds, [list(self.scheme.inner_tests)]
        return (
            SearchTests.of(slice(0, n_folds), by_fold),
            SearchTests.of(slice(n_folds, n_folds + 1), by_all),
        )

    def mean_scores(
        self, table: FitTable, readable_fits: Bools
    ) -> tuple[Floats, Bools]:
        """Return mean scores with missing ones at 0, and whether none is missing.

        Both have the shape (n_searches, n_candidates), with the search by all folds at
        `BY_ALL_FOLDS`. The mean is over the tests of the search;
        it is infinity if a fit failed.
        """
        shape = self.scheme.n_folds + 1, table.n_candidates
        mean_scores, complete = np.zeros(shape), np.ones(shape, bool)
        if not self.scheme.inner_tests:  # a single candidate is chosen unseen
            return mean_scores, complete
        for searches, splits, parts in self.tests_of_searches:
            # (n_candidates, n_searches, n_tests)
            is_known = readable_fits[:, splits]
            scores = np.where(is_known, table.scores[:, splits, parts], 0.0)
            status = np.where(is_known, table.fit_status[:, splits], FitStatus.OPEN)
            has_failed = (status == FitStatus.FAILED).any(axis=2)
            mean_scores[searches] = np.where(has_failed, np.inf, scores.mean(axis=2)).T
            complete[searches] = (status == FitStatus.DONE).all(axis=2).T
        return mean_scores, complete

    def survivors(self, table: FitTable) -> Bools:
        """Return which candidates each search keeps, (n_searches, n_candidates).

        The search by all folds drops none here and needs no additional
        fits: `finalists` says among which candidates it chooses.
        """
        readable_fits = np.zeros(table.fit_status.shape, bool)
        readable_fits[:, list(self.scheme.first_round)] = True
        mean_scores, _ = self.mean_scores(table, readable_fits)
        if self.pruning != Pruning.HALVING or not self.scheme.inner_tests:
            return np.ones(mean_scores.shape, bool)
        # Rates that are equal up to rounding keep the order of the grid on every
        # machine.
        order = np.argsort(tie_ranks(mean_scores), axis=1, kind="stable")
        survives = np.zeros(mean_scores.shape, bool)
        survivors = order[:, : count_survivors(table.n_candidates)]
        np.put_along_axis(survives, survivors, True, axis=1)
        survives[BY_ALL_FOLDS] = True
        return survives

    def finalists(self, table: FitTable, readable_fits: Bools) -> Bools:
        """Return the candidates among which the search by all folds chooses.

        No fit of them failed, and they have every fit. With halving also those that a
        search without a fold has kept, which may lack some; if a fit of each of these
        failed, all others.
        """
        done = (table.fit_status == FitStatus.DONE) & readable_fits
        finalists = np.asarray(done.all(axis=1))
        if self.pruning == Pruning.HALVING:
            has_failed = (table.failed_fits & readable_fits).any(axis=1)
            is_kept = self.survivors(table)[:BY_ALL_FOLDS].any(axis=0)
            finalists |= is_kept & ~has_failed
            return finalists if finalists.any() else np.asarray(~has_failed)
        return finalists

    def choose_candidates(self, table: FitTable) -> ChosenCandidates:
        """Return the chosen candidates, by all folds and without each.

        Raises AllFitsFailedError if a search has no candidate left.
        """
        readable_fits = table.finished_fits
        mean_scores, complete = self.mean_scores(table, readable_fits)
        # No fold is held out from the search by all folds, so any function of the
        # labeled rows may choose there.
        complete[BY_ALL_FOLDS] = finalists = self.finalists(table, readable_fits)
        if not readable_fits[finalists].all():
            _, tests = self.tests_of_searches
            splits, parts = tests.split_numbers[0], tests.part_numbers[0]
            mean_scores[BY_ALL_FOLDS, finalists] = mean_on_all_tests(
                table.scores[finalists][:, splits, parts],
                readable_fits[finalists][:, splits],
            )
        eligible = np.where(complete & self.survivors(table), mean_scores, np.inf)
        is_empty = np.asarray(np.isinf(eligible).all(axis=1))
        if is_empty.any():
            search_name = f"without {name_folds(int(is_empty.argmax()))}"
            if is_empty[BY_ALL_FOLDS]:
                search_name = "by all folds"
            texts = (message.text for message in table.messages.values())
            example = next(texts, "no message")
            raise AllFitsFailedError(
                f"no candidate can be chosen {search_name}: a fit of each has failed, "
                f"such as {example}"
            )
        # The smallest number wins a tie, so that neither the order of tasks nor that of
        # sums decides.
        *by_fold, by_all_folds = np.argmin(tie_ranks(eligible), axis=1).tolist()
        return ChosenCandidates(by_all_folds, tuple(by_fold))

    def order_independent_fits(self, table: FitTable) -> Bools:
        """Return the fits that every run of this plan makes, whatever the order."""
        if self.pruning != Pruning.EXACT:
            return table.finished_fits
        fits = table.consecutive_fits
        mean_scores, complete = self.mean_scores(table, fits)
        best = np.where(complete, mean_scores, np.inf).min(axis=1, keepdims=True)
        readable_fits, _ = first_proofs(
            fits,
            fits.shape[1],
            lambda fits_to_read: self._is_beaten(
                self.mean_scores(table, fits_to_read)[0], best
            ),
        )
        return readable_fits

    def final_counts(self, table: FitTable, data: DataSizes) -> NestedCounts:
        """Return the counts of the search, with errors on folds of models without them.

        Every fitted model without this fold and another one predicts each of its rows.
        """
        scheme, n = self.scheme, table.n_candidates
        readable_fits = self.order_independent_fits(table)
        # A row of a fold has k - 1 predictions: one of each model without this fold and
        # another one.
        errors, predictions = np.zeros((2, n, scheme.n_folds), np.int64)
        score_sums, n_models = np.zeros((2, n, scheme.n_folds))
        for test in scheme.inner_tests:
            is_done = readable_fits[:, test.split_number] & (
                table.fit_status[:, test.split_number] == FitStatus.DONE
            )
            fold_cells = is_done, test.fold
            test_cells = is_done, test.split_number, test.part_number
            errors[fold_cells] += table.errors[test_cells]
            predictions[fold_cells] += test.n_rows
            score_sums[fold_cells] += table.scores[test_cells]
            n_models[fold_cells] += 1
        means = np.where(n_models > 0, score_sums / np.maximum(n_models, 1), np.nan)
        status = np.full(table.n_candidates, names.STATUS_PRUNED, np.int8)
        status[self.finalists(table, readable_fits)] = names.STATUS_DONE
        failed = table.failed_fits & readable_fits
        status[failed.any(axis=1)] = names.STATUS_FAILED
        return NestedCounts(
            data=data,
            status=status,
            fold_rows=scheme.fold_rows,
            train_rows=scheme.train_rows,
            # Predictions of numbers are not right or wrong.
            fold_errors=np.where(predictions > 0, errors, names.UNCOUNTED)
            if data.n_classes
            else None,
            fold_predictions=predictions,
            fold_loss_mean=means,
            messages=table.first_messages(readable_fits),
        )
