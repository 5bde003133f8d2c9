"""The cube of a run, made of the counts of its search and of what its plan says.

A `RunDescription` is made once. The cube has it as attributes, and bounds of chosen
models are read with the same assumptions and caveats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import xarray as xr
from sklearn.pipeline import Pipeline

from dsel import names
from dsel.bounds.shares import uniform_deltas
from dsel.criteria import CRITERIA, Settings, get_criterion
from dsel.criteria.base import CandidateCounts, Criterion
from dsel.data.pool import Pool
from dsel.losses.calls import best_constant
from dsel.losses.joint import Evidence
from dsel.results import Certificate, Choice
from dsel.results.caveats import (
    OF_NUMBER,
    Caveat,
    Effect,
    collect_caveats,
)
from dsel.results.certificate import CHOICE, VIOLATED, Assumption
from dsel.results.cube import make_cube, read_counts, with_criteria
from dsel.results.records import to_record
from dsel.results.tables import content_token
from dsel.runtime.versions import installed_versions
from dsel.search.design.assumptions import (
    ALARM,
    MANY_DUPLICATES,
    PoolFacts,
)
from dsel.search.engine.counts import DataCounts, SearchCounts
from dsel.search.running.planned_search import PlannedSearch
from dsel.search.running.procedures import FunctionEstimator

TOKEN: Final = "content_token"
"""Attribute of a search's cube: a hash of its counts, grid and order."""


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """Statements of a run besides its counts, for its cube and its choice."""

    data: DataCounts
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """Caveats of the plan and of the pool, the gravest first."""
    class_rows: Mapping[str, int]
    """Labeled rows of each class, by its text; empty for a regression."""
    constant: Sequence[object]
    """The best constant prediction and its loss; empty if the loss has none."""
    copied_rows: int
    """Labeled rows that equal rows of other folds; 0 if these are few."""

    def certificate(
        self, unclipped: float, delta: float, method: str, model_name: str
    ) -> Certificate:
        """Return the certificate of a number, with what all numbers of the run have."""
        return Certificate(
            unclipped,
            delta,
            method,
            model_name,
            assumptions=self.assumptions,
            caveats=tuple(c for c in self.caveats if c.effect in OF_NUMBER),
            n_labeled=self.data.n_labeled,
            n_unlabeled=self.data.n_unlabeled,
            equal_rows=self.data.equal_rows,
            copied_rows=self.copied_rows,
            n_groups=self.data.n_groups or 0,
        )


def make_data_counts(plan: PlannedSearch, n_duplicates: int = 0) -> DataCounts:
    """Return the numbers of rows and classes of a run."""
    return DataCounts(
        n_labeled=plan.labeled.n_rows,
        n_unlabeled=0 if plan.pool is None else plan.pool.n_rows,
        n_classes=len(plan.classes),
        equal_rows=n_duplicates,
        n_groups=None if plan.groups is None else plan.groups.n_groups,
        prior_share=plan.prior_shares,
    )


def describe_run(plan: PlannedSearch, pool_facts: PoolFacts) -> RunDescription:
    """Return the assumptions, caveats and data counts of the plan and its pool."""
    labeled, assumptions, duplicates = plan.labeled, plan.assumptions, plan.duplicates
    caveats = [caveat for caveat in plan.caveats if caveat.effect is not Effect.PLAN]
    if plan.pool is not None and plan.method.is_guarantee:
        violation = duplicates.violation(pool_facts.n_duplicates, plan.pool.n_rows)
        reasons = "; ".join(filter(None, (violation, pool_facts.violation)))
        assumptions = with_pool_facts(assumptions, pool_facts, reasons)
        if violation:  # the plan could only suspect copies
            known = duplicates.caveats(
                has_classes=not plan.is_regression, has_pool=True
            )
            caveats = [caveat for caveat in caveats if caveat not in known]
    classes, class_rows = plan.classes.tolist(), dict[str, int]()
    if classes:
        n_rows = np.bincount(labeled.y, minlength=len(classes)).tolist()
        class_rows = dict(zip(map(str, classes), n_rows, strict=True))
    return RunDescription(
        data=make_data_counts(plan, plan.counted_duplicates(pool_facts)),
        assumptions=assumptions,
        caveats=collect_caveats(
            caveats,
            caveats_of_fitting_rows(pool_facts, plan.context.fitting_pool),
            notes_on_other_records(plan, pool_facts),
        ),
        class_rows=class_rows,
        constant=best_constant(plan.context.losses.main, labeled.y, classes, labeled.X)
        or (),
        copied_rows=duplicates.n_reported,
    )


