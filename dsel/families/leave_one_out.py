"""Leave-one-out errors of a group; kernel SVMs without fits from scratch."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dsel.data.cache import process_cache
from dsel.data.splits import Split
from dsel.families.arrays import Floats, Integers, as_floats
from dsel.families.family import FIT_FAILED, Candidate, Family, FitCounts
from dsel.families.svm.leave_one_out import leave_one_out_codes
from dsel.families.svm.settings import refusal, resolve_kernel
from dsel.kernels.reference_rows import reference_rows


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
    bases: dict[str, Floats] = {}
    counts = FitCounts.empty(len(group), 1)
    others = []
    for place, candidate in enumerate(group):
        if has_fixed_kernel(candidate) and not family.fit_params:
            started = time.perf_counter()
            counts.record(place, _errors_from_full_solution(candidate, X, y, bases), -1)
            counts.seconds[place] = time.perf_counter() - started
        else:
            others.append(place)
    if others:
        _refit(family, group, others, X, y, split, counts, pool=pool)
    return counts


def has_fixed_kernel(candidate: Candidate) -> bool:
    """Return whether it is an SVC whose problem without a row is known beforehand.

    ``gamma="scale"`` and balanced weights change with the rows, steps of a pipeline
    are fitted to them.
    """
    svc = candidate.estimator
    if refusal(svc, {}) is not None or hasattr(svc, "steps"):
        return False
    if svc.kernel == "precomputed" or svc.class_weight is not None:
        return False
    return bool(svc.kernel == "linear" or svc.gamma != "scale")


def _errors_from_full_solution(
    candidate: Candidate, X: Any, y: Integers, bases: dict[str, Floats]
) -> int:
    """Count errors by dropping a row at a time from the solution of all rows."""
    svc, X = candidate.estimator, as_floats(X)  # products of int8 would overflow
    kernel = resolve_kernel(svc, X)
    if kernel.base not in bases:
        bases[kernel.base] = reference_rows(X, kernel.base).base_of(X)
    gram = kernel.values(bases[kernel.base]).astype(np.float32)
    codes = leave_one_out_codes(
        gram, y, C=float(svc.C), tol=float(svc.tol), max_iter=svc.max_iter
    )
    return int(np.sum(codes != y))


def _refit(
    family: Family,
    group: Sequence[Candidate],
    places: Sequence[int],
    X: Any,
    y: Integers,
    split: Split,
    counts: FitCounts,
    *,
    pool: Any,
) -> None:
    """Fit the candidates at `places` once a row, and write their counts."""
    rows = np.arange(len(y))
    splits = [
        Split(row, f"without-{row}", np.delete(rows, row), rows[row : row + 1])
        for row in range(len(y))
    ]
    found = family.fit(
        [group[place] for place in places],
        X,
        y,
        splits,
        pool=pool,
        budget=process_cache(),
    ).counts
    for row, place in enumerate(places):
        counts.seconds[place] = np.nansum(found.seconds[row])
        failed = np.flatnonzero(found.status[row] == FIT_FAILED)
        if not len(failed):
            counts.record(place, found.test_errors[row].sum(), -1)
            continue
        number = group[place].number
        message = found.messages.get((number, int(failed[0])), "")
        counts.messages[number, split.number] = f"without row {failed[0]}: {message}"
