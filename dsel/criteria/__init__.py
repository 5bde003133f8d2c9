"""Criteria: functions of counts that give a number for each candidate.

A criterion names the counts that it needs. For a candidate whose counts are complete it
returns a number, for others a lower bound of that number, which pruning compares. It
also has a rule for ties, and states whether its number is a guarantee. A criterion is a
pure function: another criterion or another `delta` on the same counts costs no fit.
Smaller is better.

Vocabulary: *counts* are a dict of the cube's variables, the candidates flattened into
the first axis, -1 where nothing was counted yet; *terms* are the number and the parts
whose sum it is; *settings* are the shares of delta.

To add a criterion, write a formula and make it a `Bound` or an `Estimate` in `folds` or
`co_validation`; from outside of dsel, set ``CRITERIA[name] = Estimate(...)``.
``CRITERIA`` has all criteria by name.
"""

from typing import Final

from dsel.checks import check_choice, offer_public
from dsel.criteria.co_validation import CO_VALIDATION
from dsel.criteria.criterion import Bound, Criterion, Estimate, Settings
from dsel.criteria.folds import FOLDS

CRITERIA: Final[dict[str, Criterion]] = {
    criterion.name: criterion for criterion in (*FOLDS, *CO_VALIDATION)
}
"""Every criterion by name."""


def get_criterion(name: str) -> Criterion:
    """Return a criterion by name; ValueError where there is none."""
    return CRITERIA[check_choice(name, "criterion", sorted(CRITERIA))]


__all__ = ["CRITERIA", "Bound", "Estimate", "Settings"]

offer_public(globals())
