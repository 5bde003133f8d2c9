"""Expected bounds of each certificate, before a label is used.

Errors of folds and disagreements are assumed to be binomial with given rates, and folds
to be independent; limits are averaged over them. Limits of the expected counts would be
wrong for a certificate that takes the smallest of several limits, since it gains from
their spread.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import Floats
from dsel.bounds.binomial import lower_limits, upper_limits
from dsel.bounds.holdout import expected_holdout_bound, likely_counts
from dsel.bounds.shares import LABEL_SHARE, fold_shares
from dsel.bounds.tolerance import allowed_exceedances, share_level
from dsel.checks import (
    check_counts,
    check_delta,
    check_integer,
    check_probability,
    explain_unknown,
    show,
)
from dsel.losses.base import Shares
from dsel.losses.regression import LABELS_OF_POOL
from dsel.results.certificate import ALL_ROWS, ONE_FOLD
from dsel.search.design.certificate_methods import BEST_FOLD, CV_BOUND, HOLDOUT

PLAIN_HOLDOUT: Final = "holdout_20_percent"
"""Name of the row for a search without dsel: 80% to search and train, 20% to test."""
MOST_ROWS: Final = 10**9
"""Most rows that are tried in the search for needed rows."""

DISAGREEMENT_OF_ERROR: Final = 1 / 3
"""Default ratio of the disagreement, of the model of all rows and one without 20% of
them, to the error: .3 to .5 on letter, magic, optdigits, pendigits, satimage and
spambase with 300 to 2,000 labels."""

GROWTH: Final = 0.6
"""Exponent of the disagreement's growth with the ratio of rows unseen to rows seen. The
standard deviation of weights grows like its square root; kernel machines had .5 to .8
on nine data sets, measured before 0.2."""


@explain_unknown()
def plan_bound(
    n_labeled: int,
    n_unlabeled: int,
    *,
    n_candidates: int,
    error: float | None = None,
    disagreement: float | None = None,
    class_share: float | None = None,
    cv: int | Sequence[int] = 5,
    delta: float = 0.05,
    wanted: float | None = None,
    error_quantile: float | None = None,
) -> xr.Dataset:
    """Return the bound to expect from each certificate, and from a 20% hold-out set.

    Parameters
    ----------
    n_labeled
        Labeled rows, at least 2; if rows come in groups, the number of groups.
    n_unlabeled
        Pool rows; with 0 certificates that need the pool have no number.
    n_candidates
        Candidates that are compared, at least 1.
    error
        Error rate that the chosen model is assumed to have, in ``(0, 1)``.
    disagreement
        Rate at which the model of all rows is assumed to differ from one that was
        trained without 20% of them, in ``(0, 1)``; it is larger with fewer folds, and
        smaller with more. None takes a third of `error`. Both are guesses.
    class_share
        For ``loss=dsel.losses.recall(label)``: the share of the class, in ``(0, 1)``.
        Then `error` and `disagreement` are shares of its rows, and limits are computed
        from the rows of the class alone.
    cv
        Number of folds, at least 2, or several to compare.
    delta
        Probability that the bound fails, in ``(0, 1)``.
    wanted
        A bound: the labeled rows and the pool rows that it needs are returned, too.
    error_quantile
        For regressors, instead of `error`: the share of the predictions that keep the
        tolerance, such as 0.9. See the last paragraph of "Returns".

    Returns
    -------
    xarray.Dataset
        `bound`, `label_term` and `disagreement_term` over (`certificate`, `n_folds`),
        averages, not clipped at 1; NaN if there are more folds than rows, or no pool.
        `seen` is the share of the labeled rows on which the model is trained, and
        `disagreement` over `n_folds` the assumed rate. Certificates are ``one_fold``
        and ``all_rows``, the two numbers of a nested search; ``cv_bound``,
        ``best_fold`` and ``holdout``; and ``holdout_20_percent``, for a search on 80%
        of the labels and a test on the rest.
        With `wanted` also `labels_needed` and `pool_rows_needed`, exact to 1 %, each
        if all other arguments stay the same; -1 if no number up to 1e9 is enough. The
        attribute `remarks` lists the guesses, and why a wanted bound is impossible.

        With `error_quantile`, over the same dimensions without ``cv_bound`` and
        ``best_fold``, which are for classifiers: `labels_needed`, the labeled rows from
        which on a tolerance is finite, and `residual_quantile`, the quantile of the
        residuals on held-out rows that it equals; NaN if it is infinite.

    Raises
    ------
    TypeError
        If a number of rows, candidates or folds is no integer.
    ValueError
        If one is too small, or a probability is outside ``(0, 1)``.

    See Also
    --------
    plan_search : Plans the search itself.

    Examples
    --------
    >>> plan = plan_bound(600, 100_000, n_candidates=25, error=0.1)
    >>> plan.bound.sel(n_folds=5).round(3).to_series().to_dict()
    ... # doctest: +NORMALIZE_WHITESPACE
    {'one_fold': 0.144, 'all_rows': 0.179, 'cv_bound': 0.257, 'best_fold': 0.216,
     'holdout': 0.202, 'holdout_20_percent': 0.156}

    From how many labeled rows on there is a tolerance for 95% of the predictions:

    >>> plan = plan_bound(600, 0, n_candidates=25, error_quantile=0.95)
    >>> plan.labels_needed.sel(n_folds=5).to_series().to_dict()
    {'one_fold': 356, 'holdout': 606, 'holdout_20_percent': 295}
    """
    folds = list(dict.fromkeys(np.atleast_1d(check_counts(cv, "cv")).ravel().tolist()))
    if not folds or min(folds) < 2:
        raise ValueError(
            f"`cv` must be a number of folds >= 2, or several, got {show(cv)}."
        )
    if error_quantile is not None:
        _refuse_rates(
            error=error,
            disagreement=disagreement,
            class_share=class_share,
            wanted=wanted,
        )
        n = check_integer(n_labeled, "n_labeled", at_least=2)
        has_pool = check_integer(n_unlabeled, "n_unlabeled", at_least=0) > 0
        share = check_probability(error_quantile, "error_quantile")
        return _plan_tolerance(
            n,
            folds,
            share,
            check_delta(delta),
            has_pool=has_pool,
            n_candidates=check_integer(n_candidates, "n_candidates", at_least=1),
        )
    if error is None:
        raise TypeError(
            "`error` must be the error rate that the model is assumed to have, got "
            "None; for regressors pass `error_quantile`, such as 0.9."
        )
    assumed_error = check_probability(error, "error")
    rate = DISAGREEMENT_OF_ERROR * assumed_error
    if disagreement is not None:
        rate = check_probability(disagreement, "disagreement")
    case = Case(
        check_integer(n_labeled, "n_labeled", at_least=2),
        check_integer(n_unlabeled, "n_unlabeled", at_least=0),
        check_integer(n_candidates, "n_candidates", at_least=1),
        check_delta(delta),
        assumed_error,
        rate,
        1.0 if class_share is None else check_probability(class_share, "class_share"),
    )
    plan = _plan_rates(case, folds)
    rates = ", ".join(
        f"{100 * case.disagreement(k):.2g}% with {k} folds" for k in folds
    )
    how = "as declared of five" if disagreement else "a third of the error in five"
    remarks = [
        f"Guessed: on how many rows{'' if class_share is None else ' of the class'} "
        f"the model of all rows differs from that of a fold: {rates} ({how}, more in "
        f"fewer)."
    ]
    is_fifth = np.array([row is FIFTH for row in ROWS.values()])
    of_dsel = plan[names.BOUND][~is_fifth].min()
    if plan[names.BOUND][is_fifth].min() <= of_dsel:
        remarks.append("A 20% hold-out set would give the smallest of these bounds.")
    if wanted is not None:
        limit = check_probability(wanted, "wanted")
        remarks += _remarks_on_wanted(case, folds, limit)
        plan = plan.assign(_rows_needed(case, folds, limit))
    return plan.assign_attrs(remarks=remarks)


def _refuse_rates(**rates: float | None) -> None:
    """Raise where an option of classifiers is given for regressors."""
    for name, value in rates.items():
        if value is not None:
            raise ValueError(
                f"`{name}` is of classifiers and `error_quantile` of regressors; "
                f"leave one of them out."
            )


def _plan_rates(case: "Case", folds: Sequence[int]) -> xr.Dataset:
    """Return the expected bound of each certificate, and its parts."""
    table, rows = (names.CERTIFICATE, names.N_FOLDS), ROWS.values()
    terms = np.array([[expected_terms(case, row, k) for k in folds] for row in rows])
    shares_seen = [[row.share_seen(k) for k in folds] for row in rows]
    return xr.Dataset(
        {
            names.BOUND: (table, terms.sum(axis=2)),
            names.LABEL_TERM: (table, terms[..., 0]),
            names.DISAGREEMENT_TERM: (table, terms[..., 1]),
            "seen": (table, shares_seen),
            "disagreement": (names.N_FOLDS, [case.disagreement(k) for k in folds]),
            "error": case.error,
            names.N_LABELED: case.n_labeled,
            names.N_UNLABELED: case.n_unlabeled,
            names.N_CANDIDATES: case.n_candidates,
            names.DELTA: case.delta,
        },
        coords={names.CERTIFICATE: list(ROWS), names.N_FOLDS: list(folds)},
    )


def _remarks_on_wanted(case: "Case", folds: Sequence[int], limit: float) -> list[str]:
    """Return why no number of rows gives a wanted bound, where none does."""
    least = min(case.disagreement(k) for k in folds)
    if limit <= case.error:
        return [
            f"No certificate gives {limit:g}: the model is assumed to err on "
            f"{case.error:g} of the rows, and no bound lies below the error."
        ]
    if limit <= case.error + least:
        return [
            f"No number of labels gives {limit:g} for a model of all rows: its "
            f"error ({case.error:g}) and disagreement ({least:.2g}) are both paid "
            f"in full."
        ]
    return []


def _rows_needed(
    case: "Case", folds: Sequence[int], limit: float
) -> dict[str, tuple[tuple[str, str], NDArray[np.int64]]]:
    """Return how many labels, or pool rows, a wanted bound needs; as variables."""
    table = (names.CERTIFICATE, names.N_FOLDS)
    fields = {"labels_needed": "n_labeled", "pool_rows_needed": "n_unlabeled"}
    return {
        name: (
            table,
            np.array(
                [
                    [_count_needed_rows(case, field, row, k, limit) for k in folds]
                    for row in ROWS.values()
                ]
            ),
        )
        for name, field in fields.items()
    }


def _plan_tolerance(
    n_labeled: int,
    folds: Sequence[int],
    share: float,
    delta: float,
    *,
    n_candidates: int,
    has_pool: bool,
) -> xr.Dataset:
    """Return the rows that a tolerance of regressors needs; see `plan_bound`."""
    level, label_share = 1.0 - share, LABEL_SHARE if has_pool else 1.0

    def count_allowed(of_delta: float) -> Callable[[int], int]:
        return lambda n: int(allowed_exceedances(n, level=level, delta=of_delta))

    def count_allowed_of_both(of_fold: float) -> Callable[[int], int]:
        shares = Shares(delta, label_share)
        parts = {
            "delta": of_fold * shares.labels,
            "extra_delta": of_fold * LABELS_OF_POOL * shares.pool,
        }
        return lambda n: share_level(n, level=level, **parts).n_exceeding

    needed, quantiles = [], []
    for k in folds:
        of_fold = float(fold_shares(k)[0])  # of the first, which is one of the largest
        # Held-out rows of so many labeled ones, and how many of these may exceed.
        rules: dict[str, tuple[int, Callable[[int], int]]] = {
            ONE_FOLD: (k, count_allowed(label_share * delta * of_fold)),
            HOLDOUT.name: (k, count_allowed(delta / n_candidates)),
            PLAIN_HOLDOUT: (5, count_allowed(delta)),
        }
        if has_pool:
            rules[ALL_ROWS] = (k, count_allowed_of_both(of_fold))
        for name, (parts, count) in rules.items():
            is_fifth = name == PLAIN_HOLDOUT  # of which a part of a row is none
            n = n_labeled // 5 if is_fifth else -(-n_labeled // parts)
            fewest = _fewest_rows(count)
            needed.append(5 * fewest if is_fifth else parts * (fewest - 1) + 1)
            exceeding = count(n)
            quantiles.append((n - exceeding) / n if exceeding >= 0 else np.nan)
    table = (names.N_FOLDS, names.CERTIFICATE)
    shape = len(folds), -1
    plan = xr.Dataset(
        {
            "labels_needed": (table, np.reshape(needed, shape)),
            "residual_quantile": (table, np.reshape(quantiles, shape)),
            names.DELTA: delta,
            names.N_LABELED: n_labeled,
            names.N_CANDIDATES: n_candidates,
        },
        coords={names.N_FOLDS: list(folds), names.CERTIFICATE: list(rules)},
    )
    order = [name for name in ROWS if name in rules]
    text = (
        f"How far off predictions are depends on the model: where {100 * share:.6g}% "
        f"shall keep it, a tolerance is about this quantile of residuals on held-out "
        f"rows"
    )
    text += "; of all_rows, and in addition how far models are apart." * has_pool
    plan = plan.transpose(names.CERTIFICATE, names.N_FOLDS).sel(certificate=order)
    return plan.assign_attrs(remarks=[text.rstrip(".") + "."])


def _fewest_rows(count_exceeding: Callable[[int], int]) -> int:
    """Return the least number of rows for a finite tolerance."""
    low, high = 0, 1
    while count_exceeding(high) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if count_exceeding(middle) >= 0 else (middle, high)
    return high


@dataclass(frozen=True)
class Case:
    """Numbers that are known or assumed before labels are used."""

    n_labeled: int
    n_unlabeled: int
    n_candidates: int
    delta: float
    error: float
    """Error rate of the chosen model."""
    of_fifth: float
    """Rate at which the model of all rows differs from one without 20% of them."""
    class_share: float = 1.0
    """Share of the rows from which limits are computed; 1 for limits of the error."""

    @property
    def is_error(self) -> bool:
        """Whether limits are about the error, and not about the misses of a class."""
        return self.class_share == 1.0

    @property
    def candidate_delta(self) -> float:
        """Share of delta of one candidate, if all of them are bounded."""
        return self.delta / self.n_candidates

    @property
    def n_counted(self) -> int:
        """Number of labeled rows from which limits are computed."""
        return round(self.n_labeled * self.class_share)

    def disagreement(self, n_folds: int) -> float:
        """Return the rate at which the model of all rows and a fold's one differ."""
        unseen = 4.0 / (n_folds - 1)  # for each row seen, in multiples of five folds
        return float(min(self.of_fifth * unseen**GROWTH, 1.0))

    def fold_sizes(self, n_folds: int) -> list[tuple[int, int]]:
        """Return (rows, number of folds of that size), the larger folds first."""
        rows, larger = divmod(self.n_counted, n_folds)
        sizes = [(rows + 1, larger), (rows, n_folds - larger)]
        return [(size, number) for size, number in sizes if number]


