"""From evidence to a choice: any criterion, any delta, no fit."""

import json
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds.events import DeltaLedger, ReadOut
from dsel.criteria import Criterion, Evidence, Settings, Terms, get_criterion
from dsel.criteria.certificates import SELECT_THEN_CERTIFY, reading
from dsel.criteria.co_validation import pool_disagreement
from dsel.data.trainings import FULL
from dsel.results import Assumption, Certificate, Choice
from dsel.results.choice import candidate_labels, params_of
from dsel.results.cube import assumptions_of
from dsel.results.schema import DECLARED
from dsel.searches.engine.pruning import ROUNDING
from dsel.searches.evaluate import ResolvedCriterion, check_evidence, resolve
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
    resolved = resolve(results, criterion, delta=delta, label_share=label_share)
    rule, counts, settings = resolved.criterion, resolved.counts, resolved.settings
    ledger = ledger_of(results)
    reported = get_criterion(
        certificate or _default_read_out(ledger, criterion, rule), "certificate"
    )
    apart = _certified_apart(results, reported)
    if apart is None:
        check_evidence(reported, counts)
    terms = rule.evaluate(counts, settings)
    chosen = rule.choose(terms, counts)
    _check_exact(rule, counts, settings, terms, chosen)
    return Choice(
        candidate=chosen,
        params=params_of(results, chosen),
        criterion=rule.name,
        estimate=float(terms.estimate[chosen]),
        certificate=apart.of(results, chosen, resolved.delta)
        if apart is not None
        else _certificate(
            resolved,
            reported,
            terms if reported is rule else reported.evaluate(counts, settings),
            chosen,
            assumptions=assumptions_of(results),
            objections=_objections(ledger, reported, resolved),
        ),
        remarks=(*_remarks(counts), *_too_disputed(rule, counts, chosen)),
    )


@dataclass(frozen=True)
class Apart:
    """A certificate by labeled rows that took no part in the search of a cube."""

    label: str
    """Text of the one candidate that it is about."""
    certificate: Certificate
    """Its bound."""

    def of(self, results: xr.Dataset, chosen: int, delta: float) -> Certificate:
        """Return the certificate, or raise where it is not about what was asked."""
        label = candidate_labels(results)[chosen]
        if (label, delta) == (self.label, self.certificate.delta):
            return self.certificate
        raise ValueError(
            f"`certificate` {self.certificate.criterion!r} was made for {self.label} "
            f"at delta={self.certificate.delta:g}, not for {label} at "
            f"delta={delta:g}; ask at that delta, or of the certifying part's results."
        )


def with_certificate(
    results: xr.Dataset, chosen: int, certificate: Certificate, *, reserve: float
) -> xr.Dataset:
    """Return the cube of a search whose winner was certified by other labeled rows."""
    # On rows of their own: no other certificate of this cube shares the event.
    read = ReadOut(certificate.criterion, {"certifying_rows": certificate.delta})
    ledger = DeltaLedger(certificate.delta + reserve, reserve, (read,))
    told = json.dumps([candidate_labels(results)[chosen], certificate.to_json()])
    return with_ledger(results, ledger).assign_attrs({CERTIFIED_APART: told})


def _certified_apart(results: xr.Dataset, reported: Criterion) -> Apart | None:
    told = results.attrs.get(CERTIFIED_APART)
    if told is None or reported is not SELECT_THEN_CERTIFY:
        return None
    label, certificate = json.loads(told)
    return Apart(label, Certificate.from_json(certificate))


def _default_read_out(
    ledger: DeltaLedger | None, criterion: str | None, rule: Criterion
) -> str:
    """Return what the search declared, unless another criterion is asked for."""
    if criterion is None and ledger is not None and ledger.read_outs:
        return ledger.read_outs[0].certificate
    return rule.name


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
    ledger: DeltaLedger | None, reported: Criterion, resolved: ResolvedCriterion
) -> tuple[str, ...]:
    """Return why the number is no guarantee, whatever the assumptions."""
    if not reported.is_guarantee:
        return (f"{reported.name} is an estimate, not a bound",)
    n_here, n = (resolved.counts[k] for k in (names.STATUS, names.N_CANDIDATES))
    if reported.only_about and n_here.size < int(n):
        # Who leads a part that was picked by looking is no function of labels alone.
        return (
            f"{reported.name} is about those who lead all {int(n)} candidates, and "
            f"these results hold {n_here.size}; select from all of them",
        )
    unpaid = objection(
        ledger,
        reported.name,
        delta=resolved.delta,
        label_share=resolved.label_share,
        reading=reading(resolved.counts),
    )
    return (unpaid,) if unpaid else ()


def _certificate(
    resolved: ResolvedCriterion,
    reported: Criterion,
    terms: Terms,
    chosen: int,
    *,
    assumptions: tuple[Assumption, ...],
    objections: tuple[str, ...],
) -> Certificate:
    delta, declared = resolved.delta, resolved.declared_delta
    if reported.is_guarantee and np.isnan(terms.estimate[chosen]):
        objections = (*objections, _not_computed(reported))
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
        fold=None if reported.deploys == FULL else 0,
    )


def _not_computed(reported: Criterion) -> str:
    """Say why a bound has no number for the chosen candidate, and what to do."""
    why = reported.only_about or (
        "candidates with all of their counts; search with prune=False"
    )
    return f"{reported.name} has no number for the chosen candidate: it is about {why}"


def _remarks(counts: Evidence) -> tuple[str, ...]:
    n_failed = int((counts[names.STATUS] == names.STATUS_FAILED).sum())
    return (f"{n_failed} candidates failed",) if n_failed else ()


def _too_disputed(rule: Criterion, counts: Evidence, chosen: int) -> tuple[str, ...]:
    """Say where halves differ more than independent models can on average."""
    # Bounds need disagreements too, but not the number of classes.
    if not {names.DISAGREEMENTS, names.N_CLASSES} <= set(rule.needs):
        return ()
    limit = 1.0 - 1.0 / int(counts[names.N_CLASSES])
    rate = float(pool_disagreement(counts)[chosen])
    if rate <= limit:
        return ()
    return (
        f"halves differ on {rate:.3g} of the pool, more than the {limit:.3g} that "
        f"independent models can expect; the error read from it is cut there",
    )