def caveats_of_fitting_rows(
    pool_facts: PoolFacts, fitting: Pool | None
) -> list[Caveat]:
    """Return a caveat if models may have seen their test rows through the pool.

    Equal rows of other records would be harmless. Content does not show whether two
    equal rows are one record: only the author of the pool knows.
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

    `violation` is why copied rows refute it; "" if they do not.
    """
    is_shifted = pool_facts.p_value <= ALARM  # probably not one population
    equal = f"{pool_facts.n_duplicates:,} pool rows equal a labeled row"
    if pool_facts.n_duplicates == 1:
        equal = "1 pool row equals a labeled row"
    if not pool_facts.n_duplicates:
        equal = "no pool row equals a labeled row"
    test = f"AUC {pool_facts.auc:.2f}, p = {pool_facts.p_value:.2g}"
    if np.isnan(pool_facts.auc):
        finding = f"there are too few rows for a two-sample test; {equal}"
    elif not is_shifted:
        finding = (
            f"a two-sample test does not refute it ({test}; p of {ALARM:g} or "
            f"less would); {equal}"
        )
    else:
        finding = "a classifier distinguishes labeled rows from pool rows"
        if pool_facts.telling_column is not None:
            finding += f", most by column {pool_facts.telling_column}"
        finding += f" ({test})"
    if violation:
        finding = f"{violation}; {finding}" if is_shifted else violation
    is_refuted = bool(is_shifted or violation)
    return tuple(
        replace(
            assumption,
            state=VIOLATED if is_refuted else assumption.state,
            reason=finding,
        )
        if assumption.name == "A1" and (is_refuted or not assumption.is_violated)
        else assumption
        for assumption in assumptions
    )


def notes_on_other_records(plan: PlannedSearch, pool_facts: PoolFacts) -> list[Caveat]:
    """Return a note if many pool rows equal labeled ones, and count all the same."""
    n_duplicates = pool_facts.n_duplicates - plan.counted_duplicates(pool_facts)
    if plan.pool is None or n_duplicates <= MANY_DUPLICATES * plan.pool.n_rows:
        return []
    text = (
        f"{n_duplicates:,} of {plan.pool.n_rows:,} pool rows equal labeled rows: they "
        f"are counted as records of their own, as was declared or their ids show"
    )
    return [Caveat(Effect.INFO, text)]


