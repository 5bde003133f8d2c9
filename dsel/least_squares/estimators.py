"""Kernel least squares as scikit-learn estimators."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.utils import check_array, check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import Floats, RandomState, replaces_earlier_fit, validate_data
from dsel.checks import (
    as_array,
    check_choice,
    check_integer,
    check_nonnegative,
    check_positive,
    check_truth,
    explain_unknown,
)
from dsel.data.labeled import check_labels
from dsel.data.lazy import LazyScore, takes_dask_arrays
from dsel.errors import GuaranteeWarning, warn
from dsel.families.estimator_kinds import FittedAttributes
from dsel.least_squares.closed_form import (
    EPS,
    check_memory,
    decompose_gram,
    gaussian_gram,
    gaussian_kernel,
    solve_dual,
    whitening,
)
from dsel.least_squares.target_checks import check_targets
from dsel.typing import RowsLike

PENALTIES: Final = ("coefficients", "rkhs")
PREDICT_BLOCK_NBYTES: Final = 2**26
"""Bytes of the kernel values of one block of rows in `predict`."""
SCORE_ROUNDING: Final = 16 * EPS
"""A score this small relative to the sum of coefficients is a rounded zero."""
SINGULAR: Final = (
    "`regularization` is 0 but the kernel matrix is singular, so the solution is not "
    "unique; set a positive value, such as 1e-8."
)


@explain_unknown()
@dataclass(eq=False, repr=False)
class KernelModel(FittedAttributes, BaseEstimator):
    """Base of the regressor and the classifier: parameters, fit and scores."""

    width: float = 1.0
    regularization: float = 1.0
    _: KW_ONLY
    penalty: str = "coefficients"
    fit_intercept: bool = False
    n_centers: int | None = None
    centers: Any = None
    random_state: RandomState = None

    def _fit_targets(self, X: Any, y: Floats) -> None:
        """Fit one column of coefficients for each target, (n,) or (n, n_outputs)."""
        width = check_positive(self.width, "width")
        lam = check_nonnegative(self.regularization, "regularization")
        check_choice(self.penalty, "penalty", PENALTIES)
        if self.centers is not None and self.n_centers is not None:
            raise ValueError(
                "`n_centers` draws centers from `X`, `centers` gives them: set one of "
                "both."
            )
        fit, centers, columns = self._fit_at_centers, X, y.reshape(len(y), -1)
        if self.centers is not None:
            centers = check_centers(self.centers, X.shape[1])
        elif self.n_centers is not None:
            n_centers = check_integer(self.n_centers, "n_centers", at_least=1)
            order = check_random_state(self.random_state).permutation(X.shape[0])
            centers = X[np.sort(order[:n_centers])]
        else:
            fit = self._fit_at_rows
        self.set_model(centers, *fit(columns, X, centers, width, lam), y.ndim)

    def set_model(
        self, centers: Any, dual: Floats, intercept: Floats, n_dims: int
    ) -> None:
        """Set the fitted attributes, for targets of `n_dims` dimensions."""
        self.centers_ = centers
        self.dual_coef_ = dual[:, 0] if n_dims == 1 else dual
        self.intercept_ = intercept[0] if n_dims == 1 else intercept

    def _fit_at_rows(
        self, y: Floats, X: Any, centers: Any, width: float, lam: float
    ) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts of kernels at all rows."""
        n = X.shape[0]
        check_memory(n)
        gram = gaussian_gram(centers, width=width)
        # Cholesky is several times cheaper than a decomposition for a single lam. Below
        # this limit the matrix may not be positive definite up to rounding.
        if self.penalty == "rkhs" and lam > n**2 * EPS:
            factor = cho_factor(gram + lam * np.eye(n), overwrite_a=True)
            dual, ones = cho_solve(factor, y), cho_solve(factor, np.ones(n))
            # With an intercept (K + lam I) alpha + 1 b = y, 1'alpha = 0.
            intercept = self.fit_intercept * dual.sum(axis=0) / ones.sum()
            return dual - np.outer(ones, intercept), intercept
        spectrum = decompose_gram(gram, penalty=self.penalty)
        if lam == 0 and spectrum.is_singular():
            raise ValueError(SINGULAR)
        limit = spectrum.rounding_limit()
        if self.penalty == "rkhs" and 0 < lam <= limit:
            warn(
                f"`regularization` is {lam:.1e}, below the rounding of the kernel "
                f"matrix, {limit:.1e}: the coefficients are mostly noise.",
                GuaranteeWarning,
            )
        regularizations = np.array([lam])
        solution = solve_dual(
            spectrum, y, regularizations, fit_intercept=self.fit_intercept
        )
        dual = solution.values[:, :, 0]
        if self.penalty == "coefficients":
            dual = gram @ dual  # alpha = X' G y with X = K
        return dual, solution.intercept[:, 0]

    def _fit_at_centers(
        self, y: Floats, X: Any, centers: Any, width: float, lam: float
    ) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts of kernels at chosen centers."""
        design = gaussian_kernel(X, centers, width=width)
        # In these coordinates the penalty is the squared norm of the coefficients.
        root = np.eye(design.shape[1])
        if self.penalty == "rkhs":
            root = whitening(centers, width=width)
            design = design @ root
        centered = design - self.fit_intercept * design.mean(axis=0)
        if lam == 0 and np.linalg.matrix_rank(centered) < design.shape[1]:
            raise ValueError(SINGULAR)
        ridge = Ridge(lam, fit_intercept=self.fit_intercept, solver="svd")
        ridge.fit(design, y)
        slopes = np.atleast_2d(ridge.coef_).T
        return root @ slopes, ridge.intercept_ * np.ones(y.shape[1])

    def _scores(self, X: Any) -> Floats:
        """Return f(x) = sum_j alpha_j K(x, z_j) + b, one column for each output."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        dual = self.dual_coef_.reshape(self.centers_.shape[0], -1)
        values = np.empty((X.shape[0], dual.shape[1]))
        # Kernel values of all rows at once would not fit into memory.
        rows = max(1, PREDICT_BLOCK_NBYTES // (8 * self.centers_.shape[0]))
        for block in gen_batches(X.shape[0], rows):
            kernel = gaussian_kernel(X[block], self.centers_, width=self.width)
            values[block] = kernel @ dual + np.atleast_1d(self.intercept_)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelLeastSquares(LazyScore, RegressorMixin, KernelModel):
    r"""Regularized least squares with Gaussian kernels.

    The model is :math:`f(x) = \sum_j \alpha_j K(x, z_j) + b` with
    :math:`K(x, z) = \exp(-\|x - z\|^2 / (2 c^2))` and one center z per training row
    by default. It minimizes :math:`\|f(X) - y\|^2 + \lambda P`, without
    any factor 1/n or 1/2, where P is :math:`\|\alpha\|^2`
    (``penalty="coefficients"``) or :math:`\alpha' K \alpha` (``penalty="rkhs"``).

    Parameters
    ----------
    width
        c > 0.
    regularization
        lambda >= 0; zero needs a kernel matrix that is not singular.
    penalty
        ``"coefficients"`` or ``"rkhs"``.
    fit_intercept
        Whether b is fitted, unpenalised, rather than 0.
    n_centers
        Number of training rows drawn as centers, at most all; all rows for None.
    centers
        Points to use as centers, shape (n_centers, n_columns). Points that were
        fixed without the labeled rows keep fold models independent of held-out rows.
    random_state
        Seed of the draw of centers.

    Attributes
    ----------
    centers_
        z, shape (n_centers, n_columns).
    dual_coef_
        alpha, shape (n_centers,) or (n_centers, n_outputs).
    intercept_
        b, a float or shape (n_outputs,).

    See Also
    --------
    KernelLeastSquaresClassifier : For classes.
    LeastSquaresSearch : Chooses width and regularization.

    Notes
    -----
    With ``penalty="rkhs"``, one center per row and no intercept this is
    ``KernelRidge(alpha=lambda, kernel="rbf", gamma=1 / (2 c**2))``. With
    ``penalty="coefficients"`` it is ``Ridge(alpha=lambda)`` on the columns of the
    kernel matrix, the model of [1]_, for which kernel ridge has no parameters.

    References
    ----------
    .. [1] M. Sugiyama, Pattern Information Processing: Model Selection by
       Cross-Validation (slides).

    Examples
    --------
    >>> X = np.linspace(-3, 3, 20)[:, np.newaxis]
    >>> y = np.sinc(X.ravel())
    >>> model = KernelLeastSquares(width=0.7, regularization=1e-4).fit(X, y)
    >>> round(model.score(X, y), 3)
    1.0
    """

    @replaces_earlier_fit
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Targets, shape (n,) or (n, n_outputs).

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter is out of range, the kernel matrix is singular without
            regularization, or it does not fit into memory.
        """
        check_targets(X, y)
        check_truth(self.fit_intercept, "fit_intercept")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=1 + bool(self.fit_intercept),
        )
        self._fit_targets(X, np.asarray(y, np.float64))
        return self

    @takes_dask_arrays
    def predict(self, X: Any) -> Floats:
        """Predict the target of every row.

        Parameters
        ----------
        X
            Rows, array-like of shape (n_rows, n_columns).

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Values in the unit of the targets.
        """
        values = self._scores(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KernelLeastSquaresClassifier(LazyScore, ClassifierMixin, KernelModel):
    """Classification by `KernelLeastSquares` on class indicators.

    Two classes are fitted as one target of -1 and +1 and decided by the sign, where
    0 means the first class; more classes as one target of 0 and 1 each and decided
    by the largest score, ties going to the first class.

    Parameters
    ----------
    width, regularization, penalty, fit_intercept, n_centers, centers, random_state
        As in `KernelLeastSquares`.

    Attributes
    ----------
    classes_
        Labels in sorted order.
    centers_, dual_coef_, intercept_
        As in `KernelLeastSquares`; (n_centers, n_classes) for three or more classes.

    See Also
    --------
    KernelLeastSquares : For numbers.
    dsel.SemiSupervisedSearchCV : Chooses both, with a certificate.

    Examples
    --------
    >>> X = np.array([[0.0], [0.3], [2.0], [2.3]])
    >>> y = ["low", "low", "high", "high"]
    >>> KernelLeastSquaresClassifier(penalty="rkhs").fit(X, y).predict([[0.1], [2.1]])
    array(['low', 'high'], dtype='<U4')
    """

    @replaces_earlier_fit
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficients, as `KernelLeastSquares.fit` does.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Labels of any kind, shape (n,).

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If rows or labels cannot be used, as in scikit-learn.
        """
        check_truth(self.fit_intercept, "fit_intercept")
        X, y = validate_data(
            self,
            X,
            check_labels(y),
            accept_sparse="csr",
            dtype=np.float64,
            ensure_min_samples=1 + bool(self.fit_intercept),
        )
        self.classes_, codes = np.unique(y, return_inverse=True)
        targets = np.where(codes == 1, 1.0, -1.0)
        if len(self.classes_) > 2:
            targets = np.eye(len(self.classes_))[codes]
        self._fit_targets(X, targets)
        return self

    @takes_dask_arrays
    def decision_function(self, X: RowsLike) -> Floats:
        """Return the scores of every row.

        Parameters
        ----------
        X
            Rows, array-like of shape (n_rows, n_columns).

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            One score for two classes, positive for the second; else one for each class,
            in the order of `classes_`.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @takes_dask_arrays
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of every row.

        Parameters
        ----------
        X
            Rows, array-like of shape (n_rows, n_columns).

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of `classes_`; a tie goes to the first class.
        """
        scores = self._scores(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        # Kernel values are at most 1, so this bounds the rounding error of a score. A
        # smaller difference is a tie, which the first class wins.
        sizes = np.abs(self.dual_coef_).sum(axis=0) + np.abs(self.intercept_)
        slack = SCORE_ROUNDING * np.max(sizes)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        ties = scores >= scores.max(axis=1, keepdims=True) - 2.0 * slack
        return np.asarray(self.classes_[np.argmax(ties, axis=1)])


def check_centers(centers: Any, n_columns: int) -> Floats:
    """Return the centers as an array; raise where they differ in columns from rows."""
    array = as_array(centers, "centers", np.float64)
    try:
        points: Floats = check_array(array, input_name="`centers`")
    except ValueError as error:
        raise ValueError(
            f"`centers` must be a table of finite numbers: "
            f"{' '.join(str(error).split())[:120]}"
        ) from error
    if points.shape[1] != n_columns:
        raise ValueError(
            f"`centers` must have the {n_columns} columns of `X`, got an array of "
            f"shape {points.shape}."
        )
    return points
