"""Which event each certificate rests on, and who has spent which share of delta.

A certificate holds outside an event of small probability. Two certificates that
rest on the same event, at the same share, are two read-outs of one statement: both
hold for one price. Certificates on different events must pay for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dsel import checks
from dsel.bounds.stopping import WHOLE_POOL, StoppingRule

_ROUNDING = 1e-12


class Event(StrEnum):
    """A statement that can fail; what its failure costs is its share of delta.

    Notes
    -----
    Guarantee: certificates resting on one event, at one share, fail together.
    Assumes: the share of each event is fixed before data are looked at.
    Source: the union bound.
    """

    FOLD_LIMITS = "fold_limits"
    """Every fold model's error is at most its limit, one limit for each fold."""
    FOLD_LIMITS_BELOW = "fold_limits_below"
    """Every fold model's error is at least its lower limit."""
    MERGED_FOLDS = "merged_folds"
    """The fold models' errors satisfy the geometric-mean constraint."""
    RANDOM_FOLD_DISAGREEMENT = "random_fold_disagreement"
    """The full model differs from randomly drawn fold models at most that often."""
    LEADERS_DISAGREEMENT = "leaders_disagreement"
    """The same for the candidates that lead on labeled rows: only they share delta."""
    BEST_FOLD_DISAGREEMENT = "best_fold_disagreement"
    """The full model differs from the best fold's model at most that often."""
    LEADER_DISAGREEMENT = "leader_disagreement"
    """The same for the one candidate that leads on labeled rows, at all of delta."""
    WORST_FOLD_DISAGREEMENT = "worst_fold_disagreement"
    """The same for the fold with the largest lower limit."""
    AVERAGED_DISAGREEMENT = "averaged_disagreement"
    """The mean fraction of fold models that differ from the full one is so small."""
    HELD_OUT_LIMIT = "held_out_limit"
    """The error of a model fixed before the held-out rows is at most its limit."""
    HELD_OUT_DISAGREEMENT = "held_out_disagreement"
    """The final model differs from that model at most that often."""
    OUTER_FOLD_LIMITS = "outer_fold_limits"
    """The error of each model that was chosen without a fold is at most its limit."""
    OUTER_DISAGREEMENT = "outer_disagreement"
    """The full model differs from the best of these at most that often."""
    VOTE_DISAGREEMENT = "vote_disagreement"
    """The vote of these differs from the best of them at most that often."""
    POOL_ERRORS = "pool_errors"
    """Every fold model errs on at most that many of the counted pool rows."""


def is_of_leaders(event: str) -> bool:
    """Whether the share of an event goes to whoever leads, not to each candidate."""
    leading = (Event.LEADER_DISAGREEMENT, Event.LEADERS_DISAGREEMENT)
    return event.partition(" ")[0] in leading or is_of_procedure(event)


def is_of_procedure(event: str) -> bool:
    """Whether an event is about what a whole selection hands over.

    Another set of candidates is another selection: once results were seen, it may have
    been made so that any combination of models is what it chooses.
    """
    return event in (
        Event.OUTER_FOLD_LIMITS,
        Event.OUTER_DISAGREEMENT,
        Event.VOTE_DISAGREEMENT,
    )


@dataclass(frozen=True)
class Basis:
    """The events behind a certificate; those of one term divide its share equally."""

    labeled: tuple[Event, ...]
    """Events of the label term."""
    pool: tuple[Event, ...] = ()
    """Events of the disagreement term; none where the label term has all of delta."""


_BOTH_SIDES = (Event.FOLD_LIMITS, Event.FOLD_LIMITS_BELOW)

CERTIFICATE_EVENTS: Mapping[str, Basis] = {
    "cv_bound": Basis((Event.FOLD_LIMITS,), (Event.RANDOM_FOLD_DISAGREEMENT,)),
    "cv_interval": Basis(_BOTH_SIDES, (Event.RANDOM_FOLD_DISAGREEMENT,)),
    "best_fold": Basis((Event.FOLD_LIMITS,), (Event.BEST_FOLD_DISAGREEMENT,)),
    "best_fold_model": Basis((Event.FOLD_LIMITS,)),
    "best_fold_interval": Basis(
        _BOTH_SIDES, (Event.BEST_FOLD_DISAGREEMENT, Event.WORST_FOLD_DISAGREEMENT)
    ),
    "best_fold_of_leader": Basis((Event.FOLD_LIMITS,), (Event.LEADER_DISAGREEMENT,)),
    "merged_folds": Basis((Event.MERGED_FOLDS,), (Event.RANDOM_FOLD_DISAGREEMENT,)),
    "leaders": Basis((Event.FOLD_LIMITS,), (Event.LEADERS_DISAGREEMENT,)),
    "averaged_disagreement": Basis(
        (Event.FOLD_LIMITS,), (Event.AVERAGED_DISAGREEMENT,)
    ),
    "holdout_bound": Basis((Event.HELD_OUT_LIMIT,)),
    "select_then_certify": Basis(
        (Event.HELD_OUT_LIMIT,), (Event.HELD_OUT_DISAGREEMENT,)
    ),
    "nested": Basis((Event.OUTER_FOLD_LIMITS,), (Event.OUTER_DISAGREEMENT,)),
    "nested_fold_model": Basis((Event.OUTER_FOLD_LIMITS,)),
    "nested_vote": Basis((Event.OUTER_FOLD_LIMITS,), (Event.VOTE_DISAGREEMENT,)),
    "transductive": Basis((Event.POOL_ERRORS,)),
}


