r"""Regularised least squares without refits: leave-one-out from one factorisation.

Three models share one algebra. With design X (n x b), targets y and the penalty's
matrix M (n x n),

    coefficients   min ||X alpha - y||^2 + lam ||alpha||^2,        M = X X',
                   Gaussian kernels at the rows: X = K,            M = K^2;
    RKHS           min ||K alpha - y||^2 + lam alpha' K alpha,     M = K,

let G = (M + lam I)^-1. For lam > 0 the matrix of the slides, H = I - X L with
L = (X'X + lam I)^-1 X', equals lam G. For every set T of rows left out, the model
trained without T has on T the residuals

    e_T = (G_TT)^-1 (G y)_T,                                                     (*)

and its dual vector (for RKHS the coefficients themselves, else alpha = X' beta) is

    beta_(-T) = G y - G_:T (G_TT)^-1 (G y)_T,       zero on T.                  (**)

Rank-one identity. For T = {j} (*) reads e_j = (G y)_j / G_jj = (H y)_j / H_jj, hence
LOOCV = (1/n) || diag(H)^-1 H y ||^2.

Proof. Let A = X'X + lam I, a_j the j-th row of X, h_j = a_j' A^-1 a_j < 1. Without
row j the matrix is A - a_j a_j', and by Sherman and Morrison

    (A - a_j a_j')^-1 = A^-1 + A^-1 a_j a_j' A^-1 / (1 - h_j).

Applied to X'y - a_j y_j = A alpha - a_j y_j this gives

    alpha_(-j) = alpha - A^-1 a_j (y_j - a_j' alpha) / (1 - h_j),
    y_j - a_j' alpha_(-j) = (y_j - a_j' alpha) / (1 - h_j),

and 1 - h_j = H_jj since H = I - X A^-1 X'. For RKHS take X with X X' = K.

Proof of the block form. Let S be the other rows. beta, zero on T, with
(M_SS + lam I) beta_S = y_S solves (M + lam I) beta = y~, where y~ is y on S and, on
T, M_TS beta_S = y_T - e_T, the predictions of the model without T. So

    beta_(-T) = G y~ = G y - G_:T e_T.

Its part on T is zero: G_TT e_T = (G y)_T, which is (*), and inserted it is (**).

An unpenalised intercept replaces G by G~ = G - (G 1)(G 1)' / (1'G 1) in all of
this; the intercept itself is (1'G y~) / (1'G 1).

Numerics. M = Q diag(mu) Q' once, then G = Q diag(r) Q' with r = 1 / (mu + lam) for
every lam. G_jj is a sum of positive terms; 1 - h_j would cancel where h_j is near 1.
For the RKHS penalty the small mu must be known to better than eps max(mu), which is
what a decomposition gives: see `dsel.kernels.eigen.decompose_gram`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsel.kernels.eigen import Spectrum

Floats = NDArray[np.float64]

UNDEFINED = 1e-12
"""At lam = 0 a diagonal entry of H below this means that h_j = 1."""


@dataclass(frozen=True)
class DualSolution:
    """G y for every lam (with an intercept G~ y), and what it is made of.

    At lam = 0 with a singular M, G stands for its limit lam G, which is H.
    """

    spectrum: Spectrum
    """Q and mu."""
    regularizations: Floats
    """lam, shape (n_lam,)."""
    inverse: Floats
    """r, shape (n, n_lam)."""
    rotated: Floats
    """z = Q'y, shape (n, n_outputs); y shifted to start at 0 with an intercept."""
    shift: Floats
    """What was subtracted from y, shape (n_outputs,)."""
    values: Floats
    """G y, shape (n, n_outputs, n_lam)."""
    ones: Floats | None
    """G 1, shape (n, n_lam), or None without an intercept."""

    @property
    def is_limit(self) -> NDArray[np.bool_]:
        """Where lam = 0 and M is singular, shape (n_lam,)."""
        limit = self.spectrum.rounding_limit()
        is_singular = bool(self.spectrum.values.min() <= limit)
        return np.asarray((self.regularizations == 0) & is_singular)


