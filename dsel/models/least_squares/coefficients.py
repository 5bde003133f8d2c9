"""One kernel least-squares model: centres, coefficients, scores and classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_array, check_random_state, gen_batches

from dsel.checks import check_choice, check_integer, check_nonnegative, check_positive
from dsel.errors import GuaranteeWarning, warn
from dsel.families.arrays import Floats, Integers
from dsel.kernels.eigen import (
    check_memory,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    whitening,
)
from dsel.solvers.least_squares import solve_dual
from dsel.solvers.least_squares_blocks import dual_models


def random_centers(X: Any, n_centers: int, *, random_state: Any = None) -> Any:
    """Draw rows without replacement to serve as centres.

    Parameters
    ----------
    X
        Rows to draw from, dense or sparse, shape (n_rows, n_columns). Rows of the
        unlabeled pool keep the models independent of the labeled rows.
    n_centers
        Number of centres, in ``[1, n_rows]``.
    random_state
        Seed or generator, as in scikit-learn.

    Returns
    -------
    ndarray or CSR
        Shape (n_centers, n_columns), in the order of the rows.

    Raises
    ------
    ValueError
        Where there are fewer rows than centres.

    Examples
    --------
    >>> random_centers(np.arange(10.0)[:, np.newaxis], 3, random_state=0).shape
    (3, 1)
    """
    X = check_array(X, accept_sparse="csr")
    n_centers = check_integer(n_centers, "n_centers", at_least=1, at_most=X.shape[0])
    generator = check_random_state(random_state)
    return X[np.sort(generator.permutation(X.shape[0])[:n_centers])]


def kmeans_centers(X: Any, n_centers: int, *, random_state: Any = None) -> Floats:
    """Cluster rows and return the cluster means to serve as centres.

    Parameters
    ----------
    X
        Rows to cluster, dense or sparse, shape (n_rows, n_columns); a sample of some
        ten thousand rows is enough for a large table.
    n_centers
        Number of centres, in ``[1, n_rows]``.
    random_state
        Seed or generator, as in scikit-learn.

    Returns
    -------
    ndarray
        Shape (n_centers, n_columns).

    Raises
    ------
    ValueError
        Where there are fewer rows than centres.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2]])
    >>> sorted(kmeans_centers(X, 2, random_state=0).ravel().round(3).tolist())
    [0.1, 5.1]
    """
    X = check_array(X, accept_sparse="csr")
    n_centers = check_integer(n_centers, "n_centers", at_least=1, at_most=X.shape[0])
    from sklearn.cluster import KMeans  # takes a while to import

    clustering = KMeans(n_centers, n_init=1, random_state=random_state).fit(X)
    return np.asarray(clustering.cluster_centers_, np.float64)


PENALTIES = ("coefficients", "rkhs")
BLOCK_BYTES = 2**26
"""Kernel values of one block of rows when predicting."""
ROUNDING = 16 * np.finfo(np.float64).eps
"""A score this small relative to the coefficients' sum is rounding of a zero."""


@dataclass(frozen=True)
class KernelCoefficients:
    """f(x) = sum_j alpha_j K(x, z_j) + b, one column per output."""

    centers: Any
    """z, shape (n_centers, n_columns)."""
    dual: Floats
    """alpha, shape (n_centers, n_outputs)."""
    intercept: Floats
    """b, shape (n_outputs,)."""
    width: float
    """c of the kernel."""

    def evaluate(self, X: Any) -> Floats:
        """Return f at every row, shape (n_rows, n_outputs)."""
        values = np.empty((X.shape[0], self.dual.shape[1]))
        # Kernel values of all rows at once would not fit into memory.
        rows = max(1, BLOCK_BYTES // (8 * self.centers.shape[0]))
        for block in gen_batches(X.shape[0], rows):
            kernel = gaussian_kernel(X[block], self.centers, width=self.width)
            values[block] = kernel @ self.dual + self.intercept
        return values


def fit_coefficients(estimator: Any, X: Any, y: Floats) -> KernelCoefficients:
    """Fit the model that a `KernelModel`'s parameters describe to validated rows.

    `X` is dense or CSR, float64, `y` of shape (n, n_outputs).
    """
    width = check_positive(estimator.width, "width")
    regularization = check_nonnegative(estimator.regularization, "regularization")
    check_choice(estimator.penalty, "penalty", PENALTIES)
    if estimator.fit_intercept and X.shape[0] < 2:
        raise ValueError("`fit_intercept` needs at least 2 rows, got 1 sample.")
    centers = _fixed_centers(estimator, X)
    if centers is None:
        dual, intercept = _fit_at_rows(X, y, estimator, width, regularization)
        return KernelCoefficients(X, dual, intercept, width)
    dual, intercept = _fit_at_centers(X, y, estimator, centers, regularization)
    return KernelCoefficients(centers, dual, intercept, width)


def _fixed_centers(estimator: Any, X: Any) -> Any:
    if estimator.centers is not None and estimator.n_centers is not None:
        raise ValueError(
            "`n_centers` draws centres from `X`, `centers` gives them: set one of both."
        )
    if estimator.n_centers is not None:
        wanted = check_integer(estimator.n_centers, "n_centers", at_least=1)
        wanted = min(wanted, X.shape[0])
        return random_centers(X, wanted, random_state=estimator.random_state)
    if estimator.centers is None:
        return None
    centers = np.asarray(estimator.centers, np.float64)
    if centers.ndim != 2 or centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"`centers` must have the {X.shape[1]} columns of `X`, got an array of "
            f"shape {centers.shape}."
        )
    return centers


