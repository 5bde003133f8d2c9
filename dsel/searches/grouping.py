"""How the candidates of a plan become groups: by family, then by what they share."""

from collections.abc import Mapping
from typing import Any

from dsel.data.content import NEVER_AGAIN
from dsel.data.labeled import LabeledRows
from dsel.models.assignment import assign_families
from dsel.models.family import Candidate
from dsel.searches.engine.fit_task import Group
from dsel.searches.paths import candidate_path, candidate_texts


def make_groups(
    candidates: tuple[Candidate, ...],
    labeled: LabeledRows,
    seed: int,
    fit_params: Mapping[str, Any],
) -> tuple[tuple[Group, ...], tuple[str, ...], str]:
    """Return the groups, remarks on them, and what breaks A3 in them."""
    assignments = assign_families(
        candidates,
        labeled.X,
        classes=labeled.classes,
        seed=seed,
        fit_params=fit_params,
    )
    groups: list[Group] = []
    texts = candidate_texts(candidates)
    for assigned in assignments:
        for members in assigned.groups:
            paths = tuple(
                candidate_path(assigned.family.name, each, texts[each.number])
                for each in members
            )
            groups.append(Group(len(groups), assigned.family, members, paths))
    remarks = tuple(
        f"{len(a.candidates)} candidates by {a.family.name}: {a.remark}"
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
