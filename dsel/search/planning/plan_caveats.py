"""What is known against the numbers of a plan before it runs, and what they assume."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import DECLARED, VIOLATED, Assumption
from dsel.search.design.assumptions import caveats_of_rows, caveats_of_sizes
from dsel.search.design.folds import CVScheme

GIVEN_FOLDS: Final = "the folds are not plain random: `cv` gave them"
IN_GROUPS: Final = (
    "labeled rows come in groups, so they are not independent, and these folds are no "
    "random folds of groups; for a bound pass a number of folds as `cv`, and `groups`"
)
WITHOUT_POOL: Final = (
    "labeled rows and the rows that the model will meet are independent draws from one "
    "population"
)
"""What A1 says where there is no pool."""
OF_GROUPS: Final = (
    "groups are independent draws from one population, and the labeled rows of a group "
    "are all of its rows or a random part of them"
)
"""What A1 says where rows come in groups."""
UNREAD_POOL: Final = (
    "`pool` is not read: of its rows nobody knows the groups, so they are no "
    "independent draws; the bound is that of a model without one of the folds"
)
OTHER_RECORDS: Final = (
    "the pool, of which learners get a part, was declared to hold other records than "
    "the labeled rows"
)


def plan_caveats(
    labeled: LabeledRows,
    scheme: CVScheme,
    counted: Pool | None,
    *,
    certificate: str,
    by_group: RowGroups | None,
    weak: Sequence[str],
    notes: Sequence[str],
    of_losses: Sequence[str],
) -> tuple[Caveat, ...]:
    """Return what a reader of a plan should know, the gravest first.

    `weak` are reasons that weaken a bound, `notes` and `of_losses` what is good to
    know.
    """
    given_folds = [GIVEN_FOLDS] * (not scheme.is_plain_random)
    unit = "row" if by_group is None else "group"
    return collect_caveats(
        make_caveats(Effect.VOIDS, given_folds),
        make_caveats(Effect.WEAKENS, weak),
        caveats_of_rows(labeled, scheme),
        make_caveats(Effect.INFO, notes),
        caveats_of_sizes(scheme, counted, certificate, unit),
        make_caveats(Effect.INFO, of_losses),
    )


def caveats_of_losses(
    caveats: Callable[[Any, int, float], list[str]], labeled: LabeledRows,
    scheme: CVScheme, *, delta: float, by_group: RowGroups | None,
) -> list[str]:  # fmt: skip
    """Return what `caveats` of losses say of the labeled rows that bounds count.

    `delta` is that of the model that is bounded.
    """
    texts = caveats(labeled.y[scheme.counted_rows], scheme.n_folds, delta)
    where = " and ".join(
        ["the hold-out set"] * scheme.is_holdout
        + ["one row of each group"] * (by_group is not None)
    )
    return [f"of {where}: {text}" if where else text for text in texts]


def known_assumptions(
    fitting: Pool | None, *, has_pool: bool, in_groups: bool, by_groups: bool
) -> list[Assumption]:
    """Return what is known of assumptions before the run.

    Rows may be in groups, and folds random folds of groups.
    """
    known = []
    if by_groups:
        known.append(Assumption("A1", DECLARED, says=OF_GROUPS))
    elif in_groups:
        known.append(Assumption("A1", VIOLATED, IN_GROUPS))
    elif not has_pool:
        known.append(Assumption("A1", says=WITHOUT_POOL))
    if fitting is not None:  # never the rows that are counted
        part = "learners see a part of the pool that is not counted"
        known.append(Assumption("A4", DECLARED, part))
        if fitting.other_records:
            known.append(Assumption("A3", DECLARED, OTHER_RECORDS))
    return known


def caveats_of_groups(
    groups: RowGroups | None, counted: Pool | None, fitting: Pool | None
) -> list[str]:
    """Return what to know of groups that a bound counts, and of a pool beside them.

    Raises ValueError where learners are given rows of a pool: they may be of the groups
    of a fold, and no content tells it.
    """
    if groups is None:
        return []
    if fitting is not None:
        raise ValueError(
            "`groups` give no bound for learners that are given a part of `pool`, "
            "where rows may be of the same groups as the labeled rows; leave the pool "
            "out, or use cv=sklearn.model_selection.GroupKFold(5) for an estimate."
        )
    return groups.caveats() + [UNREAD_POOL] * (counted is not None)
