"""The protocols of losses and of statistics, and the records of their counts.

A search ranks candidates by a loss and bounds it. The error is a loss like all others.
A `Statistic` defines the counts, and is a separate object, so that the many losses of a
report use one table that was counted once.

The pool is counted after the labeled rows, and its counts may depend on theirs: a
tolerance of regression counts the differences of two models in bins that depend on the
residuals.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dsel.arrays import Floats, Integers
from dsel.bounds.cross_validation import BoundTerms, upper_pool_rows
from dsel.bounds.holdout import expected_holdout_bound
from dsel.bounds.queried_differences import QUERY_SHARES
from dsel.bounds.shares import LABEL_SHARE
from dsel.old_names import OldName

Predictions = NDArray[Any]
"""Predictions: class codes of the plan (codes below 0 are no class), or numbers of a
regressor. A model that is missing, or that raised, has those of `no_predictions`."""
# This is no class code, so it is an error on any row. It equals itself, unlike NaN: two
# models that both predict nothing agree.
NO_PREDICTION = int(np.iinfo(np.int64).min)
Counts = NDArray[np.int64 | np.float64]
"""Counts of a fold: integers whose shape does not depend on the rows, or float64 with
one number for each row, such as its residual."""


def no_predictions(shape: tuple[int, ...], dtype: DTypeLike) -> Predictions:
    """Return predictions of a model that predicts nothing: `NO_PREDICTION`, or NaN."""
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else NO_PREDICTION, kind)


def stack_folds(counts: Sequence[Counts]) -> Counts:
    """Return the counts of all folds in one array, (n_folds, ...).

    Numbers by row differ in length, by at most one row if single rows are drawn.
    Shorter folds are padded with NaN, which no row has.

    Examples
    --------
    >>> stack_folds([np.array([0.3, 0.4, 0.5]), np.array([0.1, 0.2])]).tolist()
    [[0.3, 0.4, 0.5], [0.1, 0.2, nan]]
    """
    # Missing numbers are NaN and not 0: a residual of 0 would count as a good
    # prediction.
    arrays = [np.asarray(counts_on_fold) for counts_on_fold in counts]
    length = max((len(array) for array in arrays if array.ndim), default=0)
    return np.stack(
        [
            np.pad(array, (0, length - len(array)), constant_values=np.nan)
            if array.ndim == 1 and len(array) < length
            else array
            for array in arrays
        ]
    )


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that models predict."""

    X: Any
    """Array, CSR matrix or `Frame`, as passed to the models."""
    y: NDArray[Any] | None = None
    """Class codes of labeled rows, or numbers in a regression; None for rows of the
    pool."""
    baseline: NDArray[Any] | None = None
    """Class codes that the baseline of the plan predicts for them; None without a
    baseline, and for rows of the pool."""
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """Cache of results that depend on the rows only, for the models of all folds."""

    @property
    def targets(self) -> NDArray[Any]:
        """`y` of labeled rows; rows of the pool have none, and raise ValueError."""
        if self.y is None:
            raise ValueError("rows of the pool have no `y`; count them by `count_pair`")
        return self.y


class CubeVariable(NamedTuple):
    """Description of a variable for counts of the chosen models."""

    dims: Mapping[str, Sequence[str]]
    """Dimensions after the fold, each with its coordinate, the names of its entries;
    empty for a dimension without one."""
    meaning: str


@runtime_checkable
class Statistic(Protocol):
    """Counts for the models of all folds, on their folds and on the pool."""

    @property
    def on_folds(self) -> str:
        """Name of the variable for counts on labeled rows."""

    @property
    def on_pool(self) -> str:
        """Name of the variable for counts on the pool."""

    @property
    def on_duplicates(self) -> str:
        """Name of the variable for counts on pool rows that equal labeled rows."""

    @property
    def variables(self) -> Mapping[str, CubeVariable]:
        """Variables that `dsel.names` does not list, with their descriptions."""
        return {}

    @property
    def fold_shape(self) -> tuple[int, ...] | None:
        """Shape of the result of `count`; None if it has one number for each row."""

    @property
    def pair_shape(self) -> tuple[int, ...]:
        """Shape of the result of `count_pair`."""

    @property
    def counts_differences(self) -> bool:
        """Whether `count_pair` counts only rows on which both models differ."""

    def count(self, rows: Rows, predictions: Predictions) -> Counts:
        """Count labeled rows on which the model was not trained.

        The result does not depend on the order of the rows: numbers by row are sorted.
        """

    def counts_from_errors(self, n_errors: int) -> Integers | None:
        """Return the counts for this number of errors; None if they depend on more."""
        return None

    def count_pair(
        self,
        rows: Rows,
        fold_predictions: Predictions,
        all_rows_predictions: Predictions,
        counts_on_fold: Counts,
    ) -> Integers:
        """Count pool rows by the predictions of two models; blocks add up.

        `counts_on_fold` are those of the first model on its fold; if they are numbers
        by row, NaN may follow them.
        """


