"""From evidence to a choice: any criterion, any delta, no fit."""

import json
from math import nan
from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dsel import names
from dsel.bounds import best_fold_number
from dsel.bounds.events import DeltaLedger, ReadOut
from dsel.criteria import Criterion, Evidence, Settings, Terms, get_criterion
from dsel.criteria.base import BEST_FOLD, OUTER_FOLD, VOTE, is_nested
from dsel.criteria.certificates import SELECT_THEN_CERTIFY, stopping_rule_of
from dsel.criteria.nested import deployments
from dsel.data.splits import FULL
from dsel.results import Assumption, Certificate, Choice
from dsel.results.choice import candidate_labels, params_of
from dsel.results.ledger import DECLARED, assumptions_of
from dsel.searches.doubts import remarks_on
from dsel.searches.engine.pruning import ROUNDING
from dsel.searches.evaluate import (
    ResolvedCriterion,
    check_evidence,
    check_order,
    declared_prior,
    is_reordered,
    resolve,
)
from dsel.searches.ledger import ledger_of, objection, with_ledger

CERTIFIED_APART: Final = "certified_apart"
"""Attribute of a search's cube: its winner and the certificate by other rows."""
LATER = (
    "delta={delta:g} was named after the run, which declared {declared:g}: it holds if "
    "it was fixed before anybody saw the results"
)


def select(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    delta: float | None = None,
    label_share: float | None = None,
    certificate: str | None = None,
    prior: ArrayLike | None = None,
) -> Choice:
    """Choose a candidate from the evidence of a search.

    Parameters
    ----------
    results
        Cube of a search.
    criterion
        What ranks the candidates; by default that of the search.
    delta
        Probability with which the bound may fail; by default that of the search.
    label_share
        Part of delta for the labeled term; by default that of the search.
    certificate
        Criterion of the reported number; by default `criterion`.
    prior
        Part of delta of each candidate, in the order of the grid; by default that of
        the search. Another one is no guarantee: it was named after the run.

    Returns
    -------
    Choice
        The candidate, its parameters, and its certificate.

    Raises
    ------
    ValueError
        Where the cube lacks evidence that the criterion needs, or where candidates
        that were pruned for another criterion or delta might win under this one.
    AllFitsFailedError
        Where no candidate is complete.

    See Also
    --------
    plan_search : Where the evidence comes from.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5, 9]}
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), grid, X, y, cv=3, criterion="best_fold_model",
    ...     random_state=0)
    >>> choice = dsel.select(plan.run())
    >>> choice.params, choice.fold, choice.certificate.certified
    ({'n_neighbors': 1}, 0, True)
    """
    if criterion is not None and is_nested(get_criterion(criterion)):
        criterion, certificate = "cv_error", certificate or criterion
    resolved = resolve(
        results, criterion, delta=delta, label_share=label_share, prior=prior
    )
    rule, counts, settings = resolved.criterion, resolved.counts, resolved.settings
    name = certificate or _declared_certificate(results, criterion) or rule.name
    reported = get_criterion(name, "certificate")
    is_apart = reported is SELECT_THEN_CERTIFY and CERTIFIED_APART in results.attrs
    if is_nested(reported):
        check_order(results)
    if not is_apart:
        check_evidence(reported, counts)

    terms = rule.evaluate(counts, settings)
    chosen = rule.choose(terms, counts)
    _check_exact(rule, counts, settings, terms, chosen)
    if rule.name == "cv_error" and reported.deploys in (OUTER_FOLD, VOTE):
        chosen = int(counts[names.OUTER_CANDIDATE][_best_outer_fold(counts)])

    if is_apart:
        found = _certified_apart(results, chosen, resolved.delta)
    else:
        own = terms if reported is rule else reported.evaluate(counts, settings)
        found = _certificate(results, resolved, reported, own, chosen)
    voters = counts[names.OUTER_CANDIDATE].tolist() if reported.deploys == VOTE else ()
    return Choice(
        candidate=chosen,
        params=params_of(results, chosen),
        criterion=rule.name,
        estimate=float(terms.estimate[chosen]),
        certificate=found,
        remarks=remarks_on(rule, counts, settings, chosen),
        voters=tuple(voters),
        errors=_errors_of(reported, counts, chosen, found.fold),
        deployments=deployments(counts, settings) if is_nested(reported) else (),
    )


