"""Values of any criterion, and choices by it, from the counts of a search.

Nothing is fitted, and delta may be another one than that of the search.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_choice, check_delta, check_probability, check_string
from dsel.criteria import CRITERIA, Estimate, Settings, get_criterion
from dsel.criteria.criterion import CountsByName, Criterion, Terms
from dsel.losses.calls import ConstantPrediction
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.regression import DEFAULT
from dsel.option_values import ALL_ROWS, ONE_FOLD
from dsel.results import BoundedModel, Certificate, Choice
from dsel.results.assumptions import assumptions_of
from dsel.results.candidate_tables import (
    all_params,
    class_rows,
    constant_fields,
    largest_class,
    matches_token,
)
from dsel.results.caveats import Caveat, Effect, collect_caveats, make_caveats
from dsel.results.certificate import LossFields, loss_fields
from dsel.results.cube import (
    cube_of,
    cv_error,
    has_fewer_predictions,
    read_counts,
    restore_dims,
)
from dsel.results.params_texts import params_text
from dsel.results.records import read_attribute
from dsel.rounded_texts import count_of, fraction_in_percent
from dsel.search.design.certificate_methods import METHODS, CertificateMethod
from dsel.search.design.expected_bounds import five_fold_disagreement
from dsel.search.engine.counts import DataSizes
from dsel.search.engine.pruning import margin_above
from dsel.search.running.cube_caveats import (
    MOST_CANDIDATES_NAMED,
    caveats_of,
    run_caveats,
)
from dsel.search.running.cube_of_run import TOKEN, criterion_settings
from dsel.search.running.run_description import RunDescription
from dsel.typing import Options, ResultsLike

CHANGED: Final = "the cube was cut, sorted or changed after the run"


def is_regression_cube(cube: xr.Dataset) -> bool:
    """Return whether candidates of a search are regressors."""
    return names.N_CLASSES in cube and not int(cube[names.N_CLASSES].max())


@dataclass(frozen=True)
class Evaluation:
    """A criterion, its values for all candidates, and the counts behind them."""

    criterion: Criterion
    terms: Terms
    candidate_counts: CountsByName
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
        end = f" and have no {name!r}" if name else ""
        raise ValueError(
            f"`results` are of a least-squares search{end}, whose estimates are no "
            f"bounds: `results.dsel.select()` chooses, and `results.estimate` has the "
            f"numbers."
        )
    if names.VALIDATION_ERRORS in counts and name not in CRITERIA:
        return _read_estimates(cube, counts, name or first_criterion(cube))
    criterion = get_criterion(name or first_criterion(cube))
    _check_counts(cube, counts, criterion)
    delta = delta_of(cube) if delta is None else check_delta(delta)
    settings = criterion_settings(counts, delta)
    return Evaluation(criterion, criterion.evaluate(counts, settings), counts, settings)


def _check_counts(cube: xr.Dataset, counts: CountsByName, criterion: Criterion) -> None:
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
    if criterion.is_guarantee and names.FOLD_PREDICTIONS in counts:
        raise ValueError(
            f"{shown} needs errors of one model for each fold, and `results` are "
            f"of a nested search, where several models predict a row; run "
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
    if criterion.uses_declared_loss and names.FOLD_LOSS_MEAN not in counts:
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


def _read_estimates(cube: xr.Dataset, counts: CountsByName, name: str) -> Evaluation:
    """Return the stored estimates of all candidates, which counts cannot reproduce."""
    criteria = list(map(str, cube.get(names.CRITERION, xr.DataArray([])).values))
    check_choice(name, "criterion", criteria)
    estimates = cube[names.CRITERION_VALUE].sel({names.CRITERION: name}).values.ravel()
    # Models were trained without the rows that these numbers are counted on.
    criterion = Estimate(name, lambda _: estimates, (), (), holds_out_one_fold=True)
    settings = Settings(np.ones(len(estimates)))
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


def delta_of(cube: xr.Dataset, default: float = 0.05) -> float:
    """Return the delta of the plan of a cube, or a default if the cube has lost it."""
    return read_attribute(
        cube, names.DELTA, lambda v: check_probability(float(v), names.DELTA), default
    )


def select(
    results: ResultsLike, criterion: str | None = None, *, delta: float | None = None
) -> Choice:
    """Choose a candidate by a criterion, from the counts of a search.

    Parameters
    ----------
    results : SemiSupervisedSearchCV, Outcome or xarray.Dataset
        A fitted search, the `Outcome` of a plan, or a cube of results.
    criterion : str or None
        Such as ``"cv_error"``, ``"cv_bound"`` or ``"best_fold"``; by default that of
        the search. The counts of a nested search allow ``"cv_error"``, ``"mean_loss"``
        if it has a loss, and ``"nested"``, its own choice.
    delta : float in (0, 0.5] or None
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
        If counts that the criterion needs were not made, if candidates that were pruned
        for another criterion or delta might win under this one, or if the candidate
        that the run chose was cut off from its cube.
    AllFitsFailedError
        If no candidate is complete.

    See Also
    --------
    plan_search : Plans the search that makes the counts.

    Examples
    --------
    A fitted search, and its candidate with the smallest cross-validated error:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> search = dsel.SemiSupervisedSearchCV(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}, prune=False,
    ...     random_state=0)
    >>> choice = dsel.select(search.fit(X, y), "cv_error")
    >>> choice.params, choice.certificate.certified
    ({'n_neighbors': 9}, False)
    """
    if criterion is not None:
        check_string(criterion, "criterion")
    results = restore_dims(cube_of(results))
    choice = read_attribute(results, names.CHOICE, Choice.from_json, None)
    method = METHODS.get(criterion or "")
    if method is not None and method.supports(
        DEFAULT if is_regression_cube(results) else ERROR_RATE
    ):
        # The cube cannot reproduce the choice of a nested search.
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
        if matches_token(results, results.attrs.get(TOKEN)):
            return choice
        return _find_chosen(results, choice)
    return choose(results, criterion or first_criterion(results), delta)


def _find_chosen(cube: xr.Dataset, choice: Choice) -> Choice:
    """Return a choice with the positions of its candidates in a cut or sorted cube.

    Its numbers stay, but are estimates. A model whose candidate was cut off is left
    out. Raises ValueError if it is the deployed one.
    """
    changed = Caveat(Effect.VOIDS, CHANGED)
    candidates, models = all_params(cube), {}
    for name, model in choice.bounded_models.items():
        # A procedure is the only candidate, whose parameters no grid has.
        place = model.candidate if choice.procedure else None
        if not choice.procedure:
            place = _find_params(candidates, model.params)
        if place is not None:
            models[name] = replace(model.with_caveats(changed), candidate=place)
    if choice.deploy not in models:
        raise ValueError(
            f"`results` lack the chosen candidate {params_text(choice.params)}, or "
            f"several may be it: {CHANGED}; dsel.select(results, 'cv_error') chooses "
            f"among the others, or take the results that the run returned."
        )
    return replace(choice, bounded_models=models)


def _find_params(candidate_params: Sequence[Options], params: Options) -> int | None:
    """Return the first place of the candidate with these parameters; None without one.

    Parameters may have other names where a dimension was renamed. Then the values
    decide, if a single candidate has them. A cut may repeat a candidate.
    """
    values = sorted(map(repr, params.values()))
    matches = [
        place
        for place, other in enumerate(candidate_params)
        if sorted(map(repr, other.values())) == values
        and all(repr(other[key]) == repr(params[key]) for key in {*other} & {*params})
    ]
    is_one = len({repr(candidate_params[place]) for place in matches}) == 1
    return matches[0] if is_one else None


def choose(cube: xr.Dataset, criterion: str, delta: float | None = None) -> Choice:
    """Choose by a criterion; return the choice with its certificate or an estimate."""
    if criterion.startswith(names.CRITICAL_EPSILON):
        raise ValueError(
            f"`criterion` must be an estimate of the error, but {criterion!r} says how "
            f"sure a model is of its rows; {names.VALIDATION_ERROR!r} is one."
        )
    planned = method_of(cube)
    method = METHODS.get(criterion)
    # Where a bound itself ranks the candidates, it is the certificate of the plan.
    if planned and planned.ranks_by == criterion and planned.criterion.is_guarantee:
        method = planned
    reported_name = criterion if method is None else method.name
    # The number that ranks candidates may differ from the one that is reported.
    reported = evaluate(cube, reported_name, delta=delta)
    ranking = reported
    if method is not None and method.ranks_by != reported_name:
        ranking = evaluate(cube, method.ranks_by, delta=delta)
    # Ties are broken by a candidate's number, never by the order of its tasks.
    values = ranking.terms.value
    has_fewer = has_fewer_predictions(ranking.candidate_counts)
    compared = replace(ranking.terms, value=np.where(has_fewer, nan, values))
    candidate = ranking.criterion.choose(compared, ranking.candidate_counts)
    _check_winner(cube, ranking, candidate)
    params = all_params(cube)
    notes = [
        f"{params_text(params[number])} is not compared, though its number is smaller: "
        f"some searches dropped it early, so it is counted on fewer rows; prune=False "
        f"compares all candidates"
        for number in np.flatnonzero(has_fewer & (values < values[candidate]))
    ]
    delta = delta_of(cube) if delta is None else delta
    description = read_description(cube)
    certificate = _certify_candidate(
        cube, description, reported, ranking, candidate, delta
    )
    model_name = certificate.model_name
    declared = certificate_of_run(cube)
    # The stored constant has the loss of the plan; another rule may bound another one.
    is_declared = declared is not None and declared.loss == certificate.loss
    model = BoundedModel(model_name, candidate, params[candidate], certificate)
    return Choice(
        ranking.criterion.name,
        float(ranking.terms.value[candidate]),
        {model_name: model},
        model_name,
        n_candidates=len(params),
        n_folds=_planned_folds(cube),
        five_fold_disagreement=_estimate_disagreement(ranking, candidate),
        caveats=collect_caveats(
            caveats_of(cube), make_caveats(Effect.INFO, notes[:MOST_CANDIDATES_NAMED])
        ),
        **largest_class(description.counted_classes),
        **constant_fields(description.constant if is_declared else None),
    )


def _planned_folds(cube: xr.Dataset) -> int:
    """Return the number of folds that were drawn; 0 if another run would differ.

    A single fold is one of those that were drawn, and all of them have its size.
    """
    if names.PRIOR_SHARE in cube:
        return 0
    n_folds = int(cube.sizes.get(names.FOLD, 0))
    if n_folds != 1:
        return n_folds
    if int(cube.get(names.N_GROUPS, 0)) or names.TRAIN_ROWS not in cube:
        return 0
    n_labeled, n_trained = int(cube[names.N_LABELED]), int(cube[names.TRAIN_ROWS].sum())
    return round(n_labeled / (n_labeled - n_trained))


def _estimate_disagreement(ranking: Evaluation, candidate: int) -> float:
    """Return how often the model of all rows differs from one without 20% of them."""
    counts = ranking.candidate_counts
    if not {names.DISAGREEMENTS, names.POOL_ROWS} <= counts.keys():
        return nan
    differ, n_rows = (
        counts[name][candidate].ravel()
        for name in (names.DISAGREEMENTS, names.POOL_ROWS)
    )
    if len(differ) < 2 or n_rows.min() < 1 or differ.min() < 0:
        return nan
    return five_fold_disagreement(float(np.mean(differ / n_rows)), len(differ))


def read_description(cube: xr.Dataset) -> RunDescription:
    """Return the description of the run of a cube, in addition to its counts."""
    rows_of_classes = class_rows(cube)
    # Empty if the loss has none, or if an older version made the cube.
    constant = json.loads(cube.attrs.get(names.CONSTANT, "[]"))
    return RunDescription(
        data=DataSizes(
            n_labeled=int(cube.get(names.N_LABELED, 0)),
            n_unlabeled=int(cube.get(names.N_UNLABELED, 0)),
            n_classes=len(rows_of_classes),
            n_duplicates=int(cube.get(names.N_DUPLICATES, 0)),
            n_groups=int(cube.get(names.N_GROUPS, 0)),
        ),
        assumptions=assumptions_of(cube),
        caveats=run_caveats(cube),
        class_rows=rows_of_classes,
        class_groups=class_rows(cube, names.CLASS_GROUPS),
        constant=ConstantPrediction(*constant) if constant else None,
        copied_rows=int(cube.attrs.get(names.COPIED_ROWS, 0)),
    )


def _certify_candidate(
    cube: xr.Dataset,
    description: RunDescription,
    reported: Evaluation,
    ranking: Evaluation,
    candidate: int,
    delta: float,
) -> Certificate:
    """Return the certificate of a candidate: its reported number, or an estimate."""
    # A search by one hold-out set has no model of all rows that an estimate is about.
    has_all_rows = names.FULL_FIT_SECONDS in cube or cube.sizes.get(names.FOLD) != 1
    fold = 0 if reported.criterion.holds_out_one_fold or not has_all_rows else None
    model_name = ALL_ROWS if fold is None else ONE_FOLD
    reasons = filter(None, [reason_against_guarantee(cube, reported.criterion, delta)])
    bound = float(reported.terms.value[candidate])
    declared = (
        certificate_of_run(cube) if ranking.criterion.uses_declared_loss else None
    )
    estimate, fields = bound, LossFields()
    if ranking.criterion.is_regression:
        fields = LossFields(
            loss=ranking.criterion.name, title="Mean squared error", largest=inf
        )
    elif declared is None:
        estimate = cv_error(ranking.candidate_counts, candidate)
    else:
        fields = loss_fields(declared)
    return description.make_certificate(
        bound,
        delta,
        reported.criterion.name,
        model_name,
        caveats=make_caveats(Effect.VOIDS, reasons),
        label_term=float(reported.terms.label_term[candidate]),
        disagreement_term=float(reported.terms.disagreement_term[candidate]),
        estimate=estimate,
        fold=fold,
        trained_on=_holdout_training(cube) if fold is not None else "",
        is_estimate=not reported.criterion.is_guarantee,
        divides_delta=reported.criterion.is_guarantee,
        is_holdout=cube.sizes.get(names.FOLD) == 1,
        **fields,
    )


def _holdout_training(cube: xr.Dataset) -> str:
    """Return the part of the labels outside of a hold-out set; "" with more folds.

    A hold-out set is no fold of several, of which a reader would look for the others.
    """
    if cube.sizes.get(names.FOLD) != 1 or names.TRAIN_ROWS not in cube:
        return ""
    [n_rows] = cube[names.TRAIN_ROWS].values.tolist()
    return f"{fraction_in_percent(n_rows / int(cube[names.N_LABELED]))} of the labels"


def _check_winner(cube: xr.Dataset, ranking: Evaluation, candidate: int) -> None:
    """Raise unless the counts prove that no pruned candidate wins against this one."""
    criterion, counts, numbers = (
        ranking.criterion,
        ranking.candidate_counts,
        ranking.terms.value,
    )
    is_open = np.isin(counts[names.STATUS], (names.STATUS_PRUNED, names.STATUS_MISSING))
    unfinished = is_open & np.isnan(numbers)
    if not unfinished.any():
        return
    lower = criterion.lower_bound(counts, ranking.settings)[unfinished]
    may_win = (lower <= margin_above(numbers[candidate])) | (not criterion.can_prune)
    if n := int(may_win.sum()):
        shown, at_delta = repr(criterion.name), ""
        way = f", or with criterion={shown}"
        if criterion.is_guarantee:
            at_delta = " at this `delta`"
            way = f", or with certificate={shown} and this delta"
        elif criterion.name == first_criterion(cube):
            # The same search would prune again: halving ranks by this criterion, too.
            way = "; dsel.select(results), without a criterion, has the run's choice"
            way *= names.CHOICE in cube.attrs
        raise ValueError(
            f"`results` cannot answer for criterion={shown}{at_delta}: "
            f"{count_of(n, 'candidate', 'was', 'were')} pruned and might win. Search "
            f"with prune=False for the whole surface{way}."
        )


def reason_against_guarantee(
    cube: xr.Dataset, criterion: Criterion, delta: float
) -> str:
    """Return why a number is no guarantee, whatever was counted; "" if it may be one.

    A guarantee was declared before the run, at this delta, and is read from the
    unchanged cube of the run.
    """
    planned = method_of(cube)
    declared = delta_of(cube, nan)
    if not criterion.is_guarantee:
        return f"{criterion.name} is an estimate, not a bound"
    if planned is None or criterion.name != planned.name:
        return (
            f"{criterion.name} is not the certificate that the plan declared; a plan "
            f"with certificate={criterion.name!r} and an `out` of its own gives one"
        )
    if isnan(declared):
        return "the results lost the delta that the plan declared"
    if delta != declared:
        return f"the plan declared delta={declared:g}"
    return "" if matches_token(cube, cube.attrs.get(TOKEN)) else CHANGED


def method_of(cube: xr.Dataset) -> CertificateMethod | None:
    """Return the certificate method of a cube's plan; None for estimates."""
    return METHODS.get(str(cube.attrs.get("certificate", "")))


def certificate_of_run(cube: xr.Dataset) -> Certificate | None:
    """Return the certificate of a search, for its loss; None if it was lost."""
    choice = read_attribute(cube, names.CHOICE, Choice.from_json, None)
    return None if choice is None else choice.certificate
