"""Leave-one-out errors of a group; kernel SVMs without fits from scratch."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import process_cache
from dsel.data.trainings import Training
from dsel.kernels.parts import anchor
from dsel.models.base import FIT_DONE, FIT_FAILED, Candidate, Family, FitCounts
from dsel.models.kernel_svm_settings import is_svc, refusal, resolve_kernel
from dsel.solvers.leave_one_out import leave_one_out_codes


def leave_one_out_counts(
    family: Family,
    group: Sequence[Candidate],
    X: Any,
    y: NDArray[np.int64],
    training: Training,
    *,
    pool: Any = None,
) -> FitCounts:
    """Count the errors of every candidate of a group, each row held out once.

    Parameters
    ----------
    family
        How the candidates are fitted.
    group
        One of its groups.
    X, y
        Labeled rows and class codes.
    training
        From `leave_one_out_training`: the column of the counts.
    pool
        As for `Family.fit`.

    Returns
    -------
    FitCounts
        One column: test errors, -1 where a fit failed; training errors are -1.
    """
    parts: dict[str, NDArray[np.float64]] = {}
    found: dict[int, FitCounts] = {}
    others = []
    for candidate in group:
        if has_fixed_kernel(candidate) and not family.fit_params:
            found[candidate.number] = _from_full_solution(candidate, X, y, parts)
        else:
            others.append(candidate)
    if others:
        found |= _refitted(family, others, X, y, training, pool)
    return _stacked([found[candidate.number] for candidate in group])


def has_fixed_kernel(candidate: Candidate) -> bool:
    """Return whether it is an SVC whose problem without a row is known beforehand.

    ``gamma="scale"`` and balanced weights change with the rows, steps of a pipeline
    are fitted to them.
    """
    svc = candidate.estimator
    if refusal([candidate], {}) is not None or not is_svc(svc) or hasattr(svc, "steps"):
        return False
    if svc.kernel == "precomputed" or svc.class_weight is not None:
        return False
    return bool(svc.kernel == "linear" or svc.gamma != "scale")


def _from_full_solution(
    candidate: Candidate,
    X: Any,
    y: NDArray[np.int64],
    parts: dict[str, NDArray[np.float64]],
) -> FitCounts:
    started = time.perf_counter()
    svc = candidate.estimator
    kernel = resolve_kernel(svc, X)
    if kernel.part not in parts:
        parts[kernel.part] = anchor(X, kernel.part).part_of(X)
    gram = kernel.values(parts[kernel.part]).astype(np.float32)
    codes = leave_one_out_codes(
        gram, y, C=float(svc.C), tol=float(svc.tol), max_iter=svc.max_iter
    )
    return _cell(int(np.sum(codes != y)), time.perf_counter() - started)


def _refitted(
    family: Family,
    candidates: Sequence[Candidate],
    X: Any,
    y: NDArray[np.int64],
    training: Training,
    pool: Any,
) -> dict[int, FitCounts]:
    """Fit every candidate once a row; return its counts by its number."""
    rows = np.arange(len(y))
    trainings = [
        Training(row, f"without-{row}", np.delete(rows, row), rows[row : row + 1])
        for row in range(len(y))
    ]
    counts = family.fit(
        candidates, X, y, trainings, pool=pool, budget=process_cache()
    ).counts
    found = {}
    for place, candidate in enumerate(candidates):
        failed = np.flatnonzero(counts.status[place] == FIT_FAILED)
        errors = -1 if len(failed) else int(counts.test_errors[place].sum())
        seconds = float(np.nansum(counts.seconds[place]))
        messages = {}
        if len(failed):
            said = counts.messages.get((candidate.number, int(failed[0])), "")
            key = (candidate.number, training.number)
            messages[key] = f"without row {failed[0]}: {said}"
        found[candidate.number] = _cell(errors, seconds, messages)
    return found


def _cell(
    errors: int, seconds: float, messages: Mapping[tuple[int, int], str] | None = None
) -> FitCounts:
    """Return the counts of one candidate; none of them, and it has failed."""
    status = FIT_FAILED if errors < 0 else FIT_DONE
    return FitCounts(
        np.array([[errors]]),
        np.array([[-1]]),
        np.array([[status]], dtype=np.int8),
        np.array([[seconds]]),
        messages or {},
    )


def _stacked(cells: Sequence[FitCounts]) -> FitCounts:
    return FitCounts(
        np.vstack([cell.test_errors for cell in cells]),
        np.vstack([cell.train_errors for cell in cells]),
        np.vstack([cell.status for cell in cells]),
        np.vstack([cell.seconds for cell in cells]),
        {key: text for cell in cells for key, text in cell.messages.items()},
    )
