"""MCPL for counts: multinomial naive Bayes, an exponential family that is no normal."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    check_is_fitted,
    check_non_negative,
    validate_data,
)

from dsel.checks import check_integer, check_positive
from dsel.data.lazy import lazily
from dsel.families.arrays import Floats, Integers
from dsel.models.mcpl.discriminant import read_labeled, read_pool
from dsel.models.mcpl.estimators import report_fit
from dsel.models.mcpl.gaussian import ClassMoments, Moments, dense_blocks
from dsel.models.mcpl.pool_passes import ClassScores
from dsel.models.mcpl.saddle_point import ContrastProblem, fit_contrasts
from dsel.models.mcpl.whitening import Whitening


@dataclass(frozen=True)
class MultinomialContrast:
    r"""The best contrast with the supervised fit that class sums of the pool allow.

    With :math:`n_k = N_k + \nu_k` and :math:`t_k = T_k + S_k + \alpha`,

    .. math:: g = \sum_k n_k \ln \frac{n_k}{n\,\pi^s_k}
       + \sum_{kj} t_{kj} \ln \frac{t_{kj}}{t_{k\cdot}\,\theta^s_{kj}},

    convex in :math:`(\nu, S)`. A point holds ``(nu_k, S_k)`` per class, flattened.
    """

    whitening: Whitening
    """Coordinates as they are: counts."""
    masses: Floats
    totals: Floats
    """Sums of the labeled rows of each class, and alpha, shape (K, d)."""
    n_rows: float
    supervised: ClassScores
    """As of `fitted_counts`."""

    def expand(self, point: Floats) -> "MultinomialExpansion":
        """Return the contrast around a point."""
        rows = point.reshape(len(self.masses), -1)
        return MultinomialExpansion(
            self, self.masses + rows[:, 0], self.totals + rows[:, 1:]
        )

    def classes(self, point: Floats) -> ClassScores:
        """Return the maximum likelihood estimate."""
        here = self.expand(point)
        return fitted_counts(here.masses, here.totals)


@dataclass(frozen=True)
class MultinomialExpansion:
    """The contrast and its two derivatives around one point."""

    contrast: MultinomialContrast
    masses: Floats
    totals: Floats

    @property
    def value(self) -> float:
        """Contrast g at the point, in nats."""
        rows = self.gradient.reshape(len(self.masses), -1)
        return float(self.masses @ rows[:, 0] + np.sum(self.totals * rows[:, 1:]))

    @property
    def gradient(self) -> Floats:
        """Derivatives with respect to the masses and sums, flattened."""
        # Envelope theorem: of the log-densities at the fitted parameters.
        fit, start = fitted_counts(self.masses, self.totals), self.contrast.supervised
        constants = fit.constants - start.constants
        return np.column_stack([constants, fit.linear - start.linear]).ravel()

    def curvature(self, directions: Floats) -> Floats:
        """Return the Hessian times each row of `directions`, same shape."""
        rows = directions.reshape(-1, len(self.masses), 1 + self.totals.shape[1])
        d_mass, d_sum = rows[:, :, :1], rows[:, :, 1:]
        d_linear = d_sum / self.totals
        d_linear -= d_sum.sum(axis=2, keepdims=True) / self.totals.sum(1)[:, None]
        products = np.concatenate([d_mass / self.masses[:, None], d_linear], axis=2)
        return np.asarray(products.reshape(directions.shape))


def fitted_counts(masses: Floats, totals: Floats) -> ClassScores:
    """Return the maximum likelihood fit to class masses and sums of counts.

    It is ln p(x, k), but for what all classes share: the logarithms of the priors are
    its constants, those of each column's chance its linear part.
    """
    rates = np.log(totals) - np.log(totals.sum(axis=1, keepdims=True))
    return ClassScores(np.log(masses) - np.log(masses.sum()), rates)


def multinomial_contrast(
    labeled: ClassMoments, pool: Moments, *, alpha: float
) -> MultinomialContrast:
    """Return the contrast for labeled rows and the number of a pool's rows."""
    totals = labeled.counts[:, None] * labeled.means + alpha
    n_columns = totals.shape[1]
    return MultinomialContrast(
        Whitening(np.zeros(n_columns), np.eye(n_columns)),
        labeled.counts,
        totals,
        float(labeled.counts.sum() + pool.count),
        fitted_counts(labeled.counts, totals),
    )


