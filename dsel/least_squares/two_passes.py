r"""Least squares with few centres and any number of rows, in two passes.

With the design X (n x b), M = X X' has rank b at most, so the algebra of `closed_form`
is done with X'X instead. Pass 1 adds up X'X and X'y over
chunks of rows, about their means. Then, with X'X = V diag(s^2) V' and
w = 1 / (s^2 + lam), pass 2 takes of each chunk T = X_chunk V and

    h = (T * T) w,    yhat = T (w * V'X'y),    e = (y - yhat) / (1 - h),

the exact leave-one-out residuals of that model. An intercept is taken out by centring:
X - 1 m' and y - ybar in the place of X and y, and 1/n added to h. Memory is b^2 and a
chunk; sums are added in row order, so who computed which chunk changes no digit.
"""

from dataclasses import dataclass

import numpy as np

from dsel.arrays import Floats
from dsel.least_squares.kernel import EPS

SMALLEST_GAP = 1e-12
"""Where 1 - h is below this it is rounding: the residual is not defined."""


@dataclass(frozen=True)
class Moments:
    """Sums over rows that pass 1 collects."""

    n_rows: int
    """n."""
    design_mean: Floats
    """m, shape (b,)."""
    target_mean: Floats
    """ybar, shape (n_outputs,)."""
    scatter: Floats
    """(X - 1 m')'(X - 1 m'), shape (b, b)."""
    cross: Floats
    """(X - 1 m')'(y - ybar), shape (b, n_outputs)."""

    def __add__(self, later: "Moments") -> "Moments":
        """Return the moments of these rows and later ones."""
        n = self.n_rows + later.n_rows
        weight = self.n_rows * later.n_rows / n
        design_gap = later.design_mean - self.design_mean
        target_gap = later.target_mean - self.target_mean
        return Moments(
            n,
            self.design_mean + later.n_rows / n * design_gap,
            self.target_mean + later.n_rows / n * target_gap,
            self.scatter + later.scatter + weight * np.outer(design_gap, design_gap),
            self.cross + later.cross + weight * np.outer(design_gap, target_gap),
        )


@dataclass(frozen=True)
class ThinSolution:
    """The models of all lam, and what pass 2 needs of them."""

    n_rows: int
    """n."""
    regularizations: Floats
    """lam, shape (n_lam,)."""
    vectors: Floats
    """V, shape (b, b)."""
    inverse: Floats
    """w, shape (b, n_lam)."""
    rotated: Floats
    """V'X'y (centred with an intercept), shape (b, n_outputs)."""
    middle: Floats
    """m, shape (b,); zero without an intercept."""
    level: Floats
    """ybar, shape (n_outputs,); zero without an intercept."""
    base_leverage: float
    """1/n with an intercept, else 0."""
    residual_trace: Floats
    """tr H, shape (n_lam,)."""
    rounding_limit: float
    """Regularizations up to this one are below the rounding of X'X."""

    def coefficients(self) -> Floats:
        """Return alpha, shape (b, n_outputs, n_lam)."""
        filtered = self.inverse[:, np.newaxis, :] * self.rotated[:, :, np.newaxis]
        b, n_outputs, n_lam = filtered.shape
        product = self.vectors @ filtered.reshape(b, n_outputs * n_lam)
        return np.asarray(product.reshape(b, n_outputs, n_lam))

    def intercepts(self) -> Floats:
        """Return the constants, shape (n_outputs, n_lam)."""
        moved = np.tensordot(self.middle, self.coefficients(), axes=1)
        return np.asarray(self.level[:, np.newaxis] - moved)


@dataclass(frozen=True)
class Losses:
    """Sums over rows that pass 2 collects, shape (n_lam,) each."""

    loo: Floats
    """Squared leave-one-out residuals; inf where one is not defined."""
    train: Floats
    """Squared residuals of the full models."""

    def __add__(self, later: "Losses") -> "Losses":
        """Return the losses of these rows and later ones."""
        return Losses(self.loo + later.loo, self.train + later.train)