@dataclass(frozen=True)
class FoldCounts:
    """Counts of one statistic on the fold of each model."""

    counts: Counts
    """Counts by fold, (n_folds, ...), from `stack_folds`."""
    n_rows: Integers
    """Rows of each fold, (n_folds,)."""

    @property
    def integers(self) -> Integers:
        """The counts as integers; only for a statistic without numbers by row."""
        return np.asarray(self.counts, np.int64)

    def numbers_by_row(self) -> list[Floats]:
        """Return the numbers of the rows of each fold, without padding."""
        pairs = zip(self.counts, self.n_rows.tolist(), strict=True)
        return [np.asarray(counts[:n], np.float64) for counts, n in pairs]

    def iter_folds(self) -> Iterator["FoldCounts"]:
        """Yield the counts of one fold after the other."""
        yield from map(self.fold, range(len(self.n_rows)))

    def fold(self, fold: int) -> "FoldCounts":
        """Return the counts of this fold alone."""
        one_fold = slice(fold, fold + 1)
        return FoldCounts(self.counts[one_fold], self.n_rows[one_fold])


@dataclass(frozen=True)
class PoolCounts:
    """Counts of one statistic on the pool, for each fold's model and that of all rows.

    Duplicates are pool rows that equal labeled rows. They may be the same records, so
    that a limit needs the number of duplicates among its rows: see
    :func:`dsel.bounds.upper_pool_rows`.
    """

    counts: Integers
    """(n_folds, ...)."""
    duplicates: Integers
    """Counts of duplicates, in the same shape."""
    n_rows: int
    """Rows of the pool."""
    n_duplicates: int

    def upper_rows(self, duplicates: Integers) -> Integers:
        """Return the number of rows of an upper limit for a count with `duplicates`."""
        return upper_pool_rows(self.n_rows, self.n_duplicates, duplicates)


@dataclass(frozen=True)
class DeltaDivision:
    """Division of a loss's delta between labeled rows and pool, fixed in advance."""

    delta: float
    label_share: float
    """Share of limits on labeled rows; 1 if no pool was planned."""
    query_share: float = 0.0
    """Share of labels of queried rows, and of their counts on the pool."""

    @classmethod
    def of_plan(
        cls, delta: float, *, has_pool: bool, has_queries: bool = False
    ) -> "DeltaDivision":
        """Return the division of this delta in a plan with a pool or with queries."""
        if has_queries:
            query_share = QUERY_SHARES.pool + QUERY_SHARES.queries
            return cls(delta, QUERY_SHARES.labeled, query_share)
        return cls(delta, LABEL_SHARE if has_pool else 1.0)

    @property
    def label_delta(self) -> float:
        """Delta of limits on labeled rows."""
        return self.label_share * self.delta

    @property
    def pool_delta(self) -> float:
        """Delta of limits on the pool."""
        # The plan fixes this division: one that was chosen after the counts would void
        # both bounds.
        return (1.0 - self.label_share - self.query_share) * self.delta


