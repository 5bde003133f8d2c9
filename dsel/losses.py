"""What a search counts as loss: errors, missed rows, false answers, or costs.

A loss is fixed before the run, with the classes that it names. It ranks the candidates
of every inner search, and it is what the certificate bounds:

>>> import dsel
>>> dsel.losses.recall("fraud")
recall('fraud')

Counts by class are tables of true class and answer. Their last row and column stand for
all other classes and for answers that are none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel.arrays import Floats, Integers, as_plain
from dsel.bounds.binomial import upper_limits
from dsel.bounds.by_class import (
    added_false_answers,
    added_misses,
    counted_mean_limit,
)
from dsel.bounds.cross_validation import fold_limits, upper_pool_rows
from dsel.bounds.shares import fold_shares
from dsel.checks import check_nonnegative

__all__ = ["balanced", "cost", "precision", "recall"]

MOST_CLASSES: Final = 100
"""Counts by true class and answer are kept of so many classes."""


@dataclass(frozen=True)
class PoolCounts:
    """What was counted on the pool of each fold's model and that of all rows.

    Duplicates are pool rows that equal labeled rows. They may be the same records,
    which is why a limit needs to know how many of them are among the rows that it
    reads: see :func:`dsel.bounds.upper_pool_rows`.
    """

    n_unlabeled: int
    equal_rows: int
    """Duplicates in the whole pool."""
    disagreements: Integers
    """Pool rows on which both models differ, (n_folds,)."""
    duplicate_disagreements: Integers
    """Duplicates among them, (n_folds,)."""
    pairs: Integers
    """Pool rows by the answers of both, (n_folds, C + 1, C + 1)."""
    duplicate_pairs: Integers
    """Duplicates among them, (n_folds, C + 1, C + 1)."""

    def upper_rows(self, duplicates: Integers) -> Integers:
        """Return the rows by which an upper limit reads a count with `duplicates`."""
        return upper_pool_rows(self.n_unlabeled, self.equal_rows, duplicates)


@dataclass(frozen=True)
class ClassCounts:
    """What a nested search has counted by class, of the models of its folds."""

    errors: Integers
    """Errors of each fold's model on its fold, (n_folds,)."""
    rows: Integers
    """Rows of each fold, (n_folds,)."""
    confusions: Integers
    """Rows of each fold by true class and answer, (n_folds, C + 1, C + 1)."""
    pool: PoolCounts
    """Where they differ from the model of all rows."""

    @property
    def n_folds(self) -> int:
        """Folds, k."""
        return len(self.rows)

    @property
    def pooled(self) -> Integers:
        """Rows of all folds by true class and answer, (C + 1, C + 1)."""
        return np.asarray(self.confusions.sum(axis=0))


def _wrong(tables: Integers, place: int = 0) -> tuple[Integers, Integers]:
    """Return the rows of a class that have another answer, and all of its rows."""
    rows = tables[..., place, :].sum(axis=-1)
    return rows - tables[..., place, place], rows


# A loss has the classes that it names, in whose order its tables are; the largest value
# that it can have; how its bound begins; the rate of counted rows, the largest where it
# is not defined; upper limits for the model of each fold, which hold at once; and, by
# these, bounds for the model of all rows, which fail with probability `delta` beside.


@dataclass(frozen=True)
class Recall:
    """The share of one class that is missed: 1 - recall."""

    classes: tuple[Any, ...]
    largest: float = 1.0

    @property
    def says(self) -> str:
        """How its bound begins."""
        return f"Misses of {self.classes[0]!r} at most"

    def __repr__(self) -> str:
        return f"recall({self.classes[0]!r})"

    def rate(self, confusion: NDArray[Any], place: int = 0) -> float:
        """Return the share of the rows of the class that have another answer."""
        return _share(*_wrong(confusion, place))

    def limits(self, counts: ClassCounts, delta: float, place: int = 0) -> Floats:
        """Return binomial limits of the rows of the class."""
        return fold_limits(*_wrong(counts.confusions, place), np.array(delta))

    def all_rows(
        self, counts: ClassCounts, limits: Floats, delta: float, place: int = 0
    ) -> Floats:
        """Add the rows that leave the class from one model to the other."""
        pool = counts.pool
        left, _ = _wrong(pool.pairs, place)
        rows = pool.upper_rows(_wrong(pool.duplicate_pairs, place)[0])
        n_rows, n_labeled = counts.pooled[place].sum(), counts.rows.sum()
        return limits + added_misses(left, rows, n_rows, n_labeled, delta=delta)


