r"""Leave-one-out residuals of regularized least squares from one factorization.

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
this; the intercept itself is (1'G y) / (1'G 1).

Numerics. M = Q diag(mu) Q' once, then G = Q diag(r) Q' with r = 1 / (mu + lam) for
every lam. G_jj is a sum of positive terms; 1 - h_j would cancel where h_j is near 1.
A decomposition of K is off by some eps ||K||, which moves G, relatively, by that over
lam for the RKHS penalty, and by that over the root of lam for the other one. A refit by
Cholesky is off by as much: below n eps ||K|| no method has a digit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.linalg import blas, lapack

from dsel.arrays import ArrayLike, Floats, Integers
from dsel.kernels.functions import Rbf
from dsel.kernels.reference_rows import squared_distances
from dsel.runtime.workers import MACHINE_MEMORY

EPS: Final = float(np.finfo(np.float64).eps)
NARROWEST: Final = 1e-150
"""Below this width its square underflows; kernels of different rows are 0 there."""
COPIES: Final = 4
"""Matrices of n x n in memory during a decomposition: gram, vectors, workspace."""


@dataclass(frozen=True)
class Spectrum:
    """The spectral decomposition M = Q diag(mu) Q' of a symmetric matrix."""

    vectors: Floats
    """Q, orthogonal, shape (n, n)."""
    values: Floats
    """mu, shape (n,), in no particular order; negative values are rounding errors."""

    def rounding_limit(self) -> float:
        """Return n eps max(mu): eigenvalues below it may be rounding errors of 0."""
        largest = float(np.max(self.values, initial=0.0))
        return len(self.values) * EPS * largest

    def is_singular(self) -> bool:
        """Return whether M is singular up to rounding."""
        return bool(self.values.min() <= self.rounding_limit())


def gaussian_kernel(rows: ArrayLike, centers: Any, *, width: float) -> Floats:
    """Return exp(-||x - z||^2 / (2 c^2)) for every row x and center z, dense or CSR.

    Scikit-learn's ``gamma`` is 1 / (2 c^2).
    """
    width = max(width, NARROWEST)
    with np.errstate(over="ignore", under="ignore"):
        return Rbf(0.5 / (width * width)).values(squared_distances(rows, centers))


def gaussian_gram(rows: ArrayLike, *, width: float) -> Floats:
    """Return the Gram matrix of rows.

    It is exactly symmetric with ones on the diagonal, in whatever order BLAS sums.
    """
    gram = gaussian_kernel(rows, rows, width=width)
    gram = (gram + gram.T) / 2.0
    np.fill_diagonal(gram, 1.0)
    return gram


def decompose_gram(gram: Floats, *, penalty: str) -> Spectrum:
    """Factor M of a kernel model with one center per row.

    M = K^2 for the penalty ``"coefficients"``, K for ``"rkhs"``. The eigenvalues of K^2
    are squared, not computed, which keeps the small ones accurate.
    """
    values, vectors = np.linalg.eigh(gram)
    return Spectrum(vectors, values**2 if penalty == "coefficients" else values)


def whitening(centers: Floats, *, width: float) -> Floats:
    """Return W with W W' = K^+, so that the RKHS norm is the norm of coefficients.

    K is the kernel matrix of the b centers; W has the shape (b, r), r the numerical
    rank of K. With the design K(x, Z) W the penalty is that of ordinary ridge
    regression.
    """
    spectrum = decompose_gram(gaussian_gram(centers, width=width), penalty="rkhs")
    # Duplicate centers span fewer dimensions; their eigenvalues are rounding errors.
    is_kept = spectrum.values > spectrum.rounding_limit()
    return np.asarray(spectrum.vectors[:, is_kept] / np.sqrt(spectrum.values[is_kept]))


def check_memory(n_rows: int) -> None:
    """Raise ValueError where memory cannot hold a decomposition of n x n."""
    needed = COPIES * 8 * n_rows**2
    if needed > MACHINE_MEMORY:
        raise ValueError(
            f"`X` has {n_rows} rows: a kernel matrix with one center per row takes "
            f"{8 * n_rows**2 / 1e9:.5g} GB, its decomposition {needed / 1e9:.3g} GB, "
            f"and this machine has {MACHINE_MEMORY / 1e9:.5g} GB; take fewer centers: "
            f"KernelLeastSquares(n_centers=1000), or StreamedLeastSquaresSearch, which "
            f"reads the rows in chunks."
        )


@dataclass(frozen=True)
class DualSolution:
    """The dual solution G y for every lam (with an intercept G~ y), and its factors."""

    spectrum: Spectrum
    """Q and mu."""
    inverse: Floats
    """r, shape (n, n_lam)."""
    values: Floats
    """G y, shape (n, n_outputs, n_lam)."""
    intercept: Floats
    """(1'G y) / (1'G 1), shape (n_outputs, n_lam); zero without an intercept."""
    intercept_vector: Floats
    """(G 1) / root(1'G 1), shape (n, n_lam), whose outer product is G - G~; zero
    without an intercept."""


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
    # Rounding makes some mu slightly negative; lam / 2 keeps the sum positive for every
    # lam above the rounding limit.
    inverse = 1.0 / np.maximum(mu + regularizations, regularizations / 2.0)
    # An intercept absorbs any shift of the targets; targets near 0 keep more digits.
    shift = y[0] if fit_intercept else np.zeros(y.shape[1])
    vectors = spectrum.vectors
    # G y = Q (r * Q'y) for all outputs and lam in one matrix product.
    filtered = inverse[:, np.newaxis, :] * (vectors.T @ (y - shift))[:, :, np.newaxis]
    values = (vectors @ filtered.reshape(len(y), -1)).reshape(filtered.shape)
    # G~ y = G y - G 1 (1'G y) / (1'G 1).
    sums = vectors.sum(axis=0)[:, np.newaxis]
    total = (inverse * sums**2).sum(axis=0)
    outer = fit_intercept * (vectors @ (inverse * sums)) / np.sqrt(total)
    constant = fit_intercept * values.sum(axis=0) / total
    values -= outer[:, np.newaxis, :] * (constant * np.sqrt(total))
    intercept = constant + shift[:, np.newaxis]
    return DualSolution(spectrum, inverse, values, intercept, outer)