@dataclass(frozen=True, kw_only=True)
class PlannedDelta:
    """Delta of a plan, and what divides it, fixed before anything is counted.

    A share is used up even if it serves no bound, such as that of the pool if the fit
    on all rows fails: shares that depend on counts would void a bound.
    """

    delta: float
    """Probability that any bound fails; a comparison with a baseline has its own."""
    has_pool: bool
    """Whether counts on a pool are part of a bound."""
    has_queries: bool = False
    """Whether pool rows will be labeled."""
    n_bounded: int = 1
    """Number of candidates whose bounds hold at once; delta is divided by it."""

    @property
    def model_delta(self) -> float:
        """Delta of the model of one candidate."""
        return self.delta / self.n_bounded

    @property
    def model_label_delta(self) -> float:
        """Delta of limits of one model on labeled rows, of which reports get a part."""
        return self.division_of(self.model_delta).label_delta

    def division_of(self, loss_delta: float) -> DeltaDivision:
        """Return the planned division of the delta of one loss."""
        return DeltaDivision.of_plan(
            loss_delta, has_pool=self.has_pool, has_queries=self.has_queries
        )


@dataclass(frozen=True)
class RowSentence:
    """A bound as a sentence about a round number of rows; certificates store it.

    Examples
    --------
    >>> text = "Of {rows} {model} misses at most {count} on average."
    >>> sentence = RowSentence(text, rows="rows of 'fraud'", n_rows=100)
    >>> sentence.fill(0.057, "5.7%")
    "Of 100 new rows of 'fraud' the model misses at most 6 on average."
    """

    text: str
    """The sentence, with the words ``{rows}``, ``{model}``, ``{count}`` (the bound
    times `n_rows`, rounded up) and ``{bound}``, which are replaced."""
    rows: str = "rows"
    """Name of the rows: ``rows of 'fraud'``."""
    n_rows: int = 1_000

    def fill(
        self,
        bound: float,
        bound_text: str,
        *,
        model: str = "the model",
        are_in_groups: bool = False,
    ) -> str:
        """Return the sentence for a bound, of rows each of which has its own group."""
        rows = f"new {self.rows}"
        if are_in_groups:
            rows = f"{self.rows}, each of a new group,"
        # A float product may be rounded down to an integer, which is no limit then. The
        # bound is taken as its shortest text, as where it is printed in percent.
        limit = self.n_rows * Fraction(repr(float(min(bound, 1.0))))
        values = {
            "rows": f"{self.n_rows:,} {rows}",
            "model": model,
            "count": f"{ceil(limit):,}",
            "bound": bound_text,
        }
        # `str.format` would read attributes, and a store may come from a stranger.
        words = rf"\{{({'|'.join(values)})\}}"
        return re.sub(words, lambda match: values[match[1]], self.text)


@runtime_checkable
class Loss(Protocol):
    """A loss that can be bounded, and the computation of its bounds from counts.

    A loss is fixed before the labels are inspected. Equal losses have equal `repr`, by
    which a store recognizes its plan.
    """

    @property
    def title(self) -> str:
        """Name of the bounded value in texts: ``Error``, ``Misses of 'fraud'``."""

    @property
    def sentence(self) -> RowSentence | None:
        """Its bound as a sentence about a number of new rows; None for one without."""

    @property
    def largest(self) -> float:
        """The largest possible value: 1 for a rate, infinity for a tolerance."""

    @property
    def is_regression(self) -> bool:
        """Whether it is for regressors: `y` and predictions are numbers."""

    @property
    def is_cost(self) -> bool:
        """Whether it is a mean of costs, which is shown as a number, not in percent."""

    @property
    def statistic(self) -> Statistic:
        """The statistic with its counts."""

    @property
    def components(self) -> Sequence["Loss"]:
        """The losses whose limits it uses: itself, unless it is the mean of others.

        A report bounds each component once, for all losses that use it.
        """

    @property
    def criterion(self) -> str:
        """Name of the criterion that ranks candidates by it."""

    def named_classes(self, classes: Sequence[object]) -> tuple[Any, ...]:
        """Return the classes of `y` that it uses; empty for a loss of all rows."""

    def of_table(self, classes: tuple[object, ...], table: Any) -> "Loss":
        """Return a copy of the loss for these classes.

        `table` is the `ClassTable` that all losses of a plan share, so that its counts
        are made only once.
        """

    def score_from_errors(self, n_errors: int, n_rows: int) -> float | None:
        """Return the loss for this number of errors; None if it depends on more.

        Families count errors while they fit. If this number is enough, no row is
        predicted twice.
        """

    def score(self, rows: Rows, predictions: Predictions) -> float:
        """Return the number that ranks candidates, smaller is better.

        It is `largest` if undefined. It may differ from the bounded value, since any
        rule may rank candidates.
        """

    def estimate(self, folds: FoldCounts) -> float:
        """Return the loss of all folds together: an estimate, no guarantee."""

    def limits(self, folds: FoldCounts, delta: float) -> Floats:
        """Return upper limits of the models of all folds, (n_folds,).

        All hold at once with probability at least ``1 - delta``. Each fold has its part
        of delta by `dsel.bounds.fold_shares`: a certificate prints this part as the one
        at which the limit of its fold holds.
        """

    def bound_all_rows(
        self, folds: FoldCounts, pool_counts: PoolCounts, division: DeltaDivision
    ) -> BoundTerms:
        """Return the bound of the model of all rows, through the best of the folds.

        It holds together with `limits` at ``division.label_delta``, with probability at
        least ``1 - division.delta``.
        """

    def expected_holdout(self, folds: FoldCounts, delta: float) -> float:
        """Return the limit to expect of a 20% hold-out set."""

    def caveats(self, y: NDArray[Any], n_folds: int, delta: float) -> list[str]:
        """Return caveats about too few labeled rows, known before anything is counted.

        `y` are class codes or numbers, `delta` is that of limits on labeled rows.
        """