@lru_cache(maxsize=4096)
def mean_limit(n_rows: int, rate: float, share: float) -> float:
    """Return the average upper limit of a rate, from `n_rows` rows."""
    return expected_holdout_bound(rate, n_rows, delta=share)


def _smallest_limit(case: Case, shares: Floats) -> float:
    """Return the average of the smallest of the folds' limits, at shares of delta.

    Folds of one size and one share have the same distribution.
    """
    sizes = case.fold_sizes(len(shares))
    fold_rows = [rows for rows, number in sizes for _ in range(number)]
    alike = Counter(zip(fold_rows, shares.tolist(), strict=True))
    tables = []
    for (rows, share), number in alike.items():
        counts, chances = likely_counts(rows, case.error)
        limits = np.asarray(upper_limits(counts, rows, share))
        tables.append((limits, chances, number))
    return mean_of_smallest(tables)


def mean_of_smallest(tables: list[tuple[Floats, Floats, int]]) -> float:
    """Return the average of the smallest of independent values.

    A table for each distribution: values in increasing order, their probabilities, and
    the number of draws.
    """
    points = np.unique(np.concatenate([values for values, _, _ in tables]))
    survival = np.ones(points.size)
    for values, chances, number in tables:
        below = np.searchsorted(values, points, side="right")
        cumulative = np.concatenate([[0.0], np.cumsum(chances)])
        survival *= np.clip(1.0 - cumulative[below], 0.0, 1.0) ** number
    before = np.concatenate([[1.0], survival[:-1]])
    return float(points @ (before - survival))


