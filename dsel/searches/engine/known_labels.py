"""Labels that are known of pool rows: the models' errors on them, for evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.data.filters import joint_mask
from dsel.searches.engine.scheme import Comparison, Scheme

UNKNOWN = -1


@dataclass(frozen=True)
class KnownLabels:
    """Models against the labels that are known of some pool rows, for evaluation."""

    labels: NDArray[np.int32]
    """Class code of each pool row, by global row number; -1 where it is not known."""
    numbers: tuple[int, ...]
    """Training numbers whose errors are counted, one bin each."""
    variable: str
    """``half_test_errors`` or ``full_test_errors``."""
    first: int = 0
    """Number of the row that the first label belongs to."""

    @property
    def token(self) -> str:
        """Hash of the labels: what is counted depends on them."""
        return blake2b(self.labels.tobytes(), digest_size=12).hexdigest()

    @property
    def n_bins(self) -> int:
        """One bin a training."""
        return len(self.numbers)

    @property
    def n_known(self) -> int:
        """Rows of known label."""
        return int(np.sum(self.labels >= 0))

    def bins(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return None: every row is in every bin."""
        del rows
        return None

    def readings(
        self, rows: NDArray[np.int64], candidates: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Ask every training of the list."""
        del rows, candidates
        return [np.array(number) for number in self.numbers]

    def tally(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count the rows of known label whose answer is another."""
        truth = self.labels[rows - self.first]
        wrong = (codes != truth) & (truth >= 0)
        return np.asarray(np.sum(wrong, axis=2, dtype=np.int64).T)


def with_labels(
    scheme: Scheme, labels: ArrayLike | None, pool: Any, classes: NDArray[Any]
) -> Scheme:
    """Return the scheme that also counts errors on the pool rows of known label.

    Parameters
    ----------
    scheme
        Trainings; the errors of halves and of the full training are counted.
    labels
        One label for each row of the pool's source, masked where it is not known. A
        label that is none of the classes is an error of every model. None for none.
    pool
        The unlabeled pool.
    classes
        Label of each class code, sorted.

    Raises
    ------
    ValueError
        Where there is no pool, or not one label for each of its rows.
    """
    if labels is None:
        return scheme
    codes = _codes(labels, pool, classes)
    known = []
    if scheme.halving is not None:
        halves = tuple(range(scheme.n_folds))
        known.append(KnownLabels(codes, halves, names.HALF_TEST_ERRORS))
    if scheme.full is not None:
        known.append(KnownLabels(codes, (scheme.full,), names.FULL_TEST_ERRORS))
    return replace(scheme, comparisons=(*scheme.comparisons, *known))


def of_rows_there(scheme: Scheme, pool: Any) -> Scheme:
    """Return the scheme without the labels of rows that the pool leaves out."""
    comparisons = tuple(
        replace(each, labels=_hidden(each.labels, pool))
        if isinstance(each, KnownLabels)
        else each
        for each in scheme.comparisons
    )
    return replace(scheme, comparisons=comparisons)


def of_span(
    comparisons: Sequence[Comparison], start: int, stop: int
) -> list[Comparison]:
    """Return comparisons with the labels of some rows only: less to send with tasks."""
    return [
        replace(each, labels=each.labels[start:stop], first=start)
        if isinstance(each, KnownLabels)
        else each
        for each in comparisons
    ]


def _codes(labels: ArrayLike, pool: Any, classes: NDArray[Any]) -> NDArray[np.int32]:
    """Return class codes by global row number, -1 where the label is not known."""
    if pool is None:
        raise ValueError("`pool_labels` are those of a `pool`, but it is None.")
    hidden = np.ma.getmaskarray(np.ma.asarray(labels))
    given = np.ma.getdata(labels)
    n_rows = int(pool.boundaries[-1])
    if given.shape != (n_rows,):
        raise ValueError(
            f"`pool_labels` must have one label for each of the {n_rows} rows of "
            f"`pool`, got shape {given.shape}; mask those that are not known."
        )
    place = np.searchsorted(classes, given).clip(max=len(classes) - 1)
    codes = np.where(classes[place] == given, place, len(classes))
    return np.where(hidden, UNKNOWN, codes).astype(np.int32)


def _hidden(labels: NDArray[np.int32], pool: Any) -> NDArray[np.int32]:
    there = joint_mask(pool.filters, 0, len(labels))
    return np.where(there, labels, np.int32(UNKNOWN))
