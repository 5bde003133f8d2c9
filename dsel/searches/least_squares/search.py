"""Model selection for kernel least squares as a scikit-learn estimator."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from dsel.data.labeled import check_unmasked
from dsel.data.lazy import lazily
from dsel.models.least_squares.estimators import KernelLeastSquares
from dsel.searches.least_squares.cube import select_least_squares
from dsel.searches.least_squares.plan import LeastSquaresPlan, plan_least_squares


class LeastSquaresSearch(RegressorMixin, BaseEstimator):
    """Choose width and regularization of `KernelLeastSquares` without refits.

    One eigendecomposition for each width serves every regularization, leave-one-out,
    generalised cross-validation and all folds. Widths are tasks, on the current Dask
    client if there is one, else on local threads.

    Parameters
    ----------
    widths
        Widths c > 0 of the Gaussian kernels.
    regularizations
        Weights lambda >= 0 of the penalty.
    penalty
        ``"coefficients"`` (the centres stay where they are when rows are left out) or
        ``"rkhs"``; see `dsel.models.KernelLeastSquares`.
    criterion
        ``"loo"``, ``"gcv"``, ``"kfold"``, ``"holdout"`` (the first fold only),
        ``"extra_sample"`` (with fresh rows given to `fit`), or ``"kfold_refits"``,
        which trains every fold again to check the closed form.
    cv
        Number of random folds, a scikit-learn splitter, or None for no folds. The cube
        then has one fold, which stands for leaving out each row in turn.
    fit_intercept
        Whether the models have an unpenalised constant.
    random_state
        Seed of the folds.
    n_jobs
        Local threads where there is no cluster; None and -1 mean one for each core.

    Attributes
    ----------
    results_ : xarray.Dataset
        The cube over ``width``, ``regularization``, ``fold`` and ``criterion``.
    choice_ : LossChoice
        Candidate, parameters and estimate.
    best_params_ : dict
        ``width`` and ``regularization``.
    best_index_ : int
        Number of the candidate.
    best_estimator_ : KernelLeastSquares
        The chosen model, fitted to all rows.
    n_features_in_ : int
        Columns of the rows.

    See Also
    --------
    StreamedLeastSquaresSearch : For millions of rows.
    select_least_squares : Chooses by another estimate.

    Notes
    -----
    All criteria are estimates of the squared error, noise included: none is a bound.
    The epsilon-insensitive loss and the l1 penalty of Sugiyama's slides have no closed
    form of leave-one-out, so dsel has no solver for them: search over scikit-learn's
    `SVR` or `Lasso` with its `GridSearchCV` instead. Ties go to the larger
    regularization, then to the larger width.

    The closed forms differ from refits with the same kernel matrix by at most 1e-8 of
    each sum of squares for lambda >= 1e-8, and by 1e-10 for lambda >= 1e-3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (50, 1))
    >>> y = np.sinc(X.ravel()) + 0.1 * rng.standard_normal(50)
    >>> search = LeastSquaresSearch([0.3, 1.0], [1e-3, 0.1, 10.0], random_state=0)
    >>> search.fit(X, y).best_params_
    {'width': 1.0, 'regularization': 0.001}
    >>> dict(search.results_.sizes)["regularization"]
    3
    """

    def __init__(
        self,
        widths: ArrayLike,
        regularizations: ArrayLike,
        *,
        penalty: str = "coefficients",
        criterion: str = "loo",
        cv: Any = 10,
        fit_intercept: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.widths = widths
        self.regularizations = regularizations
        self.penalty = penalty
        self.criterion = criterion
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs

    def plan(
        self, X: Any, y: Any, X_extra: Any = None, y_extra: Any = None
    ) -> LeastSquaresPlan:
        """Return the plan of the search without running it.

        Parameters
        ----------
        X, y, X_extra, y_extra
            As for `fit`.
        """
        check_unmasked(y)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True,
            y_numeric=True, ensure_min_samples=2,
        )  # fmt: skip
        if (X_extra is None) != (y_extra is None):
            raise ValueError("`X_extra` and `y_extra` belong together; pass both.")
        extra = None
        if X_extra is not None:
            rows = validate_data(
                self, X_extra, reset=False, accept_sparse="csr", dtype=np.float64
            )
            targets = check_array(y_extra, ensure_2d=False, dtype=np.float64)
            _check_extra(rows, targets, y)
            extra = (rows, targets)
        return plan_least_squares(
            X,
            y,
            self.widths,
            self.regularizations,
            penalty=self.penalty,
            criterion=self.criterion,
            cv=self.cv,
            fit_intercept=self.fit_intercept,
            extra=extra,
            random_state=self.random_state,
        )

    def fit(
        self,
        X: Any,
        y: Any,
        X_extra: Any = None,
        y_extra: Any = None,
        *,
        out: Any = None,
    ) -> Self:
        """Search, then fit the chosen model to all rows.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n, n_columns).
        y
            Targets, shape (n,) or (n, n_outputs).
        X_extra, y_extra
            Fresh rows and targets, for the extra-sample estimate; they are not
            trained on.
        out
            Directory or URL where finished widths are stored; the same call, also
            with other widths, continues from them. Needs an integer `random_state`,
            where folds are drawn.

        Raises
        ------
        ValueError
            Where the grid or the data are out of range, or the kernel matrix does
            not fit into memory.
        AllFitsFailedError
            Where no candidate has a finite estimate.
        """
        plan = self.plan(X, y, X_extra, y_extra)
        self.results_ = plan.run(out=out, n_jobs=self.n_jobs)
        self.choice_ = select_least_squares(self.results_)
        self.best_index_ = self.choice_.candidate
        self.best_params_ = dict(self.choice_.params)
        self.best_estimator_ = KernelLeastSquares(
            self.best_params_["width"],
            self.best_params_["regularization"],
            penalty=self.penalty,
            fit_intercept=self.fit_intercept,
        ).fit(plan.work.X, np.asarray(y))
        return self

    @lazily
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict with the chosen model; of a Dask array lazily.

        Parameters
        ----------
        X
            Rows, dense or sparse, shape (n_rows, n_columns).
        """
        check_is_fitted(self, "best_estimator_")
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64
        )
        return np.asarray(self.best_estimator_.predict(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _check_extra(rows: Any, targets: NDArray[np.float64], y: Any) -> None:
    wanted = (rows.shape[0], *np.shape(y)[1:])
    if targets.shape != wanted:
        raise ValueError(
            f"`y_extra` must have the shape {wanted} of `X_extra` and `y`, got "
            f"{targets.shape}."
        )
