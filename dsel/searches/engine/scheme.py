"""Which models a search trains, and which of them it compares on the pool.

Cross-validation and random halvings differ only in this, so they share the plan, the
driver and the store.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.data.filters import joint_mask
from dsel.data.splits import (
    FULL,
    LEAVE_ONE_OUT,
    Split,
    full_split,
    half_splits,
    leave_one_out_split,
)
from dsel.results import SplitAxes, fold_axes, half_axes
from dsel.searches.engine.comparisons import (
    UNKNOWN,
    BestFold,
    Comparison,
    KnownLabels,
    halves,
)


@dataclass(frozen=True)
class Scheme:
    """Splits of a search and what is compared on the pool."""

    splits: tuple[Split, ...]
    """In the order of their numbers."""
    n_folds: int
    """How many of them are folds; the full split and leave-one-out, if any, follow
    them."""
    comparisons: tuple[Comparison, ...]
    """Comparisons that do not depend on counts of fits; empty without a pool."""
    is_plain_random: bool
    """Whether folds were drawn independently of features and labels."""
    n_halvings: int = 0
    """Random halvings whose halves the folds are; 0 for folds proper."""
    has_best_fold: bool = False
    """Whether each candidate's full model is also compared with its best fold's."""
    known_labels: tuple[KnownLabels, ...] = ()
    is_nested: bool = False
    """Whether folds are followed by pairs of folds, so that a candidate is chosen
    without each fold, too."""

    @property
    def kind(self) -> str:
        """The splits in words, for messages."""
        if self.n_halvings:
            return f"{self.n_halvings} halvings"
        return f"{self.n_folds} folds{' and their pairs' if self.is_nested else ''}"

    @property
    def full(self) -> int | None:
        """Number of the split on all labeled rows, or None."""
        return self._find(FULL)

    @property
    def leave_one_out(self) -> int | None:
        """Number of the split that holds out every row in turn, or None."""
        return self._find(LEAVE_ONE_OUT)

    @property
    def with_models(self) -> tuple[Split, ...]:
        """The splits of one model each, which can be compared on the pool."""
        return tuple(t for t in self.splits if t.name != LEAVE_ONE_OUT)

    @property
    def held_out(self) -> tuple[Split, ...]:
        """The splits that divide the labeled rows, and the full one."""
        return tuple(t for t in self.splits if t.second_rows is None)

    @property
    def axes(self) -> SplitAxes:
        """Axes of the cube on which the splits stand."""
        if self.n_halvings:
            return half_axes(self.n_halvings)
        return fold_axes(self.n_folds)

    @property
    def pairs(self) -> tuple[tuple[int, int, int], ...]:
        """Numbers of both folds and of the split of each pair, if it is nested."""
        if not self.is_nested:
            return ()
        pairs = enumerate(combinations(range(self.n_folds), 2), self.n_folds)
        return tuple((one, other, split) for split, (one, other) in pairs)

    @property
    def searches(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the splits by which each choice is made.

        A fit that fails rules its candidate out where it is one of them. What is chosen
        without fold i sees the pairs with it alone: other fits have seen its rows.
        """
        if not self.is_nested:
            return (tuple(range(len(self.splits))),)
        folds = range(self.n_folds)
        inner = (tuple(p for *pair, p in self.pairs if fold in pair) for fold in folds)
        return (tuple(folds), *inner)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Numbers of the splits in the order in which a candidate is fitted on them.

        Of a nested search each round has a fold and enough pairs for each choice to see
        another one, so that who can be none of them is dropped after few fits.
        """
        rest, order = list(self.pairs), []
        for fold in range(self.n_folds):
            order.append(fold)
            waiting = set(range(self.n_folds)) if rest else set()
            while waiting and rest:
                pair = max(rest, key=lambda each: len(waiting & set(each[:2])))
                rest.remove(pair)
                order.append(pair[2])
                waiting -= set(pair[:2])
        order += [pair[2] for pair in rest]
        return np.array([*order, *range(len(order), len(self.splits))])

    def all_comparisons(self, best_folds: NDArray[np.int64]) -> tuple[Comparison, ...]:
        """Return everything that is counted on the pool.

        `best_folds` are what each candidate's best-fold certificate rests on, as far as
        it is known, shape (n_candidates,).
        """
        best = (BestFold(self.n_folds, best_folds),) if self.has_best_fold else ()
        return (*self.comparisons, *best, *self.known_labels)

    def comparisons_of_rows(
        self, best_folds: NDArray[np.int64], start: int, stop: int
    ) -> tuple[Comparison, ...]:
        """Return them with the labels of some rows only, so that less is sent."""
        known = tuple(each.of_rows(start, stop) for each in self.known_labels)
        return replace(self, known_labels=known).all_comparisons(best_folds)

    def _find(self, name: str) -> int | None:
        return next((t.number for t in self.splits if t.name == name), None)


def with_leave_one_out(scheme: Scheme, n_rows: int) -> Scheme:
    """Return the scheme that also counts leave-one-out errors."""
    if scheme.leave_one_out is not None:
        return scheme
    added = leave_one_out_split(n_rows, number=len(scheme.splits))
    return replace(scheme, splits=(*scheme.splits, added))


def random_halves(n_rows: int, repeats: int, *, seed: int, with_pool: bool) -> Scheme:
    """Return both halves of each halving and the full split, number 2 x repeats."""
    splits = half_splits(n_rows, repeats, seed=seed)
    full = full_split(n_rows, number=len(splits))
    compared: tuple[Comparison, ...] = (halves(repeats),) if with_pool else ()
    return Scheme(
        (*splits, full),
        len(splits),
        compared,
        is_plain_random=True,
        n_halvings=repeats,
    )


def with_labels(
    scheme: Scheme, labels: ArrayLike | None, pool: Any, classes: NDArray[Any]
) -> Scheme:
    """Return the scheme that also counts errors on the pool rows of known label.

    There is one label for each row of the pool's source, masked where it is not known;
    one that is none of the (sorted) classes is an error of every model. Errors of
    halves and of the full split are counted. Raises ValueError where there is no pool,
    or not one label for each of its rows.
    """
    if labels is None:
        return scheme
    codes = _codes(labels, pool, classes)
    known = []
    if scheme.n_halvings:
        halves = tuple(range(scheme.n_folds))
        known.append(KnownLabels(codes, halves, names.HALF_TEST_ERRORS))
    if scheme.full is not None:
        known.append(KnownLabels(codes, (scheme.full,), names.FULL_TEST_ERRORS))
    return replace(scheme, known_labels=tuple(known))


def of_rows_there(scheme: Scheme, pool: Any) -> Scheme:
    """Return the scheme without the labels of rows that the pool leaves out."""
    if not scheme.known_labels:
        return scheme
    there = joint_mask(pool.filters, 0, len(scheme.known_labels[0].labels))
    known = tuple(each.without(~there) for each in scheme.known_labels)
    return replace(scheme, known_labels=known)


def _codes(labels: ArrayLike, pool: Any, classes: NDArray[Any]) -> NDArray[np.int32]:
    """Return class codes by global row number, -1 where the label is not known.

    That is where it is masked or missing.
    """
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
    hidden |= pd.isna(given)
    for label in given[~hidden][:1].tolist():
        if isinstance(label, str) != isinstance(classes.tolist()[0], str):
            raise TypeError(
                f"`pool_labels` must be of the type of `y`, which holds "
                f"{classes.tolist()[0]!r}, got {label!r}; convert them."
            )
    given = np.where(hidden, classes[0], given)
    place = np.searchsorted(classes, given).clip(max=len(classes) - 1)
    codes = np.where(classes[place] == given, place, len(classes))
    return np.where(hidden, UNKNOWN, codes).astype(np.int32)
