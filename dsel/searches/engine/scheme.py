"""Which models a search trains, and which of them it compares on the pool.

Cross-validation and random halvings differ in these and in nothing else, so they share
the plan, the driver and the store.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel import names
from dsel.checks import check_integer
from dsel.criteria import Criterion
from dsel.criteria.base import reads_folds
from dsel.criteria.certificates import SELECT_THEN_CERTIFY, check_one_fold
from dsel.data.filters import joint_mask
from dsel.data.folds import (
    fold_trainings,
    full_training,
    half_trainings,
    leave_one_out_training,
    random_folds,
    splitter_trainings,
)
from dsel.data.labeled import LabeledRows
from dsel.data.trainings import FULL, LEAVE_ONE_OUT, Training
from dsel.results import TrainingAxes, fold_axes, half_axes
from dsel.searches.engine.comparisons import (
    UNKNOWN,
    AllAnswers,
    BestFold,
    Comparison,
    KnownLabels,
    RandomFold,
    by_halving,
    differing_folds,
    every_fold,
    halves,
)


@dataclass(frozen=True)
class Scheme:
    """Trainings of a search and what is compared on the pool."""

    trainings: tuple[Training, ...]
    """In the order of their numbers."""
    n_folds: int
    """How many of them are folds; the full training and leave-one-out, if any, follow
    them."""
    comparisons: tuple[Comparison, ...]
    """Empty where no pool is read."""
    is_plain_random: bool
    """Whether rows were assigned without a look at features or labels."""

    @property
    def full(self) -> int | None:
        """Number of the training on all labeled rows, or None."""
        return self._find(FULL)

    @property
    def leave_one_out(self) -> int | None:
        """Number of the training that holds out every row in turn, or None."""
        return self._find(LEAVE_ONE_OUT)

    @property
    def with_models(self) -> tuple[Training, ...]:
        """The trainings of one model each, which can be compared on the pool."""
        return tuple(t for t in self.trainings if t.name != LEAVE_ONE_OUT)

    @property
    def halving(self) -> AllAnswers | None:
        """The comparison of halves, where the trainings are random halvings."""
        for each in self.comparisons:
            if isinstance(each, AllAnswers) and each.count is by_halving:
                return each
        return None

    @property
    def axes(self) -> TrainingAxes:
        """Axes of the cube on which the trainings stand."""
        if self.halving is not None:
            return half_axes(self.halving.n_bins)
        return fold_axes(self.n_folds)

    def number_of(self, name: str) -> int:
        """Return the number of the training of that name."""
        return next(t.number for t in self.trainings if t.name == name)

    def _find(self, name: str) -> int | None:
        return next((t.number for t in self.trainings if t.name == name), None)


def cross_validation(
    cv: Any,
    labeled: LabeledRows,
    seed: int,
    *,
    with_pool: bool,
    criteria: tuple[Criterion, ...],
) -> Scheme:
    """Return the folds and the full training, and what their models are compared on.

    Criteria of co-validation get random halvings in place of folds.

    Parameters
    ----------
    cv
        Number of folds or of halvings, a scikit-learn splitter, or a `Scheme`.
    labeled
        The labeled rows.
    seed
        Seed of the folds and of f_rand.
    with_pool
        Whether there is a pool to compare on.
    criteria
        What will be read from the counts; where all of them hold out one fold only,
        only that is trained.

    Raises
    ------
    TypeError, ValueError
        Where `cv` is neither a number of folds, from 2 to the number of rows, nor a
        splitter; where no scheme can count for all criteria.
    """
    _check_together(criteria)
    scheme = (
        cv
        if isinstance(cv, Scheme)
        else _drawn(cv, labeled, seed, with_pool=with_pool, criteria=criteria)
    )
    if SELECT_THEN_CERTIFY in criteria:
        check_one_fold(scheme.n_folds)
    if any(names.LOO_ERRORS in criterion.needs for criterion in criteria):
        return with_leave_one_out(scheme, len(labeled.y))
    return scheme


def _check_together(criteria: tuple[Criterion, ...]) -> None:
    """Raise where one criterion reads halves and another one folds."""
    by_halves = [each.name for each in criteria if each.by_halves]
    by_folds = [each.name for each in criteria if reads_folds(each)]
    if by_halves and by_folds:
        raise ValueError(
            f"`criterion` and `certificate` must read the same trainings, but "
            f"{by_halves[0]!r} reads random halves of the labeled rows and "
            f"{by_folds[0]!r} reads folds; name two of one kind, or leave out "
            f"`certificate`."
        )


def with_leave_one_out(scheme: Scheme, n_rows: int) -> Scheme:
    """Return the scheme that also counts leave-one-out errors."""
    if scheme.leave_one_out is not None:
        return scheme
    added = leave_one_out_training(n_rows, number=len(scheme.trainings))
    return replace(scheme, trainings=(*scheme.trainings, added))


def _drawn(
    cv: Any,
    labeled: LabeledRows,
    seed: int,
    *,
    with_pool: bool,
    criteria: tuple[Criterion, ...],
) -> Scheme:
    """Return the trainings that `cv` says: folds, halvings, or one split."""
    n_rows = len(labeled.y)
    if any(each.by_halves for each in criteria):
        repeats = check_integer(cv, "cv", at_least=1)
        return random_halves(n_rows, repeats, seed=seed, with_pool=with_pool)
    plain = isinstance(cv, str) or not hasattr(cv, "split")  # strings have one too
    if plain:
        n_folds = _check_folds(cv, n_rows)
        trainings = fold_trainings(random_folds(n_rows, n_folds, seed=seed))
    else:
        trainings = splitter_trainings(cv, labeled.X, labeled.classes[labeled.y])
    n_folds = len(trainings) - 1
    if all(criterion.holds_out_one_fold for criterion in criteria):
        return Scheme(trainings[:1], 1, (), plain)
    comparisons: tuple[Comparison, ...] = ()
    if with_pool:
        nobody = np.zeros(0, np.int64)
        drawn = (RandomFold(seed, n_folds), BestFold(n_folds, nobody))
        comparisons = (*drawn, *_of_all_folds(n_folds, criteria))
    return Scheme(trainings, n_folds, comparisons, plain)


def _of_all_folds(
    n_folds: int, criteria: tuple[Criterion, ...]
) -> tuple[Comparison, ...]:
    """Return the comparisons with all fold models that some criterion reads."""
    known: tuple[Comparison, ...] = (every_fold(n_folds), differing_folds(n_folds))
    wanted = {name for criterion in criteria for name in criterion.needs}
    return tuple(each for each in known if each.variable in wanted)


def random_halves(n_rows: int, repeats: int, *, seed: int, with_pool: bool) -> Scheme:
    """Return both halves of each halving and the full training, number 2 x repeats.

    Raises
    ------
    ValueError
        Where there are fewer than two rows.
    """
    trainings = half_trainings(n_rows, repeats, seed=seed)
    full = full_training(n_rows, number=len(trainings))
    compared: tuple[Comparison, ...] = (halves(repeats),) if with_pool else ()
    return Scheme((*trainings, full), len(trainings), compared, is_plain_random=True)


def _check_folds(cv: Any, n_rows: int) -> int:
    if not isinstance(cv, Real):
        raise TypeError(
            f"`cv` must be a number of folds or a scikit-learn splitter, got {cv!r}; "
            "folds of your own go into `sklearn.model_selection.PredefinedSplit`."
        )
    n_folds = check_integer(cv, "cv", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`cv` must leave a labeled row to every fold, got cv={n_folds} for "
            f"{n_rows} labeled rows; use fewer folds, or label more rows."
        )
    return n_folds


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
