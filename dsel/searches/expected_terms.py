"""The expected terms of each certificate, before a single label is used.

Fold errors and disagreements are assumed binomial with the expected rates, folds
independent. Using the expected counts instead would miss that a certificate which takes
the smallest of several limits gains from their spread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dsel.bounds.binomial import upper_limits
from dsel.bounds.merged_folds import largest_mean
from dsel.bounds.transductive import most_errors
from dsel.criteria.certificates import N_LEADERS

Floats = NDArray[np.float64]

CERTIFY_SHARE = 0.2
"""Share of the labeled rows that is held out where none is named."""

GROWTH = 0.6
"""Power of the growth of disagreement where none is declared. Weights differ with a
standard deviation that grows like the square root of the rows unseen; kernel machines
had 0.5 to 0.8 on nine data sets (``tests/benchmarks/bench_certificates.py``)."""

OTHER_CHOICE = 1.25
"""How much more a fold's model differs where its candidate was chosen without the fold,
since that is another one now and then: 1.1 to 1.6 there."""

_N_DRAWS = 256
_N_POINTS = 500
_N_NODES = 65


@dataclass(frozen=True)
class DesignAssumptions:
    """What is known or assumed before labels are used."""

    n_labeled: int
    """Labeled rows."""
    n_unlabeled: int
    """Pool rows."""
    n_candidates: int
    """Candidates that share delta."""
    delta: float
    """Probability with which the bound may fail."""
    expected_error: float
    """Error rate that the chosen model is expected to have."""
    expected_disagreement: float
    """How often the full model is expected to differ from a fold's model, of ten."""
    growth: float = 0.0
    """Power of its growth with the rows that a model has not seen; 0: it is constant.
    """

    @property
    def delta_share(self) -> float:
        """Share of one candidate."""
        return self.delta / self.n_candidates

    def fold_sizes(self, n_folds: int) -> list[tuple[int, int]]:
        """Return (rows, number of folds of that size), the larger folds first."""
        rows, larger = divmod(self.n_labeled, n_folds)
        sizes = [(rows + 1, larger), (rows, n_folds - larger)]
        return [(size, number) for size, number in sizes if number]

    def disagreement(self, left_out: float) -> float:
        """Return how often the full model differs from one without `left_out` rows.

        That is a part of them, in (0, 1).
        """
        rate = self.expected_disagreement * rows_unseen(left_out) ** self.growth
        return float(min(rate, 1.0 - 1e-9))

    def disagreement_limit(
        self, share: float, left_out: float, factor: float = 1.0
    ) -> float:
        """Return the average limit of the disagreement on the whole pool."""
        if not self.n_unlabeled:
            return 1.0
        rate = min(factor * self.disagreement(left_out), 1.0 - 1e-9)
        return mean_limit(self.n_unlabeled, rate, share)


def rows_unseen(left_out: float) -> float:
    """Return rows left out for each row seen, in multiples of what ten folds have.

    The variance of what two estimates differ by grows with it, where one has seen a
    part of the rows of the other.
    """
    return 9.0 * left_out / (1.0 - left_out)


def fitted_growth(
    rates: Mapping[int, float], growth: float | None = None
) -> tuple[float, float]:
    """Return disagreement at ten folds and the power that fit what a pilot has shown.

    `rates` are disagreements by number of folds. The power is `growth` where it is
    declared; else that of a line through their logarithms, at least 0, and `GROWTH`
    where there is one rate only.

    Examples
    --------
    >>> [round(each, 3) for each in fitted_growth({10: 0.02, 2: 0.06})]
    [0.02, 0.5]
    """
    unseen = np.log([rows_unseen(1.0 / k) for k in rates])
    logs = np.log(list(rates.values()))
    if growth is None:
        slope = np.polyfit(unseen, logs, 1)[0] if len(rates) > 1 else GROWTH
        growth = max(0.0, float(slope))
    return float(np.exp(np.mean(logs - growth * unseen))), growth


def recommended_label_share(n_unlabeled: int) -> float:
    """Return the part of delta for the label term: most of it where pools are large."""
    return 0.95 if n_unlabeled >= 10_000 else 0.8


