"""Which family fits which candidates.

To add a family: a frozen dataclass that is a `Family`, and its line in `FAMILIES`,
before the last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.family import Candidate, Family
from dsel.families.generic import ScikitLearnFamily
from dsel.families.svm.family import KernelSVMFamily

FAMILIES: Final[list[type[Family]]] = [KernelSVMFamily, ScikitLearnFamily]
"""A candidate goes to the first that does not refuse it; the last refuses none."""


@dataclass(frozen=True)
class Assignment:
    """Candidates that one family fits."""

    family: Family
    groups: tuple[tuple[Candidate, ...], ...]
    """Those that share work together, by number."""
    remark: str
    """How they are fitted, for the plan."""


def assign_families(
    candidates: Sequence[Candidate],
    X: Any,
    *,
    classes: NDArray[Any],
    seed: int,
    fit_params: Mapping[str, Any],
) -> tuple[Assignment, ...]:
    """Give every candidate to the first family that does not refuse it.

    `X` are labeled rows, which some families check (a polynomial of fractional degree
    needs nonnegative features).
    """
    remaining, assignments = list(candidates), []
    reasons: dict[int, list[str]] = {each.number: [] for each in candidates}
    for make in FAMILIES:
        family = make(np.asarray(classes), seed, dict(fit_params))
        asked, taken, remaining = remaining, list[Candidate](), []
        for each in asked:
            reason = family.refusal(each.estimator)
            (taken if reason is None else remaining).append(each)
            reasons[each.number] += filter(None, [reason])
        if taken:
            family.check(taken, X)
            groups = tuple(family.groups(taken))
            why = dict.fromkeys(text for each in taken for text in reasons[each.number])
            remark = "; ".join([family.remark(len(groups), X.shape[0]), *why])
            assignments.append(Assignment(family, groups, remark))
    return tuple(assignments)
