"""The pool beside the labeled rows: what both hold, and whether both look alike.

Found by a run, not by the plan: it takes a reading of the pool.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dsel import names
from dsel.data.labeled import LabeledRows
from dsel.data.shared import EXCLUDE, KEEP, resolve_shared_rows
from dsel.results import Assumption
from dsel.results.schema import VIOLATED
from dsel.searches.comparing.known_labels import of_rows_there
from dsel.searches.driving.shift import PoolSample, sample_of_look
from dsel.searches.driving.two_sample import FEWEST_ROWS, TwoSampleTest, two_sample_test
from dsel.searches.executing.jobs import Notebook

if TYPE_CHECKING:
    from dsel.searches.plan import Plan

NOTE: Final = "two-sample-test"
"""Key of the journal."""


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
    return _with_finding(settled, found)


def pool_sample(plan: "Plan") -> PoolSample | None:
    """Return what a run is to sample, if the plan's certificate counts on the pool.

    None where there are too few rows of either kind to tell anything.
    """
    reads_pool = names.POOL_ROWS in plan.certificate.needs
    if not (plan.certificate.is_guarantee and reads_pool and plan.looks.parts):
        return None
    look = plan.looks.parts[0]
    if min(len(plan.work.y), look.pool.n_rows) < FEWEST_ROWS:
        return None
    return sample_of_look(look, seed=plan.seed)


def with_shift(
    plan: "Plan", sample: PoolSample | None, notebook: Notebook, client: Any = None
) -> "Plan":
    """Return the plan with what tells labeled rows from those of the sample.

    That is noted, so that a finished run is opened without its pool.
    """
    if sample is None:
        return plan
    test = notebook.find(NOTE, TwoSampleTest)
    if test is None:
        rows = sample.rows(client=client, allow_nan=plan.work.allow_nan)
        if rows.shape[0] < FEWEST_ROWS:
            return plan
        test = two_sample_test(plan.work.X, rows, seed=plan.seed)
        notebook.note(NOTE, test)
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
