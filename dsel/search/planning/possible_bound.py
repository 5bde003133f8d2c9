"""The smallest bound that is possible with the rows of a plan, before any fit."""

from math import nan
from typing import Any, Final

import numpy as np

from dsel.data.duplicates import duplicate_finder
from dsel.data.frames import take_rows
from dsel.losses.base import FoldCounts, Rows, stack_folds
from dsel.losses.calls import count_rows, naming_loss
from dsel.rounded_texts import count_of, in_percent
from dsel.search.running.planned_search import SearchDesign

USELESS: Final = 0.9
"""Part of the largest loss from which on a bound says nothing of use."""
LARGE: Final = 0.5
"""Part of the largest loss from which on a plan says how large a bound will be."""
MOST_TIMES: Final = 100
"""Most multiples of the labeled rows that are tried in the search for enough rows."""


def smallest_limit(design: SearchDesign, times: int = 1) -> float:
    """Return the limit of the best fold if no model makes any error, part of `largest`.

    `times` as many rows are assumed. NaN if the loss is of numbers.
    """
    losses, labeled = design.context.losses, design.labeled
    main, folds = losses.main, [split.test_rows for split in design.scheme.held_out]
    if design.is_regression or main.statistic.fold_shape is None:
        return nan
    perfect = stack_folds(
        [
            count_rows(
                main.statistic,
                Rows(take_rows(labeled.X, rows), labeled.y[rows]),
                labeled.y[rows],
            )
            for rows in folds
        ]
    )
    counts = FoldCounts(times * perfect, times * np.array([len(f) for f in folds]))
    delta = losses.divide_delta(design.planned_delta.label_delta).main
    with naming_loss(main, "limits"):
        return float(np.min(main.limits(counts, delta))) / main.largest


def note_on_possible_bound(design: SearchDesign, above: float = LARGE) -> str:
    """Return a note if the bound is above a limit whatever the models are, else "".

    It says how many rows are enough for a bound of `LARGE`.
    """
    has_bound = design.method.is_guarantee and design.scheme.is_plain_random
    limit = smallest_limit(design) if has_bound else nan
    if not limit > above:  # NaN is not
        return ""
    main, y = design.context.losses.main, design.labeled.y[design.scheme.counted_rows]
    n_rows, unit = len(y), "labeled row" if design.groups is None else "group"
    classes: tuple[Any, ...] = getattr(main, "classes", ())
    of_class = ""
    if len(classes) == 1:
        n_rows = int((y == design.classes.tolist().index(classes[0])).sum())
        of_class = f" of the class {classes[0]!r}"
    times = range(2, MOST_TIMES)
    enough = next((n for n in times if smallest_limit(design, n) <= LARGE), None)
    if enough is None:  # more rows do not help, as where correct answers have a cost
        return ""
    return (
        f"with {count_of(n_rows, unit)}{of_class} in {design.scheme.n_folds} folds the "
        f"bound is {in_percent(limit)} or more even if no model makes an error; "
        f"about {enough * n_rows:,} are enough for 50%"
    )


def check_possible_bound(design: SearchDesign) -> None:
    """Raise ValueError if the bound of a plan cannot say anything of use.

    That is, if rows are too few, or if every row of a pool equals a labeled row.
    """
    # Other certificates bound no single fold, and may have folds of one row.
    bounds_folds = design.method.is_nested or design.scheme.is_holdout
    if bounds_folds and (note := note_on_possible_bound(design, USELESS)):
        what = design.context.losses.main.label
        name = "`y` has" if design.groups is None else "`groups` have"
        raise ValueError(f"{name} too few rows for a bound of {what!r}: {note}.")
    pool = design.pool
    # A larger pool is compared in the pass that reads it, next to the fits.
    has_bound = design.method.is_guarantee and design.scheme.is_plain_random
    if pool is None or not has_bound or pool.n_rows > design.labeled.n_rows:
        return
    if pool.other_records:
        return
    find = duplicate_finder(pool, design.labeled)
    n_equal = pool.reduce(
        lambda X, rows: int(find(X).sum()),
        lambda earlier, later: earlier + later,
        allow_nan=design.context.reading.allow_nan,
    )
    if n_equal == pool.n_rows:
        raise ValueError(
            f"`pool` must hold new rows: all {n_equal:,} of its rows equal labeled "
            f"rows, so they do not show how often models differ on new ones; pass "
            f"other rows, or leave `pool` out."
        )