def _fit_at_rows(
    X: Any, y: Floats, estimator: Any, width: float, regularization: float
) -> tuple[Floats, Floats]:
    check_memory(X.shape[0])
    gram = gaussian_gram(X, width=width)
    if estimator.penalty == "rkhs":
        solved = _solve_by_cholesky(gram, y, regularization, estimator.fit_intercept)
        if solved is not None:
            return solved
    solution = solve_dual(
        decompose_gram(gram, penalty=estimator.penalty, least=regularization or np.inf),
        y,
        np.array([regularization]),
        fit_intercept=estimator.fit_intercept,
    )
    if solution.is_limit.any():
        raise _singular()
    limit = solution.spectrum.rounding_limit()
    if estimator.penalty == "rkhs" and 0 < regularization <= limit:
        warn(
            f"`regularization` is {regularization:.1e}, below the rounding of the "
            f"kernel matrix, {limit:.1e}: the coefficients are mostly noise.",
            GuaranteeWarning,
        )
    models = dual_models(solution)
    dual = models.dual[:, :, 0]
    if estimator.penalty == "coefficients":
        # alpha = X' beta with X = K, see (**) in `dsel.solvers.least_squares`.
        dual = gram @ dual
    return dual, models.intercept[:, 0]


def _solve_by_cholesky(
    gram: Floats, y: Floats, regularization: float, fit_intercept: bool
) -> tuple[Floats, Floats] | None:
    """Solve (K + lam I) alpha + 1 b = y, 1'alpha = 0; None where rounding forbids it.

    For one lam this is several times cheaper than a decomposition.
    """
    n = len(gram)
    # The matrix would not be positive definite to rounding.
    if regularization <= n**2 * np.finfo(np.float64).eps:
        return None
    matrix = gram.copy()
    matrix[np.diag_indices(n)] += regularization
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    dual = cho_solve(factor, y, check_finite=False)
    intercept = np.zeros(y.shape[1])
    if fit_intercept:
        ones = cho_solve(factor, np.ones(n), check_finite=False)
        intercept = dual.sum(axis=0) / ones.sum()
        dual = dual - np.outer(ones, intercept)
    return dual, intercept


def _fit_at_centers(
    X: Any, y: Floats, estimator: Any, centers: Any, regularization: float
) -> tuple[Floats, Floats]:
    """Ridge regression on the kernels at fixed centres, by singular values."""
    design = gaussian_kernel(X, centers, width=estimator.width)
    # Coordinates in which the penalty is the squared length of the coefficients.
    root = np.eye(centers.shape[0])
    if estimator.penalty == "rkhs":
        root = whitening(gaussian_gram(centers, width=estimator.width))
        design = design @ root
    middle, level = np.zeros(design.shape[1]), np.zeros(y.shape[1])
    if estimator.fit_intercept:
        middle, level = design.mean(axis=0), y.mean(axis=0)
    left, singular, right = np.linalg.svd(design - middle, full_matrices=False)
    limit = max(design.shape) * np.finfo(np.float64).eps * singular.max()
    full_rank = singular[-1] > limit and design.shape[1] <= design.shape[0]
    if regularization == 0 and not full_rank:
        raise _singular()
    weights = singular / (singular**2 + regularization)
    slopes = right.T @ (weights[:, np.newaxis] * (left.T @ (y - level)))
    return root @ slopes, level - middle @ slopes


def _singular() -> ValueError:
    return ValueError(
        "`regularization` is 0 but the kernel matrix is singular, so the solution is "
        "not unique; set a positive value, such as 1e-8."
    )


def class_targets(codes: Integers, n_classes: int) -> Floats:
    """Return -1 and +1 in one column for two classes, else a 0/1 column per class.

    A single class gives a column of -1.
    """
    if n_classes <= 2:
        return np.asarray(np.where(codes == 1, 1.0, -1.0)[:, np.newaxis])
    return np.asarray(codes[:, np.newaxis] == np.arange(n_classes), np.float64)


def rounding_of_scores(coefficients: Floats, intercepts: Floats) -> Floats:
    """Return what rounding may do to scores; centres are on the first axis."""
    # Kernel values are at most 1: this bounds what is summed to a score.
    return np.asarray(
        ROUNDING * (np.abs(coefficients).sum(axis=0) + np.abs(intercepts))
    )


def decide(scores: Floats, tolerance: Floats) -> Integers:
    """Return the class code of each row of scores, shape (..., 1) or (..., n_classes).

    A difference that rounding can make, by `tolerance` for each score, counts as a tie,
    which goes to the lowest code; for one column of scores, a zero score means code 0.
    Classes that are never predicted score -inf.
    """
    if scores.shape[-1] == 1:
        return (scores > tolerance)[..., 0].astype(np.int64)
    best = scores.max(axis=-1, keepdims=True)
    # Both of two compared scores may be off.
    slack = 2.0 * np.max(tolerance, axis=-1, keepdims=True)
    return np.asarray(np.argmax(scores >= best - slack, axis=-1), np.int64)
