r"""Least squares with few centers and any number of rows, in two passes.

With the design X (n x b), M = X X' has rank at most b, so the algebra of `closed_form`
is done with X'X instead. Pass 1 adds up X'X and X'y over chunks of rows, about their
means. Then, with X'X = V diag(s^2) V' and w = 1 / (s^2 + lam), pass 2 computes for each
chunk T = X_chunk V and

    h = (T * T) w,    yhat = X_chunk V (w * V'X'y),    e = (y - yhat) / (1 - h),

the exact leave-one-out residuals of the model. An intercept is handled by centering:
X - 1 m' and y - ybar replace X and y, and 1/n is added to h. Memory is b^2 and a chunk.
Sums are added in row order, so the assignment of chunks to workers changes no digit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dsel.arrays import Floats
from dsel.least_squares.closed_form import EPS

SMALLEST_GAP = 1e-12
"""A smaller 1 - h is rounding, and the leave-one-out residual is undefined."""
Sums = dict[str, Any]
"""Sums of a pass over some rows, by name."""


def count_moments(design: Floats, y: Floats) -> Sums:
    """Return ``n_rows``, ``mean`` and ``scatter`` about it of a chunk of rows [X y]."""
    both = np.concatenate([design, y], axis=1)
    mean = both.mean(axis=0)
    # The mean is subtracted here, not from the sums over all rows: for targets far from
    # 0 the rounding of those sums would exceed the differences.
    both -= mean
    return {"n_rows": len(both), "mean": mean, "scatter": both.T @ both}


def merge_moments(these: Sums, later: Sums) -> Sums:
    """Merge the moments of two parts of the rows (Chan, Golub and LeVeque, 1979)."""
    n, gap = these["n_rows"] + later["n_rows"], later["mean"] - these["mean"]
    fraction = later["n_rows"] / n
    between = these["n_rows"] * fraction * np.outer(gap, gap)
    return {
        "n_rows": n,
        "mean": these["mean"] + fraction * gap,
        "scatter": these["scatter"] + later["scatter"] + between,
    }


@dataclass(frozen=True)
class ThinSolution:
    """The models of all lam, and the factors that pass 2 needs."""

    X_mean: Floats
    """m, shape (b,); zero without an intercept."""
    y_mean: Floats
    """ybar, shape (n_outputs,); zero without an intercept."""
    base_leverage: float
    """1/n with an intercept, else 0."""
    vectors: Floats
    """V, shape (b, b)."""
    inverse: Floats
    """w, shape (b, n_lam)."""
    coefficients: Floats
    """alpha, shape (b, n_outputs, n_lam)."""
    gcv_factor: Floats
    """(n / tr H)^2, shape (n_lam,). Its product with the sum of squared residuals is n
    times the generalized cross-validation score; NaN where no row has a residual."""
    rounding_limit: float
    """Regularizations up to this one are below the rounding of X'X."""


def solve_moments(
    moments: Sums,
    n_outputs: int,
    regularizations: Floats,
    *,
    fit_intercept: bool = False,
) -> ThinSolution:
    """Factor X'X once and solve for every regularization, lam >= 0.

    `moments` are of all rows, and the last of their columns are the targets; with
    `fit_intercept` the models have an unpenalised constant.
    """
    n, mean, scatter = moments["n_rows"], moments["mean"], moments["scatter"]
    b, base = len(mean) - n_outputs, 1.0 / n
    if not fit_intercept:
        scatter = scatter + n * np.outer(mean, mean)  # Z'Z
        mean, base = np.zeros_like(mean), 0.0
    values, vectors = np.linalg.eigh(scatter[:b, :b])
    # This bounds the error of the eigenvalues, as in `Spectrum.rounding_limit`.
    limit = b * EPS * max(float(values[-1]), 0.0)
    # Rounding may make small eigenvalues negative.
    squares = np.maximum(values, 0.0)[:, np.newaxis]
    # At lam = 0 directions that differ from null directions only by rounding are left
    # out, as in a pseudoinverse.
    is_null = (squares <= limit) & (regularizations == 0)
    inverse = ~is_null / np.where(is_null, 1.0, squares + regularizations)
    rotated = vectors.T @ scatter[:b, b:]
    filtered = inverse[:, np.newaxis, :] * rotated[:, :, np.newaxis]
    coefficients = vectors @ filtered.reshape(b, -1)
    trace = n * (1.0 - base) - (squares * inverse).sum(axis=0)
    return ThinSolution(
        X_mean=mean[:b],
        y_mean=mean[b:],
        base_leverage=base,
        vectors=vectors,
        inverse=inverse,
        coefficients=coefficients.reshape(filtered.shape),
        gcv_factor=(n / np.where(trace < n * SMALLEST_GAP, np.nan, trace)) ** 2,
        rounding_limit=limit,
    )


def count_losses(solution: ThinSolution, design: Floats, y: Floats) -> Sums:
    """Return sums of squared residuals of a chunk, ``loo`` and ``train``, (n_lam,).

    `design` and `y` are as `count_moments` takes them, `solution` is that of all rows.
    A leave-one-out residual that is undefined counts as infinite.
    """
    centered = design - solution.X_mean
    alpha = solution.coefficients
    fitted = centered @ alpha.reshape(len(alpha), -1)
    residuals = (y - solution.y_mean)[:, :, np.newaxis]
    residuals = residuals - fitted.reshape(-1, *alpha.shape[1:])
    # 1 - h; the intercept alone explains 1 / n of each row. In the basis of V,
    # X'X + lam I is diagonal for every lam.
    explained = np.square(centered @ solution.vectors) @ solution.inverse
    gap = 1.0 - solution.base_leverage - explained
    squares = np.square(residuals).sum(axis=1)
    is_undefined = gap < SMALLEST_GAP
    loo = squares / np.square(np.where(is_undefined, 1.0, gap))
    loo[is_undefined] = np.inf
    return {"loo": loo.sum(axis=0), "train": squares.sum(axis=0)}
