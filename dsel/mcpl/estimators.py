"""LDA that uses a pool and is never less likely than the supervised fit, and rivals."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import Covariance, multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dsel.arrays import ArrayLike, Floats, Integers, replaces_earlier_fit, validate_data
from dsel.checks import as_array, check_integer, check_nonnegative, check_positive
from dsel.data import open_pool
from dsel.data.labeled import check_labels, code_labels, codes_of, with_columns
from dsel.data.lazy import LazyScore, takes_dask_arrays
from dsel.errors import GuaranteeWarning, warn
from dsel.families.estimator_kinds import FittedAttributes
from dsel.mcpl.frank_wolfe import CONVERGED
from dsel.mcpl.gaussian import GaussianClasses, Moments, fit_labeled_rows, moments_of
from dsel.mcpl.saddle_point import fit_contrast
from dsel.typing import AnyArray, PoolLike


class _GaussianClassifier(FittedAttributes, LazyScore, ClassifierMixin, BaseEstimator):
    """Predicts the largest of Gaussian class densities times priors."""

    n_features_in_: int

    @takes_dask_arrays
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        codes = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes.astype(np.intp)])

    @takes_dask_arrays
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the posterior probability of each class, shape (n_rows, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            # The one score is ln p(x, 1) - ln p(x, 0): softmax of (0, score) is the
            # posterior.
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(softmax(scores, axis=1))

    @takes_dask_arrays
    def decision_function(self, X: ArrayLike) -> Floats:
        """Return ln p(x, k) up to a term common to all classes, shape (n_rows, K).

        For two classes it is the difference of the second and the first, (n_rows,).
        """
        scores = self._check_rows(X) @ self.coef_.T + self.intercept_
        return np.asarray(scores.ravel() if len(self.classes_) == 2 else scores)

    def log_likelihood(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the mean of ln p(x, y) over labeled rows, in nats.

        Parameters
        ----------
        X
            Rows, shape (n_rows, d).
        y
            Labels that occurred in fitting, shape (n_rows,).

        Raises
        ------
        ValueError
            Where a label did not occur in fitting: its density is not modeled.
        """
        rows, codes = self._check_rows(X), self._encode(np.asarray(y), "y")
        covariance = Covariance.from_cholesky(np.linalg.cholesky(self.covariance_))
        joint = np.log(self.priors_) + np.column_stack(
            [multivariate_normal.logpdf(rows, mean, covariance) for mean in self.means_]
        )
        return float(joint[np.arange(len(codes)), codes].mean())

    def _check_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "means_")
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def _labeled_moments(self, X: ArrayLike, y: ArrayLike) -> Moments:
        """Check labeled rows as scikit-learn does, and return their moments."""
        # `validate_data` sets `n_features_in_`, and `feature_names_in_` for data
        # frames; the pool is checked against both.
        rows, labels = validate_data(self, X, check_labels(y), dtype=np.float64)
        self.classes_, codes = code_labels(labels)
        return moments_of(rows, codes, len(self.classes_))

    def _open_pool(self, pool: PoolLike) -> Any:
        """Return a pool with the columns of the labeled rows, or None if empty."""
        if pool is None:
            return None
        # The pool is opened again: sums and blocks are cached under the token of the
        # pool, which must describe its content now, not when the user opened it.
        opened = replace(open_pool(pool))
        names = getattr(self, "feature_names_in_", None)
        opened = with_columns(opened, self.n_features_in_, names)
        return opened if opened.n_rows else None

    def _encode(self, labels: AnyArray, name: str) -> Integers:
        """Return the class code of each label; raise for other labels."""
        codes = codes_of(labels, self.classes_)
        if (codes < 0).any():
            raise ValueError(
                f"`{name}` must hold labels that have labeled rows, got "
                f"{labels[codes < 0].tolist()[0]!r}; a class without labeled rows has "
                "no estimate."
            )
        return codes

    def _set(self, fitted: GaussianClasses) -> None:
        """Set the fitted parameters, and the linear scores that they give."""
        self.priors_, self.means_ = fitted.priors, fitted.means
        self.covariance_ = fitted.covariance
        # Scores are computed relative to the center of the classes, since a mean far
        # from 0 would cost digits.
        center = fitted.means.mean(axis=0)
        scores = fitted.scores_about(center)
        scores[:, 0] -= scores[:, 1:] @ center
        if len(scores) == 2:
            scores = np.diff(scores, axis=0)
        self.coef_, self.intercept_ = scores[:, 1:], scores[:, 0]


