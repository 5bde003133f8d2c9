"""Choices by any criterion, from the counts of a search; nothing is fitted."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import floor, inf, isnan, nan
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dsel import names
from dsel.bounds import pair_error_bound
from dsel.bounds.shares import uniform_shares
from dsel.checks import check_choice, check_delta, check_probability, check_string
from dsel.criteria import CRITERIA, Estimate, Settings, get_criterion
from dsel.criteria.base import Criterion, Terms
from dsel.losses.base import Loss
from dsel.losses.error_rate import ERROR
from dsel.losses.regression import DEFAULT
from dsel.results import Certificate, Choice, DeployedModel
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import (
    ALL_ROWS,
    CHOICE,
    ONE_FOLD,
    assumptions_of,
    attribute,
)
from dsel.results.cube import in_order, read_counts, with_criteria
from dsel.results.fit_messages import FitProblem, problems_of_cube
from dsel.results.records import from_record
from dsel.results.tables import all_params, content_token, is_as_stored, largest_class
from dsel.search.design.certificate_methods import METHODS, CertificateMethod
from dsel.search.engine.pruning import ROUNDING

TOKEN: Final = "content_token"
"""Attribute of a search's cube: a hash of its counts, grid and order."""
CHANGED: Final = "the cube was cut, sorted or changed after the run"


def select(
    results: Any, criterion: str | None = None, *, delta: float | None = None
) -> Choice:
    """Choose a candidate by a criterion, from the counts of a search.

    Parameters
    ----------
    results
        A fitted search, the `Outcome` of a plan, or a cube of results.
    criterion
        Such as ``"cv_error"``, ``"cv_bound"`` or ``"best_fold"``; by default that of
        the search. The counts of a nested search allow ``"cv_error"``, ``"mean_loss"``
        if it has a loss, and ``"nested"``, its own choice.
    delta
        Probability that a bound fails; by default that of the search.

    Returns
    -------
    Choice
        The candidate, its parameters, and its certificate. Only the declared
        certificate at the declared delta is certified; other numbers are marked as
        estimates.

    Raises
    ------
    ValueError
        If counts that the criterion needs were not made, or candidates that were pruned
        for another criterion or delta might win under this one.
    AllFitsFailedError
        If no candidate is complete.

    See Also
    --------
    plan_search : Plans the search that makes the counts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}, X, y, random_state=0,
    ...     prune=False)
    >>> outcome = plan.run()
    >>> dsel.select(outcome, "cv_error").params
    {'n_neighbors': 9}
    """
    if isinstance(results, BaseEstimator):
        check_is_fitted(results)
        results = getattr(results, "results_", results)
    results = getattr(results, "results", results)
    if criterion is not None:
        check_string(criterion, "criterion")
    read_counts(results)  # raises where it is no cube
    results = in_order(results)
    choice = attribute(results, CHOICE, Choice.from_json, None)
    method = METHODS.get(criterion or "")
    if method is not None and method.takes(loss_of_cube(results)):
        # The cube cannot reproduce the choice of a nested search, nor its last step.
        if method_of(results) is not method or delta is not None:
            raise ValueError(
                f"{criterion!r} is read by searches with this certificate, at the "
                f"delta of their plan, not from counts of another one or at another "
                f"`delta`; run plan_search(..., certificate={criterion!r}), with an "
                f"`out` of its own."
            )
        criterion = None
    if criterion is None and delta is None and choice is not None:
        # A cube that was cut or sorted would give another candidate its certificate.
        if is_as_stored(results, results.attrs.get(TOKEN)):
            return choice
        changed = Caveat(Effect.VOIDS, CHANGED)
        deployed = {  # the numbers stay, and are estimates
            name: each.with_caveats(changed) for name, each in choice.deployed.items()
        }
        return replace(choice, deployed=deployed)
    return choose(results, criterion or first_criterion(results), delta)


