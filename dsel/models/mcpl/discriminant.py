"""Base of the discriminant classifiers: checks of their input, and prediction."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dsel.checks import check_nonnegative
from dsel.data import open_pool
from dsel.data.labeled import check_columns, codes_of
from dsel.data.lazy import lazily
from dsel.families.arrays import Floats, Integers
from dsel.models.mcpl.gaussian import (
    ClassMoments,
    GaussianClasses,
    class_moments,
    is_singular,
    maximum_likelihood,
)


@dataclass(frozen=True)
class Labeled:
    """Checked labeled rows."""

    X: Floats
    """Shape (n_rows, d)."""
    codes: NDArray[np.intp]
    """Class codes, shape (n_rows,)."""
    moments: ClassMoments


class GaussianClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by the largest of Gaussian class densities times priors.

    Members set the fitted parameters; these decide everything else.

    Attributes
    ----------
    classes_
        Labels in sorted order, shape (K,).
    priors_
        Class priors, shape (K,).
    means_
        Class means, shape (K, d).
    covariance_
        Covariance, shape (d, d), or (K, d, d) where each class has its own.
    n_features_in_
        Number of features d.
    coef_, intercept_
        Where there is one covariance: the linear scores of `decision_function`, of
        shapes (K, d) and (K,), or (1, d) and (1,) for two classes.
    """

    classes_: NDArray[Any]
    priors_: Floats
    means_: Floats
    covariance_: Floats
    coef_: Floats
    intercept_: Floats
    n_features_in_: int

    @lazily
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(self.classes_[(scores > 0.0).astype(np.intp)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @lazily
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the posterior probability of each class, shape (n_rows, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            # The one score is ln p(x, 1) - ln p(x, 0): softmax of (0, score) is the
            # posterior.
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(softmax(scores, axis=1))

    @lazily
    def decision_function(self, X: ArrayLike) -> Floats:
        """Return ln p(x, k) but for a term that all classes share, shape (n_rows, K).

        For two classes it is the difference of the second and the first, (n_rows,).
        """
        rows = self._checked(X)
        if self.covariance_.ndim == 2:
            scores = rows @ self.coef_.T + self.intercept_
            return np.asarray(scores.ravel() if len(self.classes_) == 2 else scores)
        # Covariances that differ make the difference quadratic: no coefficients
        # describe it.
        joint = fitted_classes(self).log_joint(rows)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

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
            Where a label did not occur in fitting: its density is not modelled.
        """
        scores = fitted_classes(self).log_joint(self._checked(X))
        codes = encode(np.asarray(y), self.classes_, "y")
        return float(scores[np.arange(len(codes)), codes].mean())

    def _checked(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "means_")
        rows: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return rows


class DiscriminantClassifier(GaussianClassifier):
    """Fit Gaussian classes to labeled rows and a pool of unlabeled ones."""

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
            None or no rows give the supervised fit. Supervised methods do not read it.

        Returns
        -------
        DiscriminantClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            Where there is one class only, a supervised covariance is singular, or
            the pool has other columns or values that are not finite.
        """
        labeled = read_labeled(self, X, y)
        store_classes(self, self.estimate(labeled, read_pool(self, pool)))
        return self

    @abstractmethod
    def estimate(self, labeled: Labeled, pool: Any) -> GaussianClasses:
        """Return the fitted classes; `pool` is an opened pool with rows, or None."""


def fitted_classes(estimator: GaussianClassifier) -> GaussianClasses:
    """Return the fitted densities of an estimator."""
    covariances = estimator.covariance_
    if covariances.ndim == 2:
        covariances = covariances[None]
    return GaussianClasses(estimator.priors_, estimator.means_, covariances)


def store_classes(estimator: GaussianClassifier, classes: GaussianClasses) -> None:
    """Set the fitted parameters of an estimator."""
    estimator.priors_ = classes.priors
    estimator.means_ = classes.means
    shared = len(classes.covariances) == 1
    estimator.covariance_ = classes.covariances[0] if shared else classes.covariances
    if shared:
        estimator.coef_, estimator.intercept_ = _linear_scores(classes)


def _linear_scores(
    classes: GaussianClasses,
) -> tuple[Floats, Floats]:
    """Return coefficients of ln p(x, k) less a function that all classes share.

    For two classes there is one row, the difference of the second and the first.
    """
    # About the middle, not the origin: a mean far from 0 would cost digits.
    middle = classes.means.mean(axis=0)
    steps = classes.means - middle
    # x'S^-1 x is the same for all classes and is left out, which makes the rest linear.
    linear = np.linalg.solve(classes.covariances[0], steps.T).T
    squares = np.einsum("kd,kd->k", linear, steps)
    # Equal priors leave no constant beside which squares of tiny features would round.
    log_ratios = np.log(classes.priors / classes.priors[0])
    offsets = log_ratios - 0.5 * squares - linear @ middle
    if len(offsets) == 2:
        return linear[1:] - linear[:1], offsets[1:] - offsets[:1]
    return linear, offsets


def encode(labels: NDArray[Any], classes: NDArray[Any], name: str) -> Integers:
    """Return the place of each label among the sorted classes; raise for others."""
    codes = codes_of(labels, classes)
    if (codes < 0).any():
        raise ValueError(
            f"`{name}` must hold labels that have labeled rows, got "
            f"{labels[codes < 0].tolist()[0]!r}; a class without labeled rows has no "
            "estimate."
        )
    return codes


def read_labeled(estimator: GaussianClassifier, X: ArrayLike, y: ArrayLike) -> Labeled:
    """Check labeled rows as scikit-learn does, and set what is known of them."""
    # Sets `n_features_in_`, and `feature_names_in_` of data frames, which pools are
    # checked against.
    rows, labels = validate_data(estimator, X, y, dtype=np.float64)
    check_classification_targets(labels)
    estimator.classes_, codes = np.unique(labels, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"`y` must hold at least two classes, got one class only: "
            f"{estimator.classes_.tolist()[0]!r}."
        )
    return Labeled(rows, codes, class_moments(rows, codes, len(estimator.classes_)))


def read_pool(estimator: GaussianClassifier, pool: Any) -> Any:
    """Return an opened pool with the columns of the labeled rows, or None if empty."""
    if pool is None:
        return None
    opened = open_pool(pool).reopened()  # blocks are kept by what it holds
    names = getattr(estimator, "feature_names_in_", None)
    check_columns(opened, estimator.n_features_in_, names)
    return opened if opened.n_rows else None


def supervised_fit(
    labeled: ClassMoments,
    *,
    ridge: float,
    shared: bool,
    labels: NDArray[Any] | None = None,
) -> GaussianClasses:
    """Return the maximum likelihood fit, or raise ValueError and say why there is none.

    `shared` tells whether all classes have one covariance (LDA) or each its own (QDA);
    `labels` name the class whose own covariance is singular.
    """
    ridge = check_nonnegative(ridge, "ridge")
    total = labeled.total
    variances = (np.diag(total.scatter) + ridge) / total.count
    # Relative to the mean: the variance of a constant column is rounding, not 0.
    constant = np.flatnonzero(~(variances > 1e-28 * (1e-300 + total.mean**2)))
    if len(constant):
        raise ValueError(
            f"`X` must have no constant features, but {_columns(constant)} "
            f"{'is' if len(constant) == 1 else 'are'} the same in all labeled rows, so "
            "that the covariance is singular; remove them, or set `ridge` above 0."
        )
    classes = maximum_likelihood(labeled, ridge=ridge, shared=shared)
    for code, covariance in enumerate(classes.covariances):
        if is_singular(covariance, variances):
            variance = float(np.median(variances))
            if shared:
                n_rows, needed = labeled.counts.sum(), sum(labeled.means.shape)
                _raise_singular("shared by the classes", n_rows, needed, variance)
            name = f"number {code}" if labels is None else repr(labels.tolist()[code])
            needed = labeled.means.shape[1] + 1
            _raise_singular(f"of class {name}", labeled.counts[code], needed, variance)
    return classes


def _raise_singular(what: str, n_rows: float, needed: int, variance: float) -> None:
    # A thousandth of a typical variance, in the units of a scatter.
    ridge = 1e-3 * n_rows * variance
    raise ValueError(
        f"`X` must give a regular covariance, but the one {what} is singular: it has "
        f"{n_rows:.0f} labeled rows, and at least {needed} in general position are "
        "needed. Label more rows, remove features that depend on others, or set "
        f"`ridge`, for instance {ridge:.2g}."
    )


def _columns(numbers: NDArray[np.intp]) -> str:
    shown = ", ".join(str(number) for number in numbers[:5])
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"column{'s' if len(numbers) > 1 else ''} {shown}{more}"