def solve_dual(
    spectrum: Spectrum,
    y: Floats,
    regularizations: Floats,
    *,
    fit_intercept: bool = False,
) -> DualSolution:
    """Compute G y for all regularizations in one product.

    Parameters
    ----------
    spectrum
        M = Q diag(mu) Q'.
    y
        Targets, shape (n, n_outputs).
    regularizations
        lam >= 0, shape (n_lam,).
    fit_intercept
        Whether the model has an unpenalised constant.
    """
    inverse = inverse_values(spectrum, regularizations)
    # An intercept absorbs any shift of the targets, and near 0 they keep more digits.
    shift = y[0] if fit_intercept else np.zeros(y.shape[1])
    rotated = spectrum.vectors.T @ (y - shift)
    # G y = Q (r * z) for all lam in one matrix product.
    values = apply_inverse(spectrum.vectors, inverse, rotated[:, :, np.newaxis])
    ones = None
    if fit_intercept:
        rotated_ones = spectrum.vectors.sum(axis=0)
        ones = spectrum.vectors @ (inverse * rotated_ones[:, np.newaxis])
        values = _without_constant(values, ones)
    return DualSolution(
        spectrum, regularizations, inverse, rotated, shift, values, ones
    )


def inverse_values(spectrum: Spectrum, regularizations: Floats) -> Floats:
    """Return r = 1 / (mu + lam), shape (n, n_lam); at lam = 0 see `DualSolution`."""
    mu = spectrum.values[:, np.newaxis]
    # At lam = 0 a singular M has no inverse: lam G tends to the projection on its null
    # space.
    null = (mu <= spectrum.rounding_limit()).astype(np.float64)
    # Rounding makes some mu negative, by less than any lam that is not below it.
    total = np.maximum(mu + regularizations, regularizations / 2.0)
    singular = (regularizations == 0) & bool(null.any())
    with np.errstate(divide="ignore"):
        return np.where(singular, null, 1.0 / total)


def apply_inverse(vectors: Floats, inverse: Floats, rotated: Floats) -> Floats:
    """Return Q (r * z), shape (n, n_outputs, n_lam), z broadcast over lam."""
    filtered = inverse[:, np.newaxis, :] * rotated
    n_outputs, n_lam = filtered.shape[1:]
    product = vectors @ filtered.reshape(len(filtered), n_outputs * n_lam)
    return np.asarray(product.reshape(-1, n_outputs, n_lam))


def inverse_diagonal(solution: DualSolution) -> Floats:
    """Return the diagonal of G (or G~), shape (n, n_lam)."""
    # G_jj = sum_i Q_ji^2 r_i.
    diagonal = np.square(solution.spectrum.vectors) @ solution.inverse
    if solution.ones is not None:
        diagonal = diagonal - solution.ones**2 / solution.ones.sum(axis=0)
    return np.asarray(diagonal)


def leave_one_out_residuals(solution: DualSolution) -> Floats:
    """Return e_j = (G y)_j / G_jj, the residual of the model trained without row j.

    Returns
    -------
    ndarray
        Shape (n, n_outputs, n_lam); inf where lam = 0 and h_j = 1, since the
        model without row j is then not defined.
    """
    diagonal = inverse_diagonal(solution)
    undefined = solution.is_limit & (diagonal < UNDEFINED)
    diagonal[undefined] = 1.0
    residuals = solution.values / diagonal[:, np.newaxis, :]
    residuals[np.broadcast_to(undefined[:, np.newaxis, :], residuals.shape)] = np.inf
    return np.asarray(residuals)


def leave_one_out_losses(solution: DualSolution) -> Floats:
    """Return the squared residuals summed over outputs, shape (n, n_lam)."""
    return np.asarray(np.square(leave_one_out_residuals(solution)).sum(axis=1))


def gcv_losses(solution: DualSolution) -> Floats:
    r"""Return n times the generalised cross-validation score, shape (n_lam,).

    The score is leave-one-out with every G_jj replaced by their mean,

    .. math:: n \|G y\|^2 / (\mathrm{tr}\, G)^2,

    in which the factor lam between G and H cancels.
    """
    n_rows = len(solution.values)
    # tr G is the sum of r, as Q is orthogonal: no n x n work.
    trace = solution.inverse.sum(axis=0)
    if solution.ones is not None:
        trace = trace - np.square(solution.ones).sum(axis=0) / solution.ones.sum(axis=0)
    squares = np.square(solution.values).sum(axis=(0, 1))
    undefined = solution.is_limit & (trace < n_rows * UNDEFINED)
    trace = np.where(undefined, 1.0, trace)
    return np.where(undefined, np.inf, n_rows**2 * squares / trace**2)


def _without_constant(values: Floats, ones: Floats) -> Floats:
    """Return G~ y from G y and G 1."""
    # G~ y = G y - G 1 (1'G y) / (1'G 1).
    constant = values.sum(axis=0) / ones.sum(axis=0)
    return np.asarray(values - ones[:, np.newaxis, :] * constant)
