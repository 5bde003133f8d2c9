"""Leave-one-out errors of every candidate of a grid."""

import numpy as np
from numpy.typing import NDArray

from dsel.data.labeled import LabeledRows
from dsel.data.splits import leave_one_out_split
from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.families.leave_one_out import leave_one_out_counts


def count_leave_one_out(
    candidates: tuple[Candidate, ...], labeled: LabeledRows, seed: int
) -> NDArray[np.int64]:
    """Count leave-one-out errors of candidates that are numbered from 0."""
    errors = np.full(len(candidates), -1, dtype=np.int64)
    split = leave_one_out_split(labeled.n_rows)
    for assigned in assign_families(
        candidates, labeled.X, classes=labeled.classes, seed=seed, fit_params={}
    ):
        for group in assigned.groups:
            counts = leave_one_out_counts(
                assigned.family, group, labeled.X, labeled.y, split
            )
            numbers = [candidate.number for candidate in group]
            errors[numbers] = counts.test_errors[:, 0]
    return errors
