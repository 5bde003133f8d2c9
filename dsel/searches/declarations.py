"""What each run of a place declared before it counted anything, and what that costs.

The journal of a place keeps one declaration for each run: its candidates and what
they may spend of delta, event by event. All else (what is paid, what is left, which run
asked for too much) is computed from their list, so that no cube is kept for it.

Why what is certified in a place fails with probability at most its budget, the delta
and reserve of its first run: let E(j, e, s) be the event that limit e of candidate j
does not hold at share s. It has probability at most s, and lies in E(j, e, t) for every
t >= s. A run is paid for where every E(j, e, s) that its certificate rests on has
s <= paid[e][j], and paid sums to at most the budget. A certificate of any run that is
paid for then fails only if some E(j, e, paid[e][j]) happens, whoever was chosen, and in
whatever order, before or after other runs: so a run that was paid for stays so, also
when it is run again after one that was not.

Two things would break this if shares were fixed by the results. A *raise* of candidates
that were counted here can single out whoever looks best, which is as likely to fail as
all of them at that share: so all that were ever seen are paid up to it, and the choice
among raises of one event costs its largest share only, since these events are nested.
A *leader's* share belongs to a list of candidates (of equal ones the first leads), and
who leads is a function of labeled rows only if nobody of the list was seen when it was
first declared: else any of those seen may have been made the leader. What a *nested*
search hands over belongs to its list alike, but then any combination of models may
have been made the choice: no delta pays for that. (Of fits that fail now and then
`ledger.with_first_leaders` takes care.) With a prior the shares of candidates
differ; a raise of some then costs all that were seen the largest share among those.
That what is new, a candidate or a kind of certificate, was not chosen by the results
cannot be seen here, and stays declared (A5).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from dsel.bounds.events import is_of_leaders, is_of_procedure
from dsel.results.journal import Journal
from dsel.results.records import Record

PREFIX: Final = "declaration/"
COUNTS: Final = ("fit/", "span/")
"""How the keys of records begin that hold counts of candidates."""
CHOSEN: Final = "chosen-"
"""How the key of what a nested search chose begins: declared with its candidates."""
ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Declaration:
    """What a run may read, and what all its candidates together may spend on it."""

    candidates: tuple[str, ...]
    certificate: str
    criterion: str
    delta: float
    reserve: float
    spends: Mapping[str, float]
    """Share of delta of each event; none where the run only estimates."""
    prior: tuple[float, ...] = ()
    """Part of each share that each candidate has; none where the parts are equal."""

    @property
    def token(self) -> str:
        """What tells it from others: also the order of the candidates, see `whole`."""
        rest = (self.certificate, self.criterion, self.delta, self.reserve)
        text = repr((self.whole, *rest, sorted(self.spends.items())))
        parts = (
            sorted(zip(self.candidates, self.prior, strict=True)) if self.prior else ""
        )
        return _digest(f"{text}{parts}")

    @property
    def whole(self) -> str:
        """Name of all candidates in their order, which tells equal leaders apart."""
        return _digest(" ".join(self.candidates))

    def shares(self, event: str) -> dict[str, float]:
        """Return what each candidate has of an event; of leaders any may have all."""
        whole = self.spends[event]
        if is_of_leaders(event):
            return dict.fromkeys(self.candidates, whole)
        if not self.prior:
            return dict.fromkeys(self.candidates, whole / len(self.candidates))
        shares: dict[str, float] = {}
        for key, part in zip(self.candidates, self.prior, strict=True):
            shares[key] = max(part * whole, shares.get(key, 0.0))
        return shares


@dataclass(frozen=True)
class Verdict:
    """Whether a run was paid for, by the declarations before it."""

    number: int
    """Of the run in its place, from 1."""
    when: str
    first_when: str
    budget: float
    """Delta and reserve of the first run."""
    reserve: float
    """Its reserve alone."""
    left: float
    """What was left of the budget when this run was declared."""
    cost: float
    """What it costs beyond what was paid already."""
    new: frozenset[str]
    """Its candidates that no run had declared before."""
    raised: frozenset[str]
    """Those that were seen, and were not paid for at their new shares."""
    n_seen: int
    """Candidates that were seen before."""
    lost: str = ""
    """Why the list of declarations before it is not known to be whole."""

    @property
    def is_paid(self) -> bool:
        """Whether its shares are part of the budget."""
        return not self.lost and self.cost <= self.left + ROUNDING


@dataclass
class Account:
    """Declarations added up, one after the other."""

    budget: float = 0.0
    spent: float = 0.0
    paid: dict[str, dict[str, float]] = field(default_factory=dict)
    """Largest share by event, then by candidate, or by all candidates of a run."""
    seen: set[str] = field(default_factory=set)
    """Candidates that any run declared, paid for or not."""
    fresh_sets: set[str] = field(default_factory=set)
    """All candidates of a run, none of whom was seen when they were declared."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    declared: dict[str, Declaration] = field(default_factory=dict)
    reserve: float = 0.0
    first_when: str = ""
    lost: str = ""

    def add(self, key: str, record: Record, *, is_alone: bool = True) -> None:
        """Take the next declaration: pay for it if what is left covers it.

        Of those with one number neither knew of the other when it was declared.
        """
        run, number = _from_record(record), int(record["number"])
        if not self.verdicts:
            self.budget = run.delta + run.reserve
            self.reserve, self.first_when = run.reserve, str(record["when"])
        if not self.lost and not is_alone:
            self.lost = "two runs declared themselves there at the same moment"
        if not self.lost and number != len(self.verdicts):
            self.lost = (
                "a declaration of an earlier run may be missing in the damaged journal"
            )
        charges = {event: self._charges(run, event) for event in run.spends}
        left = self.budget - self.spent
        verdict = Verdict(
            number + 1,
            str(record["when"]),
            self.first_when,
            self.budget,
            self.reserve,
            left,
            sum(self._due(event, each) for event, each in charges.items()),
            frozenset(set(run.candidates) - self.seen),
            frozenset(set().union(*charges.values()) & set(run.candidates) & self.seen),
            len(self.seen),
            self.lost,
        )
        self.verdicts[key], self.declared[key] = verdict, run
        if verdict.is_paid:
            self.spent += verdict.cost
            for event, each in charges.items():
                self.paid.setdefault(event, {}).update(each)
        if not self.seen & set(run.candidates):
            self.fresh_sets.add(run.whole)
        self.seen |= set(run.candidates)

    def add_counts(self, keys: Iterable[str]) -> None:
        """Take what was counted: of no candidate that was not declared."""
        unknown = {key for key in keys if not key.startswith(CHOSEN)} - self.seen
        if unknown and not self.lost:
            self.lost = (
                f"{len(unknown)} candidates were counted there under a declaration "
                f"that is missing: an older dsel wrote none, or its journal is damaged"
            )

    def affords(self, run: Declaration, event: str) -> float:
        """Return what all candidates of a run may spend on an event."""
        paid = self.paid.get(event, {})
        each = min(paid.get(key, 0.0) for key in run.candidates)
        if is_of_leaders(event):
            return max(each, paid.get(run.whole, 0.0))
        # Its own sum, where it has no more: n times a n-th is not always the whole.
        own = run.shares(event) if event in run.spends else {}
        if each and any(paid[key] <= share for key, share in own.items()):
            return run.spends[event]
        parts = run.prior or (1.0 / len(run.candidates),) * len(run.candidates)
        pairs = zip(run.candidates, parts, strict=True)
        return min(paid.get(key, 0.0) / part for key, part in pairs)

    def _charges(self, run: Declaration, event: str) -> dict[str, float]:
        """Return who has to be paid up to which share: candidates, or all of a run."""
        shares, paid = run.shares(event), self.paid.get(event, {})
        mine, whole = set(run.candidates), run.whole
        short = {k for k, s in shares.items() if paid.get(k, 0.0) < s - ROUNDING}
        most = max(shares.values())
        if not short or paid.get(whole, 0.0) >= most - ROUNDING:
            return {}
        is_fresh = whole in self.fresh_sets or not mine & self.seen
        if is_of_leaders(event) and is_fresh:
            return {whole: most}
        if is_of_procedure(event):
            return {whole: 1.0}  # the whole of any delta: nothing pays for it
        due: dict[str, float] = {}
        if raised := short & self.seen:
            due |= dict.fromkeys(self.seen, max(shares[key] for key in raised))
        if new := short - self.seen:
            due |= (
                {whole: most} if is_of_leaders(event) else {k: shares[k] for k in new}
            )
        return {key: share for key, share in due.items() if paid.get(key, 0.0) < share}

    def _due(self, event: str, charges: Mapping[str, float]) -> float:
        paid = self.paid.get(event, {})
        return sum(share - paid.get(key, 0.0) for key, share in charges.items())


