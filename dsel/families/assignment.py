"""Which family fits which candidates.

To add a family: its line in `FAMILIES`, before the last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.data.frames import Frame, numbers
from dsel.families.family import Assignment, Candidate, Family
from dsel.families.generic import ScikitLearnFamily
from dsel.families.prefixes import first_step
from dsel.families.svm.family import KernelSVMFamily

FAMILIES: Final[list[Callable[..., Family]]] = [
    partial(KernelSVMFamily, takes_frames=True),
    KernelSVMFamily,
    ScikitLearnFamily,
]
"""A candidate goes to the first that does not refuse it; the last refuses none. Others
that take frames get pipelines that encode them, and no others."""


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
    needs nonnegative features). Of a `Frame`, families get what they take.
    """
    remaining, assignments = list(candidates), []
    refusals: dict[int, list[str]] = {c.number: [] for c in candidates}
    for make in FAMILIES:
        family = make(np.asarray(classes), seed, dict(fit_params))
        taken: list[Candidate] = []
        others: list[Candidate] = []
        for candidate in remaining:
            reason = family.refusal(candidate.estimator)
            encodes = _encodes(candidate.estimator, X)
            others_take = make is not FAMILIES[-1] and encodes != family.takes_frames
            if reason is None and others_take:
                reason = "the pipeline encodes data frames" if encodes else ""
            (taken if reason is None else others).append(candidate)
            refusals[candidate.number] += filter(None, [reason])
        remaining = others
        if taken:
            found = family.assign(taken, X if family.takes_frames else numbers(X))
            reasons = dict.fromkeys(r for c in taken for r in refusals[c.number])
            remark = "; ".join([found.remark, *reasons])
            assignments.append(replace(found, remark=remark))
    return tuple(assignments)


def _encodes(estimator: Any, X: Any) -> bool:
    """Whether the first step of a pipeline makes numbers of a data frame."""
    if not isinstance(X, Frame) or not hasattr(estimator, "steps"):
        return False
    names_columns = hasattr(first_step(estimator), "transformers")
    return names_columns or not X.schema.is_numeric
