"""The assignment of candidates to families.

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
from dsel.results.values import value_label

FAMILIES: Final[list[type[Family]]] = [KernelSVMFamily, ScikitLearnFamily]
"""A candidate goes to the first that does not refuse it; the last refuses none."""


MOST_SIGNS: Final = 60
"""Of the label of a group; a longer one would hide the rest of a task's name."""


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
    row_groups: NDArray[Any] | None = None,
) -> tuple[Assignment, ...]:
    """Give every candidate to the first family that does not refuse it.

    `X` are labeled rows, which some families check (a polynomial of fractional degree
    needs nonnegative features). `row_groups` are for learners that want the groups of
    rows.
    """
    remaining, assignments = list(candidates), []
    reasons: dict[int, list[str]] = {each.number: [] for each in candidates}
    for make in FAMILIES:
        family = make(np.asarray(classes), seed, dict(fit_params), row_groups)
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


def group_label(candidates: Sequence[Candidate], number: int) -> str:
    """Return the parameters that a group shares, as text for the names of tasks.

    Such as ``gamma=0.01``; ``group=3``, by its number, where they share no parameter.
    """
    first, *others = (
        [f"{name}={value_label(value)}" for name, value in each.params.items()]
        for each in candidates
    )
    label = ",".join(text for text in first if all(text in o for o in others))
    return label if 0 < len(label) <= MOST_SIGNS else f"group={number}"