@dataclass(eq=False, repr=False)
class SemiSupervisedLDA(_GaussianClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for LDA.

    The parameters :math:`\theta` maximize the gain in log-likelihood over the
    supervised estimate :math:`\theta_s`, under the soft labeling q of the pool U for
    which this gain is smallest:

    .. math:: \max_\theta \min_q \; L(\theta; X, y, U, q) - L(\theta_s; X, y, U, q).

    A gain of 0 is always possible (:math:`\theta = \theta_s`), so on the labeled
    rows and the pool together the likelihood is never below the supervised one,
    whatever the true labels are. This concerns the likelihood, on the training rows.
    **A better likelihood is not always a lower error rate**: of the sixteen sets in
    [1]_ the error got worse on test rows of one (spectf), and on training rows of
    two (low, spectf).

    Parameters
    ----------
    tol
        Duality gap per row at which to stop, > 0; 1e-10 is attainable.
    ridge
        Added to the diagonal of every scatter matrix, >= 0. If positive, every
        statement is about the likelihood with the penalty
        ``-ridge/2 tr(inverse covariance)``.
    max_passes
        Largest number of passes over the pool, >= 1.
    start_rows
        Rows of the pool on which the problem is solved first, to save passes over the
        whole pool; 0 for none. It changes no result by more than `tol`.

    Attributes
    ----------
    classes_
        Labels in sorted order, shape (K,).
    priors_, means_, covariance_
        Priors and means of the classes, shapes (K,) and (K, d), and their common
        covariance, (d, d).
    coef_, intercept_
        The linear scores of `decision_function`, of shapes (K, d) and (K,), or (1, d)
        and (1,) for two classes.
    duality_gap_
        Per row of labeled data and pool: the estimate's least gain is within this
        of the best possible.
    contrast_lower_
        Certificate, per row: under every labeling of the pool the log-likelihood
        exceeds the supervised one by at least this. Never negative.
    n_passes_
        Passes over the pool, including the first, whose sums are taken from the cache
        where another fit of this process has made it.
    solver_status_
        ``"converged"``, or why the gap is larger than `tol`.

    See Also
    --------
    MaximumLikelihoodLDA : The supervised fit.
    OracleLDA : The fit to the pool with its true labels.

    Notes
    -----
    The optimum is found by the fully corrective Frank-Wolfe method in the space of
    class masses and class sums; soft labels are never stored. Where no positive gain
    can be certified, for example because the pool has the same statistics as the
    labeled rows, the supervised estimate is returned, with a gain of 0.
    Log-likelihoods can only be compared between fits on the same features.

    References
    ----------
    .. [1] M. Loog, "Contrastive pessimistic likelihood estimation for
       semi-supervised classification", IEEE TPAMI 38(3), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(12) % 2
    >>> X = rng.normal(size=(12, 3)) + 2 * y[:, None]
    >>> pool = np.vstack([rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + 2])
    >>> model = SemiSupervisedLDA().fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0), bool(model.duality_gap_ <= 1e-6)
    (True, True)
    """

    _: KW_ONLY
    tol: float = 1e-6
    ridge: float = 0.0
    max_passes: int = 1000
    start_rows: int = 20_000

    @replaces_earlier_fit
    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows and the unlabeled pool.

        Parameters
        ----------
        X
            Labeled rows, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Unlabeled rows with the same columns: whatever ``dsel.open_pool`` takes.
            None or no rows give the supervised fit.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, a supervised covariance is singular, or
            the pool has other columns or values that are not finite.
        """
        labeled = self._labeled_moments(X, y)
        try:
            fitted, gap, lower, n_passes, status = fit_contrast(
                labeled,
                self._open_pool(pool),
                ridge=check_nonnegative(self.ridge, "ridge"),
                tol=check_positive(self.tol, "tol"),
                max_passes=check_integer(self.max_passes, "max_passes", at_least=1),
                start_rows=check_integer(self.start_rows, "start_rows", at_least=0),
            )
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "`X` must give a covariance that is regular to rounding; label more "
                "rows, remove features that depend on others, or set `ridge` above 0."
            ) from error
        self._set(fitted)
        self.duality_gap_, self.contrast_lower_ = gap, lower
        self.n_passes_, self.solver_status_ = n_passes, status
        if status != CONVERGED:
            message = (
                f"the duality gap is {gap:.3g} per row where `tol` is {self.tol:.3g}. "
                f"The estimate is still no worse than the supervised one "
                f"(contrast_lower_ = {lower:.3g})"
            )
            if lower == 0.0:
                message = (
                    "no gain over the supervised estimate could be certified, so the "
                    "fit returned the supervised estimate"
                )
            warn(
                f"{message} ({status} after {n_passes} passes over the pool); raise "
                f"`max_passes` or `tol`.",
                GuaranteeWarning,
            )
        return self