def choose(cube: xr.Dataset, criterion: str, delta: float | None = None) -> Choice:
    """Choose by a criterion; return it with the declared certificate or an estimate."""
    if criterion.startswith(names.CRITICAL_EPSILON):
        raise ValueError(
            f"`criterion` must be an estimate of the error, but {criterion!r} says how "
            f"sure a model is of its rows; {names.VALIDATION_ERROR!r} is one."
        )
    planned, method = method_of(cube), METHODS.get(criterion)
    if planned is not None and not planned.is_nested and criterion == planned.ranks_by:
        method = planned  # what ranks there reads the bound that the plan declared
    name = criterion if method is None else method.name
    reported, own_terms = terms_of(cube, name, delta=delta)
    rule, terms = reported, own_terms
    if method is not None and method.ranks_by != name:  # known to be there
        rule, terms = terms_of(cube, method.ranks_by, delta=delta)
    counts = read_counts(cube)
    declared = _delta_of(cube) if delta is None else delta
    number = rule.choose(terms, counts)
    _check_pruned(rule, terms, counts, number, declared)
    # A search by one hold-out set has no model of all rows that an estimate is about.
    has_full = names.FULL_FIT_SECONDS in cube or cube.sizes.get(names.FOLD) != 1
    fold = 0 if reported.holds_out_one_fold or not has_full else None
    deploy = ALL_ROWS if fold is None else ONE_FOLD
    unsure = filter(None, [why_uncertified(cube, reported, declared)])
    bound = float(own_terms.estimate[number])
    certificate = certificate_of(
        cube,
        bound,
        declared,
        reported.name,
        deploy,
        label_term=float(own_terms.label_term[number]),
        disagreement_term=float(own_terms.disagreement_term[number]),
        fold=fold,
        caveats=collect_caveats(
            make_caveats(Effect.VOIDS, unsure), voiding_caveats(cube)
        ),
        is_estimate=not reported.is_guarantee,
        divides_delta=reported.is_guarantee,
        **_loss_fields(cube, rule, cv_error(counts, number), bound),
    )
    chosen = DeployedModel(deploy, number, all_params(cube)[number], certificate)
    return Choice(
        rule.name,
        float(terms.estimate[number]),
        {deploy: chosen},
        deploy,
        caveats=caveats_of(cube),
        **largest_class(cube),
    )


def _check_pruned(
    rule: Criterion,
    terms: Terms,
    counts: Mapping[str, NDArray[Any]],
    number: int,
    delta: float,
) -> None:
    """Raise unless the counts prove that no candidate that was pruned can win."""
    is_open = np.isin(counts[names.STATUS], (names.STATUS_PRUNED, names.STATUS_MISSING))
    unfinished = is_open & np.isnan(terms.estimate)
    if not unfinished.any():
        return
    lower = rule.lower_bound(counts, _settings(counts, delta))[unfinished]
    may_win = (lower <= terms.estimate[number] + ROUNDING) | (not rule.can_prune)
    kind = "certificate" if rule.is_guarantee else "criterion"
    if n := int(may_win.sum()):
        raise ValueError(
            f"`results` cannot answer for criterion={rule.name!r} at this `delta`: "
            f"{n} candidates were pruned and might win. Search with prune=False "
            f"for the whole surface, or with {kind}={rule.name!r} and this delta."
        )


def why_uncertified(cube: xr.Dataset, reported: Criterion, delta: float) -> str:
    """Return why a number is no guarantee, whatever was counted; "" if it may be one.

    A guarantee was declared before the run, at this delta, and is read from the very
    cube that the run has made.
    """
    planned, declared = method_of(cube), _delta_of(cube, nan)
    if not reported.is_guarantee:
        return f"{reported.name} is an estimate, not a bound"
    if planned is None or reported.name != planned.name:
        return (
            f"{reported.name} is not the certificate that the plan declared; a plan "
            f"with certificate={reported.name!r} and an `out` of its own gives one"
        )
    if isnan(declared):
        return "the results lost the delta that the plan declared"
    if delta != declared:
        return f"the plan declared delta={declared:g}"
    return "" if is_as_stored(cube, cube.attrs.get(TOKEN)) else CHANGED


def _loss_fields(
    cube: xr.Dataset, rule: Criterion, error: float, estimate: float
) -> dict[str, Any]:
    """Return the fields of a certificate that say what is bounded, and its estimate."""
    if rule.of_regressors:
        return {
            "loss": rule.name,
            "says": "Mean squared error at most",
            "largest": inf,
            "estimate": estimate,
        }
    loss = declared_loss(cube) if rule.of_declared_loss else None
    if loss is None:
        return {"estimate": error}
    fields = {name: getattr(loss, name) for name in ("loss", "says", "largest")}
    return {**fields, "estimate": estimate}


def loss_of_cube(cube: xr.Dataset) -> Loss:
    """Return the default loss of a search: the error, or a quantile for regressors."""
    return DEFAULT if has_numbers(cube) else ERROR


def has_numbers(cube: xr.Dataset) -> bool:
    """Return whether candidates of a search are regressors."""
    return names.N_CLASSES in cube and not int(cube[names.N_CLASSES].max())


def method_of(cube: xr.Dataset) -> CertificateMethod | None:
    """Return the certificate method of a cube's plan; None for estimates."""
    return METHODS.get(str(cube.attrs.get("certificate", "")))


def run_caveats(cube: xr.Dataset) -> tuple[Caveat, ...]:
    """Return the caveats of a cube that come from the plan and the pool."""

    def read(text: str) -> tuple[Caveat, ...]:
        return tuple(from_record(Caveat, each) for each in json.loads(text))

    def read_texts(text: str) -> tuple[Caveat, ...]:
        return tuple(make_caveats(Effect.VOIDS, map(str, json.loads(text))))

    return collect_caveats(
        attribute(cube, names.CAVEATS, read, ()),
        attribute(cube, "objections", read_texts, ()),  # cubes of 0.2 have texts
    )