def expected_terms(case: Case, row: "Row", n_folds: int) -> tuple[float, float]:
    """Return the average label term and disagreement term of one row of the table.

    NaN if it has none: more folds than rows, no pool, or a loss that it cannot bound.
    """
    is_there = case.n_unlabeled > 0 or not row.needs_pool
    bounds_it = case.is_error or row.bounds_losses
    if n_folds > case.n_counted or not (is_there and bounds_it):
        return np.nan, np.nan
    return row.terms(case, n_folds)


def _plain_holdout(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of a test on 20% of the labels, for any number of folds."""
    del n_folds
    return mean_limit(max(1, case.n_counted // 5), case.error, case.delta), 0.0


def _first_fold(case: Case, n_folds: int) -> tuple[float, float]:
    n_rows = -(-case.n_counted // n_folds)
    return mean_limit(n_rows, case.error, case.candidate_delta), 0.0


def _one_fold(case: Case, n_folds: int) -> tuple[float, float]:
    # With a pool, the bound of the model of all rows holds at the same time.
    share = LABEL_SHARE if case.n_unlabeled else 1.0
    return _smallest_limit(case, share * case.delta * fold_shares(n_folds)), 0.0


def _all_rows(case: Case, n_folds: int) -> tuple[float, float]:
    """Return the terms of a nested search, whose delta is divided among folds."""
    limit = _smallest_limit(case, LABEL_SHARE * case.delta * fold_shares(n_folds))
    share = (1.0 - LABEL_SHARE) * case.delta / n_folds
    differ = case.disagreement(n_folds) * case.class_share
    if case.is_error:
        return limit, mean_limit(case.n_unlabeled, differ, share)
    # Half of delta's part is for how many labeled rows are of the class, in all folds.
    of_class, rows = np.array(case.n_counted), np.array(case.n_labeled)
    least = float(lower_limits(of_class, rows, np.array(n_folds * share / 2)))
    return limit, mean_limit(case.n_unlabeled, differ, share / 2) / least


def _mean_of_folds(case: Case, n_folds: int) -> tuple[float, float]:
    share = LABEL_SHARE * case.candidate_delta / n_folds
    sizes = case.fold_sizes(n_folds)
    limits = (number * mean_limit(n, case.error, share) for n, number in sizes)
    return sum(limits) / n_folds, _pool_term(case, n_folds)


def _best_fold(case: Case, n_folds: int) -> tuple[float, float]:
    shares = np.full(n_folds, LABEL_SHARE * case.candidate_delta / n_folds)
    return _smallest_limit(case, shares), _pool_term(case, n_folds)


def _pool_term(case: Case, n_folds: int) -> float:
    """Return the disagreement term if delta is divided among candidates."""
    share = (1.0 - LABEL_SHARE) * case.candidate_delta
    return mean_limit(case.n_unlabeled, case.disagreement(n_folds), share)


def _all_labels(n_folds: int) -> float:
    del n_folds
    return 1.0


def _without_a_fold(n_folds: int) -> float:
    return 1.0 - 1 / n_folds


def _four_fifths(n_folds: int) -> float:
    del n_folds
    return 0.8


@dataclass(frozen=True)
class Row:
    """One row of the table: a model and its expected bound."""

    terms: Callable[[Case, int], tuple[float, float]]
    """Function of the number of folds that returns label and disagreement term."""
    share_seen: Callable[[int], float]
    """Function that returns the share of the labeled rows that train the model."""
    needs_pool: bool = False
    """Whether it has no number without a pool."""
    bounds_losses: bool = False
    """Whether it bounds the recall of a class, too; else the error alone."""


FIFTH: Final = Row(_plain_holdout, _four_fifths, bounds_losses=True)
ROWS: Final[Mapping[str, Row]] = {
    ONE_FOLD: Row(_one_fold, _without_a_fold, bounds_losses=True),
    ALL_ROWS: Row(_all_rows, _all_labels, needs_pool=True, bounds_losses=True),
    CV_BOUND.name: Row(_mean_of_folds, _all_labels, needs_pool=True),
    BEST_FOLD.name: Row(_best_fold, _all_labels, needs_pool=True),
    HOLDOUT.name: Row(_first_fold, _without_a_fold),
    PLAIN_HOLDOUT: FIFTH,
}
"""Rows of the table: both numbers of a nested search, the other certificates, and a 20%
hold-out set without dsel."""


def _count_needed_rows(
    case: Case, field: str, row: Row, n_folds: int, wanted: float
) -> int:
    """Return the smallest number of rows that gives the bound, to 1 %, or -1."""

    def is_enough(rows: int) -> bool:
        changed = replace(case, **{field: rows})
        return sum(expected_terms(changed, row, n_folds)) <= wanted

    low, high = (n_folds, MOST_ROWS) if field == "n_labeled" else (0, MOST_ROWS)
    if is_enough(low):
        return low
    if not is_enough(high):
        return -1
    while high > low * 1.01 + 1:
        middle = max(low + 1, int(np.sqrt(low * high)))
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
