"""Quadratic discriminant analysis that a pool cannot make worse."""

from functools import partial

from dsel.models.contrast import ContrastProblem
from dsel.models.contrastive import ContrastiveClassifier, make_problem
from dsel.models.discriminant import supervised_fit
from dsel.models.moments import ClassMoments
from dsel.models.qda_contrast import qda_contrast


class SemiSupervisedQDA(ContrastiveClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for QDA.

    Each class has a covariance of its own, which needs d + 1 labeled rows or more
    in each class, or a ridge. Otherwise as `SemiSupervisedLDA`: on the labeled rows
    and the pool together the likelihood is never below the supervised one, whatever
    the true labels are. **A better likelihood is not always a lower error rate.**

    Parameters
    ----------
    tol
        Duality gap per row at which to stop, > 0.
    ridge
        Added to the diagonal of every class's scatter matrix, >= 0. If positive,
        every statement is about the likelihood with the penalty
        ``-ridge/2 sum_k tr(inverse covariance_k)``.
    max_passes
        Reads of the pool at most, >= 1.
    start_rows
        Rows of the pool on which the problem is solved first, to save reads of the
        whole; 0 for none. It changes no result beyond `tol`.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; ``covariance_`` is (K, d, d).
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
    A read of the pool returns K (1 + d + d^2) numbers and costs a matrix product
    with d columns for each class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(20) % 2
    >>> X = rng.normal(size=(20, 2)) * (1 + y[:, None]) + 2 * y[:, None]
    >>> pool = rng.normal(size=(500, 2)) * 1.5 + 1
    >>> model = SemiSupervisedQDA().fit(X, y, pool=pool)
    >>> bool(model.contrast_lower_ > 0), model.covariance_.shape
    (True, (2, 2, 2))
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
        supervised = supervised_fit(
            labeled, ridge=self.ridge, shared=False, labels=self.classes_
        )
        contrast = partial(qda_contrast, ridge=self.ridge)
        return make_problem(self, labeled, supervised, contrast)
