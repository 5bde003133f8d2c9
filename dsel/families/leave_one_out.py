"""Leave-one-out errors of a group, by one fit for every row."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dsel.arrays import Integers
from dsel.data.cache import process_cache
from dsel.data.splits import Split, SplitKind
from dsel.families.family import FIT_FAILED, Candidate, Family, FitCounts

TOGETHER: Final = 64
"""Rows whose models are in memory at once."""


def leave_one_out_counts(
    family: Family,
    group: Sequence[Candidate],
    X: ArrayLike,
    y: Integers,
    split: Split,
    *,
    pool: object = None,
) -> FitCounts:
    """Count the leave-one-out errors of every candidate of a group.

    `split`, from `leave_one_out_split`, is the one column of the counts: test errors,
    -1 where a fit failed; training errors are -1.
    """
    rows = np.arange(len(y))
    failures: dict[int, str] = {}
    found = FitCounts.empty(len(group), 1)
    found.record(np.s_[:], 0)
    found.seconds[:] = 0.0
    for start in range(0, len(y), TOGETHER):
        splits = [
            Split(row, SplitKind.ROW, (row,), np.delete(rows, row), rows[[row]])
            for row in rows[start : start + TOGETHER].tolist()
        ]
        counts = family.fit(
            group, X, y, splits, pool=pool, budget=process_cache()
        ).counts
        found.test_errors[:, 0] += counts.test_errors.sum(axis=1)
        found.seconds[:, 0] += np.nansum(counts.seconds, axis=1)
        for place, column in np.argwhere(counts.status == FIT_FAILED).tolist():
            key = group[place].number, splits[column].number
            why = f"without row {key[1]}: {counts.messages.get(key, '')}"
            failures.setdefault(place, why)
    for place, why in failures.items():
        found.refuse((place, 0), (group[place].number, split.number), why)
    return found
