"""The bound to expect of a certificate, before a label is used; see `plan_bound`.

Errors of folds and disagreements are assumed to be binomial with given rates, and folds
to be independent; limits are averaged over them. Limits of the expected counts would be
too large for a certificate that takes the smallest of several limits, since it gains
from their spread.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dsel.arrays import Floats
from dsel.bounds.binomial import lower_limits, upper_limits
from dsel.bounds.holdout import expected_holdout_bound, likely_counts
from dsel.bounds.queried_differences import (
    QUERY_SHARES,
    mean_difference_limit,
    queried_difference,
)
from dsel.bounds.shares import fold_deltas
from dsel.bounds.tolerance import allowed_exceedances, divide_level
from dsel.losses.protocols import DeltaDivision
from dsel.losses.regression import RESIDUAL_SHARE_OF_POOL

GROWTH: Final = 0.6
"""Exponent of the growth of the disagreement with the ratio of left-out rows to
training rows. The standard deviation of weights grows like the square root of this
ratio; kernel machines had exponents of 0.5 to 0.8 on nine data sets, measured before
0.2."""


@dataclass(frozen=True)
class Case:
    """Numbers that are known or assumed before labels are used."""

    n_labeled: int
    n_unlabeled: int
    n_candidates: int
    delta: float
    error: float
    """Error rate of the chosen model."""
    five_fold_disagreement: float
    """Rate at which the model of all rows differs from one without 20% of them."""
    class_fraction: float = 1.0
    """Fraction of the rows from which limits are computed; 1 for the error."""
    n_queries: int = 0
    """Pool rows that will be labeled, which takes a share of delta."""

    @property
    def is_error(self) -> bool:
        """Whether limits are about the error, and not about the misses of a class."""
        return self.class_fraction == 1.0

    @property
    def candidate_delta(self) -> float:
        """Delta of one candidate, if all of them are bounded."""
        return self.delta / self.n_candidates

    def division_of(self, delta: float) -> DeltaDivision:
        """Return the division of a delta between labels and pool."""
        return DeltaDivision.of_plan(
            delta, has_pool=self.n_unlabeled > 0, has_queries=self.n_queries > 0
        )

    @property
    def n_counted(self) -> int:
        """Number of labeled rows from which limits are computed."""
        return round(self.n_labeled * self.class_fraction)

    def disagreement(self, n_folds: int) -> float:
        """Return the rate at which the models of all rows and of a fold differ."""
        return min(self.five_fold_disagreement * _growth(n_folds), 1.0)

    def fold_sizes(self, n_folds: int) -> list[tuple[int, int]]:
        """Return (rows, number of folds of that size), the larger folds first."""
        rows, larger = divmod(self.n_counted, n_folds)
        sizes = [(rows + 1, larger), (rows, n_folds - larger)]
        return [(size, n_alike) for size, n_alike in sizes if n_alike]


def five_fold_disagreement(rate: float, n_folds: int) -> float:
    """Return the rate of `Case` that a rate with another number of folds shows.

    Examples
    --------
    >>> case = Case(400, 900, 1, 0.05, 0.1, five_fold_disagreement(0.06, 3))
    >>> round(case.disagreement(3), 12)
    0.06
    """
    return rate / _growth(n_folds)


def _growth(n_folds: int) -> float:
    """Return the disagreement with these folds as a multiple of that with five."""
    # Their ratio of left-out rows to training rows is this multiple of that of five.
    return float((4.0 / (n_folds - 1)) ** GROWTH)


@dataclass(frozen=True)
class ToleranceCase:
    """Numbers that are known before the labels of a regression are used."""

    n_candidates: int
    delta: float
    level: float
    """Fraction of the predictions that may be off by more than the tolerance."""
    has_pool: bool

    @property
    def division(self) -> DeltaDivision:
        """Division of delta between labeled rows and pool in a nested search."""
        return DeltaDivision.of_plan(self.delta, has_pool=self.has_pool)

    def exceedances_at(self, delta: float) -> Callable[[int], int]:
        """Return a function that maps a number of rows to how many may exceed a limit.

        The limit holds at this delta. The value is -1 if the rows are too few for a
        finite limit.
        """
        return lambda n: int(allowed_exceedances(n, level=self.level, delta=delta))


@dataclass(frozen=True)
class ExpectedBound:
    """A row of the table of `plan_bound`: a model, and the bound to expect of it."""

    terms: Callable[[Case, int], tuple[float, float]]
    """Function of the number of folds that returns label and disagreement term."""
    trained_fraction: Callable[[int], float]
    """Function of the number of folds that returns the fraction of the labeled rows
    that train the model, in ``(0, 1]``."""
    text: str = ""
    """Text of the bounded model and of its labels, which ``plan_bound`` prints below
    its table; "" if the head of the row says it all."""
    needs_pool: bool = False
    """Whether it has no number without a pool."""
    bounds_losses: bool = False
    """Whether it can bound the recall of a class; otherwise it bounds the error
    alone."""
    count_exceeding: Callable[[ToleranceCase, int], Callable[[int], int]] | None = None
    """Function for regressors, of the case and the number of folds. It returns a
    function that maps a number of held-out rows to how many of their residuals may
    exceed the tolerance, -1 if the tolerance is infinite. None if regressors are not
    certified."""


@lru_cache(maxsize=4096)
def mean_limit(n_rows: int, rate: float, delta: float) -> float:
    """Return the average upper limit of a rate, from `n_rows` rows."""
    return expected_holdout_bound(rate, n_rows, delta=delta)


def _mean_smallest_limit(case: Case, deltas: Floats) -> float:
    """Return the average of the smallest of the folds' limits, each at its delta.

    Folds of one size and one delta have the same distribution.
    """
    sizes = case.fold_sizes(len(deltas))
    n_rows_by_fold = [rows for rows, n_alike in sizes for _ in range(n_alike)]
    alike = Counter(zip(n_rows_by_fold, deltas.tolist(), strict=True))
    tables = []
    for (rows, delta), n_alike in alike.items():
        counts, probabilities = likely_counts(rows, case.error)
        limits = np.asarray(upper_limits(counts, rows, delta))
        tables.append((limits, probabilities, n_alike))
    return mean_of_smallest(tables)


def mean_of_smallest(tables: list[tuple[Floats, Floats, int]]) -> float:
    """Return the average of the smallest of independent values.

    Each distribution has a table: values in increasing order, their probabilities, and
    the number of draws.
    """
    # The mean of the smallest draw is the integral of its survival function, P(smallest
    # > t), which is the product of those of the independent draws.
    points = np.unique(np.concatenate([values for values, _, _ in tables]))
    survival = np.ones(points.size)
    for values, probabilities, n_alike in tables:
        below = np.searchsorted(values, points, side="right")
        cumulative = np.concatenate([[0.0], np.cumsum(probabilities)])
        survival *= np.clip(1.0 - cumulative[below], 0.0, 1.0) ** n_alike
    before = np.concatenate([[1.0], survival[:-1]])
    return float(points @ (before - survival))


def expected_terms(
    case: Case, row: "ExpectedBound", n_folds: int
) -> tuple[float, float]:
    """Return the average label term and disagreement term of one row of the table.

    They are NaN if there are more folds than rows, no pool, or a loss that it cannot
    bound.
    """
    has_model = case.n_unlabeled > 0 or not row.needs_pool
    # Only a nested search has queries, or another loss.
    has_bound = (case.is_error and not case.n_queries) or row.bounds_losses
    if n_folds > case.n_counted or not (has_model and has_bound):
        return np.nan, np.nan
    return row.terms(case, n_folds)


def plain_holdout_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of a test on 20% of the labels, for any number of folds."""
    del n_folds
    return mean_limit(max(1, case.n_counted // 5), case.error, case.delta), 0.0


def first_fold_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of the first fold alone, with delta divided among candidates."""
    n_rows = -(-case.n_counted // n_folds)
    return mean_limit(n_rows, case.error, case.candidate_delta), 0.0


def one_fold_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of the smallest limit of a nested search."""
    # With a pool, the bound of the model of all rows holds at the same time.
    label_delta = case.division_of(case.delta).label_delta
    return _mean_smallest_limit(case, fold_deltas(label_delta, n_folds)), 0.0


def all_rows_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of a nested search, whose delta is divided among folds."""
    division = case.division_of(case.delta)
    limit = _mean_smallest_limit(case, fold_deltas(division.label_delta, n_folds))
    fold_delta = division.pool_delta / n_folds
    differ = case.disagreement(n_folds) * case.class_fraction
    if case.is_error:
        of_pool = mean_limit(case.n_unlabeled, differ, fold_delta)
        return limit, min(of_pool, _queried_term(case, differ))
    # Half of the pool's delta is spent on the fraction of the class among labeled rows.
    sizes = np.array(case.n_counted), np.array(case.n_labeled)
    least = float(lower_limits(*sizes, np.array(n_folds * fold_delta / 2)))
    return limit, mean_limit(case.n_unlabeled, differ, fold_delta / 2) / least


def _queried_term(case: Case, differ: float) -> float:
    """Return the disagreement term by labels of queried rows; 1 without queries.

    Either model alone is right on half of these rows, as of two equally good models.
    """
    n_differ = round(differ * case.n_unlabeled)
    n_rows = min(case.n_queries, n_differ)
    if not n_rows:
        return 1.0
    mean = mean_difference_limit(
        n_rows // 2, n_rows, delta=QUERY_SHARES.queries * case.delta
    )
    difference = queried_difference(
        mean,
        n_differ,
        case.n_unlabeled,
        delta=QUERY_SHARES.pool * case.delta,
        n_duplicates=0,  # a run looks for them
    )
    return float(difference)


def mean_of_folds_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of ``cv_bound``: the mean of all limits, and the pool's."""
    fold_delta = case.division_of(case.candidate_delta).label_delta / n_folds
    sizes = case.fold_sizes(n_folds)
    limits = (n_alike * mean_limit(n, case.error, fold_delta) for n, n_alike in sizes)
    return sum(limits) / n_folds, _disagreement_term(case, n_folds)


def best_fold_terms(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of ``best_fold``: the smallest limit, and the pool's."""
    fold_delta = case.division_of(case.candidate_delta).label_delta / n_folds
    return _mean_smallest_limit(case, np.full(n_folds, fold_delta)), _disagreement_term(
        case, n_folds
    )


def _disagreement_term(case: Case, n_folds: int) -> float:
    """Return the disagreement term if delta is divided among candidates."""
    pool_delta = case.division_of(case.candidate_delta).pool_delta
    return mean_limit(case.n_unlabeled, case.disagreement(n_folds), pool_delta)


def all_labels(n_folds: int) -> float:
    """Return 1: the model is trained on all labeled rows."""
    del n_folds
    return 1.0


def all_but_one_fold(n_folds: int) -> float:
    """Return the fraction of the labeled rows outside of a fold."""
    return 1.0 - 1 / n_folds


def all_but_20_percent(n_folds: int) -> float:
    """Return 0.8: the fraction of the labels that are not in a 20% hold-out set."""
    del n_folds
    return 0.8


def count_exceeding_fold(case: ToleranceCase, n_folds: int) -> Callable[[int], int]:
    """Return how many residuals of a fold may exceed the tolerance of its model."""
    # The first fold has one of the largest deltas.
    deltas = fold_deltas(case.division.label_delta, n_folds)
    return case.exceedances_at(float(deltas[0]))


def count_exceeding_both(case: ToleranceCase, n_folds: int) -> Callable[[int], int]:
    """Return this number for the model of all rows, bounded by a fold and the pool."""
    extra_delta = RESIDUAL_SHARE_OF_POOL * case.division.pool_delta
    deltas = {
        "delta": float(fold_deltas(case.division.label_delta, n_folds)[0]),
        "extra_delta": float(fold_deltas(extra_delta, n_folds)[0]),
    }
    return lambda n: divide_level(n, level=case.level, **deltas).n_exceeding


def count_exceeding_first(case: ToleranceCase, n_folds: int) -> Callable[[int], int]:
    """Return this number for the first fold alone, at each candidate's delta."""
    del n_folds
    return case.exceedances_at(case.delta / case.n_candidates)


def count_exceeding_holdout(case: ToleranceCase, n_folds: int) -> Callable[[int], int]:
    """Return this number for a 20% hold-out set, which tests a single model."""
    del n_folds
    return case.exceedances_at(case.delta)
