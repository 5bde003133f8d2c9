"""The least-squares classifiers of one training, for all regularizations at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.trainings import Training
from dsel.kernels.eigen import gaussian_kernel
from dsel.models.base import Cache
from dsel.models.kernel_coefficients import ROUNDING, check_regularization
from dsel.models.kernel_decisions import class_targets, decide
from dsel.models.kernel_least_squares_basis import KernelBasis
from dsel.solvers.least_squares import DualSolution, solve_dual
from dsel.solvers.least_squares_blocks import block_residuals, dual_models

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LARGEST_BLOCK = 0.3
"""Share of left-out rows from which decomposing the others is cheaper than blocks."""


@dataclass(frozen=True)
class LabeledTable:
    """Labeled rows and what all fits to them share."""

    X: Any
    """Rows, float64, dense or CSR, shape (n, n_columns)."""
    y: Codes
    """Class codes, shape (n,)."""
    n_classes: int
    """Classes of the plan."""
    token: str
    """Names the decomposition of all rows by content."""


@dataclass(frozen=True)
class TrainedModels:
    """Models of one training, the last axis (or first of errors) over lam."""

    coefficients: Floats
    """alpha, shape (n_centers, n_scores, n_lam)."""
    intercepts: Floats
    """b, shape (n_scores, n_lam)."""
    seen: NDArray[np.bool_]
    """Classes with training rows, shape (n_classes,)."""
    test_errors: Codes
    """Shape (n_lam,)."""
    train_errors: Codes
    """Shape (n_lam,)."""
    failures: dict[int, str]
    """Place of a regularization to why it cannot be used."""


def train_models(
    basis: KernelBasis,
    table: LabeledTable,
    training: Training,
    regularizations: Sequence[Any],
    *,
    fit_intercept: bool,
    budget: Cache,
) -> TrainedModels:
    """Fit the classifiers of all regularizations on one training.

    The targets of rows outside the training are set to zero first, so that not even
    rounding lets a held-out label through.
    """
    lams, failures = _checked(regularizations)
    seen = np.bincount(table.y[training.train_rows], minlength=table.n_classes) > 0
    if seen.sum() == 1:
        return _constant(basis, table, training, seen, len(lams))
    targets = class_targets(table.y, table.n_classes)
    left_out = np.setdiff1d(np.arange(len(targets)), training.train_rows)
    targets[left_out] = 0.0
    if len(left_out) <= LARGEST_BLOCK * len(targets):
        spectrum = budget.get(table.token, lambda: basis.spectrum(table.X))
        solution = solve_dual(spectrum, targets, lams, fit_intercept=fit_intercept)
        fitted = _without_rows(basis, table.X, targets, solution, left_out)
    else:
        spectrum = basis.spectrum_of_part(table.X, training.train_rows)
        solution = solve_dual(
            spectrum, targets[training.train_rows], lams, fit_intercept=fit_intercept
        )
        fitted = _of_part(basis, table.X, solution, training.train_rows)
    if table.n_classes > 2:
        fitted.scores[:, ~seen] = -np.inf
    decided = decide(np.moveaxis(fitted.scores, 1, 2), fitted.tolerance().T)
    test_errors, train_errors = _count_errors(decided, table.y, training)
    return TrainedModels(
        fitted.coefficients,
        fitted.intercepts,
        seen,
        test_errors,
        train_errors,
        failures | _unusable(basis, solution),
    )


@dataclass(frozen=True)
class _Fitted:
    """Coefficients, and the scores of all labeled rows, (n, n_scores, n_lam)."""

    coefficients: Floats
    intercepts: Floats
    scores: Floats

    def tolerance(self) -> Floats:
        total = np.abs(self.coefficients).sum(axis=0) + np.abs(self.intercepts)
        return np.asarray(ROUNDING * total)


def _without_rows(
    basis: KernelBasis, X: Any, targets: Floats, solution: DualSolution, left_out: Codes
) -> _Fitted:
    """Use (**); the scores need no kernel, as (M + lam I) beta = y~ - b."""
    residuals = None
    if len(left_out):
        residuals = block_residuals(solution, left_out)
    models = dual_models(solution, left_out, residuals)
    scores = targets[:, :, np.newaxis] - solution.regularizations * models.dual
    if residuals is not None:
        scores[left_out] -= residuals
    return _Fitted(basis.coefficients(X, models.dual), models.intercept, scores)


def _of_part(
    basis: KernelBasis, X: Any, solution: DualSolution, train_rows: Codes
) -> _Fitted:
    """Take the full solution of the training rows alone."""
    models = dual_models(solution, np.array([], np.int64))
    dual = np.zeros((X.shape[0], *models.dual.shape[1:]))
    dual[train_rows] = models.dual
    coefficients = basis.coefficients(X, dual)
    kernel = gaussian_kernel(X, basis.centers_for(X), width=basis.width)
    scores = kernel @ coefficients.reshape(len(coefficients), -1)
    scores = scores.reshape(-1, *dual.shape[1:]) + models.intercept
    return _Fitted(coefficients, models.intercept, scores)


def _constant(
    basis: KernelBasis,
    table: LabeledTable,
    training: Training,
    seen: NDArray[np.bool_],
    n_lam: int,
) -> TrainedModels:
    """Predict the only class of the training rows."""
    only = int(np.argmax(seen))
    levels = class_targets(np.array([only]), table.n_classes)[0]
    n_centers = basis.centers_for(table.X).shape[0]
    decided = np.full((len(table.y), n_lam), only)
    test_errors, train_errors = _count_errors(decided, table.y, training)
    return TrainedModels(
        np.zeros((n_centers, len(levels), n_lam)),
        np.repeat(levels[:, np.newaxis], n_lam, axis=1),
        seen,
        test_errors,
        train_errors,
        {},
    )


def _count_errors(decided: Codes, y: Codes, training: Training) -> tuple[Codes, Codes]:
    wrong = decided != y[:, np.newaxis]
    return (
        wrong[training.test_rows].sum(axis=0, dtype=np.int64),
        wrong[training.train_rows].sum(axis=0, dtype=np.int64),
    )


def _checked(regularizations: Sequence[Any]) -> tuple[Floats, dict[int, str]]:
    """Return the values, 1 in the place of those out of range, and their faults."""
    lams, failures = np.ones(len(regularizations)), {}
    for place, value in enumerate(regularizations):
        try:
            lams[place] = check_regularization(value)
        except (TypeError, ValueError) as error:
            failures[place] = f"{type(error).__name__}: {error}"
    return lams, failures


def _unusable(basis: KernelBasis, solution: DualSolution) -> dict[int, str]:
    """Say which regularizations the kernel matrix is too singular for."""
    failures = dict.fromkeys(
        map(int, np.flatnonzero(solution.is_limit)),
        "`regularization` is 0 but the kernel matrix is singular; use a positive value",
    )
    if basis.penalty == "rkhs" and basis.centers is None:
        limit = solution.spectrum.rounding_limit()
        too_small = (solution.regularizations > 0) & (solution.regularizations <= limit)
        message = f"`regularization` is below the kernel's rounding, {limit:.1e}"
        failures |= dict.fromkeys(map(int, np.flatnonzero(too_small)), message)
    return failures