@dataclass(eq=False, repr=False)
class MaximumLikelihoodLDA(_GaussianClassifier):
    """Linear discriminant analysis; the covariance has divisor N.

    Parameters
    ----------
    ridge
        Added to the diagonal of the scatter matrix, >= 0.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, coef_, intercept_
        As in `SemiSupervisedLDA`, which uses a pool and is never less likely.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [2.0], [5.0], [7.0]]), [0, 0, 1, 1]
    >>> MaximumLikelihoodLDA().fit(X, y).covariance_
    array([[1.]])
    """

    _: KW_ONLY
    ridge: float = 0.0

    @replaces_earlier_fit
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to labeled rows.

        Parameters
        ----------
        X, y
            As for `SemiSupervisedLDA`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, or the covariance is singular.
        """
        labeled = self._labeled_moments(X, y)
        ridge = check_nonnegative(self.ridge, "ridge")
        self._set(fit_labeled_rows(labeled, ridge=ridge))
        return self


class OracleLDA(MaximumLikelihoodLDA):
    """LDA on the labeled rows and the pool with its true labels.

    No semi-supervised fit has a higher likelihood on these rows; improvements over the
    supervised fit are measured against it.

    Parameters and attributes are those of `MaximumLikelihoodLDA`, the fit without the
    pool's labels.

    Examples
    --------
    >>> X, y = [[0.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1]
    >>> model = OracleLDA().fit(X, y, pool=[[4.0], [9.0]], pool_labels=[0, 1])
    >>> model.means_.ravel()
    array([2., 7.])
    """

    @replaces_earlier_fit
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pool: Any = None,
        pool_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit to labeled rows and the pool with its labels.

        Parameters
        ----------
        X, y, pool
            As for `SemiSupervisedLDA`.
        pool_labels
            Labels of the pool by global row number; all of them occur in `y`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a row of the pool has no label, or one that is not in `y`, or the
            covariance is singular.
        """
        moments, opened = self._labeled_moments(X, y), self._open_pool(pool)
        if opened is not None:
            labels = (
                np.zeros(0)
                if pool_labels is None
                else as_array(pool_labels, "pool_labels")
            )
            n_stored = int(opened.boundaries[-1])
            if labels.shape != (n_stored,):
                raise ValueError(
                    f"`pool_labels` must have one label for each of the {n_stored} "
                    f"rows of `pool`, got shape {labels.shape}."
                )
            codes = self._encode(labels, "pool_labels")
            n = len(self.classes_)
            pool_moments = opened.reduce(
                lambda X, rows: moments_of(X, codes[rows], n),
                Moments.merge,
                name="moments",
            )
            moments = moments.merge(pool_moments)
        ridge = check_nonnegative(self.ridge, "ridge")
        self._set(fit_labeled_rows(moments, ridge=ridge))
        return self
