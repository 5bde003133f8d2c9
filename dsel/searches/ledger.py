"""The ledger of delta in the cube: what was paid for, and what a reserve may pay.

A certificate is a guarantee at the share of delta that was set aside for the events
behind it before the results were seen. Another certificate, a larger delta or more
candidates cost more: what a declared reserve pays for stays a guarantee, the rest is an
estimate. (Whether what is added depended on the results, nobody but the user can know:
A5 stays declared.)
"""

from collections.abc import Iterable
from dataclasses import replace

import xarray as xr

from dsel import names
from dsel.bounds.events import CERTIFICATE_EVENTS, DeltaLedger, ReadOut, read_out
from dsel.bounds.reading import WHOLE_POOL, Reading, reading_of
from dsel.criteria import get_criterion
from dsel.results import Assumption
from dsel.results.choice import candidate_labels
from dsel.results.cube import assumptions_of, with_assumptions
from dsel.results.schema import DECLARED, VIOLATED
from dsel.results.spending import Spending, spending_of, with_spending

ROUNDING = 1e-12


def open_ledger(
    certificate: str,
    *,
    delta: float,
    label_share: float,
    reserve: float = 0.0,
    reading: Reading = WHOLE_POOL,
) -> DeltaLedger:
    """Return the ledger of a search: its certificate paid, the reserve beside it."""
    ledger = DeltaLedger(delta + reserve, reserve)
    if not get_criterion(certificate).is_guarantee:
        return ledger
    return ledger.read(_read(certificate, delta, label_share, reading))


def ledger_of(results: xr.Dataset) -> DeltaLedger | None:
    """Return the ledger of a cube; None where no delta was declared."""
    spending = spending_of(results)
    if spending is None:
        return None
    reads = tuple(ReadOut(name, dict(events)) for name, events in spending.read_outs)
    return DeltaLedger(spending.declared, spending.reserve, reads)


def with_ledger(results: xr.Dataset, ledger: DeltaLedger) -> xr.Dataset:
    """Return the cube with this ledger."""
    reads = tuple(
        (read.certificate, tuple(read.spends.items())) for read in ledger.read_outs
    )
    return with_spending(results, Spending(ledger.delta, ledger.reserve, reads))


def objection(
    ledger: DeltaLedger | None,
    certificate: str,
    *,
    delta: float,
    label_share: float,
    reading: Reading = WHOLE_POOL,
) -> str:
    """Return why a certificate is not paid for; empty where it is."""
    if ledger is None:
        return ""
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

    Parameters
    ----------
    results
        Cube of a search that was planned with a ``reserve``.
    certificate
        Name of a criterion that is a guarantee.
    delta
        Probability with which it may fail. Events that are paid for already cost
        nothing again.
    label_share
        Part of `delta` for the labeled term; by default that of the search.

    Returns
    -------
    xarray.Dataset
        From which `select` certifies the certificate at this `delta`.

    Raises
    ------
    ValueError
        Where the reserve does not cover it.
    """
    ledger = ledger_of(results)
    if ledger is None:
        raise ValueError("`results` has no delta to spend; plan a search with one.")
    share = label_share or float(results[names.LABEL_SHARE].values[0])
    n_looks = int(results.get(names.N_LOOKS, 1))
    read = _read(certificate, delta, share, reading_of(n_looks))
    due = _due(ledger, read)
    if due > ledger.remaining + ROUNDING:
        ledger = ledger.draw(due - ledger.remaining)
    paid = with_ledger(results, ledger.read(read))
    reason = f"{certificate} was added after the run and paid from its reserve"
    return with_assumptions(paid, _noted(assumptions_of(paid), DECLARED, reason))


def carry_over(results: xr.Dataset, earlier: xr.Dataset) -> xr.Dataset:
    """Return a cube whose ledger goes on from that of an earlier one of the same data.

    New candidates, another certificate or another delta are paid from the earlier
    reserve; where that is too small the cube's A5 is violated.

    Parameters
    ----------
    results
        The new cube, with the ledger of its own plan.
    earlier
        What was in the same store, and may have been seen.
    """
    before, wanted = ledger_of(earlier), ledger_of(results)
    if before is None or wanted is None or not wanted.read_outs:
        return results
    labels = candidate_labels(results)
    n_added = len(set(labels) - set(candidate_labels(earlier)))
    read = wanted.read_outs[0]
    if n_added == 0 and _due(before, read) <= ROUNDING:
        return with_ledger(results, before)
    # Each candidate that is new costs its own share of all events.
    due = _due(before, read) + n_added * read.delta / len(labels)
    if due > before.remaining + before.reserve + ROUNDING:
        reason = (
            f"{n_added} candidates or another certificate were added after results "
            f"were seen: that costs {due:g} of delta, of which "
            f"{before.remaining + before.reserve:g} is left"
        )
        changed = _noted(assumptions_of(results), VIOLATED, reason)
        return with_assumptions(results, changed)
    reason = f"{n_added} candidates were added later, paid from the declared reserve"
    paid = with_ledger(results, _charged(before, read, due))
    return with_assumptions(paid, _noted(assumptions_of(paid), DECLARED, reason))


def _charged(ledger: DeltaLedger, read: ReadOut, due: float) -> DeltaLedger:
    """Charge `due` to the events of a read-out, in the proportion of its shares."""
    if due > ledger.remaining:
        ledger = ledger.draw(min(ledger.reserve, due - ledger.remaining))
    spent = ledger.spent
    needed = {e: max(s, spent.get(e, 0.0)) for e, s in read.spends.items()}
    extra = due - sum(s - spent.get(e, 0.0) for e, s in needed.items())
    spends = {e: s + extra * read.spends[e] / read.delta for e, s in needed.items()}
    return ledger.read(ReadOut(read.certificate, spends))


def _read(
    certificate: str, delta: float, label_share: float, reading: Reading
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


def _noted(
    ledger: Iterable[Assumption], state: str, reason: str
) -> tuple[Assumption, ...]:
    """Return the assumptions with `reason` added to A5, which never gets better."""
    noted = []
    for each in ledger:
        if each.name != "A5":
            noted.append(each)
            continue
        worse = VIOLATED if VIOLATED in (each.state, state) else state
        both = "; ".join(filter(None, (each.reason, reason)))
        noted.append(replace(each, state=worse, reason=both))
    return tuple(noted)
