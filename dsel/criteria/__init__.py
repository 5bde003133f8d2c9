"""What turns counts into one number per candidate.

A criterion names the evidence that it needs, judges candidates whose evidence is
complete, bounds from below those whose evidence is not (all that pruning knows), has a
tie rule, and says whether its number is a guarantee. It is a pure function: another
criterion, another `delta` of the same evidence costs no fit. Smaller is better.

Vocabulary: *evidence* is the cube's counts with the candidates flattened into the first
axis; *terms* are the number and what it is made of; *settings* are delta's shares.

To add a criterion: one file with the formula on arrays and a frozen dataclass that
satisfies `Criterion`, and one line in `CRITERIA`.
"""

from typing import Final

from dsel.checks import check_choice
from dsel.criteria.base import Criterion, Evidence, Settings, Terms
from dsel.criteria.cv_bound import CvBound
from dsel.criteria.cv_error import CvError
from dsel.criteria.holdout_bound import HoldoutBound

CRITERIA: Final[dict[str, Criterion]] = {
    criterion.name: criterion for criterion in (CvBound(), CvError(), HoldoutBound())
}
"""Every criterion by name."""


def get_criterion(name: str) -> Criterion:
    """Return the criterion of that name; ValueError lists the names there are."""
    return CRITERIA[check_choice(name, "criterion", sorted(CRITERIA))]


__all__ = ["CRITERIA", "Criterion", "Evidence", "Settings", "Terms", "get_criterion"]
