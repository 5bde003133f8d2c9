"""Checks of a new loss and its statistic, for contributors."""

from copy import deepcopy
from dataclasses import replace
from itertools import product
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from dsel.arrays import Floats, Integers
from dsel.checks import show
from dsel.losses.calls import (
    count_pair,
    count_rows,
    counts_from_errors,
    estimate_of_folds,
    limits_of_folds,
    name_loss_in_errors,
    score_from_errors,
    score_rows,
)
from dsel.losses.protocols import (
    Counts,
    DeltaDivision,
    FoldCounts,
    Loss,
    PoolCounts,
    Predictions,
    Rows,
    RowSentence,
    Statistic,
    no_predictions,
    stack_folds,
)
from dsel.names import NO_CLASS
from dsel.typing import AnyArray

LOSS_CHECK_ROWS: Final = 200
"""Most labeled rows on which a plan tries a loss."""
CHECK_DIVISION: Final = DeltaDivision(0.05, 0.95)
TRIANGLES: Final = 20
"""Random pairs of models that are compared with the bound of the second one."""
MOST_CASES: Final = 200
"""Most triples of a class and two predictions that are tried: all of five classes."""
_TRIANGLE_ROWS: Final = 4_000
SHARING_FOLDS: Final = 20
"""Folds with equal counts that share the pool's delta; none gets nearly all of it."""
_POOL_ROWS: Final = 400
"""Number of pool rows, which is small so that the terms of the pool show its share of
delta."""


def check_loss(loss: Any, *, n_classes: int = 2, n_folds: int = 5) -> None:
    """Raise if a loss does not work in a search, by a test on generated rows.

    It finds bounds that spend more than their delta, on labeled rows or on the pool,
    and counts on the pool that miss rows on which a model is worse. It cannot show that
    a bound holds: this needs a proof, and an audit.

    Parameters
    ----------
    loss
        The argument `loss=` of a search, after `of_table` if it uses classes. The rows
        have three columns and class codes below `n_classes`, or normally distributed
        targets if the loss is for regressors.
    n_classes, n_folds
        Numbers of classes and of folds of the generated rows.

    Raises
    ------
    TypeError, ValueError
        If a member of `Loss` or `Statistic` returns a wrong value, which is named.

    Examples
    --------
    >>> from dsel.losses.error_rate import ERROR_RATE
    >>> check_loss(ERROR_RATE)
    """
    for code, kind in ((loss, Loss), (getattr(loss, "statistic", None), Statistic)):
        if not isinstance(code, kind):
            members = [name for name in dir(kind) if name[0] != "_"]
            lacks = [name for name in members if not hasattr(code, name)]
            raise TypeError(
                f"{type(code).__name__} must have the members of {kind.__name__}; it "
                f"lacks {', '.join(lacks) or 'none, but is a class'}."
            )
    if not isinstance(loss.sentence, RowSentence | None):
        raise TypeError(
            f"{type(loss).__name__}.sentence must be a RowSentence, or None, got "
            f"{show(loss.sentence)}."
        )
    # Workers get a copy, and the repr is part of the identity of a plan.
    copy = deepcopy(loss)
    if copy != loss or repr(copy) != repr(loss):
        raise ValueError(
            f"{loss!r} must be equal to its copy, with the same repr: by it a store "
            f"knows its plan."
        )
    rng = np.random.default_rng(0)
    n = 60 * n_folds
    targets = (
        rng.integers(0, n_classes, n) if not loss.is_regression else rng.normal(size=n)
    )
    rows = Rows(rng.normal(size=(n, 3)), targets)
    rows_by_fold = np.array_split(np.arange(60 * n_folds), n_folds)
    counts = [_check_fold(loss, rows, row_numbers, rng) for row_numbers in rows_by_fold]
    n_rows = np.array([len(row_numbers) for row_numbers in rows_by_fold])
    folds = FoldCounts(stack_folds(counts), n_rows)
    pool_counts = _count_pool(loss, folds, n_classes, rng)
    _check_bounds(loss, folds, pool_counts)
    _check_divided_delta(loss, folds, pool_counts)
    _check_forecasts(loss, folds, targets)
    for case in (*[None] * TRIANGLES, *_draw_cases(loss, n_classes, rng)):
        _check_triangle(loss, n_classes, rng, case)
    _check_divided_pool_delta(loss, n_classes, rng)