def voiding_caveats(cube: xr.Dataset) -> list[Caveat]:
    """Return the caveats of a run that void all numbers of its cube."""
    return [each for each in run_caveats(cube) if each.effect is Effect.VOIDS]


def caveats_of(cube: xr.Dataset, others: Iterable[Caveat] = ()) -> tuple[Caveat, ...]:
    """Return the caveats of any choice from a cube, together with `others`."""
    caveats = collect_caveats(run_caveats(cube), others, caveats_of_counts(cube))
    return tuple(each for each in caveats if each.effect is not Effect.VOIDS)


def declared_loss(cube: xr.Dataset) -> Certificate | None:
    """Return the certificate of a search, for its loss; None if it was lost."""
    choice = attribute(cube, CHOICE, Choice.from_json, None)
    return None if choice is None else choice.certificate


def certificate_of(
    cube: xr.Dataset,
    bound: float,
    delta: float,
    criterion: str,
    deploy: str,
    **fields: Any,
) -> Certificate:
    """Return a certificate with numbers of rows and assumptions of a cube."""
    listed = (names.N_LABELED, names.N_GROUPS, names.N_UNLABELED, names.EQUAL_ROWS)
    for name in listed:
        fields[name] = int(cube.get(name, 0))
    return Certificate(
        bound, delta, criterion, deploy, assumptions=assumptions_of(cube), **fields
    )


def terms_of(
    cube: xr.Dataset, criterion: str | None = None, *, delta: float | None = None
) -> tuple[Criterion, Terms]:
    """Return a criterion and its numbers for every candidate of a cube, at any delta.

    Raises ValueError if counts that it needs were not made.
    """
    counts = read_counts(cube)
    if criterion is not None:
        check_string(criterion, "criterion")
    if names.REGULARIZATION in cube.dims:
        asked = f" and has no {criterion!r}" if criterion else ""
        raise ValueError(
            f"`results` are of a least-squares search{asked}, whose estimates are no "
            f"bounds: "
            "`results.dsel.select()` chooses, and `results.estimate` has the numbers."
        )
    if names.VALIDATION_ERRORS in counts and criterion not in CRITERIA:
        return _stored_terms(cube, criterion or first_criterion(cube))
    rule = get_criterion(criterion or first_criterion(cube))
    kind = "certificate" if rule.is_guarantee else "criterion"
    reads_splits = rule.by_halves or names.FOLD_ERRORS in rule.needs
    if reads_splits and rule.by_halves != (names.HALF in cube.dims):
        splits = ("folds", "random halvings")
        raise ValueError(
            f"{rule.name!r} needs {splits[rule.by_halves]}, and `results` are of "
            f"{splits[not rule.by_halves]}; run plan_search(..., "
            f"{kind}={rule.name!r}), with an `out` of its own."
        )
    if rule.is_guarantee and names.FOLD_ANSWERS in counts:
        raise ValueError(
            f"{rule.name!r} needs errors of one model for each fold, and `results` are "
            f"of a nested search, where several models answer for a row; run "
            f"plan_search(..., {kind}={rule.name!r}), with an `out` of its own."
        )
    sizes = (names.N_CANDIDATES, names.N_LABELED, names.N_UNLABELED)
    is_regression = has_numbers(cube)
    if is_regression != rule.of_regressors:
        has = "numbers" if is_regression else "classes"
        rank = "'mean_squared_error' ranks regressors"
        if is_regression:
            rank += f", and {rule.name!r} is for classifiers"
        raise ValueError(f"`results` are of a search whose `y` holds {has}: {rank}.")
    if rule.of_declared_loss and names.FOLD_LOSS_MEAN not in counts:
        raise ValueError(
            f"{rule.name!r} is that of a declared loss, and `results` are of a search "
            f"without one; run plan_search(..., loss=dsel.losses.recall('fraud')) or "
            f"another, with an `out` of its own."
        )
    if missing := [name for name in (*rule.needs, *sizes) if name not in counts]:
        raise ValueError(
            f"`results` lack {', '.join(missing)}, which {rule.name!r} needs and this "
            f"search did not count; run plan_search(..., {kind}={rule.name!r}), with "
            f"an `out` of its own."
        )
    delta = _delta_of(cube) if delta is None else check_delta(delta)
    return rule, rule.evaluate(counts, _settings(counts, delta))


