"""Leave-one-out errors of every candidate of a grid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.data.labeled import LabeledRows, labeled_rows
from dsel.data.row_random import seed_from
from dsel.data.splits import leave_one_out_split
from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.families.leave_one_out import leave_one_out_counts
from dsel.searches.candidates import Grid, drawn, make_candidates, takes_nan


def leave_one_out_errors(
    estimator: Any, param_grid: Grid | None, X: Any, y: Any, *, random_state: Any = 0
) -> NDArray[np.int64]:
    """Count for every candidate the rows on which the model of all other rows errs.

    An SVC whose kernel does not depend on the rows is fitted once on all rows. Rows
    that are no support vectors need no fit of their own; the fits without one of the
    others start from the full solution. All other candidates are fitted once a row.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `param_grid` lists
        some.
    param_grid
        As `plan_search` takes it; None for the estimator as it is.
    X, y
        Labeled rows, in memory, and their labels.
    random_state
        Seed of the learners.

    Returns
    -------
    ndarray
        Errors, (n_candidates,), in ``ParameterGrid`` order; -1 where a fit failed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> leave_one_out_errors(SVC(gamma=0.1), {"C": [0.1, 1.0]}, X, y).tolist()
    [9, 4]
    """
    if param_grid is None:
        estimator, param_grid = None, [estimator]
    seed = seed_from(random_state)
    candidates = make_candidates(estimator, drawn(param_grid, seed))
    allow_nan = takes_nan(each.estimator for each in candidates)
    labeled = labeled_rows(X, y, allow_nan=allow_nan)
    return count_leave_one_out(candidates, labeled, seed)


def count_leave_one_out(
    candidates: tuple[Candidate, ...], labeled: LabeledRows, seed: int
) -> NDArray[np.int64]:
    """Count leave-one-out errors of candidates that are numbered from 0."""
    errors = np.full(len(candidates), -1, dtype=np.int64)
    split = leave_one_out_split(labeled.n_rows)
    for assigned in assign_families(
        candidates, labeled.X, classes=labeled.classes, seed=seed, fit_params={}
    ):
        for group in assigned.groups:
            counts = leave_one_out_counts(
                assigned.family, group, labeled.X, labeled.y, split
            )
            numbers = [candidate.number for candidate in group]
            errors[numbers] = counts.test_errors[:, 0]
    return errors
