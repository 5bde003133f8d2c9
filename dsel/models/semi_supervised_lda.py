"""Linear discriminant analysis that a pool of unlabeled rows cannot make worse."""

from functools import partial

from dsel.models.contrast import ContrastProblem
from dsel.models.contrastive import ContrastiveClassifier, make_problem
from dsel.models.discriminant import supervised_fit
from dsel.models.lda_contrast import lda_contrast
from dsel.models.moments import ClassMoments


class SemiSupervisedLDA(ContrastiveClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for LDA.

    The parameters :math:`\theta` maximise the gain in log-likelihood over the
    supervised estimate, under the labeling q of the pool that makes it least:

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
        Reads of the pool at most, >= 1.
    start_rows
        Rows of the pool on which the problem is solved first, to save reads of the
        whole; 0 for none. It changes no result beyond `tol`.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; the covariance is shared, (d, d).
    duality_gap_
        Per row of labeled data and pool: the estimate's least gain is within this
        of the best possible.
    contrast_lower_
        Certificate, per row: under every labeling of the pool the log-likelihood is
        above the supervised one by this or more. Never negative.
    n_passes_
        Reads of the pool.
    solver_status_
        ``"converged"``, or why the gap is larger than `tol`.

    Notes
    -----
    The optimum is found by fully corrective Frank-Wolfe in the space of class masses
    and class sums: a read of the pool returns K (d + 1) numbers for each of eight runs
    of rows, whose labelings are weighted apart, and soft labels are never stored.
    Where no positive gain can be certified (the pool repeats the labeled statistics,
    say) the supervised estimate is returned, with a gain of 0. The log-likelihood can
    only be compared between fits on the same features.

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

    def __init__(
        self,
        *,
        tol: float = 1e-6,
        ridge: float = 0.0,
        max_passes: int = 1000,
        start_rows: int = 20_000,
    ) -> None:
        self.tol = tol
        self.ridge = ridge
        self.max_passes = max_passes
        self.start_rows = start_rows

    def problem(self, labeled: ClassMoments) -> ContrastProblem:
        """Return what is to be solved on the pool for these labeled rows."""
        supervised = supervised_fit(labeled, ridge=self.ridge, shared=True)
        contrast = partial(lda_contrast, ridge=self.ridge)
        return make_problem(self, labeled, supervised, contrast)