def check_loss_on_rows(loss: Loss, rows: Rows) -> None:
    """Raise ValueError if a loss scores or counts these labeled rows in a wrong way.

    It is the part of `check_loss` that needs neither folds nor a pool, for the rows of
    a plan: a loss may read columns that generated rows do not have.
    """
    n = rows.X.shape[0]
    counts = _check_fold(loss, rows, np.arange(n), np.random.default_rng(0))
    folds = FoldCounts(stack_folds([counts]), np.array([n]))
    limits_of_folds(loss, folds, CHECK_DIVISION.label_delta)
    _check_forecasts(loss, folds, rows.targets)


def _check_fold(
    loss: Loss, rows: Rows, row_numbers: Integers, rng: np.random.Generator
) -> Counts:
    """Return the counts on the rows of a fold; raise if they are wrong."""
    X, y = rows.X[row_numbers], np.asarray(rows.targets)[row_numbers]
    is_wrong = rng.random(len(y)) < 0.2
    wrong = (
        y + rng.normal(size=len(y)) if loss.is_regression else (y + 1) % (y.max() + 1)
    )
    predictions = np.where(is_wrong, wrong, y)
    statistic = loss.statistic
    labeled = Rows(X, y)
    name = type(loss.statistic).__name__
    none = no_predictions((len(y),), y.dtype)
    # A fit may have any number of errors; those of this fold are compared below.
    for n_errors in range(len(y) + 1):
        counts_from_errors(statistic, n_errors)
        score_from_errors(loss, n_errors, len(y))
    score, worst = (score_rows(loss, labeled, these) for these in (predictions, none))
    counts = count_rows(statistic, labeled, predictions)
    n_wrong = int((predictions != y).sum())
    from_errors = counts_from_errors(statistic, n_wrong)
    if from_errors is not None and not np.array_equal(from_errors, counts):
        raise ValueError(
            f"{name}.counts_from_errors must give what `count` does, or None."
        )
    order = rng.permutation(len(y))
    shuffled = count_rows(statistic, Rows(X[order], y[order]), predictions[order])
    if not np.array_equal(shuffled, counts):
        raise ValueError(f"{name}.count must not depend on the order of the rows.")
    # Regressors are ranked by squares, which have no largest value. For others a model
    # that predicts nothing must come last, so that it is never chosen.
    largest = np.inf if loss.is_regression else loss.largest
    if not 0 <= score <= largest or not score <= worst <= largest:
        raise ValueError(
            f"{type(loss).__name__}.score must be in [0, {largest}], the largest "
            f"where nothing is predicted, got {score} and {worst}."
        )
    if not loss.is_regression:
        other = np.full_like(y, NO_CLASS)
        is_same = score_rows(loss, labeled, other) == worst and np.array_equal(
            count_rows(statistic, labeled, other), count_rows(statistic, labeled, none)
        )
        if not is_same:
            raise ValueError(
                f"{name}.count and {type(loss).__name__}.score must take every code "
                f"below 0 as no prediction, but differ for {NO_CLASS} and {none[0]}."
            )
    error_score = score_from_errors(loss, n_wrong, len(y))
    if error_score is not None and not np.isclose(error_score, score):
        raise ValueError(
            f"{type(loss).__name__}.score_from_errors must give what `score` does, "
            f"or None."
        )
    return counts


def _count_pool(
    loss: Loss, folds: FoldCounts, n_classes: int, rng: np.random.Generator
) -> PoolCounts:
    """Return the counts on a pool; raise if those of blocks do not add up to it."""
    n = 400
    statistic = loss.statistic
    name = type(statistic).__name__

    def draw(lowest: int) -> Predictions:
        codes = rng.integers(lowest, n_classes, n)
        return np.asarray(rng.normal(size=n) if loss.is_regression else codes)

    X = rng.normal(size=(n, 3))
    all_rows_predictions = draw(0)
    # Codes below 0 are predictions that are no class, which models may make.
    pairs = []
    for counts_on_fold in folds.counts:
        is_same = rng.random(n) < 0.9
        fold_predictions = np.where(is_same, all_rows_predictions, draw(NO_CLASS))
        blocks = [
            count_pair(
                statistic,
                Rows(X[block]),
                fold_predictions[block],
                all_rows_predictions[block],
                counts_on_fold,
            )
            for block in (slice(None), slice(None, 150), slice(150, None), slice(0, 0))
        ]
        if not np.array_equal(blocks[0], blocks[1] + blocks[2]) or blocks[3].any():
            raise ValueError(f"{name}.count_pair must add up over blocks of rows.")
        agreeing = count_pair(
            statistic,
            Rows(X),
            all_rows_predictions,
            all_rows_predictions,
            counts_on_fold,
        )
        if statistic.counts_differences and np.any(agreeing):
            raise ValueError(
                f"{name}.count_pair counts rows on which both models agree, which "
                f"`counts_differences` denies."
            )
        pairs.append(blocks[0])
    return PoolCounts(np.stack(pairs), np.zeros_like(np.stack(pairs)), n, 0)


