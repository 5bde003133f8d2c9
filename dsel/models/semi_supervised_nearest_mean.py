"""The nearest mean classifier that a pool of unlabeled rows cannot make worse."""

from dsel.models.contrast import ContrastProblem
from dsel.models.contrastive import ContrastiveClassifier, make_problem
from dsel.models.moments import ClassMoments
from dsel.models.nearest_mean_contrast import (
    nearest_mean_classes,
    nearest_mean_contrast,
)


class SemiSupervisedNearestMean(ContrastiveClassifier):
    r"""Maximum contrastive pessimistic likelihood (MCPL) for the nearest mean.

    Classes are normal with identity covariance and equal priors, so the result
    depends on the features' scales: standardise them first. Otherwise as
    `SemiSupervisedLDA`: on the labeled rows and the pool together the likelihood is
    never below the supervised one, whatever the true labels are. **A better
    likelihood is not always a lower error rate.**

    Parameters
    ----------
    tol
        Duality gap per row at which to stop, > 0.
    max_passes
        Reads of the pool at most, >= 1.
    start_rows
        Rows of the pool on which the problem is solved first, to save reads of the
        whole; 0 for none. It changes no result beyond `tol`.

    Attributes
    ----------
    classes_, priors_, means_, covariance_, n_features_in_
        As in every discriminant classifier; equal priors, identity covariance.
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

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [4.0]]), np.array(["a", "a", "b"])
    >>> model = SemiSupervisedNearestMean().fit(X, y, pool=[[1.0], [2.0], [5.0]])
    >>> bool(model.contrast_lower_ > 0), model.predict([[0.0], [9.0]]).tolist()
    (True, ['a', 'b'])
    """

    def __init__(
        self, *, tol: float = 1e-6, max_passes: int = 1000, start_rows: int = 20_000
    ) -> None:
        self.tol = tol
        self.max_passes = max_passes
        self.start_rows = start_rows

    def problem(self, labeled: ClassMoments) -> ContrastProblem:
        """Return what is to be solved on the pool for these labeled rows."""
        supervised = nearest_mean_classes(labeled.means)
        return make_problem(self, labeled, supervised, nearest_mean_contrast)
