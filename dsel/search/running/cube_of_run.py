"""The cube of a run, made from the counts of its search and from its plan.

A `RunDescription` is made once. The cube has it as attributes, and bounds of chosen
models are read with the same assumptions and caveats.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Unpack

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds.shares import uniform_deltas
from dsel.criteria import CRITERIA, Settings, get_criterion
from dsel.criteria.base import CandidateCounts, Criterion
from dsel.errors import reword
from dsel.families.estimator_kinds import name_learner
from dsel.losses.calls import ConstantPrediction, best_constant
from dsel.losses.joint import Evidence
from dsel.results import Certificate, Choice
from dsel.results.candidate_tables import content_token
from dsel.results.caveats import (
    OF_NUMBER,
    Caveat,
    Effect,
    collect_caveats,
)
from dsel.results.certificate import CHOICE, Assumption, NumberFields
from dsel.results.cube import make_cube, read_counts, with_criteria
from dsel.results.records import to_record
from dsel.runtime.versions import installed_versions
from dsel.search.design.assumptions import PoolFacts
from dsel.search.engine.counts import DataSizes, SearchCounts
from dsel.search.running.fit_chosen import CountedModels
from dsel.search.running.planned_search import PlanFacts, PlannedSearch
from dsel.search.running.pool_assumptions import (
    caveats_of_fitting_rows,
    notes_on_other_records,
    with_pool_facts,
)
from dsel.search.running.procedures import FunctionEstimator

TOKEN: Final = "content_token"
"""Attribute of a search's cube: a hash of its counts, grid and order."""


