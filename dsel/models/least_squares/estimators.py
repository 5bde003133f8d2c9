"""Kernel least squares as scikit-learn estimators."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dsel.data.lazy import lazily
from dsel.families.arrays import Floats
from dsel.models.least_squares.coefficients import (
    KernelCoefficients,
    class_targets,
    decide,
    fit_coefficients,
    rounding_of_scores,
)


class KernelModel(BaseEstimator):
    """Parameters and scores that the regressor and the classifier share."""

    centers_: Any
    dual_coef_: Floats
    intercept_: Any

    def __init__(
        self,
        width: float = 1.0,
        regularization: float = 1.0,
        *,
        penalty: str = "coefficients",
        fit_intercept: bool = False,
        n_centers: int | None = None,
        centers: Any = None,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.regularization = regularization
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.n_centers = n_centers
        self.centers = centers
        self.random_state = random_state

    def _fit_columns(self, X: Any, targets: Floats, *, as_vector: bool) -> None:
        fitted = fit_coefficients(self, X, targets)
        self.centers_ = fitted.centers
        self.dual_coef_ = fitted.dual[:, 0] if as_vector else fitted.dual
        self.intercept_ = fitted.intercept[0] if as_vector else fitted.intercept

    def _scores(self, X: Any) -> tuple[Floats, Floats]:
        """Return f at every row, one column per output, and what rounding may do."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        dual = np.asarray(self.dual_coef_)
        fitted = KernelCoefficients(
            self.centers_,
            dual[:, np.newaxis] if dual.ndim == 1 else dual,
            np.atleast_1d(self.intercept_),
            self.width,
        )
        return fitted.evaluate(X), rounding_of_scores(fitted.dual, fitted.intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelLeastSquares(RegressorMixin, KernelModel):
    r"""Regularised least squares with Gaussian kernels.

    The model is :math:`f(x) = \sum_j \alpha_j K(x, z_j) + b` with
    :math:`K(x, z) = \exp(-\|x - z\|^2 / (2 c^2))` and one centre z per training row
    unless told otherwise. It minimises :math:`\|f(X) - y\|^2 + \lambda P`, without
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
        Number of training rows drawn as centres, at most all; all rows for None.
    centers
        Points to use as centres, shape (n_centers, n_columns). Points that were
        fixed without the labeled rows keep fold models independent of held-out rows.
    random_state
        Seed of the draw of centres.

    Attributes
    ----------
    centers_
        z, shape (n_centers, n_columns).
    dual_coef_
        alpha, shape (n_centers,) or (n_centers, n_outputs).
    intercept_
        b, a float or shape (n_outputs,).
    n_features_in_
        Columns of the training rows.

    See Also
    --------
    KernelLeastSquaresClassifier : For classes.
    dsel.searches.LeastSquaresSearch : Chooses width and regularization.

    Notes
    -----
    With ``penalty="rkhs"``, one centre per row and no intercept this is
    ``KernelRidge(alpha=lambda, kernel="rbf", gamma=1 / (2 c**2))``, see
    `to_kernel_ridge`. With ``penalty="coefficients"`` it is ``Ridge(alpha=lambda)``
    on the columns of the kernel matrix, the model of [1]_, for which kernel ridge
    has no parameters.

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

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Targets, shape (n,) or (n, n_outputs).

        Raises
        ------
        ValueError
            Where a parameter is out of range, the kernel matrix is singular without
            regularization, or it does not fit into memory.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True,
            y_numeric=True,
        )  # fmt: skip
        y = np.asarray(y, np.float64)
        columns = y[:, np.newaxis] if y.ndim == 1 else y
        self._fit_columns(X, columns, as_vector=y.ndim == 1)
        return self

    @lazily
    def predict(self, X: Any) -> Floats:
        """Return f at every row, shape (n_rows,) or (n_rows, n_outputs)."""
        values, _ = self._scores(X)
        return values[:, 0] if self.dual_coef_.ndim == 1 else values

    def to_kernel_ridge(self) -> KernelRidge:
        """Return scikit-learn's unfitted estimator of the same model.

        Raises
        ------
        ValueError
            Where kernel ridge has no such model: another penalty, an intercept, or
            other centres than the training rows.

        Examples
        --------
        >>> KernelLeastSquares(2.0, 0.1, penalty="rkhs").to_kernel_ridge()
        KernelRidge(alpha=0.1, gamma=0.125, kernel='rbf')
        """
        has_row_centers = self.n_centers is None and self.centers is None
        if self.penalty != "rkhs" or self.fit_intercept or not has_row_centers:
            raise ValueError(
                "`KernelRidge` needs penalty='rkhs', fit_intercept=False and a centre "
                f"per row, got {self!r}."
            )
        gamma = 1.0 / (2.0 * self.width**2)
        return KernelRidge(alpha=self.regularization, kernel="rbf", gamma=gamma)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KernelLeastSquaresClassifier(ClassifierMixin, KernelModel):
    """Classification by `KernelLeastSquares` on class indicators.

    Two classes are fitted as one target of -1 and +1 and decided by the sign, where
    0 means the first class; more classes as one target of 0 and 1 each and decided
    by the largest score, ties going to the first class.

    Parameters
    ----------
    width, regularization, penalty, fit_intercept, n_centers, random_state
        As in `KernelLeastSquares`.
    centers
        Points to use as centres, shape (n_centers, n_columns). A search certifies a
        bound for ``penalty="coefficients"`` only with points that were fixed without
        the labeled rows and are no rows of the pool that it counts on.

    Attributes
    ----------
    classes_
        Labels in sorted order.
    centers_, dual_coef_, intercept_, n_features_in_
        As in `KernelLeastSquares`; (n_centers, n_classes) for three or more classes.

    See Also
    --------
    KernelLeastSquares : For numbers.
    dsel.plan_search : Chooses width and regularization, with a certificate.

    Examples
    --------
    >>> X = np.array([[0.0], [0.3], [2.0], [2.3]])
    >>> y = ["low", "low", "high", "high"]
    >>> KernelLeastSquaresClassifier(penalty="rkhs").fit(X, y).predict([[0.1], [2.1]])
    array(['low', 'high'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Labels of any kind, shape (n,).

        Raises
        ------
        ValueError
            As `KernelLeastSquares.fit`.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        targets = class_targets(codes, len(self.classes_))
        self._fit_columns(X, targets, as_vector=targets.shape[1] == 1)
        return self

    @lazily
    def decision_function(self, X: Any) -> Floats:
        """Return the scores, shape (n_rows,) for two classes, else one per class."""
        scores, _ = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @lazily
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of every row, shape (n_rows,)."""
        scores, tolerance = self._scores(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return np.asarray(self.classes_[decide(scores, tolerance)])
