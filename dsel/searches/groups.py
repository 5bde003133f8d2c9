"""Candidates in groups that share work: which family fits them, and on what rows."""

from collections.abc import Mapping
from typing import Any

from dsel.candidates import candidate_key, candidate_texts
from dsel.data.identity import NEVER_AGAIN
from dsel.data.labeled import LabeledRows
from dsel.families.assignment import assign_families
from dsel.families.family import Candidate
from dsel.families.fit_arguments import takes_pool
from dsel.searches.engine.fit_task import Group


def make_groups(
    candidates: tuple[Candidate, ...],
    labeled: LabeledRows,
    seed: int,
    fit_params: Mapping[str, Any],
) -> tuple[tuple[Group, ...], tuple[str, ...], str]:
    """Return the groups, remarks on them, and what breaks A3 in them."""
    assignments = assign_families(
        candidates, labeled.X, classes=labeled.classes, seed=seed, fit_params=fit_params
    )
    groups: list[Group] = []
    texts = candidate_texts(candidates)
    for assigned in assignments:
        for members in assigned.groups:
            paths = tuple(
                candidate_key(assigned.family.name, each, texts[each.number])
                for each in members
            )
            groups.append(Group(len(groups), assigned.family, members, paths))
    remarks = tuple(
        f"{len(a.candidates)} candidate{'s' * (len(a.candidates) != 1)} by "
        f"{a.family.name}: {a.remark}"
        for a in assignments
    )
    n_unknown = sum(NEVER_AGAIN in text for text in texts.values())
    if n_unknown:
        remarks += (
            f"{n_unknown} candidates hold what cannot be pickled: another run with the "
            f"same `out` counts them again",
        )
    dependence = "; ".join(filter(None, (a.breaks_independence for a in assignments)))
    return tuple(groups), remarks, dependence


def as_taken(labeled: LabeledRows, groups: tuple[Group, ...]) -> LabeledRows:
    """Return labeled rows as numbers, unless they are a frame that a family takes.

    Learners that take the pool read numbers, of labeled rows and pool alike.
    """
    for group in groups:
        if any(takes_pool(candidate.estimator) for candidate in group.candidates):
            return labeled.as_numbers()
    takes_frames = any(group.family.takes_frames for group in groups)
    return labeled if takes_frames else labeled.as_numbers()