@dataclass(frozen=True, kw_only=True)
class RunDescription:
    """Statements of a run besides its counts, for its cube and its choice."""

    data: DataSizes
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """Caveats of the plan and of the pool, the gravest first."""
    class_rows: Mapping[str, int]
    """Labeled rows of each class, by its text; empty for a regression."""
    constant: ConstantPrediction | None
    """The best constant prediction and its loss; None if the loss has none."""
    copied_rows: int
    """Labeled rows that equal rows of other folds; 0 if these are few."""

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
        return Certificate(
            unclipped,
            delta,
            method,
            model_name,
            assumptions=self.assumptions,
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


def make_data_sizes(search: PlannedSearch, n_duplicates: int = 0) -> DataSizes:
    """Return the numbers of rows and classes of a run."""
    return DataSizes(
        n_labeled=search.labeled.n_rows,
        n_unlabeled=0 if search.pool is None else search.pool.n_rows,
        n_classes=len(search.classes),
        n_duplicates=n_duplicates,
        n_groups=None if search.row_groups is None else search.row_groups.n_groups,
        prior_shares=search.prior_shares,
    )


def describe_run(
    search: PlannedSearch, facts: PlanFacts, pool_facts: PoolFacts
) -> RunDescription:
    """Return the assumptions, caveats and data sizes of the plan and its pool."""
    labeled, assumptions, duplicates = (
        search.labeled,
        facts.assumptions,
        facts.duplicates,
    )
    caveats = [caveat for caveat in facts.caveats if caveat.effect is not Effect.PLAN]
    if search.pool is not None and search.method.is_guarantee:
        violation = duplicates.violation(pool_facts.n_duplicates, search.pool.n_rows)
        reasons = "; ".join(filter(None, (violation, pool_facts.violation)))
        assumptions = with_pool_facts(assumptions, pool_facts, reasons)
        if violation:  # the plan could only suspect copies
            known = duplicates.caveats(
                has_classes=not search.is_regression, has_pool=True
            )
            caveats = [caveat for caveat in caveats if caveat not in known]
    classes = search.classes.tolist()
    class_rows = dict[str, int]()
    if classes:
        n_rows = np.bincount(labeled.y, minlength=len(classes)).tolist()
        class_rows = dict(zip(map(str, classes), n_rows, strict=True))
    return RunDescription(
        data=make_data_sizes(search, search.counted_duplicates(pool_facts)),
        assumptions=tuple(
            replace(assumption, reason=reword(assumption.reason, search.renamings))
            for assumption in assumptions
        ),
        caveats=collect_caveats(
            caveats,
            caveats_of_fitting_rows(pool_facts, search.context.fitting_pool),
            notes_on_other_records(search, pool_facts),
        ),
        class_rows=class_rows,
        constant=best_constant(
            search.context.losses.main, labeled.y, classes, labeled.X
        ),
        copied_rows=duplicates.n_reported,
    )


def make_cube_of_run(
    search: PlannedSearch,
    search_counts: SearchCounts,
    description: RunDescription,
    choice: Choice | None = None,
    counted_models: CountedModels | None = None,
) -> xr.Dataset:
    """Return the cube of a finished search.

    It includes the choice, if this is made already, and the counts of the chosen
    models, unless all candidates are bounded.
    """
    scheme, variables = search.scheme, search_counts.by_name
    if counted_models is not None:  # `make_cube` takes what `dsel.names` describes
        variables |= counted_models.evidence.by_name
        if scheme.is_nested:
            by_fold = counted_models.chosen.chosen_candidates.by_fold
            variables[names.OUTER_CANDIDATE] = np.array(by_fold)
    if search_counts.error_rates is not None:
        variables[names.ERROR] = search_counts.error_rates
    variables[names.MESSAGE] = np.array(search_counts.texts, object)
    codes = [
        0 if problem is None else problem.value for problem in search_counts.problems
    ]
    variables[names.FIT_PROBLEM] = np.array(codes, np.int8)
    split_sizes = {names.FOLD: scheme.n_folds}
    if scheme.n_halvings:
        split_sizes = {names.REPEAT: scheme.n_halvings, names.HALF: 2}
    cube = make_cube(
        search.axes,
        split_sizes,
        variables,
        assumptions=description.assumptions,
        attributes=attributes_of_run(search, description),
    )
    cube = add_criteria(cube, search.criterion, search.delta)
    if counted_models is not None:
        cube = add_evidence(cube, counted_models.evidence)
    return cube if choice is None else cube.assign_attrs({CHOICE: choice.to_json()})


def attributes_of_run(
    search: PlannedSearch, description: RunDescription
) -> dict[str, object]:
    """Return the attributes of the cube: the plan, and the provenance of the counts."""
    # `select` and the report may read these years later, when there is no plan any
    # more.
    versions = installed_versions().items()
    attributes: dict[str, object] = {
        "certificate": search.method_name or "",  # as cubes of all versions have it
        "deploy": search.deploy,
        "delta": search.delta,
        names.CAVEATS: [to_record(caveat) for caveat in description.caveats],
        "seed": str(search.seed),
        "classes": list(description.class_rows),
        "class_rows": list(description.class_rows.values()) or None,
        names.CONSTANT: description.constant,
        names.COPIED_ROWS: description.copied_rows or None,
        "estimators": list(
            dict.fromkeys(g.family.name for g in search.context.candidate_groups)
        ),
        names.LEARNERS: list(
            dict.fromkeys(
                name_learner(estimator)
                for estimator in search.context.estimators
                # The choice names the model of a function.
                if not isinstance(estimator, FunctionEstimator)
            )
        ),
        names.FOLD_ERROR_KIND: (
            names.INNER_MODELS
            # A single candidate has none.
            if search.method.is_nested and search.scheme.splits
            else "the model trained without this fold"
        ),
        **{f"version_{package}": version or "none" for package, version in versions},
    }
    return {name: value for name, value in attributes.items() if value is not None}


def add_evidence(cube: xr.Dataset, evidence: Evidence) -> xr.Dataset:
    """Return the cube with counts of the chosen models that are not in `dsel.names`.

    Statistics of the declared losses describe them.
    """
    counts = evidence.by_name
    for statistic in evidence.fold_counts_of:
        for name, (dims, meaning) in statistic.variables.items():
            if name in counts:
                variable = (names.FOLD, *dims), counts[name], {"long_name": meaning}
                coords = {d: np.array(v, object) for d, v in dims.items() if len(v)}
                cube = cube.assign(coords | {name: variable})
    return cube


def add_criteria(cube: xr.Dataset, criterion: Criterion, delta: float) -> xr.Dataset:
    """Return the cube with the values of its criterion, and of others that are free.

    The others are estimates from the same splits. A token of the content is added, too.
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
    # The candidates of the plan count: a cube that was cut has fewer, at the same
    # delta.
    deltas = uniform_deltas(int(counts[names.N_CANDIDATES]), delta=delta)
    return Settings(deltas[: counts[names.STATUS].size])
