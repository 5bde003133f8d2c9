"""From `cv` and the criteria to a scheme: folds, one split, or random halvings."""

from numbers import Real
from typing import Any

from dsel import names
from dsel.checks import check_integer
from dsel.criteria import Criterion
from dsel.criteria.base import reads_folds
from dsel.criteria.certificates import SELECT_THEN_CERTIFY, check_one_fold
from dsel.data.folds import (
    fold_trainings,
    random_folds,
    splitter_trainings,
)
from dsel.data.labeled import LabeledRows
from dsel.searches.engine.comparisons import (
    Comparison,
    RandomFold,
    differing_folds,
    every_fold,
)
from dsel.searches.engine.scheme import Scheme, random_halves, with_leave_one_out


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
        drawn = RandomFold(seed, n_folds)
        comparisons = (drawn, *_of_all_folds(n_folds, criteria))
    return Scheme(trainings, n_folds, comparisons, plain, has_best_fold=with_pool)


def _of_all_folds(
    n_folds: int, criteria: tuple[Criterion, ...]
) -> tuple[Comparison, ...]:
    """Return the comparisons with all fold models that some criterion reads."""
    known: tuple[Comparison, ...] = (every_fold(n_folds), differing_folds(n_folds))
    wanted = {name for criterion in criteria for name in criterion.needs}
    return tuple(each for each in known if each.variable in wanted)


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
