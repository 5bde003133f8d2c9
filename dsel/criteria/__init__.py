"""What turns counts into one number per candidate.

A criterion names the evidence that it needs, judges candidates whose evidence is
complete, bounds from below those whose evidence is not (all that pruning knows), has a
tie rule, and says whether its number is a guarantee. It is a pure function: another
criterion, another `delta` of the same evidence costs no fit. Smaller is better.

Vocabulary: *evidence* is the cube's counts with the candidates flattened into the first
axis; *terms* are the number and what it is made of; *settings* are delta's shares.

To add a criterion: one file with the formula on arrays, made a `Bound` or an `Estimate`
(or another frozen dataclass that satisfies `Criterion`), and one line in `CRITERIA`.
"""

from typing import Final

from dsel.checks import check_choice
from dsel.criteria.averaged_disagreement import AVERAGED_DISAGREEMENT
from dsel.criteria.base import Criterion, Evidence, Settings, Terms
from dsel.criteria.best_fold import BEST_FOLD
from dsel.criteria.best_fold_of_leader import BEST_FOLD_OF_LEADER
from dsel.criteria.cv_bound import CV_BOUND
from dsel.criteria.cv_error import CvError
from dsel.criteria.dis_error import DIS_ERROR
from dsel.criteria.disagreement import DISAGREEMENT
from dsel.criteria.extra_sample import EXTRA_SAMPLE
from dsel.criteria.gcv import GCV
from dsel.criteria.half_true_error import HALF_TRUE_ERROR
from dsel.criteria.holdout import HOLDOUT
from dsel.criteria.holdout_bound import HOLDOUT_BOUND
from dsel.criteria.intervals import BEST_FOLD_INTERVAL, CV_INTERVAL
from dsel.criteria.kfold import KFOLD
from dsel.criteria.leaders import LEADERS
from dsel.criteria.loo import LOO
from dsel.criteria.loo_error import LOO_ERROR
from dsel.criteria.losses import LossCriterion
from dsel.criteria.max_cv_dt_e import MAX_CV_DT_E
from dsel.criteria.max_dt_e import MAX_DT_E
from dsel.criteria.merged_folds import MERGED_FOLDS
from dsel.criteria.select_then_certify import SELECT_THEN_CERTIFY
from dsel.criteria.train_error import TRAIN_ERROR
from dsel.criteria.transductive import TRANSDUCTIVE
from dsel.criteria.true_error import TRUE_ERROR
from dsel.criteria.two_fold_cv import TWO_FOLD_CV

_MEMBERS: Final[tuple[Criterion, ...]] = (
    AVERAGED_DISAGREEMENT,
    BEST_FOLD,
    BEST_FOLD_INTERVAL,
    BEST_FOLD_OF_LEADER,
    CV_BOUND,
    CV_INTERVAL,
    CvError(),
    HOLDOUT_BOUND,
    LEADERS,
    MERGED_FOLDS,
    SELECT_THEN_CERTIFY,
    TRANSDUCTIVE,
    DISAGREEMENT,
    DIS_ERROR,
    TRAIN_ERROR,
    TWO_FOLD_CV,
    MAX_DT_E,
    MAX_CV_DT_E,
    LOO_ERROR,
    HALF_TRUE_ERROR,
    TRUE_ERROR,
)

CRITERIA: Final[dict[str, Criterion]] = {each.name: each for each in _MEMBERS}
"""Every criterion by name."""

LOSS_CRITERIA: Final[dict[str, LossCriterion]] = {
    criterion.name: criterion for criterion in (LOO, GCV, KFOLD, HOLDOUT, EXTRA_SAMPLE)
}
"""Estimates of a squared error by name; none is a bound."""


def get_criterion(name: str, argument: str = "criterion") -> Criterion:
    """Return the criterion of that name.

    Parameters
    ----------
    name
        One of `CRITERIA`.
    argument
        What messages call it.

    Raises
    ------
    ValueError
        Where there is none; the message lists the names.
    """
    if name in LOSS_CRITERIA:
        raise ValueError(
            f"`{argument}` {name!r} estimates the squared error of least squares; "
            f"search with `LeastSquaresSearch` and choose with `select_least_squares`, "
            f"or use {argument}='cv_error' for classifiers."
        )
    return CRITERIA[check_choice(name, argument, sorted(CRITERIA))]


__all__ = [
    "CRITERIA",
    "LOSS_CRITERIA",
    "Criterion",
    "Evidence",
    "Settings",
    "Terms",
    "get_criterion",
]
