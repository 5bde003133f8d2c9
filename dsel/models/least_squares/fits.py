"""All regularizations and fold models of one width from one decomposition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsel.checks import check_nonnegative
from dsel.data.identity import content_hash
from dsel.data.splits import Split
from dsel.families.arrays import Bools, Floats, Integers
from dsel.families.family import Cache, Candidate
from dsel.kernels.eigen import (
    Spectrum,
    check_memory,
    decompose_design,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    whitening,
)
from dsel.models.least_squares.coefficients import (
    class_targets,
    decide,
    rounding_of_scores,
)
from dsel.models.least_squares.fitted import WidthModels, empty_models
from dsel.solvers.least_squares import DualSolution, solve_dual
from dsel.solvers.least_squares_blocks import block_residuals, dual_models

BROKEN_BY_ROW_CENTERS = (
    "penalty='coefficients' with a centre at every labeled row: the fold models keep "
    "the kernels at held-out rows; use penalty='rkhs', or `centers` that were fixed "
    "without the labeled rows"
)
LARGEST_BLOCK = 0.3
"""Share of left-out rows from which decomposing the others is cheaper than blocks."""


@dataclass(frozen=True)
class KernelBasis:
    """Where the kernels of a group stand and what their coefficients cost."""

    width: float
    """c > 0."""
    penalty: str
    """``"coefficients"`` or ``"rkhs"``."""
    centers: Floats | None
    """z, or None for one centre per labeled row."""

    def centers_for(self, X: Any) -> Any:
        """Return z, shape (n_centers, n_columns)."""
        return X if self.centers is None else self.centers

    def spectrum(self, X: Any) -> Spectrum:
        """Factor M of all rows: the one decomposition of a width."""
        if self.centers is not None:
            return decompose_design(self._design(X, self.centers))
        return decompose_gram(gaussian_gram(X, width=self.width), penalty=self.penalty)

    def spectrum_of_part(self, X: Any, rows: Integers) -> Spectrum:
        """Factor M of some rows alone, with the same centres."""
        if dependence(self.penalty, self.centers):
            return decompose_design(self._design(X[rows], X))
        return self.spectrum(X[rows])

    def coefficients(self, X: Any, dual: Floats) -> Floats:
        """Return alpha, shape (n_centers, ...), of dual vectors, shape (n, ...)."""
        flat = dual.reshape(len(dual), -1)
        if self.centers is not None:
            root = self._root(self.centers)
            design = gaussian_kernel(X, self.centers, width=self.width)
            flat = root @ (root.T @ (design.T @ flat))
        elif self.penalty == "coefficients":
            flat = gaussian_gram(X, width=self.width) @ flat
        return flat.reshape(-1, *dual.shape[1:])

    def token(self, X: Any) -> str:
        """Name the decomposition by content, for the cache."""
        where = "rows" if self.centers is None else content_hash(self.centers)
        return f"{self.width!r} {self.penalty} {content_hash(X)} {where}"

    def _design(self, X: Any, centers: Any) -> Floats:
        kernel = gaussian_kernel(X, centers, width=self.width)
        return kernel @ self._root(centers) if self.penalty == "rkhs" else kernel

    def _root(self, centers: Any) -> Floats:
        if self.penalty == "coefficients":
            return np.eye(centers.shape[0])
        return whitening(gaussian_gram(centers, width=self.width))


def dependence(penalty: str, centers: Any) -> str:
    """Return why fold models depend on their held-out rows (A3), empty if not."""
    has_row_centers = penalty == "coefficients" and centers is None
    return BROKEN_BY_ROW_CENTERS if has_row_centers else ""


@dataclass(frozen=True)
class _Solution:
    """The models of one split, the last axis over lam."""

    coefficients: Floats
    """alpha, shape (n_centers, n_scores, n_lam)."""
    intercepts: Floats
    """b, shape (n_scores, n_lam)."""
    scores: Floats
    """Of all labeled rows, shape (n, n_scores, n_lam)."""

    def decided(self) -> Integers:
        """Return the class code of every row, shape (n, n_lam)."""
        tolerance = rounding_of_scores(self.coefficients, self.intercepts)
        return decide(np.moveaxis(self.scores, 1, 2), tolerance.T)


def fit_width(
    basis: KernelBasis,
    group: Sequence[Candidate],
    X: Any,
    y: Integers,
    splits: Sequence[Split],
    *,
    key: str,
    n_classes: int,
    budget: Cache,
) -> WidthModels:
    """Fit all candidates of a width on all splits; they differ in `regularization`.

    `key` is what groups have in common that can be joined; `budget` limits the
    decomposition, and keeps it for the other splits.
    """
    # Of all rows, whatever the splits: no fit may depend on which others there are.
    if basis.centers is None:
        check_memory(X.shape[0], budget.limit)
    token, intercept = basis.token(X), bool(group[0].estimator.fit_intercept)
    centers = basis.centers_for(X)
    models = empty_models(key, basis.width, centers, group, splits, n_classes)
    lams = _usable(group, splits, models)
    for place, split in enumerate(splits):
        train = split.train_rows
        # A class without training rows must not be predicted (A3): its scores are
        # masked.
        seen = np.bincount(y[train], minlength=n_classes) > 0
        models.seen[place] = seen
        if seen.sum() == 1:
            _write_constant(models, place, split, y, lams)
            continue
        # Targets of rows outside the split are zero, so that not even rounding
        # lets a held-out label through.
        targets = class_targets(y, n_classes)
        left_out = np.setdiff1d(np.arange(len(targets)), train)
        targets[left_out] = 0.0
        # Few rows left out: the closed form from the decomposition of all rows.
        if len(left_out) <= LARGEST_BLOCK * len(targets):
            spectrum = budget.get(token, lambda: basis.spectrum(X))
            dual = solve_dual(spectrum, targets, lams, fit_intercept=intercept)
            solution = _without_rows(basis, X, targets, dual, left_out)
        else:
            spectrum = basis.spectrum_of_part(X, train)
            dual = solve_dual(spectrum, targets[train], lams, fit_intercept=intercept)
            solution = _of_part(basis, X, dual, train)
        if n_classes > 2:
            solution.scores[:, ~seen] = -np.inf
        models.coefficients[place] = np.moveaxis(solution.coefficients, 1, 2)
        models.intercepts[place] = solution.intercepts.T
        _note_singular(models, basis, dual, split)
        _record(models, place, split, solution.decided(), y)
    return models


def _usable(
    group: Sequence[Candidate], splits: Sequence[Split], models: WidthModels
) -> Floats:
    """Return every lam, 1 in the place of those out of range, whose fits failed."""
    lams = np.ones(len(group))
    for place, candidate in enumerate(group):
        try:
            lams[place] = check_nonnegative(
                candidate.estimator.regularization, "regularization"
            )
        except (TypeError, ValueError) as error:
            for split in splits:
                models.counts.failed(candidate.number, split.number, error)
    return lams


def _without_rows(
    basis: KernelBasis, X: Any, targets: Floats, dual: DualSolution, left_out: Integers
) -> _Solution:
    """Use the solution of all rows; the scores need no kernel.

    They follow from (M + lam I) beta = y~ - b.
    """
    residuals = block_residuals(dual, left_out) if len(left_out) else None
    models = dual_models(dual, left_out, residuals)
    # The predictions M beta + b are y~ - lam beta.
    scores = targets[:, :, np.newaxis] - dual.regularizations * models.dual
    if residuals is not None:
        # On rows left out the prediction is y - e_T, with y = 0 here.
        scores[left_out] -= residuals
    return _Solution(basis.coefficients(X, models.dual), models.intercept, scores)


def _of_part(
    basis: KernelBasis, X: Any, dual: DualSolution, train_rows: Integers
) -> _Solution:
    """Take the full solution of the training rows alone."""
    models = dual_models(dual)
    # Rows outside of the training rows have no coefficient.
    everywhere = np.zeros((X.shape[0], *models.dual.shape[1:]))
    everywhere[train_rows] = models.dual
    coefficients = basis.coefficients(X, everywhere)
    kernel = gaussian_kernel(X, basis.centers_for(X), width=basis.width)
    scores = kernel @ coefficients.reshape(len(coefficients), -1)
    scores = scores.reshape(-1, *everywhere.shape[1:]) + models.intercept
    return _Solution(coefficients, models.intercept, scores)


def _write_constant(
    models: WidthModels, place: int, split: Split, y: Integers, lams: Floats
) -> None:
    """Predict the only class of the training rows."""
    only = int(np.argmax(models.seen[place]))
    models.intercepts[place] = class_targets(np.array([only]), models.seen.shape[1])[0]
    _record(models, place, split, np.full((len(y), len(lams)), only), y)


def _note_singular(
    models: WidthModels, basis: KernelBasis, dual: DualSolution, split: Split
) -> None:
    """Say which regularizations the kernel matrix is too singular for."""
    messages = models.counts.messages
    limit = dual.spectrum.rounding_limit()
    is_rkhs = basis.penalty == "rkhs" and basis.centers is None
    for place, number in enumerate(models.candidates):
        key = (number, split.number)
        if key in messages:
            continue
        if dual.is_limit[place]:
            messages[key] = (
                "`regularization` is 0 but the kernel matrix is singular; use a "
                "positive value"
            )
        elif is_rkhs and 0 < dual.regularizations[place] <= limit:
            messages[key] = (
                f"`regularization` is below the kernel's rounding, {limit:.1e}"
            )


def _record(
    models: WidthModels, place: int, split: Split, decided: Integers, y: Integers
) -> None:
    """Count the errors of the candidates that did not fail."""
    wrong: Bools = decided != y[:, np.newaxis]
    ok = [
        column
        for column, number in enumerate(models.candidates)
        if (number, split.number) not in models.counts.messages
    ]
    test, others = (
        wrong[rows].sum(axis=0, dtype=np.int64)[ok]
        for rows in (split.test_rows, split.other_rows)
    )
    others = others if split.counts_others else np.full_like(others, -1)
    models.counts.record((ok, place), test, others)
