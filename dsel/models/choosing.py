"""Which family fits which candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel.models.base import Candidate, Family
from dsel.models.scikit_learn import ScikitLearnFamily


@dataclass(frozen=True)
class Assignment:
    """Candidates that one family fits."""

    family: Family
    """The family."""
    candidates: tuple[Candidate, ...]
    """Its candidates, in the order of their numbers."""
    remark: str
    """Why it is this family, for the plan."""


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
    del X
    generic = ScikitLearnFamily(np.asarray(classes), seed, dict(fit_params))
    return (Assignment(generic, tuple(candidates), "fitted one by one"),)