@dataclass(frozen=True)
class ReadOut:
    """The events that a certificate rests on, and the share of delta of each."""

    certificate: str
    spends: Mapping[str, float]
    """Share of delta that each event behind it may fail with."""

    @property
    def delta(self) -> float:
        """Probability with which the certificate may fail."""
        return sum(self.spends.values())


def read_out(
    certificate: str,
    *,
    delta: float,
    label_share: float = 0.5,
    reading: StoppingRule = WHOLE_POOL,
) -> ReadOut:
    """Return what a certificate spends when it is read at `delta`.

    Parameters
    ----------
    certificate
        One of the names in ``CERTIFICATE_EVENTS``.
    delta
        Probability with which the certificate may fail, over all candidates together,
        in ``(0, 1)``.
    label_share
        Part of `delta` for the label term, in ``(0, 1)``.
    reading
        When reading the pool may stop. A limit that holds at several stages is another
        event than the limit on the whole pool.

    Returns
    -------
    ReadOut
        The events and their shares. A certificate of one event has all of delta in it.

    Raises
    ------
    ValueError
        Where the name is unknown or a probability lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: none of its own; it states which failures a certificate pays for.
    Assumes: shares fixed before data are looked at.
    Source: the union bound.

    Examples
    --------
    >>> read_out("cv_bound", delta=0.25).spends[Event.FOLD_LIMITS]
    0.125
    """
    name = checks.check_choice(certificate, "certificate", list(CERTIFICATE_EVENTS))
    total = checks.check_probability(delta, "delta")
    gamma = checks.check_probability(label_share, "label_share")
    basis = CERTIFICATE_EVENTS[name]
    # A certificate without a pool term spends all of delta on the labeled rows.
    if not basis.pool:
        gamma = 1.0
    spends = {str(each): gamma * total / len(basis.labeled) for each in basis.labeled}
    for each in basis.pool:
        spends[reading.event(each)] = (1.0 - gamma) * total / len(basis.pool)
    return ReadOut(name, spends)


@dataclass(frozen=True)
class DeltaLedger:
    """Which events have spent which share of delta; it is never changed in place.

    Examples
    --------
    >>> ledger = DeltaLedger(delta=0.05).read(read_out("cv_bound", delta=0.05))
    >>> ledger.remaining
    0.0
    >>> ledger.read(read_out("best_fold", delta=0.05))
    Traceback (most recent call last):
        ...
    ValueError: `best_fold` needs 0.025 more for best_fold_disagreement, but 0 of ...
    """

    delta: float
    """Total probability of failure."""
    reserve: float = 0.0
    """Part of it kept for what is declared later: more candidates, another pass."""
    read_outs: tuple[ReadOut, ...] = field(default=())

    def __post_init__(self) -> None:
        checks.check_probability(self.delta, "delta")
        if not 0.0 <= self.reserve < self.delta:
            raise ValueError(
                f"`reserve` must be in [0, {self.delta:g}), a part of `delta`, got "
                f"{self.reserve!r}."
            )

    @property
    def spent(self) -> Mapping[str, float]:
        """Largest share at which each event was read; equal events are paid once."""
        spent: dict[str, float] = {}
        for read in self.read_outs:
            for event, share in read.spends.items():
                # An event that holds at a share holds at every larger one: only the
                # largest is paid.
                spent[event] = max(share, spent.get(event, 0.0))
        return spent

    @property
    def remaining(self) -> float:
        """Part of delta that is neither spent nor in the reserve."""
        return max(0.0, self.delta - self.reserve - sum(self.spent.values()))

    def read(self, read: ReadOut) -> "DeltaLedger":
        """Return the ledger after another certificate was read, or raise.

        Raises
        ------
        ValueError
            Where the events behind it are not paid for and too little is left.
        """
        spent = self.spent
        due = {
            event: share - spent.get(event, 0.0)
            for event, share in read.spends.items()
            if share > spent.get(event, 0.0)
        }
        # Union bound: what all events may fail with together is at most delta.
        if sum(due.values()) > self.remaining + _ROUNDING * self.delta:
            raise ValueError(
                f"`{read.certificate}` needs {sum(due.values()):g} more for "
                f"{' and '.join(due)}, but {self.remaining:g} of delta {self.delta:g} "
                f"is left; certificates that rest on different events cannot share "
                f"delta: divide it among them in advance."
            )
        return DeltaLedger(self.delta, self.reserve, (*self.read_outs, read))

    def draw(self, amount: float) -> "DeltaLedger":
        """Return the ledger with part of the reserve released for use, or raise.

        Raises
        ------
        ValueError
            Where more is drawn than was declared as a reserve.
        """
        wanted = checks.check_positive(amount, "amount")
        if wanted > self.reserve * (1 + _ROUNDING):
            raise ValueError(
                f"`amount` must be at most the reserve, {self.reserve:g}, got "
                f"{wanted:g}; declare a larger `reserve` before "
                f"the first certificate is read."
            )
        return DeltaLedger(self.delta, max(0.0, self.reserve - wanted), self.read_outs)
