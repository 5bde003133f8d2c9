"""The description of a run: data sizes, assumptions and caveats, after the pool check.

It is made once. The cube has it as attributes, and bounds of chosen models are read
with the same assumptions and caveats.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from dsel.checks import listing
from dsel.data.frames import take_rows
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool
from dsel.errors import reword
from dsel.losses.calls import ConstantPrediction, best_constant
from dsel.option_values import ONE_FOLD
from dsel.results import Certificate
from dsel.results.assumptions import VIOLATED, Assumption, without_pool
from dsel.results.caveats import OF_NUMBER, Caveat, Effect, collect_caveats
from dsel.results.certificate import NumberFields
from dsel.search.design.assumption_checks import ALARM, MANY_DUPLICATES, PoolFacts
from dsel.search.engine.counts import DataSizes
from dsel.search.planned_search import PlanFacts, PlannedSearch
from dsel.typing import AnyArray


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """Statements of a run besides its counts, for its cube and its choice."""

    data: DataSizes
    assumptions: tuple[Assumption, ...]
    """Assumptions of all certificates of the run."""
    caveats: tuple[Caveat, ...]
    """Caveats of the plan and of the pool, the gravest first."""
    class_rows: Mapping[str, int]
    """Labeled rows of each class, by its text; empty for a regression."""
    class_groups: Mapping[str, int]
    """Groups whose counted row is of each class; empty where rows are independent."""
    constant: ConstantPrediction | None
    """The best constant prediction and its loss; None if the loss has none."""
    copied_rows: int
    """Labeled rows that equal rows of other folds; 0 if these are few."""

    @property
    def counted_classes(self) -> Mapping[str, int]:
        """Sizes of classes in the population of the bound: groups, or rows."""
        return self.class_groups or self.class_rows

    def make_certificate(
        self,
        unclipped: float,
        delta: float,
        method: str,
        model_name: str,
        *,
        caveats: Iterable[Caveat] = (),
        **fields: Unpack[NumberFields],
    ) -> Certificate:
        """Return the certificate of a number, with the fields common to the run.

        `caveats` and `fields` are those of this number alone.
        """
        assumptions = self.assumptions
        if model_name == ONE_FOLD:  # its fold alone bounds it
            assumptions = without_pool(assumptions)
        return Certificate(
            unclipped,
            delta,
            method,
            model_name,
            assumptions=assumptions,
            caveats=collect_caveats(
                caveats, (c for c in self.caveats if c.effect in OF_NUMBER)
            ),
            n_labeled=self.data.n_labeled,
            n_unlabeled=self.data.n_unlabeled,
            n_duplicates=self.data.n_duplicates,
            copied_rows=self.copied_rows,
            n_groups=self.data.n_groups or 0,
            **fields,
        )


def make_data_sizes(
    labeled: LabeledRows,
    pool: Pool | None,
    row_groups: RowGroups | None,
    n_duplicates: int = 0,
) -> DataSizes:
    """Return the numbers of rows and classes of a run."""
    return DataSizes(
        n_labeled=labeled.n_rows,
        n_unlabeled=0 if pool is None else pool.n_rows,
        n_classes=len(labeled.classes),
        n_duplicates=n_duplicates,
        n_groups=None if row_groups is None else row_groups.n_groups,
    )


def describe_run(
    search: PlannedSearch, plan_facts: PlanFacts, pool_facts: PoolFacts
) -> RunDescription:
    """Return the assumptions, caveats and data sizes of the plan and its pool."""
    context, pool = search.context, search.pool
    labeled, scheme = search.labeled, search.scheme
    assumptions, duplicates = plan_facts.assumptions, plan_facts.duplicates
    caveats = [
        caveat for caveat in plan_facts.caveats if caveat.effect is not Effect.PLAN
    ]
    if pool is not None and search.method.is_guarantee:
        violation = duplicates.violation(pool_facts.n_duplicates, pool.n_rows)
        reasons = "; ".join(filter(None, (violation, pool_facts.violation)))
        assumptions = with_pool_facts(assumptions, pool_facts, reasons)
        if violation:  # the plan could only suspect copies
            known = duplicates.caveats(
                has_classes=not labeled.is_regression, has_pool=True
            )
            caveats = [caveat for caveat in caveats if caveat not in known]
    fitting_caveats, other_records = list[Caveat](), list[Caveat]()
    if (fitting := context.fitting_pool) is not None:
        fitting_caveats = caveats_of_fitting_rows(pool_facts, fitting)
    # The bounds allow for pool rows that equal a labeled row, unless the pool was
    # declared to hold other records.
    n_duplicates = pool_facts.n_duplicates
    if pool is not None and pool.other_records:
        n_duplicates = 0
        other_records = notes_on_other_records(pool, pool_facts)
    classes = labeled.classes.tolist()
    # The bound is compared with a constant, so both are about the same population.
    rows = scheme.independent_rows(np.arange(labeled.n_rows))
    is_drawn = scheme.drawn_rows is not None
    counted_X = take_rows(labeled.X, rows) if is_drawn else labeled.X
    counted_y = labeled.y[rows]
    return RunDescription(
        data=make_data_sizes(labeled, pool, search.row_groups, n_duplicates),
        assumptions=tuple(
            replace(assumption, reason=reword(assumption.reason, search.renamings))
            for assumption in assumptions
        ),
        caveats=collect_caveats(
            caveats,
            fitting_caveats,
            other_records,
        ),
        class_rows=count_classes(labeled.y, classes),
        class_groups=count_classes(counted_y, classes) if is_drawn else {},
        constant=best_constant(context.losses.main, counted_y, classes, counted_X),
        copied_rows=duplicates.n_reported,
    )


def count_classes(y: AnyArray, classes: Sequence[object]) -> dict[str, int]:
    """Return the number of rows of each class, by its text; empty for a regression."""
    if not classes:
        return {}
    n_rows = np.bincount(y, minlength=len(classes)).tolist()
    return dict(zip(map(str, classes), n_rows, strict=True))


def caveats_of_fitting_rows(pool_facts: PoolFacts, fitting: Pool) -> list[Caveat]:
    """Return a caveat if models may have seen their test rows through the pool.

    Equal rows of other records would be harmless. The content of two equal rows does
    not show whether they are one record; only the author of the pool knows.
    """
    n = pool_facts.n_fitting_duplicates
    if not n or fitting.other_records:
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
    shared = pool_facts.shared_values
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
        if shared is not None:
            finding += f"; {shared.text}"
        if not (pool_facts.telling_columns or violation):
            finding += (
                ", by no column alone; rows that come in groups, such as several of "
                "one customer, look so, too: no bound of this run holds, so run again "
                "with groups='customer' then"
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
            shared_column="" if shared is None else shared.column_name,
            has_lost_groups=pool_facts.near_rows is not None,
            has_test=is_shifted or not (violation or np.isnan(pool_facts.auc)),
        )
        if assumption.name == "A1" and (is_refuted or not assumption.is_violated)
        else assumption
        for assumption in assumptions
    )


def notes_on_other_records(pool: Pool, pool_facts: PoolFacts) -> list[Caveat]:
    """Return a note if many rows of a pool of other records equal labeled ones."""
    n_duplicates = pool_facts.n_duplicates
    if n_duplicates <= MANY_DUPLICATES * pool.n_rows:
        return []
    text = (
        f"{n_duplicates:,} of {pool.n_rows:,} pool rows equal labeled rows: "
        f"they are counted as records of their own, since they have other ids (or "
        f"open_pool(..., other_records=True))"
    )
    return [Caveat(Effect.INFO, text)]