def make_cube_of_run(
    plan: PlannedSearch,
    counts: SearchCounts,
    description: RunDescription,
    choice: Choice | None = None,
) -> xr.Dataset:
    """Return the cube of a finished search; with the choice, if it is made already."""
    scheme, values = plan.scheme, counts.by_name
    if counts.fold_errors is not None:
        # Rates are stored, too: in a nested search several models predict each row, so
        # errors divided by rows would be wrong.
        errors, predictions = counts.fold_errors, counts.fold_answers
        predictions = counts.fold_rows if predictions is None else predictions
        predictions = np.broadcast_to(predictions, errors.shape)
        is_known = (errors >= 0) & (predictions > 0)
        values[names.ERROR] = np.where(
            is_known, errors / np.maximum(predictions, 1), np.nan
        )
    values[names.MESSAGE] = np.array(counts.texts, object)
    codes = [0 if one is None else one.value for one in counts.problems]
    values[names.FIT_PROBLEM] = np.array(codes, np.int8)
    splits = {names.FOLD: scheme.n_folds}
    if scheme.n_halvings:
        splits = {names.REPEAT: scheme.n_halvings, names.HALF: 2}
    versions = installed_versions().items()
    attributes: dict[str, object] = {
        "certificate": plan.certificate,
        "deploy": plan.deploy,
        "delta": plan.delta,
        names.CAVEATS: [to_record(caveat) for caveat in description.caveats],
        "seed": str(plan.seed),
        "classes": list(description.class_rows),
        "class_rows": list(description.class_rows.values()) or None,
        names.CONSTANT: description.constant or None,
        names.COPIED_ROWS: description.copied_rows or None,
        "estimators": list(
            dict.fromkeys(g.family.name for g in plan.context.candidate_groups)
        ),
        names.LEARNERS: list(
            dict.fromkeys(
                type(one.steps[-1][1] if isinstance(one, Pipeline) else one).__name__
                for one in plan.context.estimators
                if not isinstance(one, FunctionEstimator)  # the choice names its model
            )
        ),
        names.FOLD_ERROR_KIND: (
            "models without this fold and one other"
            if plan.method.is_nested and plan.scheme.splits  # one candidate has none
            else "the model without this fold"
        ),
        **{f"version_{package}": version or "none" for package, version in versions},
    }
    present = {name: value for name, value in attributes.items() if value is not None}
    cube = make_cube(
        plan.axes,
        splits,
        values,
        assumptions=description.assumptions,
        attributes=present,
    )
    cube = add_criteria(cube, plan.criterion, plan.delta)
    if counts.evidence is not None:
        cube = add_evidence(cube, counts.evidence)
    return cube if choice is None else cube.assign_attrs({CHOICE: choice.to_json()})


def add_evidence(cube: xr.Dataset, evidence: Evidence) -> xr.Dataset:
    """Return the cube with counts of the chosen models that are not in `dsel.names`.

    Statistics of the declared losses describe them.
    """
    counts = evidence.by_name
    for statistic in evidence.folds:
        for name, (dims, meaning) in statistic.variables.items():
            if name in counts:
                variable = (names.FOLD, *dims), counts[name], {"long_name": meaning}
                coords = {d: np.array(v, object) for d, v in dims.items() if len(v)}
                cube = cube.assign(coords | {name: variable})
    return cube


def add_criteria(cube: xr.Dataset, criterion: Criterion, delta: float) -> xr.Dataset:
    """Return the cube with the numbers of its criterion, and of others without cost.

    The latter are estimates from the same splits. A token of the content is added, too.
    """
    counts = read_counts(cube)
    settings = criterion_settings(counts, delta)
    free = [get_criterion("cv_error")] if names.FOLD_ERRORS in counts else []
    if names.HALF in cube.dims:
        half_criteria = [c for c in CRITERIA.values() if c.by_halves]
        free = [*half_criteria, get_criterion("loo_error")]
    # The plan's criterion comes first: `first_criterion` reads it from this place.
    criteria = [criterion, *(c for c in free if counts.keys() >= set(c.needs))]
    terms = {c.name: c.evaluate(counts, settings) for c in criteria}
    cube = with_criteria(
        cube, terms, candidate_deltas=settings.candidate_deltas, delta=delta
    )
    return cube.assign_attrs({TOKEN: content_token(cube)})


def criterion_settings(counts: CandidateCounts, delta: float) -> Settings:
    """Return settings that divide delta, by the prior of the plan or equally."""
    if names.PRIOR_SHARE in counts:
        # Some joined runs have no prior; all candidates in the cube share delta.
        shares = np.nan_to_num(counts[names.PRIOR_SHARE])
        return Settings(delta * shares / max(1.0, shares.sum()))
    deltas = uniform_deltas(int(counts[names.N_CANDIDATES]), delta=delta)
    return Settings(deltas[: counts[names.STATUS].size])
