"""The pool beside the labeled rows: what both hold, and whether both look alike.

Found by a run, not by the plan: it takes a reading of the pool.
"""

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from dsel import names
from dsel.data.content import exact_text
from dsel.data.labeled import LabeledRows
from dsel.data.shared import (
    EXCLUDE,
    KEEP,
    MANY,
    REFUSE,
    SharedRows,
    resolve_shared_rows,
)
from dsel.results import Assumption
from dsel.results.schema import VIOLATED
from dsel.searches.engine.known_labels import of_rows_there
from dsel.searches.engine.pool_sample import PoolSample, sample_of_look
from dsel.searches.engine.two_sample import (
    ALARM,
    FEWEST_ROWS,
    TwoSampleTest,
    two_sample_test,
)
from dsel.searches.keeping import Notebook

if TYPE_CHECKING:
    from dsel.searches.plan import Plan

NOTE: Final = "two-sample-test"
"""Key of the journal."""
KEPT: Final = "pool rows that equal labeled rows are kept as other records"
SAME: Final = (
    'more than chance makes: the pool holds the same records; say shared_rows="exclude"'
)


def settle_pool(plan: "Plan", client: Any = None, *, is_kept: bool = False) -> "Plan":
    """Return the plan with its pool as it takes part, and what was found about it.

    Parameters
    ----------
    plan
        As it was made; rows may have been written since.
    client
        As for `execute`.
    is_kept
        Whether counts are kept for later runs, which must tell these rows from others
        even if they have to be read for it.

    Raises
    ------
    ValueError
        Where rows are shared and the plan refuses them, or the pool has another shape
        than when it was opened.
    """
    plan = _reopened(plan)
    settled = plan if plan.pool is None else _without_shared(plan, client)
    return _with_rows(settled, client, is_kept=is_kept)


def _without_shared(plan: "Plan", client: Any) -> "Plan":
    """Return the plan without the pool rows that are labeled ones."""
    work = plan.work
    if plan.shared_rows == KEEP and work.fitting_pool is None:
        # The rows that a run samples will say whether they are the same records.
        kept = replace(plan, scheme=of_rows_there(plan.scheme, plan.pool))
        return _with_finding(kept, KEPT)
    # Before it was divided: a learner must not be fitted on labeled rows either, and
    # which of several equal rows are left out must not depend on the part they are in.
    is_whole = work.fitting_pool is not None or plan.shared_rows == EXCLUDE
    shared = resolve_shared_rows(
        plan.whole_pool if is_whole else plan.pool,
        LabeledRows(work.X, work.y, plan.classes),
        plan.shared_rows,
        client=client,
        allow_nan=work.allow_nan,
    )
    twins = shared.twins()
    left_out = twins if plan.shared_rows == EXCLUDE else twins[:0]
    found, is_broken = _finding(plan, shared, len(left_out))
    pool, fitting = (
        part and part.excluding(left_out) for part in (plan.pool, work.fitting_pool)
    )
    looks = plan.looks if pool is plan.pool else replace(plan.looks, pool=pool)
    return replace(
        _with_finding(plan, found, is_broken=is_broken),
        pool=pool,
        work=replace(work, fitting_pool=fitting),
        scheme=of_rows_there(plan.scheme, pool),
        looks=looks,
    )


def _reopened(plan: "Plan") -> "Plan":
    """Return the plan with its pool as it is now."""
    if plan.pool is None:
        return plan
    pool = plan.pool.reopened()
    fitting = plan.work.fitting_pool
    if fitting is not None:
        fitting = replace(fitting, storage=pool.storage)
    return replace(
        plan,
        pool=pool,
        whole_pool=replace(plan.whole_pool, storage=pool.storage),
        looks=replace(plan.looks, pool=pool),
        work=replace(plan.work, fitting_pool=fitting),
    )


def _with_rows(plan: "Plan", client: Any, *, is_kept: bool) -> "Plan":
    """Return the plan whose fingerprint tells the rows that are there now."""
    work = plan.work
    labeled = LabeledRows(work.X, work.y, plan.classes, plan.columns)
    params = exact_text(dict(work.groups[0].family.fit_params))
    rows = {
        "labeled": labeled.token,
        "fit_params": blake2b(params.encode(), digest_size=12).hexdigest(),
        "pool": "none",
    }
    pools = {"pool": plan.pool, "fitting_pool": work.fitting_pool}
    for name, pool in pools.items():
        if pool is not None:
            rows[name] = pool.fingerprint(client) if is_kept else pool.token
    return replace(plan, fingerprint={**plan.fingerprint, **rows})


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
    compared = _with_finding(plan, str(test), is_broken=test.finds_shift)
    if plan.shared_rows == KEEP and test.finds_records:
        recur = f"{test.n_equal:,} random pool rows equal a labeled row, {SAME}"
        return _with_finding(compared, recur, is_broken=True)
    return compared


def _with_finding(plan: "Plan", found: str, *, is_broken: bool = False) -> "Plan":
    """Return the plan with a finding about A1, which never gets better."""
    first, *others = plan.assumptions
    if is_broken:
        state, reason = VIOLATED, f"{found}; {first.reason}"
    else:
        state, reason = first.state, f"{first.reason}; {found}"
    return replace(plan, assumptions=(Assumption("A1", state, reason), *others))


def _finding(plan: "Plan", shared: SharedRows, n_left_out: int) -> tuple[str, bool]:
    """Return what is said of shared rows, and whether it breaks A1."""
    near, n_near, n = "", shared.near.n_copied, len(plan.work.y)
    if n_near:
        near = (
            f"; the pool holds near copies of {n_near:,} of {shared.near.n_searched:,} "
            f"labeled rows, which differ by rounding or noise alone"
        )
    if plan.shared_rows == EXCLUDE:
        records = f"{n_left_out:,} pool rows were the labeled records and are left out"
        if shared.p_value > ALARM or shared.n_remaining < MANY * n:
            return records + near, False
        again = (
            f"; {shared.n_remaining:,} of {n:,} labeled rows equal further pool rows, "
            f"more than chance makes: the pool holds records more than once"
        )
        return records + again + near, True
    if plan.shared_rows == REFUSE:
        return "no pool row equals a labeled row" + near, False
    kept = KEPT + near
    if shared.p_value <= ALARM:
        kept += f"; {shared.n_labeled:,} of {n:,} labeled rows equal pool rows, {SAME}"
    is_many = shared.p_value <= ALARM and shared.n_labeled >= MANY * n
    return kept, is_many or shared.has_many_near
