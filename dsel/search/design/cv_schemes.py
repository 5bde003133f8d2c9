"""Schemes: the models that a search trains, and the held-out rows that test each.

A search by folds trains without each fold and on all rows. A nested search trains every
candidate without each *pair* of folds: the choice without fold i uses the errors on
fold j of the model without both, and conversely. Then only the chosen candidate is
trained without fold i, and on all rows. Co-validation trains on random halves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import Final, cast

import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from dsel.arrays import Features, Integers
from dsel.checks import check_integer, show
from dsel.data.groups import RowGroups
from dsel.data.splits import (
    OuterNumber,
    Split,
    SplitIndex,
    SplitKind,
    fold_splits,
    leave_one_out_split,
    random_folds,
    splits_of_cv,
)
from dsel.old_names import OldName
from dsel.rounded_texts import count_of
from dsel.typing import SplitsLike

ALL_PAIRS: Final = 6
"""Largest number of folds for which every pair is left out. With more, each fold is
paired with its four neighbors on a circle, so that the fits of a candidate are 2 for
each fold, and do not grow with the square of their number."""
FEWEST_FOLD_ROWS: Final = 4
"""Fewest rows in each fold of a nested search: with two folds the halves of a fold rank
candidates, and have two rows then."""


class AllRows(Enum):
    """What stands for the model of all rows, next to the numbers of folds."""

    MODEL = "the model of all rows"


ALL_ROWS_MODEL: Final = AllRows.MODEL
ModelRef = int | AllRows
"""Which of the bounded models: the fold that it leaves out, or `ALL_ROWS_MODEL`.

Jobs, counts and caveats name models so. `CVScheme.outer_split` has the split of each,
by whose number families and stores know it; records of certificates have a fold, or
None, which `model_of_fold` reads.
"""


def model_of_fold(fold: int | None) -> ModelRef:
    """Return the model that a certificate is about, by the fold that it leaves out."""
    return ALL_ROWS_MODEL if fold is None else fold


@dataclass(frozen=True)
class InnerTest:
    """Errors of a model that one inner search may use: those on one fold."""

    left_out_fold: int
    """The fold that the inner search leaves out; the model leaves it out, too."""
    split_number: SplitIndex
    """Number of the split on which the model is trained."""
    part_number: int
    """Number of the part of the split's test rows; see `Split.row_parts`."""
    fold: int
    """The fold of its test rows."""
    n_rows: int