def _check_bounds(loss: Loss, folds: FoldCounts, pool_counts: PoolCounts) -> None:
    """Raise if limits or bounds are below the counts, or do not fall as delta grows."""
    name = type(loss).__name__
    limits = limits_of_folds(loss, folds, CHECK_DIVISION.label_delta)
    estimates = [loss.estimate(fold) for fold in folds.iter_folds()]
    surer = limits_of_folds(loss, folds, 1e-6)
    # A quantile of rows that mostly have no loss may be exactly what was counted.
    is_constant = (surer == limits).all() and any(
        0 < e < loss.largest for e in estimates
    )
    if (surer < limits).any() or is_constant:
        raise ValueError(f"{name}.limits must be larger where delta is smaller.")
    if (limits < estimates).any():
        raise ValueError(
            f"{name}.limits must be above what was counted, got {limits.tolist()} for "
            f"{estimates}."
        )
    bound, label_term, disagreement_term = map(
        float, loss.bound_all_rows(folds, pool_counts, CHECK_DIVISION)
    )
    if not (
        bound >= label_term >= min(limits)
        and np.isclose(bound, label_term + disagreement_term)
    ):
        raise ValueError(
            f"{name}.bound_all_rows must be the limit of a fold and a part from the "
            f"pool, got {bound}, {label_term} and {disagreement_term}."
        )


def _check_forecasts(loss: Loss, folds: FoldCounts, targets: AnyArray) -> None:
    """Raise if what is said of a plan or a result is no number, or no list of texts."""
    delta, name = CHECK_DIVISION.label_delta, type(loss).__name__
    estimate_of_folds(loss, folds)
    with name_loss_in_errors(loss, "expected_holdout"):
        expected: object = loss.expected_holdout(folds, delta)
    if not isinstance(expected, Real):
        raise TypeError(
            f"{name}.expected_holdout must return a number, got {show(expected)}."
        )
    with name_loss_in_errors(loss, "caveats"):
        texts: list[Any] = loss.caveats(targets, len(folds.n_rows), delta)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name}.caveats must return texts, got {show(texts)}.")


def _check_divided_delta(
    loss: Loss, folds: FoldCounts, pool_counts: PoolCounts
) -> None:
    """Raise if limits that must hold together, or with the pool's, spend all of delta.

    A single fold gets all of the delta of the folds.
    """
    name, delta = type(loss).__name__, CHECK_DIVISION.label_delta
    together = limits_of_folds(loss, folds, delta)
    alone = np.array(
        [limits_of_folds(loss, fold, delta)[0] for fold in folds.iter_folds()]
    )
    # Where most rows have no loss, limits of a quantile are what was counted.
    is_above = alone > [loss.estimate(fold) for fold in folds.iter_folds()]
    is_undivided = len(alone) > 1 and is_above.any() and not (alone < together).any()
    if is_undivided or (alone > together).any():
        raise ValueError(
            f"{name}.limits must hold together with probability 1 - delta, so each of "
            f"several folds has a share of delta and a larger limit than alone, got "
            f"{together.tolist()} together and {alone.tolist()} alone."
        )
    for number, limit in enumerate(alone):
        one_fold = slice(number, number + 1)
        fold_pool_counts = replace(
            pool_counts,
            counts=pool_counts.counts[one_fold],
            duplicates=pool_counts.duplicates[one_fold],
        )
        label_term = loss.bound_all_rows(
            folds.fold(number), fold_pool_counts, CHECK_DIVISION
        )[1]
        if label_term < limit:
            raise ValueError(
                f"{name}.bound_all_rows must take limits at division.label_delta, what "
                f"the pool leaves of delta: of one fold it is at least {limit}, got "
                f"{float(label_term)}."
            )


