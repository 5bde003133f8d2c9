"""Leave-one-out errors of every candidate; kernel SVMs without fits from scratch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.cache import process_cache
from dsel.data.labeled import LabeledRows, labeled_rows
from dsel.data.trainings import Training
from dsel.data.words import seed_from
from dsel.kernels.parts import anchor
from dsel.models.base import Candidate
from dsel.models.choosing import assign_families
from dsel.models.kernel_svm_settings import is_svc, refusal, resolve_kernel
from dsel.searches.grid import Grid, make_candidates
from dsel.solvers.leave_one_out import leave_one_out_codes


def leave_one_out_errors(
    estimator: Any, grid: Grid | None, X: Any, y: Any, *, random_state: Any = 0
) -> NDArray[np.int64]:
    """Count for every candidate the rows that the model of all others errs on.

    An SVC whose kernel does not depend on the rows is fitted once; a row that is no
    support vector needs no other fit, the others go on from the full solution. All
    other candidates are fitted once a row.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `grid` lists some.
    grid
        Dict of parameter to values, list of such dicts, or list of estimators; None
        for the estimator as it is.
    X, y
        Labeled rows, in memory, and their labels.
    random_state
        Seed of the learners.

    Returns
    -------
    ndarray
        Errors, (n_candidates,), in ``ParameterGrid`` order; -1 where a fit failed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> leave_one_out_errors(SVC(gamma=0.1), {"C": [0.1, 1.0]}, X, y).tolist()
    [9, 4]
    """
    if grid is None:
        estimator, grid = None, [estimator]
    labeled, candidates = labeled_rows(X, y), make_candidates(estimator, grid)
    seed = seed_from(random_state)
    return count_leave_one_out(candidates, labeled, seed)


def count_leave_one_out(
    candidates: tuple[Candidate, ...], labeled: LabeledRows, seed: int
) -> NDArray[np.int64]:
    """Count leave-one-out errors of candidates that are numbered from 0."""
    errors = np.full(len(candidates), -1, dtype=np.int64)
    others = []
    products: dict[str, NDArray[np.float64]] = {}
    for candidate in candidates:
        if has_fixed_kernel(candidate):
            errors[candidate.number] = _svm_errors(candidate, labeled, products)
        else:
            others.append(candidate)
    if others:
        _refit(tuple(others), labeled, seed, errors)
    return errors


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


def _svm_errors(
    candidate: Candidate, labeled: LabeledRows, parts: dict[str, NDArray[np.float64]]
) -> int:
    svc = candidate.estimator
    kernel = resolve_kernel(svc, labeled.X)
    if kernel.part not in parts:
        anchors = anchor(labeled.X, kernel.part)
        parts[kernel.part] = anchors.part_of(labeled.X)
    gram = kernel.values(parts[kernel.part]).astype(np.float32)
    codes = leave_one_out_codes(
        gram, labeled.y, C=float(svc.C), tol=float(svc.tol), max_iter=svc.max_iter
    )
    return int(np.sum(codes != labeled.y))


def _refit(
    candidates: tuple[Candidate, ...],
    labeled: LabeledRows,
    seed: int,
    errors: NDArray[np.int64],
) -> None:
    """Fit every candidate once a row, and write its errors at its number."""
    rows = np.arange(labeled.n_rows)
    trainings = [
        Training(row, f"without-{row}", np.delete(rows, row), rows[row : row + 1])
        for row in range(labeled.n_rows)
    ]
    for assigned in assign_families(
        candidates, labeled.X, classes=labeled.classes, seed=seed, fit_params={}
    ):
        for group in assigned.family.groups(assigned.candidates):
            counts = assigned.family.fit(
                group, labeled.X, labeled.y, trainings, budget=process_cache()
            ).counts
            failed = (counts.test_errors < 0).any(axis=1)
            numbers = [candidate.number for candidate in group]
            errors[numbers] = np.where(failed, -1, counts.test_errors.sum(axis=1))