def with_certificate(
    results: xr.Dataset, chosen: int, certificate: Certificate, *, reserve: float
) -> xr.Dataset:
    """Return the cube of a search whose winner was certified by other labeled rows."""
    # It rests on rows of its own: no other certificate of this cube shares its delta.
    read = ReadOut(certificate.criterion, {"certifying_rows": certificate.delta})
    ledger = DeltaLedger(certificate.delta + reserve, reserve, (read,))
    stored = json.dumps([candidate_labels(results)[chosen], certificate.to_json()])
    return with_ledger(results, ledger).assign_attrs({CERTIFIED_APART: stored})


def _certified_apart(results: xr.Dataset, chosen: int, delta: float) -> Certificate:
    """Return the certificate by labeled rows that took no part in the search."""
    about, text = json.loads(results.attrs[CERTIFIED_APART])
    found, label = Certificate.from_json(text), candidate_labels(results)[chosen]
    if (label, delta) == (about, found.delta):
        return found
    raise ValueError(
        f"`certificate` {found.criterion!r} was made for {about} at "
        f"delta={found.delta:g}, not for {label} at delta={delta:g}; ask at that "
        f"delta, or of the certifying part's results."
    )


def _declared_certificate(results: xr.Dataset, criterion: str | None) -> str:
    """Return the certificate that the search declared, unless `criterion` is given."""
    ledger = ledger_of(results)
    if criterion is None and ledger is not None and ledger.read_outs:
        return ledger.read_outs[0].certificate
    return ""


def _check_exact(
    rule: Criterion, counts: Evidence, settings: Settings, terms: Terms, chosen: int
) -> None:
    """Raise unless the counts prove that no unfinished candidate can win."""
    status = counts[names.STATUS]
    unfinished = np.isin(status, (names.STATUS_PRUNED, names.STATUS_MISSING))
    unfinished &= np.isnan(terms.estimate)
    if not unfinished.any():
        return
    best = terms.estimate[chosen]
    lower = rule.lower_bound(counts, settings)
    if not rule.can_prune or (lower[unfinished] <= best + ROUNDING).any():
        n = int((lower[unfinished] <= best + ROUNDING).sum())
        raise ValueError(
            f"`results` cannot answer for criterion={rule.name!r} at this `delta`: "
            f"{n} candidates were pruned for another one and might win. Run "
            f"plan_search(..., criterion={rule.name!r}) with this delta, or with "
            f"prune=False for the whole surface."
        )


def _objections(
    results: xr.Dataset, reported: Criterion, resolved: ResolvedCriterion
) -> tuple[str, ...]:
    """Return why the number is no guarantee, whatever the assumptions."""
    if not reported.is_guarantee:
        return (f"{reported.name} is an estimate, not a bound",)
    n_here, n = (resolved.counts[k] for k in (names.STATUS, names.N_CANDIDATES))
    if reported.only_about and n_here.size < int(n):
        # The leaders of a part that was picked after seeing results depend on more than
        # the labels.
        return (
            f"{reported.name} is about those who lead all {int(n)} candidates, and "
            f"these results hold {n_here.size}; select from all of them",
        )
    if reported.only_about and is_reordered(results):
        # Of several that lead alike the first one is meant: whoever orders them after
        # seeing results can choose.
        return (
            f"{reported.name} is about those who lead, the first of equal ones, and "
            f"these results have another order than the search; select before you sort",
        )
    unpaid = objection(
        ledger_of(results),
        reported.name,
        delta=resolved.delta,
        label_share=resolved.label_share,
        reading=stopping_rule_of(resolved.counts),
    )
    return (unpaid,) if unpaid else ()


