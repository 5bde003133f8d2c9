"""The ledger of delta in the cube: what was paid for, and what a reserve may pay.

A certificate is a guarantee at the share of delta that was set aside for the events
behind it before the results were seen. Another certificate, a larger delta or other
candidates cost more: what a declared reserve pays for stays a guarantee, the rest is an
estimate. (Whether what is added depended on the results, nobody but the user can know:
A5 stays declared.) Where a place is kept, `dsel.searches.declarations` has the account
of all its runs, and the cube a copy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from math import ceil
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.bounds.events import CERTIFICATE_EVENTS, DeltaLedger, ReadOut, read_out
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule, stopping_rule
from dsel.results.choice import candidate_labels
from dsel.results.ledger import (
    DECLARED,
    VIOLATED,
    assumptions_of,
    spent_of,
    with_assumptions,
    with_spent,
)
from dsel.searches.checkpoint import Checkpoint
from dsel.searches.declarations import ROUNDING, Account, Declaration, Verdict
from dsel.searches.spec import SearchSpec

KEPT_IN: Final = "ledger_kept_in"
"""Attribute of a cube whose ledger is a copy of what its place keeps."""
LOST: Final = (
    "the results lost their attribute `spent`, which says what delta was declared for; "
    "select from what the run or `open_results` returned"
)
N_NAMED: Final = 3
"""Candidates that a reason names."""


def ledger_of_plan(plan: SearchSpec) -> DeltaLedger:
    """Return the ledger of a plan: its certificate paid, the reserve beside it."""
    ledger = DeltaLedger(plan.delta + plan.reserve, plan.reserve)
    if not plan.certificate.is_guarantee:
        return ledger
    name, reading = plan.certificate.name, plan.stages.reading
    return ledger.read(_read(name, plan.delta, plan.label_share, reading))


def ledger_of(results: xr.Dataset) -> DeltaLedger | None:
    """Return the ledger of a cube; None where it was lost, or never there."""
    spent = spent_of(results)
    if spent is None:
        return None
    return DeltaLedger(
        spent["delta"],
        spent["reserve"],
        tuple(ReadOut(**read) for read in spent["read_outs"]),
    )


def with_ledger(results: xr.Dataset, ledger: DeltaLedger) -> xr.Dataset:
    """Return the cube with this ledger."""
    return with_spent(results, asdict(ledger))


def objection(
    ledger: DeltaLedger | None,
    certificate: str,
    *,
    delta: float,
    label_share: float,
    reading: StoppingRule = WHOLE_POOL,
) -> str:
    """Return why a certificate is not paid for; empty where it is."""
    if ledger is None:
        return LOST
    due = _due(ledger, _read(certificate, delta, label_share, reading))
    if due <= ROUNDING:
        return ""
    declared = (
        ", ".join(f"{read.certificate}" for read in ledger.read_outs) or "nothing"
    )
    return (
        f"{certificate} at delta = {delta:g} was not declared before the results were "
        f"seen: it needs {due:g} of delta beside what was set aside for {declared}"
    )


def add_certificate(
    results: xr.Dataset,
    certificate: str,
    *,
    delta: float,
    label_share: float | None = None,
) -> xr.Dataset:
    """Return the cube with another certificate paid from its reserve.

    See `results.dsel.add_certificate`, which this is.
    """
    if KEPT_IN in results.attrs:
        raise ValueError(
            f"`results` are from a run with `out`, whose journal keeps what delta is "
            f"spent on; run the same search with certificate={certificate!r} and the "
            f"same `out`, which counts only what is not counted yet."
        )
    ledger = ledger_of(results)
    if ledger is None:
        raise ValueError(f"`results` has no delta to spend: {LOST}.")
    share = label_share or float(results[names.LABEL_SHARE].values[0])
    n_stages = int(results.get(names.N_STAGES, 1))
    read = _read(certificate, delta, share, stopping_rule(n_stages))
    due = _due(ledger, read)
    if due > ledger.remaining + ROUNDING:
        ledger = ledger.draw(due - ledger.remaining)
    paid = with_ledger(results, ledger.read(read))
    reason = f"{certificate} was added after the run and paid from its reserve"
    return _with_a5(paid, DECLARED, reason)


def declaration_of(plan: SearchSpec, keys: Mapping[int, str]) -> Declaration:
    """Return what a plan declares in its place; `keys` are those of its candidates."""
    return Declaration(
        tuple(keys[number] for number in sorted(keys)),
        plan.certificate.name,
        plan.criterion.name,
        plan.delta,
        plan.reserve,
        ledger_of_plan(plan).spent,
        () if plan.prior is None else tuple(map(float, plan.prior)),
    )


def settle(
    results: xr.Dataset, account: Account, key: str, keys: Mapping[int, str]
) -> xr.Dataset:
    """Return a run's cube with what its place has paid for, or with A5 violated.

    What stands in the cube is a copy: the place's journal keeps the declarations, of
    which `account` is made. `key` is that of the run's own one, `keys` those of its
    candidates by their numbers in the cube.
    """
    verdict, run = account.verdicts[key], account.declared[key]
    results = results.assign_attrs({KEPT_IN: "journal"})
    texts = candidate_labels(results)
    labels = {keys[number]: text for number, text in enumerate(texts)}
    if not verdict.is_paid:
        reason = verdict.lost or _unpaid(verdict, labels)
        name = f"run {verdict.number} of this place ({verdict.when})"
        return _with_a5(results, VIOLATED, f"{name} is not paid for: {reason}")
    results = with_ledger(results, _copy(account, run))
    if verdict.number == 1 or verdict.cost <= ROUNDING:
        return results
    reason = (
        f"{_asked(verdict, labels)} after {verdict.n_seen} were seen, paid from what "
        f"the first run of this place declared ({_up(verdict.cost)} of delta)"
    )
    return _with_a5(results, DECLARED, reason)


def with_first_leaders(
    results: xr.Dataset, plan: SearchSpec, keys: Mapping[int, str], store: Checkpoint
) -> xr.Dataset:
    """Return a run's cube, with A5 violated where others led in an earlier run.

    What failed is tried again, and may lead then: of two numbers one could be picked.
    """
    name = plan.certificate.name
    if not plan.certificate.only_about:
        return results
    bounds = results[names.ESTIMATE].sel({names.CRITERION: name}).values.ravel()
    about = np.flatnonzero(np.isfinite(bounds))
    if plan.scheme.is_nested and len(about):
        about = np.append(about, results[names.OUTER_CANDIDATE].values.astype(int))
    key = f"leaders/{name}/{declaration_of(plan, keys).whole}"
    leaders = [keys[number] for number in about.tolist()]
    if leaders and not store.is_read_only:
        store.append(key, {"keys": leaders})  # unless there are earlier ones
    if leaders == store.read().get(key, {"keys": leaders})["keys"]:
        return results
    reason = (
        "others led in an earlier run of this place, where fits failed that did not "
        "now: one of the two numbers could be picked; cv_bound holds for all"
    )
    return _with_a5(results, VIOLATED, reason)


def _copy(account: Account, run: Declaration) -> DeltaLedger:
    """Return the account as far as it is about the candidates of one run."""
    paid = {event: account.affords(run, event) for event in account.paid}
    reads: dict[str, ReadOut] = {}
    for each in (run, *account.declared.values()):
        spends = {event: paid.get(event, 0.0) for event in each.spends}
        if spends and all(spends.values()):
            reads.setdefault(each.certificate, ReadOut(each.certificate, spends))
    reserve = min(account.reserve, max(0.0, account.budget - account.spent))
    return DeltaLedger(account.budget, reserve, tuple(reads.values()))


def _unpaid(verdict: Verdict, labels: Mapping[str, str]) -> str:
    """Say what a run asked for, what was left, and what would have been enough."""
    needed = verdict.cost - verdict.left + verdict.reserve
    delta = verdict.budget - verdict.reserve
    asked = f"{_asked(verdict, labels)} after {verdict.n_seen} were seen, which"
    if needed + delta >= 1.0:
        return (
            f"{asked} no `reserve` covers: declare all of it in the first run "
            f"({verdict.first_when})"
        )
    return (
        f"{asked} costs {_up(verdict.cost)} of delta, of which {verdict.left:.4g} is "
        f"left; it would have needed `reserve` = {_up(needed)} in the first run "
        f"({verdict.first_when})"
    )


def _asked(verdict: Verdict, labels: Mapping[str, str]) -> str:
    asked = []
    for found, what in (
        (
            verdict.raised,
            "got a larger share of delta, another certificate or another order",
        ),
        (verdict.new, "came in addition"),
    ):
        if found:
            few = "candidate" if len(found) == 1 else "candidates"
            asked.append(f"{len(found)} {few}{_first(found, labels)} {what}")
    return " and ".join(asked) or "another certificate or order was asked for"


def _first(found: Iterable[str], labels: Mapping[str, str]) -> str:
    named = [text for key, text in labels.items() if key in found]
    more = "; ..." if len(named) > N_NAMED else ""
    return f" ({'; '.join(named[:N_NAMED])}{more})" if any(named) else ""


def _up(number: float) -> str:
    return f"{ceil(number * 1e4 - 1e-9) / 1e4:g}"


def _read(
    certificate: str, delta: float, label_share: float, reading: StoppingRule
) -> ReadOut:
    if certificate in CERTIFICATE_EVENTS:
        return read_out(
            certificate, delta=delta, label_share=label_share, reading=reading
        )
    raise ValueError(
        f"`certificate` {certificate!r} is no guarantee; choose one of "
        f"{', '.join(CERTIFICATE_EVENTS)}."
    )


def _due(ledger: DeltaLedger, read: ReadOut) -> float:
    spent = ledger.spent
    return sum(max(0.0, s - spent.get(e, 0.0)) for e, s in read.spends.items())


def _with_a5(results: xr.Dataset, state: str, reason: str) -> xr.Dataset:
    """Return the cube with `reason` added to A5, which never gets better."""
    noted = []
    for each in assumptions_of(results):
        if each.name != "A5":
            noted.append(each)
            continue
        # What spoke for it is no reason any more where it is violated now.
        before = each.reason if each.is_violated or state != VIOLATED else ""
        worse = VIOLATED if each.is_violated else state
        both = "; ".join(filter(None, (before, reason)))
        noted.append(replace(each, state=worse, reason=both))
    return with_assumptions(results, noted)
