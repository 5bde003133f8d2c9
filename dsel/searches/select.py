"""From evidence to a choice: any criterion, any delta, no fit."""

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds import uniform_shares
from dsel.bounds.events import DeltaLedger
from dsel.checks import check_probability
from dsel.criteria import Criterion, Evidence, Settings, Terms, get_criterion
from dsel.results import Assumption, Certificate, Choice, check_cube, evidence
from dsel.results.choice import params_of
from dsel.results.cube import assumptions_of
from dsel.results.schema import DECLARED
from dsel.searches.board import ROUNDING
from dsel.searches.ledger import ledger_of, objection

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
        What the reported number is; by default what `criterion` gives.

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
    """
    check_cube(results)
    declared = _declared(results)
    rule = get_criterion(criterion or str(results[names.CRITERION].values[0]))
    ledger = ledger_of(results)
    reported = get_criterion(certificate or _default_read_out(ledger, criterion, rule))
    level = check_probability(declared[0] if delta is None else delta, "delta")
    share = declared[1] if label_share is None else label_share
    counts = evidence(results)
    n_candidates = int(results[names.N_CANDIDATES])
    settings = Settings(
        # A slice of a cube has fewer candidates; each keeps its share.
        uniform_shares(n_candidates, delta=level)[: counts[names.STATUS].size],
        check_probability(share, "label_share"),
    )
    for each in (rule, reported):
        _check_evidence(each, counts)
    terms = rule.evaluate(counts, settings)
    chosen = rule.choose(terms, counts)
    _check_exact(rule, counts, settings, terms, chosen)
    return Choice(
        candidate=chosen,
        params=params_of(results, chosen),
        criterion=rule.name,
        estimate=float(terms.estimate[chosen]),
        certificate=_certificate(
            results,
            reported,
            terms if reported is rule else reported.evaluate(counts, settings),
            chosen,
            objections=_objections(ledger, reported, level, share),
            delta=level,
        ),
        remarks=_remarks(counts),
    )


def _default_read_out(
    ledger: DeltaLedger | None, criterion: str | None, rule: Criterion
) -> str:
    """Return what the search declared, unless another criterion is asked for."""
    if criterion is None and ledger is not None and ledger.read_outs:
        return ledger.read_outs[0].certificate
    return rule.name


def _declared(results: xr.Dataset) -> tuple[float, float]:
    """Return delta and label share of the search."""
    if names.CRITERION not in results.dims:
        return 0.05, 0.5
    first = results.isel({names.CRITERION: 0})
    return float(first[names.DELTA]), float(first[names.LABEL_SHARE])


def _check_evidence(criterion: Criterion, counts: Evidence) -> None:
    for name in criterion.needs:
        values = counts.get(name)
        if values is None or (values.size and np.all(values < 0)):
            raise ValueError(
                f"`criterion` {criterion.name!r} needs `{name}`, which this search did "
                f"not count; plan one with criterion={criterion.name!r}"
                + (" and a pool." if "pool" in name or "dis" in name else ".")
            )


def _check_exact(
    rule: Criterion,
    counts: Evidence,
    settings: Settings,
    terms: Terms,
    chosen: int,
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
    ledger: DeltaLedger | None, reported: Criterion, delta: float, label_share: float
) -> tuple[str, ...]:
    """Return why the number is no guarantee, whatever the assumptions."""
    if not reported.is_guarantee:
        return (f"{reported.name} is an estimate, not a bound",)
    unpaid = objection(ledger, reported.name, delta=delta, label_share=label_share)
    return (unpaid,) if unpaid else ()


def _certificate(
    results: xr.Dataset,
    reported: Criterion,
    terms: Terms,
    chosen: int,
    *,
    objections: tuple[str, ...],
    delta: float,
) -> Certificate:
    ledger = assumptions_of(results)
    declared = _declared(results)[0]
    if delta != declared:
        late = LATER.format(delta=delta, declared=declared)
        ledger = tuple(
            Assumption(each.name, DECLARED, late)
            if each.name == "A5" and not each.is_violated
            else each
            for each in ledger
        )
    return Certificate(
        unclipped=float(terms.estimate[chosen]),
        delta=delta,
        criterion=reported.name,
        assumptions=ledger,
        objections=objections,
        label_term=float(terms.label_term[chosen]),
        disagreement_term=float(terms.disagreement_term[chosen]),
    )


def _remarks(counts: Evidence) -> tuple[str, ...]:
    n_failed = int((counts[names.STATUS] == names.STATUS_FAILED).sum())
    return (f"{n_failed} candidates failed",) if n_failed else ()
