"""The pool beside the labeled rows: what both hold, and whether both look alike.

Looked for when a run begins, not by the plan: it takes a reading of the pool.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsel import names
from dsel.data.labeled import LabeledRows
from dsel.data.shared import EXCLUDE, KEEP, resolve_shared_rows
from dsel.results import Assumption
from dsel.results.schema import VIOLATED
from dsel.searches.known_labels import of_rows_there
from dsel.searches.two_sample import FEWEST_ROWS, pool_sample, two_sample_test

if TYPE_CHECKING:
    from dsel.searches.plan import Plan


def settle_pool(plan: "Plan", client: Any = None) -> "Plan":
    """Return the plan with its pool as it takes part, and what was found about it.

    Raises
    ------
    ValueError
        Where rows are shared and the plan refuses them.
    """
    if plan.pool is None:
        return plan
    pool = resolve_shared_rows(
        plan.pool,
        LabeledRows(plan.work.X, plan.work.y, plan.classes),
        plan.shared_rows,
        client=client,
        allow_nan=plan.work.allow_nan,
    )
    looks = plan.looks if pool is plan.pool else replace(plan.looks, pool=pool)
    settled = replace(
        plan,
        pool=pool,
        scheme=of_rows_there(plan.scheme, pool),
        looks=looks,
        fingerprint={**plan.fingerprint, **looks.fingerprint},
    )
    found = _finding(plan, plan.pool.n_rows - pool.n_rows)
    return _with_shift(_with_finding(settled, found), client)


def _with_shift(plan: "Plan", client: Any) -> "Plan":
    """Return the plan with what tells labeled rows from pool rows, if a bound reads it.

    One reading of the pool, or of its first rows where they stand in random order.
    """
    reads_pool = names.POOL_ROWS in plan.certificate.needs
    few = min(len(plan.work.y), plan.pool.n_rows) < FEWEST_ROWS
    if few or not (plan.certificate.is_guarantee and reads_pool):
        return plan
    sample = pool_sample(
        plan.pool,
        shuffled=plan.looks.is_shuffled,
        seed=plan.seed,
        client=client,
        allow_nan=plan.work.allow_nan,
    )
    if sample.shape[0] < FEWEST_ROWS:
        return plan
    test = two_sample_test(plan.work.X, sample, seed=plan.seed)
    return _with_finding(plan, str(test), is_broken=test.finds_shift)


def _with_finding(plan: "Plan", found: str, *, is_broken: bool = False) -> "Plan":
    """Return the plan with a finding about A1, which never gets better."""
    first, *others = plan.assumptions
    if is_broken:
        state, reason = VIOLATED, f"{found}; {first.reason}"
    else:
        state, reason = first.state, f"{first.reason}; {found}"
    return replace(plan, assumptions=(Assumption("A1", state, reason), *others))


def _finding(plan: "Plan", n_excluded: int) -> str:
    if plan.shared_rows == KEEP:
        return "pool rows that equal labeled rows are kept as other records"
    if plan.shared_rows == EXCLUDE:
        return f"{n_excluded:,} pool rows were the labeled records and are left out"
    return "no pool row equals a labeled row"