@dataclass(frozen=True, repr=False)
class CVScheme:
    """The splits of a search.

    Each fit has a `SplitIndex`, its position in `splits`. The bounded models are those
    of the outer splits, each with an `OuterNumber`. In a nested search these are other
    splits; otherwise they are the first of `splits`, with the same numbers.
    """

    splits: tuple[Split[SplitIndex], ...]
    """The splits on which every candidate is trained. In a nested search they are those
    without each pair of folds, which have their own numbers; otherwise they are
    `fold_splits` and the split on all rows."""
    fold_splits: tuple[Split[OuterNumber], ...]
    """The splits without each fold, or half, on whose test rows models are bounded. A
    nested search trains chosen candidates alone on these."""
    all_rows: Split[OuterNumber] | None
    """The split on all rows; None for a hold-out set."""
    is_plain_random: bool
    """Whether folds were drawn without regard to features and labels."""
    n_halvings: int = 0
    """Number of random halvings, whose halves take the place of folds; 0 for folds."""
    is_nested: bool = False
    """Whether candidates are chosen without each fold."""
    inner_tests: tuple[InnerTest, ...] = ()
    """The errors that each inner search of a nested search uses; empty for a single
    candidate."""
    first_round: tuple[int, ...] = ()
    """The splits of a nested search on which every candidate is trained before halving
    drops any."""
    drawn_rows: Integers | None = None
    """The row of each group that bounds count, ascending; None if rows are independent,
    or there is no bound."""

    def __repr__(self) -> str:
        nested = "nested, " if self.is_nested else ""
        return (
            f"<CVScheme: {nested}{count_of(self.n_folds, 'fold')}, "
            f"{count_of(len(self.splits), 'split')} of every candidate>"
        )

    @property
    def n_folds(self) -> int:
        """Folds, or halves of all halvings."""
        return len(self.fold_splits)

    @property
    def all_rows_number(self) -> OuterNumber:
        """Number of the split on all rows, after those of the folds."""
        return OuterNumber(len(self.fold_splits))

    def outer_split(self, ref: ModelRef) -> Split[OuterNumber]:
        """Return the split on which a bounded model is trained."""
        split = self.all_rows if ref is ALL_ROWS_MODEL else self.fold_splits[ref]
        assert split is not None  # a hold-out set has no model of all rows
        return split

    def split_index(self, ref: ModelRef) -> SplitIndex:
        """Return the place of this split in `splits`; not for nested searches."""
        assert not self.is_nested  # their `splits` leave pairs of folds out
        return SplitIndex(self.outer_split(ref).number)

    @property
    def outer_splits(self) -> tuple[Split[OuterNumber], ...]:
        """The splits of a nested search that chosen candidates are fitted on.

        Empty for other searches.
        """
        if not self.is_nested or self.all_rows is None:
            return ()
        return (*self.fold_splits, self.all_rows)

    splits_of_chosen = OldName("outer_splits")

    @property
    def identity(self) -> str:
        """Number of folds and a hash of all splits, for the identity of a plan."""
        rows = [(s.name, s.train_rows, *s.row_parts) for s in self.splits]
        return f"{self.n_folds}, {tokenize(rows)}"

    @property
    def is_holdout(self) -> bool:
        """Whether one fold alone is held out."""
        return self.n_folds == 1

    @property
    def counted_rows(self) -> Integers:
        """Labeled rows that are counted in some fold, ascending; bounds use these."""
        return np.unique(
            np.concatenate([split.test_rows for split in self.fold_splits])
        )

    def independent_rows(self, rows: Integers) -> Integers:
        """Return those of these rows that are draws of the row that a bound is about.

        That is a random row of the population: all are. With groups it is a random row
        of a new group, and the drawn row of each group is one. Class sizes and
        constants are compared with a bound, so they are counted on these rows, too.
        """
        # Unlike `counted_rows` these are also of groups that no fold tests, so that a
        # hold-out set is compared with the best constant of all labels.
        return (
            rows if self.drawn_rows is None else np.intersect1d(rows, self.drawn_rows)
        )

    @property
    def leave_one_out_number(self) -> SplitIndex | None:
        """Number of the split that holds out every row in turn, or None."""
        number_of = {split.kind: split.number for split in self.splits}
        return number_of.get(SplitKind.LEAVE_ONE_OUT)

    @property
    def splits_with_models(self) -> tuple[SplitIndex, ...]:
        """Numbers of the splits with one model, which can predict pool rows."""
        n_splits = len(self.splits) - (self.leave_one_out_number is not None)
        return tuple(map(SplitIndex, range(n_splits)))

    @property
    def fold_rows(self) -> Integers:
        """Held-out rows of each fold, shape (n_folds,)."""
        return np.array([len(split.test_rows) for split in self.fold_splits])

    @property
    def train_rows(self) -> Integers:
        """Training rows of the models without each fold, shape (n_folds,)."""
        return np.array([len(split.train_rows) for split in self.fold_splits])


def indices_of_outer(
    outer_splits: Sequence[Split[OuterNumber]],
) -> tuple[Split[SplitIndex], ...]:
    """Return outer splits as those that all candidates of a search are trained on.

    Where a search is not nested, they are both, and have the same numbers.
    """
    return cast(tuple[Split[SplitIndex], ...], tuple(outer_splits))


def pairs_of_folds(n_folds: int) -> list[tuple[int, int]]:
    """Return the pairs that are left out, those of neighbors on a circle first.

    Examples
    --------
    >>> pairs_of_folds(4)
    [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]
    >>> len(pairs_of_folds(5)), len(pairs_of_folds(10))
    (10, 20)
    """
    circle = [
        (min(fold, other), max(fold, other))
        for distance in (1, 2)
        for fold in range(n_folds)
        for other in [(fold + distance) % n_folds]
    ]
    pairs = combinations(range(n_folds), 2) if n_folds <= ALL_PAIRS else circle
    return list(dict.fromkeys([*circle[:n_folds], *pairs]))


def scheme_of_folds(
    cv: SplitsLike,
    X: Features,
    labels: NDArray[np.generic],
    seed: int,
    *,
    row_groups: RowGroups | None = None,
    is_certified: bool = False,
) -> CVScheme:
    """Return plain random folds, or those of a splitter, and the full split.

    If rows come in groups, random folds consist of whole groups, and a certificate uses
    one row of each.
    """
    n_folds = number_of_folds(cv, len(labels))
    is_counted = None
    if n_folds is None:
        splits = splits_of_cv(
            cv, X, labels, None if row_groups is None else row_groups.by_row
        )
    else:
        fold_of = _draw_folds(len(labels), n_folds, seed, row_groups)
        if row_groups is not None and is_certified:
            is_counted = row_groups.draw_rows(seed)
        splits = fold_splits(fold_of, is_counted)
    *folds, all_rows = splits
    return CVScheme(
        indices_of_outer(splits),
        tuple(folds),
        all_rows,
        n_folds is not None,
        drawn_rows=None if is_counted is None else np.flatnonzero(is_counted),
    )


def _draw_folds(
    n_rows: int, n_folds: int, seed: int, row_groups: RowGroups | None
) -> Integers:
    """Return the random fold of each row; with groups, that of its whole group."""
    if row_groups is None:
        return random_folds(n_rows, n_folds, seed=seed)
    return row_groups.folds(n_folds, seed=seed)