@dataclass(frozen=True)
class Precision:
    """The share of one answer that is false: 1 - precision."""

    classes: tuple[Any, ...]
    largest: float = 1.0

    @property
    def says(self) -> str:
        """How its bound begins."""
        return f"False among answers {self.classes[0]!r} at most"

    def __repr__(self) -> str:
        return f"precision({self.classes[0]!r})"

    def rate(self, confusion: NDArray[Any]) -> float:
        """Return the share of the answers of the class that are wrong."""
        return _share(*_wrong(confusion.T))

    def limits(self, counts: ClassCounts, delta: float) -> Floats:
        """Return binomial limits of the answers of the class."""
        by_answer = counts.confusions.swapaxes(1, 2)
        return fold_limits(*_wrong(by_answer), np.array(delta))

    def all_rows(self, counts: ClassCounts, limits: Floats, delta: float) -> Floats:
        """Return the bounds through how often both models give the answer."""
        pool = counts.pool
        first, first_duplicates = (
            pairs[:, 0].sum(axis=-1) for pairs in (pool.pairs, pool.duplicate_pairs)
        )
        # The model of all rows is the same for all folds.
        (joined, [second, *_]), (joined_duplicates, [duplicates, *_]) = (
            _wrong(pairs.swapaxes(1, 2)) for pairs in (pool.pairs, pool.duplicate_pairs)
        )
        fresh = int(second - duplicates)
        return added_false_answers(
            limits, first, pool.upper_rows(first_duplicates),
            fresh, pool.n_unlabeled - int(duplicates),
            joined, fresh + joined_duplicates, delta=delta,
        )  # fmt: skip


@dataclass(frozen=True)
class Balanced:
    """The mean over classes of the share that is missed: 1 - balanced accuracy."""

    classes: tuple[Any, ...] = ()
    says: str = "Balanced error at most"
    largest: float = 1.0

    def __repr__(self) -> str:
        return f"balanced({list(self.classes)!r})" if self.classes else "balanced()"

    def rate(self, confusion: NDArray[Any]) -> float:
        """Return the mean of the miss rates."""
        rates = [_MISSES.rate(confusion, c) for c in range(len(self.classes))]
        return float(np.mean(rates))

    def limits(self, counts: ClassCounts, delta: float) -> Floats:
        """Return the means of the limits of each class, at equal shares."""
        n = len(self.classes)
        each = [_MISSES.limits(counts, delta / n, place) for place in range(n)]
        return np.asarray(np.mean(each, axis=0))

    def all_rows(self, counts: ClassCounts, limits: Floats, delta: float) -> Floats:
        """Add the mean of what is added to each class, at equal shares."""
        n, none = len(self.classes), np.zeros(counts.n_folds)
        added = [_MISSES.all_rows(counts, none, delta / n, c) for c in range(n)]
        return np.asarray(limits + np.mean(added, axis=0))


@dataclass(frozen=True)
class Cost:
    """The mean over rows of what the answer costs."""

    classes: tuple[Any, ...]
    matrix: tuple[tuple[float, ...], ...]
    """By true class and answer; all others cost most."""
    says: str = field(default="Mean cost at most", repr=False)

    def __repr__(self) -> str:
        names, pairs = self.classes, product(range(len(self.classes)), repeat=2)
        told = {
            (names[y], names[z]): self.matrix[y][z]
            for y, z in pairs
            if y != z or self.matrix[y][z]
        }
        return f"cost({told!r})"

    @property
    def largest(self) -> float:
        """The largest cost."""
        return max(max(row) for row in self.matrix)

    @property
    def costs(self) -> Floats:
        """Costs by true class and answer, other classes and answers last."""
        n = len(self.classes)
        costs = np.full((n + 1, n + 1), self.largest)
        costs[:n, :n] = self.matrix
        return costs

    def rate(self, confusion: NDArray[Any]) -> float:
        """Return the mean cost."""
        n = int(confusion.sum())
        return float((confusion * self.costs).sum() / n) if n else self.largest

    def limits(self, counts: ClassCounts, delta: float) -> Floats:
        """Return limits of the mean of a few known values."""
        shares = delta * fold_shares(counts.n_folds)
        return self._mean_limits(
            counts.confusions, self.costs, shares, np.zeros_like(counts.confusions)
        )

    def all_rows(self, counts: ClassCounts, limits: Floats, delta: float) -> Floats:
        """Add what the second answer may cost more, whatever the true class is."""
        costs = self.costs
        # By first and second answer, the most over true classes.
        more = np.maximum(costs[:, np.newaxis] - costs[:, :, np.newaxis], 0).max(axis=0)
        shares = np.full(counts.n_folds, delta / counts.n_folds)
        pool = counts.pool
        assert (pool.duplicate_pairs.sum(axis=(1, 2)) == pool.equal_rows).all()
        added = self._mean_limits(pool.pairs, more, shares, pool.duplicate_pairs)
        return limits + added

    def _mean_limits(
        self, tables: Integers, costs: Floats, shares: Floats, duplicates: Integers
    ) -> Floats:
        """Return upper limits of the mean cost of rows, table by table."""
        values, places = np.unique(costs, return_inverse=True)
        by_value = places.ravel() == np.arange(len(values))[:, np.newaxis]
        counts, stale = (
            each.reshape(len(tables), -1) @ by_value.T for each in (tables, duplicates)
        )
        if len(values) == 2 and values[0] == 0.0:  # the binomial limit is the smaller
            rows = counts.sum(axis=1) - stale[:, 0]
            return np.asarray(values[1] * upper_limits(counts[:, 1], rows, shares))
        return np.asarray(self.largest * counted_mean_limit(
            counts, values / self.largest, duplicates=stale, delta=shares
        ))  # fmt: skip


