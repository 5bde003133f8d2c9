"""Leave-one-out errors of a group, by one fit for every row."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dsel.arrays import Features, Integers
from dsel.data.cache import process_cache
from dsel.data.splits import Split, SplitKind
from dsel.families.family import Candidate, Family, FitCounts, FitKey

MODELS_AT_ONCE: Final = 64
"""Most rows whose models are in memory at once."""


def leave_one_out_counts(
    family: Family,
    group: Sequence[Candidate],
    X: Features,
    y: Integers,
    split: Split,
    *,
    pool: object = None,
) -> FitCounts:
    """Count the leave-one-out errors of every candidate of a group.

    The counts have one column, for the `split` from `leave_one_out_split`. Errors
    are -1 where a fit failed; those of a second part are always -1.
    """
    rows = np.arange(len(y))
    failures: dict[int, str] = {}
    totals = FitCounts.empty(len(group), 1)
    totals.record(np.s_[:], 0)
    totals.seconds[:] = 0.0
    for start in range(0, len(y), MODELS_AT_ONCE):
        splits = [
            Split(row, SplitKind.ROW, (row,), np.delete(rows, row), rows[[row]])
            for row in rows[start : start + MODELS_AT_ONCE].tolist()
        ]
        counts = family.fit(
            group, X, y, splits, pool=pool, budget=process_cache()
        ).counts
        # Failed fits add -1 here; `refuse` below overwrites the sums of their rows.
        totals.errors[:, 0, 0] += counts.errors[..., 0].sum(axis=1)
        totals.seconds[:, 0] += np.nansum(counts.seconds, axis=1)
        for i, column in np.argwhere(counts.has_failed).tolist():
            key = FitKey(group[i].number, splits[column].number)
            message = counts.messages.get(key)
            why = message.text if message is not None else ""
            failures.setdefault(i, f"without row {key.split}: {why}")
    for i, why in failures.items():
        totals.refuse((i, 0), FitKey(group[i].number, split.number), why)
    return totals
