r"""Regularised least squares without refits: all rows left out, one factorisation.

Three models share one algebra. With design X (n x b), targets y and the penalty's
matrix M (n x n),

    coefficients   min ||X alpha - y||^2 + lam ||alpha||^2,        M = X X',
                   Gaussian kernels at the rows: X = K,            M = K^2;
    RKHS           min ||K alpha - y||^2 + lam alpha' K alpha,     M = K,

let G = (M + lam I)^-1. For lam > 0 the matrix of the slides, H = I - X L with
L = (X'X + lam I)^-1 X', equals lam G. For every set T of rows left out, the model
trained without T has on T the residuals

    e_T = (G_TT)^-1 (G y)_T,

for T = {j} e_j = (G y)_j / G_jj = (H y)_j / H_jj, hence
LOOCV = (1/n) || diag(H)^-1 H y ||^2. `docs/theory/other_methods.md` has the proof.
The model of all rows has the dual vector G y: for RKHS the coefficients themselves,
else alpha = X' G y.

An unpenalised intercept replaces G by G~ = G - (G 1)(G 1)' / (1'G 1) in all of
this; the intercept itself is (1'G y~) / (1'G 1).

Numerics. M = Q diag(mu) Q' once, then G = Q diag(r) Q' with r = 1 / (mu + lam) for
every lam. G_jj is a sum of positive terms; 1 - h_j would cancel where h_j is near 1.
A decomposition of K is off by some eps ||K||, which moves G, relatively, by that over
lam for the RKHS penalty, and by that over the root of lam for the other one. A refit by
Cholesky is off by as much: below n eps ||K|| no method has a digit.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from dsel.arrays import Floats, Integers
from dsel.least_squares.kernel import Spectrum

NEGLIGIBLE = 1e-12
"""Share of lam below which an eigenvalue changes nothing that is promised."""


@dataclass(frozen=True)
class DualSolution:
    """G y for every lam (with an intercept G~ y), and what it is made of."""

    spectrum: Spectrum
    """Q and mu."""
    regularizations: Floats
    """lam, shape (n_lam,)."""
    inverse: Floats
    """r, shape (n, n_lam)."""
    values: Floats
    """G y, shape (n, n_outputs, n_lam)."""
    intercept: Floats
    """(1'G y) / (1'G 1), shape (n_outputs, n_lam); zero without an intercept."""
    ones: Floats | None
    """G 1, shape (n, n_lam), or None without an intercept."""


def solve_dual(
    spectrum: Spectrum,
    y: Floats,
    regularizations: Floats,
    *,
    fit_intercept: bool = False,
) -> DualSolution:
    """Compute G y for all regularizations in one product.

    `y` has the shape (n, n_outputs), `regularizations` (n_lam,), none of them 0 where M
    is singular; with `fit_intercept` the model has an unpenalised constant.
    """
    mu = spectrum.values[:, np.newaxis]
    # Rounding makes some mu negative, by less than any lam that is not below it.
    inverse = 1.0 / np.maximum(mu + regularizations, regularizations / 2.0)
    # An intercept absorbs any shift of the targets, and near 0 they keep more digits.
    shift = y[0] if fit_intercept else np.zeros(y.shape[1])
    vectors = spectrum.vectors
    # G y = Q (r * Q'y) for all outputs and lam in one matrix product.
    filtered = inverse[:, np.newaxis, :] * (vectors.T @ (y - shift))[:, :, np.newaxis]
    values = (vectors @ filtered.reshape(len(y), -1)).reshape(filtered.shape)
    ones, intercept = None, np.zeros(filtered.shape[1:])
    if fit_intercept:
        ones = vectors @ (inverse * vectors.sum(axis=0)[:, np.newaxis])
        # G~ y = G y - G 1 (1'G y) / (1'G 1).
        constant = values.sum(axis=0) / ones.sum(axis=0)
        values = values - ones[:, np.newaxis, :] * constant
        intercept = constant + shift[:, np.newaxis]
    return DualSolution(spectrum, regularizations, inverse, values, intercept, ones)


def leave_one_out_residuals(solution: DualSolution) -> Floats:
    """Return e_j = (G y)_j / G_jj, the residual of the model trained without row j.

    Shape (n, n_outputs, n_lam).
    """
    # G_jj = sum_i Q_ji^2 r_i.
    diagonal = np.square(solution.spectrum.vectors) @ solution.inverse
    if solution.ones is not None:
        diagonal = diagonal - solution.ones**2 / solution.ones.sum(axis=0)
    return np.asarray(solution.values / diagonal[:, np.newaxis, :])


def block_residuals(solution: DualSolution, rows: Integers) -> Floats:
    """Return e_T = (G_TT)^-1 (G y)_T for the rows T left out together.

    T is not empty, and with an intercept not all rows. The shape is (len(rows),
    n_outputs, n_lam).
    """
    residuals = np.empty_like(solution.values[rows])
    # Where mu is nothing beside lam, r = 1 / lam: these columns of Q_T are multiplied
    # once for all larger lam, which for wide kernels is most of the work.
    sizes = abs(solution.spectrum.values)
    order = np.argsort(sizes)
    sizes, block = sizes[order], solution.spectrum.vectors[np.ix_(rows, order)]
    null, n_null = np.zeros((len(rows), len(rows))), 0
    for column in np.argsort(solution.regularizations):
        lam = solution.regularizations[column]
        start, n_null = n_null, int(np.searchsorted(sizes, NEGLIGIBLE * lam))
        null += block[:, start:n_null] @ block[:, start:n_null].T
        # G_TT = Q_T diag(r) Q_T' as a square, symmetric to the last digit.
        scaled = block[:, n_null:] * np.sqrt(solution.inverse[order[n_null:], column])
        inner = scaled @ scaled.T
        if n_null:
            inner += null / lam
        if solution.ones is not None:
            # The block of G~ instead of G.
            ones = solution.ones[:, column]
            inner -= np.outer(ones[rows], ones[rows] / ones.sum())
        values = solution.values[rows, :, column]
        _, solved, info = lapack.dposv(inner, values)
        if info != 0:
            # Not positive definite to rounding: the solution of least norm.
            solved = np.linalg.lstsq(inner, values, rcond=None)[0]
        residuals[:, :, column] = solved
    return residuals


def gcv_losses(solution: DualSolution) -> Floats:
    r"""Return n times the generalised cross-validation score, shape (n_lam,).

    The score is leave-one-out with every G_jj replaced by their mean,

    .. math:: n \|G y\|^2 / (\mathrm{tr}\, G)^2,

    in which the factor lam between G and H cancels.
    """
    # tr G is the sum of r, as Q is orthogonal: no n x n work.
    trace = solution.inverse.sum(axis=0)
    if solution.ones is not None:
        trace = trace - np.square(solution.ones).sum(axis=0) / solution.ones.sum(axis=0)
    squares = np.square(solution.values).sum(axis=(0, 1))
    return np.asarray(len(solution.values) ** 2 * squares / trace**2)
