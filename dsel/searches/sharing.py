"""Pool rows that equal labeled rows: looked for when a run begins, not by the plan."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsel.data.labeled import LabeledRows
from dsel.data.shared import EXCLUDE, KEEP, resolve_shared_rows
from dsel.results import Assumption
from dsel.searches.known_labels import of_rows_there

if TYPE_CHECKING:
    from dsel.searches.plan import Plan


def settle_shared_rows(plan: "Plan", client: Any = None) -> "Plan":
    """Return the plan with its pool as it takes part; one pass unless rows are kept.

    Raises
    ------
    ValueError
        Where rows are shared and the plan refuses them.
    """
    if plan.pool is None:
        return plan
    labeled = LabeledRows(plan.work.X, plan.work.y, plan.classes)
    pool = resolve_shared_rows(
        plan.pool,
        labeled,
        plan.shared_rows,
        client=client,
        allow_nan=plan.work.allow_nan,
    )
    found = _finding(plan, plan.pool.n_rows - pool.n_rows)
    ledger = tuple(
        Assumption(each.name, each.state, f"{each.reason}; {found}")
        if each.name == "A1"
        else each
        for each in plan.assumptions
    )
    looks = plan.looks if pool is plan.pool else replace(plan.looks, pool=pool)
    return replace(
        plan,
        pool=pool,
        scheme=of_rows_there(plan.scheme, pool),
        looks=looks,
        assumptions=ledger,
        fingerprint={**plan.fingerprint, **looks.fingerprint},
    )


def _finding(plan: "Plan", n_excluded: int) -> str:
    if plan.shared_rows == KEEP:
        return "pool rows that equal labeled rows are kept as other records"
    if plan.shared_rows == EXCLUDE:
        return f"{n_excluded:,} pool rows were the labeled records and are left out"
    return "no pool row equals a labeled row"