def scheme_of_pairs(
    n_folds: int,
    n_rows: int,
    seed: int,
    *,
    n_candidates: int,
    row_groups: RowGroups | None = None,
) -> CVScheme:
    """Return the scheme without each pair of plain random folds.

    A single candidate is chosen without any training. Two folds are halved, since
    without both no row would be left: a model is trained on one half of the rows that
    its search may use, and tested on the other.

    If rows come in groups, folds and halves consist of whole groups. Inner searches use
    all rows; for chosen models one row of each group is counted.
    """
    most = n_rows // FEWEST_FOLD_ROWS
    if row_groups is None and n_folds > most:
        raise ValueError(
            f"`cv` must leave at least {FEWEST_FOLD_ROWS} labeled rows to every fold "
            f"of a nested search: {n_folds} are too many for "
            f"{count_of(n_rows, 'row')}; label at least "
            f"{FEWEST_FOLD_ROWS * n_folds} rows"
            f"{f', or use fewer folds, cv={most}' if most > 1 else ''}."
        )
    fold_of = _draw_folds(n_rows, n_folds, seed, row_groups)
    is_counted = None if row_groups is None else row_groups.draw_rows(seed)
    *folds, all_rows = fold_splits(fold_of, is_counted)
    rows_of = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
    splits = list[Split[SplitIndex]]()
    inner_tests = list[InnerTest]()
    # A model without two folds serves two searches: each reads the fold that the other
    # one leaves out. Five searches therefore take 10 fits for each candidate, not 20.
    pairs = pairs_of_folds(n_folds) if n_candidates > 1 and n_folds > 2 else []
    for pair in pairs:
        split_number = SplitIndex(len(splits))
        first, second = pair
        rows = rows_of[first], rows_of[second]
        train = np.flatnonzero((fold_of != first) & (fold_of != second))
        splits.append(Split(split_number, SplitKind.PAIR, pair, train, *rows))
        inner_tests += [
            InnerTest(second, split_number, 0, first, len(rows[0])),
            InnerTest(first, split_number, 1, second, len(rows[1])),
        ]
    if n_candidates > 1 and n_folds == 2:
        # Folds and quarters are ranks of one random order, modulo 2 and modulo 4, so
        # that quarters q and q + 2 are exactly fold q.
        quarter_of = _draw_folds(n_rows, 4, seed, row_groups)
        quarters = [np.flatnonzero(quarter_of == q) for q in range(4)]
        for q, train in enumerate(quarters):
            test = quarters[(q + 2) % 4]
            fold = q % 2
            split_number = SplitIndex(q)
            splits.append(Split(split_number, SplitKind.QUARTER, (q,), train, test))
            inner_tests.append(InnerTest(1 - fold, split_number, 0, fold, len(test)))
    n_first = 4 if n_folds == 2 else n_folds
    return CVScheme(
        tuple(splits),
        tuple(folds),
        all_rows,
        is_plain_random=True,
        is_nested=True,
        inner_tests=tuple(inner_tests),
        first_round=tuple(range(min(n_first, len(splits)))),
        drawn_rows=None if is_counted is None else np.flatnonzero(is_counted),
    )


def with_leave_one_out(scheme: CVScheme, n_rows: int) -> CVScheme:
    """Return the scheme that also counts leave-one-out errors."""
    if scheme.leave_one_out_number is not None:
        return scheme
    added = leave_one_out_split(n_rows, number=SplitIndex(len(scheme.splits)))
    return replace(scheme, splits=(*scheme.splits, added))


def number_of_folds(cv: SplitsLike, n_rows: int) -> int | None:
    """Return the number of folds of a number or ``KFold(shuffle=True)``, else None.

    Raises TypeError or ValueError if it is neither that nor a splitter or a list, or
    has a seed of its own, which would not be used.
    """
    if isinstance(cv, KFold) and cv.shuffle:
        if cv.random_state is not None:
            seed = show(cv.random_state)
            k = cv.get_n_splits()
            raise ValueError(
                f"`cv` has random_state={seed}, but folds are drawn by `random_state` "
                f"here; write cv={k}, random_state={seed}."
            )
        cv = cv.get_n_splits()
    # Texts also have a method `split`, and are iterable.
    is_other = isinstance(cv, str | bytes | Mapping | type)
    if not is_other and (hasattr(cv, "split") or np.iterable(cv)):
        return None
    if is_other or not isinstance(cv, int | float | np.number):
        raise TypeError(
            f"`cv` must be a number of folds, a scikit-learn splitter such as "
            f"KFold(5), or a list of (train rows, test rows), got {show(cv)}."
        )
    n_folds = check_integer(cv, "cv", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`cv` must leave a labeled row to every fold, and {n_rows} labeled rows "
            f"are too few for {n_folds} folds; label more rows."
        )
    return n_folds