def _draw_cases(
    loss: Loss, n_classes: int, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Return triples of a class and the predictions of two models; none of numbers."""
    if loss.is_regression:
        return []
    codes = range(NO_CLASS, n_classes)  # a prediction may be no class
    if n_classes * len(codes) ** 2 <= MOST_CASES:
        return list(product(range(n_classes), codes, codes))
    cases = rng.integers([0, NO_CLASS, NO_CLASS], n_classes, size=(MOST_CASES, 3))
    return [tuple(case) for case in cases.tolist()]


def _check_triangle(
    loss: Loss,
    n_classes: int,
    rng: np.random.Generator,
    case: tuple[int, ...] | None,
) -> None:
    """Raise if the second of two models is worse than its bound on these very rows.

    The rows are the fold and the pool, so the counts themselves, whose limits are
    larger, must bound the loss of the second model by that of the first one. Nine of
    ten rows have one `case`, a class and both predictions, so that counts that miss
    this case become visible; without a case all rows are random.
    """
    n, statistic = _TRIANGLE_ROWS, loss.statistic
    X, targets, first, second = _draw_two_models(loss, n_classes, rng)
    if case is not None:
        is_of_case = rng.random(n) < 0.9
        targets, first, second = (
            np.where(is_of_case, code, random_codes)
            for code, random_codes in zip(case, (targets, first, second), strict=True)
        )
    rows = Rows(X, targets)
    n_rows = np.array([n])
    counted, of_second = (
        FoldCounts(stack_folds([count_rows(statistic, rows, codes)]), n_rows)
        for codes in (first, second)
    )
    pair = count_pair(statistic, Rows(X), first, second, counted.counts[0])[np.newaxis]
    pool_counts = PoolCounts(pair, np.zeros_like(pair), n, 0)
    bound = float(loss.bound_all_rows(counted, pool_counts, CHECK_DIVISION)[0])
    estimate = loss.estimate(of_second)
    if bound < estimate:
        raise ValueError(
            f"{type(loss).__name__}.bound_all_rows must be above the loss of the model "
            f"of all rows, which {type(statistic).__name__}.count_pair compares with "
            f"that of a fold: on rows where it is {estimate} it is {bound}."
        )


class _TwoModels(NamedTuple):
    """Generated rows, with the predictions of two models."""

    X: Floats
    targets: Predictions
    first: Predictions
    second: Predictions


def _draw_two_models(
    loss: Loss,
    n_classes: int,
    rng: np.random.Generator,
    agreement: float | None = None,
) -> _TwoModels:
    """Return random rows, on which the second model often predicts as the first does.

    `agreement` is the probability that a prediction is copied, from the target to the
    first model and from there to the second; None draws one for each.
    """
    n = _TRIANGLE_ROWS

    def draw() -> Predictions:
        if loss.is_regression:
            return rng.normal(size=n)
        return rng.integers(n_classes, size=n)

    targets = draw()
    X = rng.normal(size=(n, 3))
    # The first model is often right where the second one is wrong, which shows a count
    # that is missing.
    words = rng.random((2, n))
    keeps = words < (rng.random((2, 1)) if agreement is None else agreement)
    first = np.where(keeps[0], targets, draw())
    return _TwoModels(X, targets, first, np.where(keeps[1], first, draw()))


def _check_divided_pool_delta(
    loss: Loss, n_classes: int, rng: np.random.Generator
) -> None:
    """Raise if limits on the pool spend more than `pool_delta`, or all of it each.

    Folds have equal counts, so that the part of the bound from the pool shows the share
    of delta of a fold, whichever fold gives the bound.
    """
    name, statistic, n = type(loss).__name__, loss.statistic, _TRIANGLE_ROWS
    if statistic.fold_shape is None:  # quantiles move in steps, which hide a share
        return
    X, targets, first, second = _draw_two_models(loss, n_classes, rng, 0.9)
    counts = count_rows(statistic, Rows(X, targets), first)
    first_rows = slice(_POOL_ROWS)
    pair = count_pair(
        statistic, Rows(X[first_rows]), first[first_rows], second[first_rows], counts
    )

    def pool_term(n_folds: int, fraction: float) -> float:
        """Return the part from the pool, at this part of the pool's delta."""
        folds = FoldCounts(stack_folds([counts] * n_folds), np.full(n_folds, n))
        pairs = np.stack([pair] * n_folds)
        pool_counts = PoolCounts(pairs, np.zeros_like(pairs), _POOL_ROWS, 0)
        query_share = (1.0 - fraction) * (1.0 - CHECK_DIVISION.label_share)
        division = replace(CHECK_DIVISION, query_share=query_share)
        return float(loss.bound_all_rows(folds, pool_counts, division)[2])

    alone, nearly = pool_term(1, 1.0), pool_term(1, 0.9)
    shared = pool_term(SHARING_FOLDS, 1.0)
    if not 0 < alone < loss.largest:  # it shows no share
        return
    if nearly <= alone:
        raise ValueError(
            f"{name}.bound_all_rows must be larger where division.pool_delta is "
            f"smaller, got {alone} from the pool, and {nearly} at 9/10 of it."
        )
    # Recalls divide by rows of all folds: with more folds they may even fall a little.
    if shared < nearly:
        raise ValueError(
            f"{name}.bound_all_rows must have limits of the pool that hold together, "
            f"so each of several folds has a share of division.pool_delta and a larger "
            f"limit than alone, got {shared} for {SHARING_FOLDS} folds and {alone} for "
            f"one."
        )