def _other_prior(results: xr.Dataset, resolved: ResolvedCriterion) -> tuple[str, ...]:
    """Return that other parts of delta were declared, where any is larger now."""
    before = declared_prior(results)
    if resolved.prior is None or resolved.prior is before:
        return ()
    n = float(resolved.counts[names.N_CANDIDATES])
    least = 1.0 / n if before is None else before
    if (resolved.prior <= least * (1.0 + 1e-9)).all():
        return ()
    return (
        "`prior` was named after the run and gives some candidates more of delta than "
        "was declared; name it in plan_search",
    )


def _certificate(
    results: xr.Dataset,
    resolved: ResolvedCriterion,
    reported: Criterion,
    terms: Terms,
    chosen: int,
) -> Certificate:
    delta, declared = resolved.delta, resolved.declared_delta
    assumptions = assumptions_of(results)
    objections = _objections(results, reported, resolved)
    objections += _other_prior(results, resolved)
    if reported.is_guarantee and np.isnan(terms.estimate[chosen]):
        objections += (_not_computed(reported),)
    if delta != declared:
        late = LATER.format(delta=delta, declared=declared)
        assumptions = tuple(
            Assumption(each.name, DECLARED, late)
            if each.name == "A5" and not each.is_violated
            else each
            for each in assumptions
        )
    return Certificate(
        unclipped=float(terms.estimate[chosen]),
        delta=delta,
        criterion=reported.name,
        assumptions=assumptions,
        objections=objections,
        label_term=float(terms.label_term[chosen]),
        disagreement_term=float(terms.disagreement_term[chosen]),
        lower=nan if terms.lower is None else float(terms.lower[chosen]),
        n_unlabeled=int(resolved.counts.get(names.N_UNLABELED, 0)),
        estimate=_estimate(reported, resolved.counts, chosen),
        fold=_fold_of(reported, resolved.counts, chosen),
    )


def _estimate(reported: Criterion, counts: Evidence, chosen: int) -> float:
    """Return the cross-validation error: of a nested search that of what it chose.

    The chosen candidate's own one is too small on average where it is the smallest.
    """
    errors, rows = counts.get(names.FOLD_ERRORS), counts[names.FOLD_ROWS]
    if is_nested(reported):
        return float(np.mean(counts[names.OUTER_ERRORS] / rows))
    if errors is None or (errors[chosen] < 0).any():
        return nan
    return float(np.mean(errors[chosen] / rows))


def _fold_of(reported: Criterion, counts: Evidence, chosen: int) -> int | None:
    """Return the fold whose model the number is about; None for the full model."""
    if reported.deploys in (FULL, VOTE):
        return None
    if reported.deploys == OUTER_FOLD:
        return _best_outer_fold(counts)
    if reported.deploys != BEST_FOLD:
        return 0
    errors, rows = counts[names.FOLD_ERRORS][chosen], counts[names.FOLD_ROWS]
    return int(best_fold_number(errors, rows))


def _errors_of(
    reported: Criterion, counts: Evidence, chosen: int, fold: int | None
) -> int | None:
    """Return the errors of a fold's model on its held-out rows; None without one."""
    is_outer = reported.deploys == OUTER_FOLD
    errors = counts.get(names.OUTER_ERRORS if is_outer else names.FOLD_ERRORS)
    if fold is None or errors is None:
        return None
    return int(errors[fold] if is_outer else errors[chosen, fold])


def _best_outer_fold(counts: Evidence) -> int:
    """Return the fold that what was chosen without it errs least on."""
    return int(best_fold_number(counts[names.OUTER_ERRORS], counts[names.FOLD_ROWS]))


def _not_computed(reported: Criterion) -> str:
    """Return why a bound has no number for the chosen candidate, and what to do."""
    why = reported.only_about or (
        "candidates with all of their counts; search with prune=False"
    )
    return f"{reported.name} has no number for the chosen candidate: it is about {why}"
