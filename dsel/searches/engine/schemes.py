"""Schemes by name: cross-validation, a single split, random halvings."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from dsel import names
from dsel.checks import check_integer
from dsel.criteria import Criterion
from dsel.criteria.base import reads_folds
from dsel.criteria.select_then_certify import SELECT_THEN_CERTIFY, check_one_fold
from dsel.data.folds import (
    fold_trainings,
    full_training,
    half_trainings,
    leave_one_out_training,
    random_folds,
    splitter_trainings,
)
from dsel.data.labeled import LabeledRows
from dsel.searches.engine.answers import differing_folds, every_fold, halves
from dsel.searches.engine.scheme import BestFold, Comparison, RandomFold, Scheme


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