class SemiSupervisedNaiveBayes(ClassifierMixin, BaseEstimator):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for counts.

    Multinomial naive Bayes, for tables of counts such as words in texts. As in
    `SemiSupervisedLDA`, on the labeled rows and the pool together the likelihood is
    never below the supervised one, whatever the true labels are. **A better likelihood
    is not always a lower error rate.**

    Parameters
    ----------
    alpha
        Added to the sum of each column in each class, > 0. Every statement is about the
        likelihood with the penalty :math:`\alpha \sum_{kj} \ln \theta_{kj}`.
    tol, max_passes, start_rows
        As in `SemiSupervisedLDA`.

    Attributes
    ----------
    classes_, n_features_in_
        As everywhere in scikit-learn.
    class_log_prior_, feature_log_prob_
        As in scikit-learn's `MultinomialNB`, which it equals without a pool.
    duality_gap_, contrast_lower_, n_passes_, solver_status_
        As in `SemiSupervisedLDA`.

    See Also
    --------
    SemiSupervisedLDA : For normal classes.

    Notes
    -----
    The same method works for any exponential family in the place of the multinomial
    distribution, but not for a mixture in each class. A read of the pool returns
    K (d + 1) numbers, the first read d^2 more, so it is for up to some hundred columns.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rates = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    >>> y = np.arange(12) % 2
    >>> X = np.stack([rng.multinomial(8, rates[k]) for k in y])
    >>> pool = np.stack([rng.multinomial(8, rates[k]) for k in rng.integers(0, 2, 900)])
    >>> model = SemiSupervisedNaiveBayes().fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0), bool(model.duality_gap_ <= 1e-6)
    (True, True)
    """

    duality_gap_: float
    contrast_lower_: float
    n_passes_: int
    solver_status_: str

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        tol: float = 1e-6,
        max_passes: int = 1000,
        start_rows: int = 20_000,
    ) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_passes = max_passes
        self.start_rows = start_rows

    def fit(self, X: ArrayLike, y: ArrayLike, pool: Any = None) -> Self:
        """Fit to labeled rows and the unlabeled pool.

        Parameters
        ----------
        X
            Labeled rows of counts, shape (n_rows, d).
        y
            Labels of any kind, at least two classes, shape (n_rows,).
        pool
            Unlabeled rows with the same columns: whatever ``dsel.open_pool`` takes.
            None or no rows give the supervised fit.

        Raises
        ------
        ValueError
            Where there is one class only, or a value is negative.
        """
        labeled = read_labeled(self, X, y)
        check_non_negative(labeled.X, "SemiSupervisedNaiveBayes (input X)")
        alpha = check_positive(self.alpha, "alpha")
        totals = labeled.moments.counts[:, None] * labeled.moments.means + alpha
        supervised = fitted_counts(labeled.moments.counts, totals)
        opened = read_pool(self, pool)
        if opened is not None and opened.reduce(_smallest, min, keep=True) < 0:
            raise ValueError("`pool` must hold counts, got negative values.")
        problem = ContrastProblem(
            labeled.moments,
            supervised,
            partial(multinomial_contrast, alpha=alpha),
            check_positive(self.tol, "tol"),
            check_integer(self.max_passes, "max_passes", at_least=1),
            scores=ClassScores.about,
        )
        start_rows = check_integer(self.start_rows, "start_rows", at_least=0)
        fit = fit_contrasts([problem], opened, start_rows=start_rows)[0]
        self.class_log_prior_ = fit.classes.constants
        self.feature_log_prob_ = fit.classes.linear
        report_fit(self, fit)
        return self

    @lazily
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n_rows,)."""
        check_is_fitted(self, "feature_log_prob_")
        return np.asarray(self.classes_[self._joint(X).argmax(axis=1)])

    @lazily
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the posterior probability of each class, shape (n_rows, K)."""
        return np.asarray(softmax(self._joint(X), axis=1))

    def _joint(self, X: ArrayLike) -> Floats:
        check_is_fitted(self, "feature_log_prob_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        check_non_negative(rows, "SemiSupervisedNaiveBayes (input X)")
        return np.asarray(rows @ self.feature_log_prob_.T + self.class_log_prior_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # as of scikit-learn's MultinomialNB
        return tags


def _smallest(X: Any, rows: Integers) -> float:
    del rows
    return min(float(block.min()) for block in dense_blocks(X))