def _stored_terms(cube: xr.Dataset, criterion: str) -> tuple[Criterion, Terms]:
    """Return stored numbers of each candidate, which counts cannot reproduce."""
    known = list(map(str, cube.get(names.CRITERION, xr.DataArray([])).values))
    check_choice(criterion, "criterion", known)
    values = cube[names.ESTIMATE].sel({names.CRITERION: criterion}).values.ravel()
    # Models were trained without the rows that these numbers are counted on.
    rule = Estimate(criterion, lambda _: values, (), (), holds_out_one_fold=True)
    return rule, rule.terms(read_counts(cube), Settings(np.ones(len(values))))


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


def _delta_of(cube: xr.Dataset, lost: float = 0.05) -> float:
    return attribute(
        cube, names.DELTA, lambda v: check_probability(float(v), names.DELTA), lost
    )


def _settings(counts: Mapping[str, Any], delta: float) -> Settings:
    """Return the shares of delta: by the prior of the plan, or equal ones."""
    if names.PRIOR_SHARE in counts:
        # Some joined runs have no prior; all candidates in the cube share delta.
        parts = np.nan_to_num(counts[names.PRIOR_SHARE])
        return Settings(delta * parts / max(1.0, parts.sum()))
    shares = uniform_shares(int(counts[names.N_CANDIDATES]), delta=delta)
    return Settings(shares[: counts[names.STATUS].size])


def with_terms(cube: xr.Dataset, criterion: Criterion, delta: float) -> xr.Dataset:
    """Return the cube with the numbers of its criterion, and of others without cost.

    The latter are estimates from the same splits. A token of the content is added, too.
    """
    counts = read_counts(cube)
    settings = _settings(counts, delta)
    free = [get_criterion("cv_error")] if names.FOLD_ERRORS in counts else []
    if names.HALF in cube.dims:
        of_halves = [each for each in CRITERIA.values() if each.by_halves]
        free = [*of_halves, get_criterion("loo_error")]
    wanted = [criterion, *(each for each in free if counts.keys() >= set(each.needs))]
    terms = {rule.name: rule.evaluate(counts, settings) for rule in wanted}
    cube = with_criteria(cube, terms, delta_shares=settings.delta_shares, delta=delta)
    return cube.assign_attrs({TOKEN: content_token(cube)})


def cv_error(counts: Mapping[str, Any], number: int) -> float:
    """Return a candidate's mean error on held-out rows; NaN if some are missing."""
    errors = counts.get(names.FOLD_ERRORS)
    if errors is None or (errors[number] < 0).any():
        return nan
    is_nested = names.FOLD_ANSWERS in counts  # several answers for a row
    rows = counts[names.FOLD_ANSWERS][number] if is_nested else counts[names.FOLD_ROWS]
    return float(np.mean(errors[number] / rows))


def caveats_of_counts(cube: xr.Dataset) -> list[Caveat]:
    """Return the caveats of a choice that come from the counts of its search."""
    counts = read_counts(cube)
    caveats: list[Caveat] = []
    has_failed = counts[names.STATUS] == names.STATUS_FAILED
    problems = problems_of_cube(cube)
    has_raised = (problems == FitProblem.UNPREDICTED) & ~has_failed
    has_stopped = problems == FitProblem.STOPPED
    unscaled = "stopped before they converged; scale the features, or raise `max_iter`"
    for has_problem, text in (
        (has_failed, "{} failed"),
        (has_raised, "{} raised in `predict`, so rows count as errors: see `message`"),
        (has_stopped, "fits of {} " + unscaled),
    ):
        if n := int(has_problem.sum()):
            candidates = f"{n} candidate{'s' * (n > 1)}"
            caveats.append(Caveat(Effect.INFO, text.format(candidates)))
    if {names.OUTER_ERRORS, names.OUTER_DISAGREEMENTS} <= counts.keys():
        # Two models that differ on a row cannot both be right there: half of the lower
        # limit of their disagreement is one of the mean of their errors, and needs no
        # label. It is no limit for either of them alone. Rows that equal labeled
        # ones may be records that one of both was trained on.
        pairs, errors = counts[names.OUTER_DISAGREEMENTS], counts[names.OUTER_ERRORS]
        pairs = pairs - counts.get(names.OUTER_DUPLICATE_DISAGREEMENTS, 0)
        delta = 0.05 / len(pairs)
        limits = pair_error_bound(pairs, counts[names.N_UNLABELED], delta=delta)
        least = float(limits.mean())
        said = float(np.mean(errors / counts[names.FOLD_ROWS]))
        if round(least, 3) > round(said, 3):  # as they are printed
            text = (
                f"the models trained without a fold err on {100 * said:.1f}% of the "
                f"labeled rows that they have not seen, but differ so often from the "
                f"model trained on all labels that, of pool rows, the mean of their "
                f"error and its error is at least {floor(1000 * least) / 10:.1f}% (95% "
                f"confidence): its error is far larger, or the labeled rows are few, "
                f"unlike the pool, or not independent"
            )
            caveats.append(Caveat(Effect.WEAKENS, text))
    return caveats
