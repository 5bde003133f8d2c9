"""From `cv` and the criteria to a scheme: folds, one split, or random halvings."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from dsel import names
from dsel.checks import check_integer
from dsel.criteria import Criterion
from dsel.criteria.base import BEST_FOLD, is_nested, reads_folds, reads_pool
from dsel.criteria.certificates import SELECT_THEN_CERTIFY, check_one_fold
from dsel.data.labeled import LabeledRows
from dsel.data.splits import (
    FULL,
    Split,
    fold_splits,
    given_splits,
    pair_splits,
    random_folds,
)
from dsel.searches.engine.comparisons import (
    Comparison,
    RandomFold,
    differing_folds,
    every_fold,
)
from dsel.searches.engine.scheme import Scheme, random_halves, with_leave_one_out
from dsel.searches.engine.stages import Stages


def cross_validation(
    cv: Any,
    labeled: LabeledRows,
    seed: int,
    criteria: tuple[Criterion, ...],
    *,
    with_pool: bool,
    train_errors: bool = True,
    groups: Any = None,
) -> Scheme:
    """Return the folds and the full split, and what their models are compared on.

    `cv` is what `plan_search` takes, or a `Scheme`. Criteria of co-validation get
    random halvings in place of folds; where all criteria hold out one fold only, only
    that is trained. Errors on training rows are counted where `train_errors` says so or
    a criterion reads them, and always of halvings, since most criteria of co-validation
    read them.

    Raises TypeError or ValueError where `cv` is none of these, or no scheme can count
    for all criteria.
    """
    _check_together(criteria)
    if groups is not None:
        _check_groups(groups, len(labeled.y))
    scheme = (
        cv
        if isinstance(cv, Scheme)
        else _drawn(cv, labeled, seed, groups, with_pool=with_pool, criteria=criteria)
    )
    if groups is not None and scheme.n_halvings:
        raise ValueError(
            "`groups` cannot be kept together by random halves; leave them out, or "
            "search with criterion='cv_error' and cv=GroupKFold(5)."
        )
    if SELECT_THEN_CERTIFY in criteria:
        check_one_fold(scheme.n_folds)
    wanted = {name for criterion in criteria for name in criterion.needs}
    if not (train_errors or scheme.n_halvings):
        splits = tuple(
            replace(each, counts_train=_train_errors_of(each) in wanted)
            for each in scheme.splits
        )
        scheme = replace(scheme, splits=splits)
    if names.LOO_ERRORS in wanted:
        return with_leave_one_out(scheme, len(labeled.y))
    return scheme


def _check_groups(groups: Any, n_rows: int) -> None:
    """Raise ValueError where a labeled row has no group."""
    if np.shape(groups) != (n_rows,):
        raise ValueError(
            f"`groups` must hold the group of each of the {n_rows} labeled rows, got "
            f"shape {np.shape(groups)}."
        )
    if (missing := np.flatnonzero(pd.isna(np.asarray(groups)))).size:
        raise ValueError(
            f"`groups` must hold a group for every labeled row, but row {missing[0]} "
            f"has none; give each such row a group of its own."
        )


def check_given(
    criteria: tuple[Criterion, ...], stages: Stages, pool_labels: Any
) -> None:
    """Raise where a criterion needs what is not given, or more than is read."""
    if stages.may_stop and pool_labels is not None:
        raise ValueError(
            "`pool_labels` need the whole pool; leave `stop_within` out of `reading`."
        )
    for criterion in criteria:
        if stages.may_stop and criterion.reads_whole_pool:
            raise ValueError(
                f"`stop_within` does not go with {criterion.name!r}, which needs the "
                f"whole pool; search without it, or by 'cv_bound' or 'best_fold'."
            )
        if pool_labels is None and names.TEST_ROWS in criterion.needs:
            raise ValueError(
                f"`criterion` {criterion.name!r} needs labels of pool rows, but "
                f"`pool_labels` is None; pass those that are known."
            )
        if stages.pool is None and reads_pool(criterion):
            without = "nested_fold_model" if is_nested(criterion) else "holdout_bound"
            raise ValueError(
                f"`criterion` {criterion.name!r} needs unlabeled rows, but `pool` is "
                f"None; pass the pool, or use criterion='cv_error' (an estimate) or "
                f"criterion={without!r} (a bound without a pool)."
            )


def _train_errors_of(split: Split) -> str:
    """Return the variable that holds the errors on a split's training rows."""
    return names.FULL_TRAIN_ERRORS if split.name == FULL else names.TRAIN_ERRORS