def leave_one_out_residuals(solution: DualSolution) -> Floats:
    """Return e_j = (G y)_j / G_jj, the residual of the model trained without row j.

    Shape (n, n_outputs, n_lam).
    """
    # G_jj = sum_i Q_ji^2 r_i.
    diagonal = np.square(solution.spectrum.vectors) @ solution.inverse
    diagonal -= solution.intercept_vector**2
    return np.asarray(solution.values / diagonal[:, np.newaxis, :])


def block_residuals(
    solution: DualSolution, blocks: Sequence[Integers]
) -> Iterator[list[Floats]]:
    """Yield for every lam e_T = (G_TT)^-1 (G y)_T of each block T of rows left out.

    Blocks may overlap, as pairs of folds do. None is empty, and with an intercept none
    has all rows. Each array has the shape (len(T), n_outputs).
    """
    vectors, n = solution.spectrum.vectors, len(solution.values)
    # Pairs of folds overlap and together read every part of G, so that forming G once
    # costs less than forming each block.
    needs_all = sum(len(rows) ** 2 for rows in blocks) > n**2
    order, slices_of = _sort_by_blocks(n, blocks)
    rows_of = [np.concatenate([order[s] for s in slices]) for slices in slices_of]
    for column, inverse in enumerate(solution.inverse.T):
        root, outer = np.sqrt(inverse), solution.intercept_vector[:, column]
        values, residuals = solution.values[:, :, column], []
        whole = _lower_gram(vectors, root, outer, order) if needs_all else None
        for block, rows, slices in zip(blocks, rows_of, slices_of, strict=True):
            if whole is None:
                inner = _lower_gram(vectors, root, outer, rows)
            else:
                inner = _cut_lower(whole, slices)
            _, solution_of_rows, info = lapack.dposv(inner, values[rows], lower=1)
            if info != 0:
                # The matrix is not positive definite up to rounding, so that Cholesky
                # fails: take the solution of least norm.
                square = np.tril(inner) + np.tril(inner, -1).T
                solution_of_rows = np.linalg.lstsq(square, values[rows], rcond=None)[0]
            solved = np.empty_like(values)
            solved[rows] = solution_of_rows
            residuals.append(solved[block])
        yield residuals


def _sort_by_blocks(
    n_rows: int, blocks: Sequence[Integers]
) -> tuple[Integers, list[list[slice]]]:
    """Return an order of rows in which each block is a few slices, and these slices.

    Rows that are in exactly the same blocks are neighbors in this order.
    """
    is_in = np.zeros((n_rows, len(blocks)), bool)
    for number, rows in enumerate(blocks):
        is_in[rows, number] = True
    _, pieces = np.unique(is_in, axis=0, return_inverse=True)
    stops = np.cumsum(np.bincount(pieces)).tolist()
    slices = list(map(slice, [0, *stops[:-1]], stops))
    order = np.argsort(pieces, kind="stable")
    return order, [[slices[n] for n in np.unique(pieces[rows])] for rows in blocks]


def _lower_gram(vectors: Floats, root: Floats, outer: Floats, rows: Integers) -> Floats:
    """Return G_TT = Q_T diag(r) Q_T' for these rows T, or G~_TT with an intercept.

    `root` are the square roots of r, `outer` the vector whose outer product an
    intercept subtracts, all 0 without one. Only the lower triangle is computed. A
    product of a matrix with its transpose is positive semidefinite up to the rounding
    of its entries.
    """
    scaled = vectors[rows]
    scaled *= root
    square: Floats = blas.dsyrk(1.0, scaled.T, trans=1, lower=1)
    if outer.any():
        square = blas.dsyr(-1.0, outer[rows], a=square, lower=1, overwrite_a=1)
    return square


def _cut_lower(whole: Floats, slices: Sequence[slice]) -> Floats:
    """Return the lower triangle of the rows in these slices, from that of all rows."""
    sizes = [piece.stop - piece.start for piece in slices]
    stops = np.cumsum(sizes).tolist()
    targets = list(map(slice, [0, *stops[:-1]], stops))
    inner = np.empty((stops[-1], stops[-1]), order="F")
    for number, (below, to_below) in enumerate(zip(slices, targets, strict=True)):
        for left, to_left in zip(
            slices[: number + 1], targets[: number + 1], strict=True
        ):
            inner[to_below, to_left] = whole[below, left]
    return inner


def gcv_losses(solution: DualSolution) -> Floats:
    r"""Return n times the generalized cross-validation score, shape (n_lam,).

    The score is leave-one-out with every G_jj replaced by their mean,

    .. math:: n \|G y\|^2 / (\mathrm{tr}\, G)^2,

    in which the factor lam between G and H cancels.
    """
    # tr G is the sum of r, as Q is orthogonal: no n x n work.
    outer = np.square(solution.intercept_vector).sum(axis=0)
    trace = solution.inverse.sum(axis=0) - outer
    squares = np.square(solution.values).sum(axis=(0, 1))
    return np.asarray(len(solution.values) ** 2 * squares / trace**2)