def declare(journal: Journal, run: Declaration) -> str:
    """Write what a run may read, unless it stands there; return its key.

    Raises OSError where it cannot be written: then nothing may be counted.
    """
    key, records = PREFIX + run.token, journal.read()
    if key not in records:
        number = sum(map(_declares, records))
        # What is damaged may have held a declaration: a number is left out for it.
        journal.append(key, _record(run, number + journal.n_damaged))
        journal.flush()
        # Of two runs that write at the same moment at least one now sees the other.
        journal.refresh()
    return key


def account_of(records: Mapping[str, Record]) -> Account:
    """Return what the declarations of a journal come to, in the order of writing."""
    account = Account()
    numbers = Counter(
        int(record["number"]) for key, record in records.items() if _declares(key)
    )
    for key, record in records.items():
        if _declares(key):
            account.add(key, record, is_alone=numbers[int(record["number"])] == 1)
        elif key.startswith(COUNTS):
            account.add_counts(record["keys"])
    return account


def _declares(key: str) -> bool:
    return key.startswith(PREFIX)


def _record(run: Declaration, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "candidates": list(run.candidates),
        "certificate": run.certificate,
        "criterion": run.criterion,
        "delta": run.delta,
        "reserve": run.reserve,
        "events": list(run.spends),
        "shares": np.array(list(run.spends.values()), dtype=np.float64),
        "prior": np.array(run.prior, dtype=np.float64),
    }


def _from_record(record: Record) -> Declaration:
    shares = map(float, record["shares"])
    return Declaration(
        tuple(record["candidates"]),
        str(record["certificate"]),
        str(record["criterion"]),
        float(record["delta"]),
        float(record["reserve"]),
        dict(zip(record["events"], shares, strict=True)),
        tuple(map(float, record.get("prior", ()))),
    )


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