def plausible_counts(n_rows: int, rate: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the counts that a binomial takes in practice, and their probabilities."""
    mean, spread = n_rows * rate, np.sqrt(n_rows * rate * (1.0 - rate))
    low = max(0, int(mean - 8 * spread) - 10)
    high = min(n_rows, int(mean + 8 * spread) + 30)
    # Where there are many, every so-many-th will do for an average.
    counts = np.arange(low, high + 1, 1 + (high - low) // _N_POINTS)
    chances = stats.binom.pmf(counts, n_rows, rate)
    return counts, chances / chances.sum()


@lru_cache(maxsize=4096)
def mean_limit(n_rows: int, rate: float, share: float) -> float:
    """Return the average upper limit of a rate."""
    counts, chances = plausible_counts(n_rows, rate)
    return float(chances @ upper_limits(counts, n_rows, share))


def mean_of_smallest(tables: list[tuple[Floats, Floats, int]]) -> float:
    """Return the average of the smallest of independent values.

    Of each kind: values in increasing order, their probabilities, how many draws of
    them.
    """
    points = np.unique(np.concatenate([values for values, _, _ in tables]))
    survival = np.ones(points.size)
    for values, chances, number in tables:
        below = np.searchsorted(values, points, side="right")
        cumulative = np.concatenate([[0.0], np.cumsum(chances)])
        survival *= np.clip(1.0 - cumulative[below], 0.0, 1.0) ** number
    before = np.concatenate([[1.0], survival[:-1]])
    return float(points @ (before - survival))


Terms = tuple[float, float]
Formula = Callable[[DesignAssumptions, int, float], Terms]
"""From the number of folds, or of rows held out, and the label share to both terms."""


def _mean_of_folds(design: DesignAssumptions, n_folds: int, share: float) -> float:
    limits = (
        number * mean_limit(rows, design.expected_error, share / n_folds)
        for rows, number in design.fold_sizes(n_folds)
    )
    return sum(limits) / n_folds


def _merged(design: DesignAssumptions, n_folds: int, share: float) -> float:
    """Average over evenly spread draws of the fold errors."""
    sizes, numbers = zip(*design.fold_sizes(n_folds), strict=True)
    rows = np.repeat(sizes, numbers)
    spread = stats.qmc.Sobol(n_folds, scramble=False).random(_N_DRAWS)
    points = spread + 0.5 / _N_DRAWS
    counts = stats.binom.ppf(points, rows, design.expected_error).astype(np.int64)
    return float(np.mean(largest_mean(counts, rows, share)))


def _smallest_limit(design: DesignAssumptions, n_folds: int, share: float) -> float:
    tables = []
    for rows, number in design.fold_sizes(n_folds):
        counts, chances = plausible_counts(rows, design.expected_error)
        limits = np.asarray(upper_limits(counts, rows, share / n_folds))
        tables.append((limits, chances, number))
    return mean_of_smallest(tables)


def transductive_terms(design: DesignAssumptions, n_folds: int, gamma: float) -> Terms:
    """Average terms of `transductive`; the disagreement is known exactly there."""
    del gamma  # one event, one share
    if not design.n_unlabeled:
        return 1.0, 1.0
    share = design.delta_share / n_folds
    tables = []
    for rows, number in design.fold_sizes(n_folds):
        counts, chances = plausible_counts(rows, design.expected_error)
        # The limit is smooth in the count, and costly.
        step = max(1, (counts.size - 1) // _N_NODES)
        nodes = np.unique(np.append(counts[::step], counts[-1]))
        every, shares = np.full(nodes.shape, rows), np.full(nodes.shape, share)
        most = most_errors(nodes, every, design.n_unlabeled, shares)
        limits = np.interp(counts, nodes, (most - nodes) / design.n_unlabeled)
        tables.append((limits, chances, number))
    return mean_of_smallest(tables), design.disagreement(1 / n_folds)


def certify_terms(design: DesignAssumptions, n_rows: int, gamma: float) -> Terms:
    """Average terms of `select_then_certify` with so many certifying rows."""
    label = mean_limit(n_rows, design.expected_error, gamma * design.delta)
    second = (1 - gamma) * design.delta
    return label, design.disagreement_limit(second, n_rows / design.n_labeled)


def holdout_terms(design: DesignAssumptions, n_rows: int, gamma: float) -> Terms:
    """Average terms of `holdout_bound`, which has no second one."""
    del gamma  # one event, one share
    return mean_limit(n_rows, design.expected_error, design.delta_share), 0.0


def _each(design: DesignAssumptions) -> float:
    return design.delta_share


def _whole(design: DesignAssumptions) -> float:
    return design.delta


def _of_leaders(design: DesignAssumptions) -> float:
    return design.delta / min(N_LEADERS, design.n_candidates)


def _by_folds(
    label: Callable[[DesignAssumptions, int, float], float],
    first: Callable[[DesignAssumptions], float],
    second: Callable[[DesignAssumptions], float] | None = None,
    factor: float = 1.0,
) -> Formula:
    """Return the formula of a label term and, often, a limit of the disagreement.

    `first` and `second` return the delta that each divides; a label term alone has all
    of it. Where candidates differ, so do the models by the `factor`.
    """

    def terms(design: DesignAssumptions, n_folds: int, gamma: float) -> Terms:
        if second is None:
            return label(design, n_folds, first(design)), 0.0
        is_constant = design.growth == 0.0 or design.n_candidates == 1
        share = (1 - gamma) * second(design)
        return label(design, n_folds, gamma * first(design)), design.disagreement_limit(
            share, 1 / n_folds, 1.0 if is_constant else factor
        )

    return terms


FOLD_CERTIFICATES: Mapping[str, Formula] = MappingProxyType(
    {
        "cv_bound": _by_folds(_mean_of_folds, _each, _each),
        "merged_folds": _by_folds(_merged, _each, _each),
        "leaders": _by_folds(_mean_of_folds, _each, _of_leaders),
        "best_fold": _by_folds(_smallest_limit, _each, _each),
        "best_fold_of_leader": _by_folds(_smallest_limit, _each, _whole),
        "best_fold_model": _by_folds(_smallest_limit, _each),
        "nested": _by_folds(_smallest_limit, _whole, _whole, OTHER_CHOICE),
        "nested_fold_model": _by_folds(_smallest_limit, _whole),
        # The vote, which the best fold's model is part of, differs from it about as
        # often as the model of all rows does where both are of one candidate.
        "nested_vote": _by_folds(_smallest_limit, _whole, _whole),
        "transductive": transductive_terms,
    }
)
"""Certificates that depend on the number of folds."""

HOLD_OUT_CERTIFICATES: Mapping[str, Formula] = MappingProxyType(
    {"select_then_certify": certify_terms, "holdout_bound": holdout_terms}
)
"""Certificates that depend on how many labeled rows are held out."""