def _check_together(criteria: tuple[Criterion, ...]) -> None:
    """Raise where one criterion reads halves and another one folds."""
    by_halves = [each.name for each in criteria if each.by_halves]
    by_folds = [each.name for each in criteria if reads_folds(each)]
    if by_halves and by_folds:
        raise ValueError(
            f"`criterion` and `certificate` must read the same splits, but "
            f"{by_halves[0]!r} reads random halves of the labeled rows and "
            f"{by_folds[0]!r} reads folds; name two of one kind, or leave out "
            f"`certificate`."
        )


def _drawn(
    cv: Any,
    labeled: LabeledRows,
    seed: int,
    groups: Any,
    *,
    with_pool: bool,
    criteria: tuple[Criterion, ...],
) -> Scheme:
    """Return the splits that `cv` says: folds, halvings, or one split."""
    n_rows = len(labeled.y)
    if any(each.by_halves for each in criteria):
        repeats = check_integer(cv, "cv", at_least=1)
        return random_halves(n_rows, repeats, seed=seed, with_pool=with_pool)
    # Strings have a method of that name, too, and are iterable.
    plain = isinstance(cv, str) or not (hasattr(cv, "split") or np.iterable(cv))
    if plain and groups is not None:
        raise ValueError(
            f"`groups` need a splitter that keeps them together, got cv={cv!r}; use "
            f"cv=sklearn.model_selection.GroupKFold({cv!r})."
        )
    if plain:
        n_folds = _check_folds(cv, n_rows)
        splits = fold_splits(random_folds(n_rows, n_folds, seed=seed))
    else:
        splits = given_splits(cv, labeled.X, labeled.classes[labeled.y], groups)
    n_folds = len(splits) - 1
    if all(criterion.holds_out_one_fold for criterion in criteria):
        return Scheme(splits[:1], 1, (), plain)
    if any(map(is_nested, criteria)):
        return _nested(splits, plain=plain)
    if not with_pool and all(each.deploys == BEST_FOLD for each in criteria):
        return Scheme(splits[:-1], n_folds, (), plain)  # nothing reads the full model
    comparisons: tuple[Comparison, ...] = ()
    if with_pool:
        drawn = RandomFold(seed, n_folds)
        comparisons = (drawn, *_of_all_folds(n_folds, criteria))
    return Scheme(splits, n_folds, comparisons, plain, has_best_fold=with_pool)


def _nested(splits: tuple[Split, ...], *, plain: bool) -> Scheme:
    """Return folds, pairs of folds, and the full split."""
    *folds, full = splits
    if not plain or len(folds) < 3:
        raise ValueError(
            f"`cv` must be a number of random folds, at least 3, where the search is "
            f"made without each fold, too, got {len(folds)} "
            f"{'folds' if plain else 'folds of a splitter'}; use cv=3, or another "
            f"certificate such as 'best_fold'."
        )
    pairs = pair_splits(folds)
    last = replace(full, number=len(folds) + len(pairs))
    return Scheme(
        (*folds, *pairs, last), len(folds), (), is_plain_random=True, is_nested=True
    )


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
            f"`cv` must be a number of folds, a scikit-learn splitter, or a list of "
            f"(train rows, test rows), got {cv!r}."
        )
    n_folds = check_integer(cv, "cv", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`cv` must leave a labeled row to every fold, got cv={n_folds} for "
            f"{n_rows} labeled rows; use fewer folds, or label more rows."
        )
    return n_folds