def count_moments(design: Floats, y: Floats) -> Moments:
    """Return the moments of a chunk of rows.

    Parameters
    ----------
    design
        Rows of X, shape (n_rows, b).
    y
        Targets, shape (n_rows, n_outputs).
    """
    middle, level = design.mean(axis=0), y.mean(axis=0)
    turned = (design - middle).T
    # Subtracted here, not from sums over all rows, whose rounding would be what is left
    # of targets far from 0.
    return Moments(len(design), middle, level, turned @ turned.T, turned @ (y - level))


def solve_moments(
    moments: Moments, regularizations: Floats, *, fit_intercept: bool = False
) -> ThinSolution:
    """Factor X'X once and solve for every regularization.

    Parameters
    ----------
    moments
        Of all rows.
    regularizations
        lam >= 0, shape (n_lam,).
    fit_intercept
        Whether the model has an unpenalised constant.
    """
    n = moments.n_rows
    gram, cross = moments.scatter, moments.cross
    middle, level = moments.design_mean, moments.target_mean
    if not fit_intercept:
        # X'X = (X - 1 m')'(X - 1 m') + n m m'.
        gram = gram + n * np.outer(middle, middle)
        cross = cross + n * np.outer(middle, level)
        middle, level = np.zeros_like(middle), np.zeros_like(level)
    values, vectors = np.linalg.eigh(gram)
    # What a decomposition may be off by, as for kernel matrices.
    limit = len(values) * EPS * max(float(values[-1]), 0.0)
    # Rounding may make small eigenvalues negative.
    squares = np.maximum(values, 0.0)[:, np.newaxis]
    # At lam = 0 what differs from a null direction by rounding alone is left out.
    is_null = (squares <= limit) & (regularizations == 0)
    inverse = np.where(
        is_null, 0.0, 1.0 / np.where(is_null, 1.0, squares + regularizations)
    )
    base = 1.0 / n if fit_intercept else 0.0
    return ThinSolution(
        n,
        regularizations,
        vectors,
        inverse,
        vectors.T @ cross,
        middle,
        level,
        base,
        n * (1.0 - base) - (squares * inverse).sum(axis=0),
        limit,
    )


def count_losses(solution: ThinSolution, design: Floats, y: Floats) -> Losses:
    """Return the losses of a chunk of rows.

    `design` and `y` are as `count_moments` takes them, `solution` is of all rows.
    """
    # In the basis of V, X'X + lam I is diagonal for every lam.
    turned = (design - solution.middle) @ solution.vectors
    n_outputs, n_lam = y.shape[1], solution.inverse.shape[1]
    filtered = solution.inverse[:, np.newaxis, :] * solution.rotated[:, :, np.newaxis]
    fitted = turned @ filtered.reshape(len(filtered), n_outputs * n_lam)
    residuals = (y - solution.level)[:, :, np.newaxis]
    residuals = residuals - fitted.reshape(-1, n_outputs, n_lam)
    # 1 - h; the intercept alone explains 1 / n of each row.
    gap = 1.0 - solution.base_leverage - np.square(turned) @ solution.inverse
    squares = np.square(residuals).sum(axis=1)
    undefined = gap < SMALLEST_GAP
    loo = squares / np.square(np.where(undefined, 1.0, gap))
    loo[undefined] = np.inf
    return Losses(loo.sum(axis=0), squares.sum(axis=0))


def gcv_losses(solution: ThinSolution, losses: Losses) -> Floats:
    """Return n times the generalised cross-validation score, shape (n_lam,)."""
    n, trace = solution.n_rows, solution.residual_trace
    undefined = trace < n * SMALLEST_GAP
    trace = np.where(undefined, 1.0, trace)
    return np.where(undefined, np.inf, n**2 * losses.train / trace**2)
