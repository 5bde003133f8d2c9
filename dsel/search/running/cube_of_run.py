"""The cube of a run, made from the counts of its search and from its plan."""

from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds.shares import uniform_deltas
from dsel.criteria import CRITERIA, Settings, get_criterion
from dsel.criteria.criterion import CountsByName, Criterion
from dsel.families.estimator_kinds import name_learner
from dsel.results import Choice
from dsel.results.candidate_tables import content_token
from dsel.results.cube import make_cube, read_counts, with_criteria
from dsel.results.records import to_record
from dsel.runtime.versions import installed_versions
from dsel.search.engine.counts import SearchCounts
from dsel.search.planned_search import PlannedSearch
from dsel.search.running.count_chosen import ChosenModels
from dsel.search.running.procedures import FunctionEstimator
from dsel.search.running.run_description import RunDescription

TOKEN: Final = "content_token"
"""Attribute of a search's cube: a hash of its counts, grid and order."""


def make_cube_of_run(
    search: PlannedSearch,
    search_counts: SearchCounts,
    description: RunDescription,
    choice: Choice | None = None,
    chosen: ChosenModels | None = None,
) -> xr.Dataset:
    """Return the cube of a finished search.

    It includes the choice, if this is made already, and the counts of the chosen
    models, unless all candidates are bounded.
    """
    scheme, variables = search.scheme, search_counts.by_name
    if search.prior_shares is not None:
        variables[names.PRIOR_SHARE] = search.prior_shares
    if chosen is not None:  # `make_cube` takes what `dsel.names` describes
        variables |= chosen.evidence.by_name
        if scheme.is_nested:
            by_fold = chosen.fitted.chosen_candidates.by_fold
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
    if chosen is not None:
        # Statistics of declared losses describe counts that are not in `dsel.names`.
        by_name = chosen.evidence.by_name
        for statistic in chosen.fitted.fold_counts_of:
            for name, (dims, meaning) in statistic.variables.items():
                if name in by_name:
                    variable = (
                        (names.FOLD, *dims),
                        by_name[name],
                        {"long_name": meaning},
                    )
                    coords = {d: np.array(v, object) for d, v in dims.items() if len(v)}
                    cube = cube.assign(coords | {name: variable})
    if choice is not None:
        cube = cube.assign_attrs({names.CHOICE: choice.to_json()})
    return cube


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
        names.CLASS_ROWS: list(description.class_rows.values()) or None,
        names.CLASS_GROUPS: list(description.class_groups.values()) or None,
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
    # An estimate bounds no candidate. That of a nested search divides no delta at all:
    # the choice is bounded at the whole one.
    deltas = {c.name: settings.candidate_deltas for c in criteria if c.is_guarantee}
    cube = with_criteria(cube, terms, candidate_deltas=deltas, delta=delta)
    return cube.assign_attrs({TOKEN: content_token(cube)})


def criterion_settings(counts: CountsByName, delta: float) -> Settings:
    """Return settings that divide delta, by the prior of the plan or equally."""
    if names.PRIOR_SHARE in counts:
        # Some joined runs have no prior; all candidates in the cube share delta.
        shares = np.nan_to_num(counts[names.PRIOR_SHARE])
        return Settings(delta * shares / max(1.0, shares.sum()))
    # The candidates of the plan count: a cube that was cut has fewer, at the same
    # delta.
    deltas = uniform_deltas(int(counts[names.N_CANDIDATES]), delta=delta)
    return Settings(deltas[: counts[names.STATUS].size])
