"""What the counts of a nested search say: of the error, of a loss, or of all classes.

Whatever is read, both models are bounded at once: that of the best fold by the counts
on its fold, and that of all rows through a fold's model and the pool.
"""

from dataclasses import dataclass, replace
from math import nan
from typing import Final

import numpy as np

from dsel.arrays import Integers
from dsel.bounds import (
    binomial_tail_inversion,
    nested_all_rows,
    nested_one_fold,
)
from dsel.bounds.holdout import expected_holdout_bound
from dsel.bounds.shares import LABEL_SHARE, fold_shares
from dsel.losses import (
    Balanced,
    ByClass,
    ClassCounts,
    Cost,
    Loss,
    Precision,
    Recall,
)
from dsel.results.certificate import ALL_ROWS, ONE_FOLD, CertifiedReport
from dsel.results.texts import floor_percent

FEW: Final = 0.05
"""A class whose limit cannot be below this is told of before the run."""


@dataclass(frozen=True)
class ReadOut:
    """Bounds of both models by one loss."""

    fold: int
    """The fold of the smallest limit."""
    limit: float
    """The bound of its model."""
    estimate: float
    """The loss of all folds together."""
    held_out_fifth: float
    """What a fifth of the labels would give at this estimate; NaN where not told."""
    all_rows: float = nan
    """The bound of the model of all rows; NaN where there is none."""
    label_term: float = nan
    pool_term: float = nan


def read_error(counts: ClassCounts, delta: float, *, has_pool: bool) -> ReadOut:
    """Read the bounds of the error."""
    share = LABEL_SHARE if has_pool else 1.0
    fold, limit = nested_one_fold(counts.errors, counts.rows, delta=share * delta)
    pooled, fifth = counts.errors.sum() / counts.rows.sum(), counts.rows.sum() // 5
    expected = expected_holdout_bound(float(pooled), max(1, int(fifth)), delta=delta)
    found = ReadOut(int(fold), float(limit), float(pooled), float(expected))
    if not has_pool:
        return found
    pool = counts.pool
    rows = pool.upper_rows(pool.duplicate_disagreements)
    _, terms = nested_all_rows(
        counts.errors, counts.rows, pool.disagreements, rows, delta=delta
    )
    bound, label_term, pool_term = (float(term) for term in terms)
    return replace(found, all_rows=bound, label_term=label_term, pool_term=pool_term)


def read_loss(
    loss: Loss, counts: ClassCounts, delta: float, *, has_pool: bool
) -> ReadOut:
    """Read the bounds of a loss; `counts` are those of its classes."""
    share = LABEL_SHARE if has_pool else 1.0
    limits = loss.limits(counts, share * delta)
    fold = int(np.argmin(limits))
    part = np.rint(counts.pooled[np.newaxis] / 5).astype(np.int64)
    [fifth] = loss.limits(replace(counts, rows=counts.rows[:1], confusions=part), delta)
    found = ReadOut(fold, float(limits[fold]), loss.rate(counts.pooled), float(fifth))
    if not has_pool:
        return found
    sums = loss.all_rows(counts, limits, (1.0 - LABEL_SHARE) * delta)
    best = int(np.argmin(sums))
    return replace(
        found, all_rows=float(sums[best]), label_term=float(limits[best]),
        pool_term=float(sums[best] - limits[best]),
    )  # fmt: skip


def read_report(
    by_class: ByClass, counts: ClassCounts, delta: float, *, has_pool: bool
) -> tuple[ReadOut, dict[str, CertifiedReport]]:
    """Read the declared loss, and the report of each deployment.

    All numbers share delta equally: recall and precision of each class, the error, and
    a cost where that is the loss.
    """
    loss, classes = by_class.loss, by_class.classes
    share = delta / numbers_of_report(by_class)
    main = error = read_error(counts, share, has_pool=has_pool)
    if loss is not None:
        # The balanced error is read from the limits of its classes.
        own = share * (len(loss.classes) if isinstance(loss, Balanced) else 1)
        mine = of_classes(by_class, counts, loss)
        main = read_loss(loss, mine, own, has_pool=has_pool)
    first = (LABEL_SHARE if has_pool else 1.0) * share
    of_folds = binomial_tail_inversion(
        counts.errors, counts.rows, delta=first * fold_shares(counts.n_folds)
    )

    def rates(each: Loss) -> tuple[float, float, float]:
        """Return what is estimated, and certified of the best fold's and full model."""
        mine = of_classes(by_class, counts, each)
        limits, full = each.limits(mine, first), nan
        if has_pool:
            sums = each.all_rows(mine, limits, (1.0 - LABEL_SHARE) * share)
            full = max(0.0, 1.0 - float(sums.min()))
        return 1.0 - each.rate(mine.pooled), 1.0 - float(limits[main.fold]), full

    rows = tuple(counts.pooled.sum(axis=1)[: len(classes)].tolist())
    recall, *recall_limits = zip(*(rates(Recall((c,))) for c in classes), strict=True)
    precision, *limits = zip(*(rates(Precision((c,))) for c in classes), strict=True)
    at_most = (float(of_folds[main.fold]), error.all_rows)
    reports = {
        deploy: CertifiedReport(
            delta, "", classes, rows, recall, recall_limits[which], precision,
            limits[which], error.estimate, min(1.0, at_most[which]),
        )
        for which, deploy in enumerate((ONE_FOLD, ALL_ROWS)[: 1 + has_pool])
    }  # fmt: skip
    return main, reports


def numbers_of_report(by_class: ByClass) -> int:
    """Return among how many numbers delta is divided."""
    if not by_class.reports:
        return 1
    return 2 * len(by_class.classes) + 1 + isinstance(by_class.loss, Cost)


def hopes(by_class: ByClass, y: Integers, n_folds: int, delta: float) -> list[str]:
    """Return what to expect of each class with few rows, before anything is counted."""
    # Of equal counts the first fold, whose share is the largest, has the best limit.
    first = float(fold_shares(n_folds)[0])
    share = LABEL_SHARE * delta / numbers_of_report(by_class) * first
    if isinstance(by_class.loss, Balanced) and not by_class.reports:
        share /= len(by_class.loss.classes)
    remarks = []
    for place, label in enumerate(by_class.classes):
        n_rows = int((by_class.places[y] == place).sum())
        least = float(binomial_tail_inversion(0, n_rows // n_folds, delta=share))
        if least > FEW and not isinstance(by_class.loss, Cost | Precision):
            remarks.append(
                f"class {label!r} has {n_rows:,} labeled rows, {n_rows // n_folds} a "
                f"fold: even without a miss its recall is certified to be "
                f"{floor_percent(1 - least)} at most"
            )
    return remarks


def of_classes(by_class: ByClass, counts: ClassCounts, loss: Loss) -> ClassCounts:
    """Return the counts with tables of the classes of a loss alone."""
    return replace(
        counts,
        confusions=by_class.narrowed(counts.confusions, loss),
        pool=replace(
            counts.pool,
            pairs=by_class.narrowed(counts.pool.pairs, loss),
            duplicate_pairs=by_class.narrowed(counts.pool.duplicate_pairs, loss),
        ),
    )
