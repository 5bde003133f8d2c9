"""Which family fits which candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.models.family import Candidate, Family
from dsel.models.generic import ScikitLearnFamily
from dsel.models.least_squares.family import (
    KernelLeastSquaresFamily,
    is_kernel_least_squares,
)
from dsel.models.mcpl.estimators import MCPLClassifier
from dsel.models.mcpl.family import MCPLFamily
from dsel.models.svm.family import KernelSVMFamily
from dsel.models.svm.labeled_kernel import whole_nbytes
from dsel.models.svm.settings import check_candidates, is_svc, refusal


@dataclass(frozen=True)
class Assignment:
    """Candidates that one family fits."""

    family: Family
    """The family."""
    candidates: tuple[Candidate, ...]
    """Its candidates, in the order of their numbers."""
    groups: tuple[tuple[Candidate, ...], ...]
    """The same, those that share work together."""
    remark: str
    """Why it is this family, for the plan."""
    breaks_independence: str = ""
    """Why fold models depend on their held-out rows (A3), empty if they do not."""


def assign_families(
    candidates: Sequence[Candidate],
    X: Any,
    *,
    classes: NDArray[Any],
    seed: int,
    fit_params: Mapping[str, Any],
) -> tuple[Assignment, ...]:
    """Give every candidate to the family that shares most work for it.

    Parameters
    ----------
    candidates
        All candidates of a plan.
    X
        Labeled rows, which some families look at (a polynomial of fractional degree
        wants nonnegative features).
    classes
        Label of each class code.
    seed
        Seed of the plan.
    fit_params
        Keyword arguments of every `fit`.
    """
    squares = tuple(
        c for c in candidates if is_kernel_least_squares(c.estimator) and not fit_params
    )
    refused = {c.number: refusal([c], fit_params) for c in candidates}
    machines = tuple(c for c in candidates if refused[c.number] is None)
    pessimistic = tuple(
        c
        for c in candidates
        if isinstance(c.estimator, MCPLClassifier) and not fit_params
    )
    taken = {c.number for c in (*squares, *machines, *pessimistic)}
    others = tuple(c for c in candidates if c.number not in taken)
    assignments = []
    if squares:
        assignments.append(_least_squares(squares, np.asarray(classes)))
    if machines:
        check_candidates(machines, X)
        family = KernelSVMFamily(np.asarray(classes), seed, dict(fit_params))
        assignments.append(_machines(family, machines, X.shape[0]))
    if pessimistic:
        remark = "all of them in the same reads of the pool"
        mcpl = MCPLFamily(np.asarray(classes), seed)
        assignments.append(_assignment(mcpl, pessimistic, remark))
    if others:
        generic = ScikitLearnFamily(np.asarray(classes), seed, dict(fit_params))
        reasons = [refused[c.number] for c in others if is_svc(c.estimator)]
        remark = "; ".join(["fitted one by one", *dict.fromkeys(filter(None, reasons))])
        assignments.append(_assignment(generic, others, remark))
    return tuple(assignments)


def _assignment(
    family: Family, candidates: tuple[Candidate, ...], remark: str
) -> Assignment:
    return Assignment(family, candidates, tuple(family.groups(candidates)), remark)


def _machines(
    family: KernelSVMFamily, candidates: tuple[Candidate, ...], n_rows: int
) -> Assignment:
    groups = tuple(family.groups(candidates))
    remark = (
        f"one kernel for all C and folds, {len(groups)} in all, each "
        f"{whole_nbytes(n_rows) / 2**30:.2g} GiB or what a task's memory holds"
    )
    return Assignment(family, candidates, groups, remark)


def _least_squares(
    candidates: tuple[Candidate, ...], classes: NDArray[Any]
) -> Assignment:
    family = KernelLeastSquaresFamily(classes)
    groups = tuple(family.groups(candidates))
    reasons = dict.fromkeys(map(family.breaks_independence, groups))
    return Assignment(
        family,
        candidates,
        groups,
        f"{len(groups)} decompositions for all folds",
        "; ".join(filter(None, reasons)),
    )
