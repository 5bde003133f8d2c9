"""Numbers of a criterion for every candidate of a cube, at any delta."""

from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds.shares import uniform_shares
from dsel.checks import check_choice, check_delta, check_probability, check_string
from dsel.criteria import CRITERIA, Estimate, Settings, get_criterion
from dsel.criteria.base import CandidateCounts, Criterion, Terms
from dsel.results.certificate import attribute
from dsel.results.cube import answers_behind, read_counts, with_criteria
from dsel.results.tables import content_token

TOKEN: Final = "content_token"
"""Attribute of a search's cube: a hash of its counts, grid and order."""


def is_regression_cube(cube: xr.Dataset) -> bool:
    """Return whether candidates of a search are regressors."""
    return names.N_CLASSES in cube and not int(cube[names.N_CLASSES].max())


@dataclass(frozen=True)
class Evaluation:
    """A criterion, its numbers for all candidates, and what they were computed from."""

    criterion: Criterion
    terms: Terms
    counts: CandidateCounts
    settings: Settings


def evaluate(
    cube: xr.Dataset, name: str | None = None, *, delta: float | None = None
) -> Evaluation:
    """Evaluate a criterion, by default that of the run, for all candidates of a cube.

    Raises ValueError if counts that it needs were not made.
    """
    counts = read_counts(cube)
    if name is not None:
        check_string(name, "criterion")
    if names.REGULARIZATION in cube.dims:
        asked = f" and has no {name!r}" if name else ""
        raise ValueError(
            f"`results` are of a least-squares search{asked}, whose estimates are no "
            f"bounds: "
            "`results.dsel.select()` chooses, and `results.estimate` has the numbers."
        )
    if names.VALIDATION_ERRORS in counts and name not in CRITERIA:
        return _read_estimates(cube, counts, name or first_criterion(cube))
    criterion = get_criterion(name or first_criterion(cube))
    _check_counts(cube, counts, criterion)
    delta = delta_of(cube) if delta is None else check_delta(delta)
    settings = divide_delta(counts, delta)
    return Evaluation(criterion, criterion.evaluate(counts, settings), counts, settings)


def _check_counts(
    cube: xr.Dataset, counts: CandidateCounts, criterion: Criterion
) -> None:
    """Raise ValueError if a criterion cannot be evaluated by the counts of a cube."""
    shown = repr(criterion.name)
    kind = "certificate" if criterion.is_guarantee else "criterion"
    reads_splits = criterion.by_halves or names.FOLD_ERRORS in criterion.needs
    if reads_splits and criterion.by_halves != (names.HALF in cube.dims):
        splits = ("folds", "random halvings")
        raise ValueError(
            f"{shown} needs {splits[criterion.by_halves]}, and `results` are of "
            f"{splits[not criterion.by_halves]}; run plan_search(..., "
            f"{kind}={shown}), with an `out` of its own."
        )
    if criterion.is_guarantee and names.FOLD_ANSWERS in counts:
        raise ValueError(
            f"{shown} needs errors of one model for each fold, and `results` are "
            f"of a nested search, where several models answer for a row; run "
            f"plan_search(..., {kind}={shown}), with an `out` of its own."
        )
    sizes = (names.N_CANDIDATES, names.N_LABELED, names.N_UNLABELED)
    is_regression = is_regression_cube(cube)
    if is_regression != criterion.is_regression:
        has = "numbers" if is_regression else "classes"
        rank = "'mean_squared_error' ranks regressors"
        if is_regression:
            rank += f", and {shown} is for classifiers"
        raise ValueError(f"`results` are of a search whose `y` holds {has}: {rank}.")
    if criterion.of_declared_loss and names.FOLD_LOSS_MEAN not in counts:
        raise ValueError(
            f"{shown} is that of a declared loss, and `results` are of a search "
            f"without one; run plan_search(..., loss=dsel.losses.recall('fraud')) or "
            f"another, with an `out` of its own."
        )
    if missing := [name for name in (*criterion.needs, *sizes) if name not in counts]:
        raise ValueError(
            f"`results` lack {', '.join(missing)}, which {shown} needs and this "
            f"search did not count; run plan_search(..., {kind}={shown}), with "
            f"an `out` of its own."
        )


def _read_estimates(cube: xr.Dataset, counts: CandidateCounts, name: str) -> Evaluation:
    """Return the stored estimates of all candidates, which counts cannot reproduce."""
    known = list(map(str, cube.get(names.CRITERION, xr.DataArray([])).values))
    check_choice(name, "criterion", known)
    values = cube[names.ESTIMATE].sel({names.CRITERION: name}).values.ravel()
    # Models were trained without the rows that these numbers are counted on.
    criterion = Estimate(name, lambda _: values, (), (), holds_out_one_fold=True)
    settings = Settings(np.ones(len(values)))
    return Evaluation(criterion, criterion.terms(counts, settings), counts, settings)


def first_criterion(cube: xr.Dataset) -> str:
    """Return the criterion of a search, the first one in its cube.

    Raises ValueError if the cube has none.
    """
    if not cube.sizes.get(names.CRITERION):
        raise ValueError(
            f"`results` lack {names.CRITERION}, by which to choose; name one, "
            f"such as 'cv_error', or take the results that the run returned."
        )
    return str(cube[names.CRITERION].values[0])


def delta_of(cube: xr.Dataset, lost: float = 0.05) -> float:
    """Return the delta of a cube's plan, or another number if the cube has lost it."""
    return attribute(
        cube, names.DELTA, lambda v: check_probability(float(v), names.DELTA), lost
    )


def divide_delta(counts: CandidateCounts, delta: float) -> Settings:
    """Divide delta among the candidates, by the prior of the plan or equally."""
    if names.PRIOR_SHARE in counts:
        # Some joined runs have no prior; all candidates in the cube share delta.
        parts = np.nan_to_num(counts[names.PRIOR_SHARE])
        return Settings(delta * parts / max(1.0, parts.sum()))
    shares = uniform_shares(int(counts[names.N_CANDIDATES]), delta=delta)
    return Settings(shares[: counts[names.STATUS].size])


def add_criteria(cube: xr.Dataset, criterion: Criterion, delta: float) -> xr.Dataset:
    """Return the cube with the numbers of its criterion, and of others without cost.

    The latter are estimates from the same splits. A token of the content is added, too.
    """
    counts = read_counts(cube)
    settings = divide_delta(counts, delta)
    free = [get_criterion("cv_error")] if names.FOLD_ERRORS in counts else []
    if names.HALF in cube.dims:
        of_halves = [each for each in CRITERIA.values() if each.by_halves]
        free = [*of_halves, get_criterion("loo_error")]
    # The plan's criterion comes first: `first_criterion` reads it from this place.
    wanted = [criterion, *(each for each in free if counts.keys() >= set(each.needs))]
    terms = {each.name: each.evaluate(counts, settings) for each in wanted}
    cube = with_criteria(cube, terms, delta_shares=settings.delta_shares, delta=delta)
    return cube.assign_attrs({TOKEN: content_token(cube)})


def cv_error(counts: CandidateCounts, number: int) -> float:
    """Return a candidate's mean error on held-out rows; NaN if some are missing."""
    errors = counts.get(names.FOLD_ERRORS)
    if errors is None or (errors[number] < 0).any():
        return nan
    return float(np.mean(errors[number] / answers_behind(counts)[number]))
