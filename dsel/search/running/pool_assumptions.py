"""Assumptions and caveats of a run, after the check of its pool."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsel.checks import listing
from dsel.data.pool import Pool
from dsel.results.caveats import Caveat, Effect
from dsel.results.certificate import VIOLATED, Assumption
from dsel.search.design.assumptions import ALARM, MANY_DUPLICATES, PoolFacts
from dsel.search.running.planned_search import PlannedSearch


def caveats_of_fitting_rows(
    pool_facts: PoolFacts, fitting: Pool | None
) -> list[Caveat]:
    """Return a caveat if models may have seen their test rows through the pool.

    Equal rows of other records would be harmless. The content of two equal rows does
    not show whether they are one record; only the author of the pool knows.
    """
    n = pool_facts.n_fitting_duplicates
    if not n or fitting is None or fitting.other_records:
        return []
    text = (
        f"A3 is not known to hold: {n:,} of the {fitting.n_rows:,} pool rows that "
        f"learners are given equal labeled rows, so a model may have met rows that it "
        f"is tested on (take the labeled records out of the pool by their index or id, "
        f"never by their values; or, if these are other records, declare it by "
        f"open_pool(..., other_records=True))"
    )
    return [Caveat(Effect.VOIDS, text)]


def with_pool_facts(
    assumptions: Sequence[Assumption], pool_facts: PoolFacts, violation: str = ""
) -> tuple[Assumption, ...]:
    """Return the assumptions, A1 with the results of the pass over the pool.

    `violation` is the reason why copied rows refute A1; "" if they do not.
    """
    is_shifted = pool_facts.p_value <= ALARM  # probably not one population
    duplicates = f"{pool_facts.n_duplicates:,} pool rows equal a labeled row"
    if pool_facts.n_duplicates == 1:
        duplicates = "1 pool row equals a labeled row"
    if not pool_facts.n_duplicates:
        duplicates = "no pool row equals a labeled row"
    test = f"AUC {pool_facts.auc:.2f}, p = {pool_facts.p_value:.2g}"
    if np.isnan(pool_facts.auc):
        finding = f"there are too few rows for a two-sample test; {duplicates}"
    elif not is_shifted:
        finding = (
            f"a two-sample test does not refute it ({test}; p of {ALARM:g} or "
            f"less would); {duplicates}"
        )
    else:
        finding = "a classifier distinguishes labeled rows from pool rows"
        if pool_facts.telling_columns:
            first, *later_columns = pool_facts.telling_columns
            finding += f", most by column {first}"
            if later_columns:
                finding += f", then by {listing(later_columns, 5)}"
        finding += f" ({test})"
        if not (pool_facts.telling_columns or violation):
            finding += (
                ", by no column alone; rows that come in groups, such as several of "
                "one customer, look so, too: then pass groups='customer'"
            )
    if violation:
        finding = f"{violation}; {finding}" if is_shifted else violation
    is_refuted = bool(is_shifted or violation)
    # A test that refutes nothing is no excuse for what the plan knows against A1, such
    # as rows that were picked by active learning.
    return tuple(
        replace(
            assumption,
            state=VIOLATED if is_refuted else assumption.state,
            reason=finding,
            shifted_by=pool_facts.telling_columns if is_shifted else None,
            has_lost_groups=pool_facts.near_rows is not None,
            has_test=is_shifted or not (violation or np.isnan(pool_facts.auc)),
        )
        if assumption.name == "A1" and (is_refuted or not assumption.is_violated)
        else assumption
        for assumption in assumptions
    )


def notes_on_other_records(
    search: PlannedSearch, pool_facts: PoolFacts
) -> list[Caveat]:
    """Return a note if many pool rows equal labeled ones, but are counted."""
    n_duplicates = pool_facts.n_duplicates - search.counted_duplicates(pool_facts)
    if search.pool is None or n_duplicates <= MANY_DUPLICATES * search.pool.n_rows:
        return []
    text = (
        f"{n_duplicates:,} of {search.pool.n_rows:,} pool rows equal labeled rows: "
        f"they are counted as records of their own, since they have other ids (or "
        f"open_pool(..., other_records=True))"
    )
    return [Caveat(Effect.INFO, text)]