Loss = Recall | Precision | Balanced | Cost
_MISSES: Final = Recall(("",))


def recall(label: Any) -> Recall:
    """Return the loss that counts the missed rows of one class.

    Parameters
    ----------
    label
        The class, as it stands in `y`.

    Returns
    -------
    Recall
        For ``loss=`` of a nested search: the certificate says which share of the class
        is missed at most.

    Examples
    --------
    >>> recall("fraud").says
    "Misses of 'fraud' at most"
    """
    return Recall((as_plain(label),))


def precision(label: Any) -> Precision:
    """Return the loss that counts the false ones among the answers of one class.

    As :func:`recall`, but the certificate says which share of the answers `label` is
    false at most.

    Examples
    --------
    >>> precision("fraud").says
    "False among answers 'fraud' at most"
    """
    return Precision((as_plain(label),))


def balanced(classes: Sequence[Any] = ()) -> Balanced:
    """Return the loss that is the mean over classes of the share that is missed.

    Parameters
    ----------
    classes
        The classes, as they stand in `y`, that were known before the labels were seen.
        By default all classes of `y`.

    Returns
    -------
    Balanced
        For ``loss=`` of a nested search.

    Examples
    --------
    >>> balanced(["ham", "spam"])
    balanced(['ham', 'spam'])
    """
    return Balanced(_labels("classes", classes))


def cost(costs: Any, classes: Sequence[Any] | None = None) -> Cost:
    """Return the loss that is the mean over rows of what the answer costs.

    Parameters
    ----------
    costs
        Mapping of (true class, answer) to a cost of 0 or more, with an entry for every
        pair of different classes; a frame with true classes as index and answers as
        columns; or a square matrix in the order of `classes`. Right answers cost 0
        where nothing else is said.
    classes
        The classes of a matrix. Rows and answers of other classes cost the most.

    Returns
    -------
    Cost
        For ``loss=`` of a nested search.

    Raises
    ------
    ValueError
        Where a cost is negative or missing, or all are 0.

    Examples
    --------
    >>> cost({("fraud", "ok"): 50, ("ok", "fraud"): 1}).largest
    50.0
    """
    if isinstance(costs, pd.DataFrame):
        frame = costs
        if list(frame.index) != list(frame.columns):
            frame = frame.reindex(columns=frame.index)
        classes, costs = list(frame.index), frame.to_numpy()
    if isinstance(costs, Mapping):
        pairs = [pair for pair in costs if isinstance(pair, tuple) and len(pair) == 2]
        if not pairs or len(pairs) < len(costs):
            raise ValueError(
                f"`costs` must have pairs of true class and answer as keys, got "
                f"{next(iter(costs), None)!r}; write "
                f'cost({{("fraud", "ok"): 50, ("ok", "fraud"): 1}}).'
            )
        costs = {(as_plain(y), as_plain(z)): value for (y, z), value in costs.items()}
        names = list(dict.fromkeys(label for pair in costs for label in pair))
        default = {(label, label): 0.0 for label in names}
        table = [[(default | costs).get((y, z)) for z in names] for y in names]
    else:
        names = list(_labels("classes", () if classes is None else classes))
        square = np.asarray(costs, dtype=object)
        if square.shape != (len(names), len(names)) or not names:
            raise ValueError(
                f"`costs` must be a square matrix in the order of `classes`, got shape "
                f"{square.shape} for {len(names)} classes; or write "
                f'cost({{("fraud", "ok"): 50, ("ok", "fraud"): 1}}).'
            )
        table = square.tolist()
    matrix: list[tuple[float, ...]] = []
    for true, row in zip(names, table, strict=True):
        for answer, value in zip(names, row, strict=True):
            if value is None or pd.isna(value):
                raise ValueError(
                    f"`costs` lacks the cost of answer {answer!r} where {true!r} is "
                    f"true; give a cost for every pair of classes."
                )
            check_nonnegative(value, f"costs[{true!r}, {answer!r}]")
        matrix.append(tuple(np.asarray(row, np.float64).tolist()))
    if not max(max(row) for row in matrix) > 0:
        raise ValueError("`costs` must have a cost above 0; all are 0.")
    return Cost(tuple(names), tuple(matrix))


