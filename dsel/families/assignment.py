"""The assignment of candidates to families.

To add a family, write a frozen dataclass that is a `Family` and list it in `FAMILIES`
before the last entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from dsel.arrays import Features
from dsel.data.frames import Frame
from dsel.families.ensembles import EnsembleFamily
from dsel.families.family import Candidate, Family
from dsel.families.generic import ScikitLearnFamily
from dsel.families.svm.svm_family import KernelSVMFamily
from dsel.results.values import entry_of
from dsel.typing import AnyArray, Options

FAMILIES: Final[list[type[Family]]] = [
    KernelSVMFamily,
    EnsembleFamily,
    ScikitLearnFamily,
]
"""A candidate goes to the first family that does not refuse it; the last one accepts
any."""

MOST_NAME_LETTERS: Final = 60
"""Most characters of the name of a group; a longer one would hide the rest of the name
of a task."""


@dataclass(frozen=True)
class Assignment:
    """Candidates that one family fits."""

    family: Family
    candidate_groups: tuple[tuple[Candidate, ...], ...]
    """Groups of candidates that share work, sorted by number."""
    fit_note: str
    """How they are fitted, as text that the plan prints."""


def assign_families(
    candidates: Sequence[Candidate],
    X: Features,
    *,
    classes: AnyArray,
    seed: int,
    fit_params: Options,
    group_by_row: AnyArray | None = None,
) -> tuple[Assignment, ...]:
    """Assign every candidate to the first family that does not refuse it.

    `X` are labeled rows, which some families check (a polynomial of fractional degree
    needs nonnegative features). `group_by_row` is for learners whose `fit` takes
    groups.
    """
    remaining, assignments = list(candidates), []
    refusals: dict[int, list[str]] = {c.number: [] for c in candidates}
    columns = X.schema.names if isinstance(X, Frame) else None
    for family_class in FAMILIES:
        family = family_class(
            np.asarray(classes), seed, dict(fit_params), group_by_row, columns
        )
        unassigned, remaining, accepted = remaining, [], list[Candidate]()
        for candidate in unassigned:
            refusal = family.refusal(candidate.estimator)
            (accepted if refusal is None else remaining).append(candidate)
            refusals[candidate.number] += filter(None, [refusal])
        candidate_groups = tuple(family.group_candidates(accepted)) if accepted else ()
        if not family.takes_single:
            single = [
                candidate_group[0]
                for candidate_group in candidate_groups
                if len(candidate_group) == 1
            ]
            remaining = sorted([*remaining, *single], key=attrgetter("number"))
            candidate_groups = tuple(
                candidate_group
                for candidate_group in candidate_groups
                if len(candidate_group) > 1
            )
            accepted = [
                candidate
                for candidate_group in candidate_groups
                for candidate in candidate_group
            ]
        if accepted:
            family.check(accepted, X)
            # The plan also prints why faster families did not take these candidates.
            texts = dict.fromkeys(text for c in accepted for text in refusals[c.number])
            fit_note = "; ".join(
                [family.fit_note(candidate_groups, X.shape[0]), *texts]
            )
            assignments.append(Assignment(family, candidate_groups, fit_note))
    return tuple(assignments)


def name_group(candidates: Sequence[Candidate], group_number: int) -> str:
    """Name a group by the parameters that it shares, for the names of tasks.

    An example is ``gamma=0.01``. Candidates that share no parameter get the number of
    their group, ``group=3``.
    """
    first, *other_texts = (
        [f"{name}={entry_of(value)}" for name, value in candidate.params.items()]
        for candidate in candidates
    )
    name = ",".join(
        text for text in first if all(text in texts for texts in other_texts)
    )
    return name if 0 < len(name) <= MOST_NAME_LETTERS else f"group={group_number}"
