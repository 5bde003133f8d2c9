"""Leave-one-out errors of a group: a fit for every row."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dsel.arrays import Integers
from dsel.data.cache import process_cache
from dsel.data.splits import Split
from dsel.families.family import FIT_FAILED, Candidate, Family, FitCounts

TOGETHER: Final = 64
"""Rows whose models are in memory at once."""


def leave_one_out_counts(
    family: Family,
    group: Sequence[Candidate],
    X: Any,
    y: Integers,
    split: Split,
    *,
    pool: Any = None,
) -> FitCounts:
    """Count the errors of every candidate of a group, each row held out once.

    `split`, from `leave_one_out_split`, is the one column of the counts: test errors,
    -1 where a fit failed; training errors are -1.
    """
    rows = np.arange(len(y))
    errors, seconds = np.zeros(len(group), dtype=np.int64), np.zeros(len(group))
    failures: dict[int, str] = {}
    for start in range(0, len(y), TOGETHER):
        splits = [
            Split(
                row, f"without-{row}", np.delete(rows, row), rows[row : row + 1],
                counts_train=False,
            )
            for row in range(start, min(start + TOGETHER, len(y)))
        ]  # fmt: skip
        budget = process_cache()
        counts = family.fit(group, X, y, splits, pool=pool, budget=budget).counts
        errors += counts.test_errors.sum(axis=1)
        seconds += np.nansum(counts.seconds, axis=1)
        for place, column in np.argwhere(counts.status == FIT_FAILED):
            number, row = group[place].number, splits[column].number
            message = counts.messages.get((number, row), "")
            failures.setdefault(number, f"without row {row}: {message}")
    found = FitCounts.empty(len(group), 1)
    found.seconds[:, 0] = seconds
    for place, candidate in enumerate(group):
        if candidate.number in failures:
            found.messages[candidate.number, split.number] = failures[candidate.number]
        else:
            found.record(place, errors[place])
    return found