@dataclass(frozen=True)
class ByClass:
    """What a nested search counts beside errors: rows by true class and answer."""

    loss: Loss | None
    """Ranks the candidates, and is certified; None for the error."""
    classes: tuple[Any, ...]
    """Classes that are counted, in the order of the tables."""
    places: Integers
    """The place of each class code of the plan; that of all others is last."""
    reports: bool = False
    """Whether the certificate is the whole report of these classes."""

    def table(self, first: Integers, second: Integers) -> Integers:
        """Return how often each pair of class codes occurs, (C + 1, C + 1).

        Codes below 0 are no class.
        """
        size = len(self.classes) + 1
        at = np.append(self.places, size - 1)  # the last, for codes of -1
        pairs = size * at[np.maximum(first, -1)] + at[np.maximum(second, -1)]
        return np.bincount(pairs, minlength=size**2).reshape(size, size)

    def rate(self, table: NDArray[Any]) -> float:
        """Return the loss of counted rows."""
        assert self.loss is not None  # else errors rank the candidates
        return self.loss.rate(self.narrowed(table, self.loss))

    def narrowed(self, tables: NDArray[Any], loss: Loss) -> NDArray[Any]:
        """Return tables of the classes of a loss; all others are counted as one."""
        n = len(loss.classes)
        onto = np.zeros((len(self.classes) + 1, n + 1), np.int64)
        for place, label in enumerate((*self.classes, None)):
            known = place < len(self.classes) and label in loss.classes
            onto[place, loss.classes.index(label) if known else n] = 1
        return np.asarray(onto.T @ tables @ onto)


def count_by_class(loss: Any, report: Any, classes: NDArray[Any]) -> ByClass | None:
    """Return what options ask to count, or None where errors are enough.

    Raises TypeError or ValueError where a class is none of `y`, or there are too many.
    """
    known, named = classes.tolist(), None
    if isinstance(loss, Loss):
        named = loss
    elif loss is not None and not (isinstance(loss, str) and loss == "error"):
        raise TypeError(
            f"`loss` must be 'error' or made by dsel.losses, such as "
            f'dsel.losses.recall("fraud") or .cost(...), got {loss!r}.'
        )
    if isinstance(named, Balanced) and not named.classes:
        named = Balanced(tuple(known))
    listed = tuple(known) if report is True else _labels("report", report)
    of_loss = named.classes if named else ()
    for argument, labels in (("loss", of_loss), ("report", listed)):
        for label in labels:
            if label not in known:
                shown = ", ".join(repr(each) for each in known[:5])
                like = [each for each in known if str(each) == str(label)]
                advice = f"write {like[0]!r}" if like else "name classes that `y` has"
                raise ValueError(
                    f"`{argument}` names the class {label!r}, which is none of the "
                    f"{len(known)} classes of `y` ({shown}"
                    f"{', ...' * (len(known) > 5)}); {advice}."
                )
        if len(set(labels)) < len(labels) or len(labels) > MOST_CLASSES:
            raise ValueError(
                f"`{argument}` must name at most {MOST_CLASSES} different classes, got "
                f"{len(labels)}; name those that matter."
            )
    if named is None and not listed:
        return None
    counted = tuple(dict.fromkeys((*listed, *of_loss)))
    at = {label: place for place, label in enumerate(counted)}
    places = np.array([at.get(label, len(at)) for label in known])
    return ByClass(named, counted, places, bool(listed))


def _labels(argument: str, given: Any) -> tuple[Any, ...]:
    if given is None or given is False:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(
            f"`{argument}` must be a list of classes, as they stand in `y`, got "
            f"{given!r}; write [{given!r}]."
        )
    return tuple(as_plain(label) for label in given)


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else 1.0