def expect_holdout_rate(rate: float, folds: FoldCounts, delta: float) -> float:
    """Return the limit of a rate that a 20% hold-out set would give on average."""
    n_rows = max(1, int(folds.n_rows.sum() // 5))
    return expected_holdout_bound(rate, n_rows, delta=delta)


class SingleLoss:
    """Base of a loss without named classes, which is not a mean of other losses.

    It has no caveats before rows are counted.
    """

    is_cost = False
    sentence: RowSentence | None = None
    label: Any = OldName("title")

    @property
    def components(self) -> Sequence[Loss]:
        """The loss itself."""
        return (cast(Loss, self),)

    def named_classes(self, classes: Sequence[object]) -> tuple[Any, ...]:
        """Return none."""
        return ()

    def of_table(self, classes: tuple[object, ...], table: Any) -> Loss:
        """Return the loss."""
        return cast(Loss, self)

    def score_from_errors(self, n_errors: int, n_rows: int) -> float | None:
        """Return None: it depends on more than the number of errors."""
        return None

    def caveats(self, y: NDArray[Any], n_folds: int, delta: float) -> list[str]:
        """Return none."""
        return []


@runtime_checkable
class RefutableLoss(Loss, Protocol):
    """A loss whose bound new labeled rows can refute; not every loss is one."""

    def lower_limits(self, new_counts: PoolCounts, delta: float) -> Floats:
        """Return lower limits of the loss of each model, (n_models,).

        `new_counts` are counts of labeled rows on which no model was trained. Limits
        hold for any number of duplicates among them that are other records. Each holds
        with probability at least ``1 - delta``. NaN if there are no rows.
        """


class Exceedance(NamedTuple):
    """A bound in other words: at most a fraction of rows is off by more than this."""

    tolerance: float
    """Distance of prediction and target, in the units of the target."""
    exceeding_fraction: float


@runtime_checkable
class DistanceLoss(Loss, Protocol):
    """A loss whose bound limits how many predictions are off by a distance.

    New labeled rows can refute its bound without `RefutableLoss.lower_limits`: those
    are limits of the loss itself, while here the rows beyond the bound of each model
    are counted.
    """

    def exceedance(self, bound: float) -> Exceedance:
        """Return the tolerance, and the fraction of rows beyond it, of a bound."""


def smallest_sum(label_terms: Floats, sums: Floats) -> BoundTerms:
    """Return the smallest of the sums over folds, with its two terms.

    `sums` are those of `dsel.bounds.binomial.sum_outward`, so that rounding voids none.
    """
    fold = int(np.argmin(sums))
    bound, label_term = float(sums[fold]), float(label_terms[fold])
    # Infinity less infinity would be NaN, which reads as "not known".
    pool_term = np.inf if np.isinf(bound) else bound - label_term
    terms = bound, label_term, pool_term
    return BoundTerms(*map(np.asarray, terms))
