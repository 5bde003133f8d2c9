"""Trainings made by chance (folds, halvings, one split) or by a splitter."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.checks import check_integer
from dsel.data.trainings import FULL, LEAVE_ONE_OUT, Training
from dsel.data.words import (
    BLOCK_STREAM,
    FOLD_STREAM,
    HALVING_STREAM,
    HOLDOUT_STREAM,
    words,
)


def random_folds(n_rows: int, n_folds: int, *, seed: int) -> NDArray[np.int64]:
    """Assign rows to folds at random, without a look at features or labels.

    Parameters
    ----------
    n_rows
        Labeled rows, n.
    n_folds
        Folds, k, in ``[2, n_rows]``; n folds are leave-one-out.
    seed
        Seed of the row words.

    Returns
    -------
    ndarray
        Fold number of each row, shape (n_rows,). Sizes differ by at most 1; the
        first ``n_rows % n_folds`` folds are the larger ones.

    Raises
    ------
    ValueError
        Where there are more folds than rows, or fewer than two.

    Examples
    --------
    >>> np.bincount(random_folds(11, 3, seed=7))
    array([4, 4, 3])
    """
    check_integer(n_folds, "n_folds", at_least=2)
    if n_folds > n_rows:
        raise ValueError(
            f"`n_folds` must not exceed the number of labeled rows, got {n_folds} "
            f"folds for {n_rows} rows; ask for fewer folds."
        )
    return _ranks(n_rows, FOLD_STREAM, seed) % n_folds


def fold_trainings(folds: ArrayLike) -> tuple[Training, ...]:
    """Return the k fold trainings, ``fold-0`` first, then ``full`` with number k.

    Examples
    --------
    >>> [training.name for training in fold_trainings([0, 1, 0, 1])]
    ['fold-0', 'fold-1', 'full']
    """
    numbers = np.asarray(folds)
    n_folds = int(numbers.max()) + 1
    trainings = [
        Training(
            number=fold,
            name=f"fold-{fold}",
            train_rows=np.flatnonzero(numbers != fold),
            test_rows=np.flatnonzero(numbers == fold),
        )
        for fold in range(n_folds)
    ]
    return (*trainings, full_training(len(numbers), number=n_folds))


def splitter_trainings(
    cv: Any, X: Any, y: Any, groups: Any = None
) -> tuple[Training, ...]:
    """Return the trainings of a scikit-learn splitter, then ``full``.

    Parameters
    ----------
    cv
        Anything with ``split(X, y, groups)``.
    X, y, groups
        What the splitter wants to see.

    Raises
    ------
    ValueError
        Where the splitter gives no split, or cannot split these rows.
    """
    try:
        splits = list(cv.split(X, y, groups))
    except ValueError as error:
        raise ValueError(
            f"`cv` {cv!r} does not split these rows: {error} Give other folds, or "
            "your own by `sklearn.model_selection.PredefinedSplit`, which needs no "
            "groups."
        ) from error
    trainings = [
        Training(
            number=number,
            name=f"fold-{number}",
            train_rows=np.sort(np.asarray(train_rows, dtype=np.int64)),
            test_rows=np.sort(np.asarray(test_rows, dtype=np.int64)),
        )
        for number, (train_rows, test_rows) in enumerate(splits)
    ]
    if not trainings:
        raise ValueError(f"`cv` must give at least one split, got none from {cv!r}.")
    return (*trainings, full_training(len(y), number=len(trainings)))


def half_trainings(n_rows: int, repeats: int, *, seed: int) -> tuple[Training, ...]:
    """Return the two trainings of each random halving, each tested on the other half.

    Training ``repeat-<r>-half-<h>`` has number ``2 * r + h``; of an odd number of
    rows half 0 has the smaller part.

    Raises
    ------
    ValueError
        Where there are fewer than two rows, or no repetition.

    Examples
    --------
    >>> [(t.number, t.name, len(t.train_rows)) for t in half_trainings(5, 1, seed=7)]
    [(0, 'repeat-0-half-0', 2), (1, 'repeat-0-half-1', 3)]
    """
    check_integer(n_rows, "n_rows", at_least=2)
    check_integer(repeats, "repeats", at_least=1)
    trainings = []
    for repeat in range(repeats):
        in_first = _ranks(n_rows, HALVING_STREAM + repeat, seed) < n_rows // 2
        halves = np.flatnonzero(in_first), np.flatnonzero(~in_first)
        trainings += [
            Training(
                number=2 * repeat + half,
                name=f"repeat-{repeat}-half-{half}",
                train_rows=halves[half],
                test_rows=halves[1 - half],
            )
            for half in (0, 1)
        ]
    return tuple(trainings)


def block_trainings(n_rows: int, n_blocks: int, *, seed: int) -> tuple[Training, ...]:
    """Return trainings on disjoint random blocks of rows, ``block-0`` first.

    Models of different blocks are independent. The ``n_rows % n_blocks`` rows that
    are left over stand in no block; nothing is tested.

    Raises
    ------
    ValueError
        Where there are fewer than two blocks, or a block would have no row.

    Examples
    --------
    >>> [len(t.train_rows) for t in block_trainings(11, 3, seed=7)]
    [3, 3, 3]
    """
    check_integer(n_blocks, "n_blocks", at_least=2, at_most=n_rows)
    ranks, size = _ranks(n_rows, BLOCK_STREAM, seed), n_rows // n_blocks
    nothing = np.empty(0, dtype=np.int64)
    return tuple(
        Training(
            number=block,
            name=f"block-{block}",
            train_rows=np.flatnonzero(ranks // size == block),
            test_rows=nothing,
        )
        for block in range(n_blocks)
    )


def holdout_split(n_rows: int, n_test: int, *, seed: int) -> Training:
    """Return one training, ``holdout``, that leaves out `n_test` random rows.

    Raises
    ------
    ValueError
        Where `n_test` is not in ``[1, n_rows - 1]``.

    Examples
    --------
    >>> len(holdout_split(10, 3, seed=7).train_rows)
    7
    """
    check_integer(n_test, "n_test", at_least=1, at_most=n_rows - 1)
    in_test = _ranks(n_rows, HOLDOUT_STREAM, seed) < n_test
    return Training(
        number=0,
        name="holdout",
        train_rows=np.flatnonzero(~in_test),
        test_rows=np.flatnonzero(in_test),
    )


def full_training(n_rows: int, *, number: int = 0) -> Training:
    """Return the training on all rows, ``full``, which holds nothing out."""
    nothing = np.empty(0, dtype=np.int64)
    return Training(number, FULL, np.arange(n_rows, dtype=np.int64), nothing)


def leave_one_out_training(n_rows: int, *, number: int = 0) -> Training:
    """Return the training that holds out every row in turn, ``leave-one-out``.

    It stands for as many models as there are rows: their errors are counted, none of
    them is kept.
    """
    rows = np.arange(n_rows, dtype=np.int64)
    return Training(number, LEAVE_ONE_OUT, rows, rows)


def _ranks(n_rows: int, stream: int, seed: int) -> NDArray[np.int64]:
    """Rank rows by (word, row number)."""
    order = np.argsort(words(seed, stream, 0, n_rows), kind="stable")
    ranks = np.empty(n_rows, dtype=np.int64)
    ranks[order] = np.arange(n_rows)
    return ranks
