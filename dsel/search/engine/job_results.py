"""Results of jobs, which go to the table and the store.

Models stay where they were fitted, except in the last step of a nested search: there a
model comes back in one message with its counts, so that the deployed object is the one
that was counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any, cast

from dsel.data.splits import Split
from dsel.families.family import (
    FitKey,
    FittedGroup,
)
from dsel.losses.base import Counts
from dsel.results.fit_messages import FitMessage, FitProblem, message_of_text
from dsel.results.records import from_record, to_record
from dsel.search.design.drawn_rows import DrawnRows
from dsel.search.engine.jobs import CountJob, FitJob


class FitStatus(IntEnum):
    """State of a fit; the table has one for each candidate and split."""

    OPEN = 0
    SUBMITTED = 1
    DONE = 2
    FAILED = 3


@dataclass(frozen=True)
class FitResult:
    """Result of one fit of one candidate."""

    status: FitStatus
    """`DONE` or `FAILED`."""
    seconds: float
    errors: tuple[int, ...] = ()
    """Errors on each of two parts of the split's test rows, as in `FitCounts`; -1 for a
    part that it does not have. Empty for a failed fit."""
    scores: tuple[float, ...] = ()
    """The loss of the plan on each part of the split, one number or two."""
    message: FitMessage | None = None
    """The problem of the fit; None without one."""
    token: str = ""
    """Identifies the model among those of other fits; "" if fits repeat exactly, or the
    model is not needed later."""

    def to_record(self) -> dict[str, Any]:
        """Return the record for the store."""
        return cast(dict[str, Any], to_record(self))

    @classmethod
    def from_record(cls, record: object) -> "FitResult":
        """Invert `to_record`; TypeError or ValueError for anything else."""
        return from_record(cls, record)

    @classmethod
    def upgrade_record(cls, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of 0.2, whose message was a text, with the fields of now."""
        text = record.get("message")
        if not isinstance(text, str):
            return record
        has_failed = record.get("status") == FitStatus.FAILED.name
        message = message_of_text(text, has_failed=has_failed)
        return {**record, "message": None if message is None else to_record(message)}

    @classmethod
    def of_failure(cls, why: str) -> "FitResult":
        """Return the result of a fit that was given up."""
        message = FitMessage(FitProblem.FAILED, why)
        return cls(FitStatus.FAILED, float("nan"), message=message)

    def predicts_none_of(self, split: Split) -> bool:
        """Return whether `predict` of the model raised on all test rows of its split.

        Then all of them count as errors. If it raised on one of two parts only, the
        model has predicted the other one.
        """
        if self.message is None or self.message.problem is not FitProblem.UNPREDICTED:
            return False
        # A split without a second part has -1 there, and no rows to compare it with.
        parts = zip(self.errors, split.test_parts, strict=False)
        return all(n_errors == len(rows) for n_errors, rows in parts if len(rows))


@dataclass(frozen=True)
class CountResult:
    """Counts of one member in one slice of the pool."""

    start: int
    stop: int
    seconds: float
    token: str
    """Token of the compared models."""
    rows: Mapping[str, tuple[int, ...]]
    """Rows of each bin, by variable."""
    counts: Mapping[str, tuple[int, ...]]
    """Count of each bin, by variable."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    """Rows of the slice that may be queried, in the last step of a search with
    queries."""

    def to_record(self) -> dict[str, Any]:
        """Return the record for the store."""
        return cast(dict[str, Any], to_record(self))

    @classmethod
    def from_record(cls, record: object) -> "CountResult":
        """Invert `to_record`; TypeError or ValueError for anything else."""
        return from_record(cls, record)


@dataclass(frozen=True)
class KeptModels:
    """Fitted models, with a token that identifies each."""

    models: FittedGroup
    tokens: Mapping[FitKey, str]
    """Tokens of the models; they are made where the model was fitted, since a
    transferred model may have another pickle."""


Kept = dict[FitJob, KeptModels]
"""Kept models by the first job of the call that fitted them."""


@dataclass(frozen=True)
class FittedJob:
    """Result of a `FitJob`."""

    job: FitJob
    results: tuple[FitResult, ...]
    """Result of each candidate."""
    nbytes: int = 0
    """Bytes of the models, if they are kept."""
    models: FittedGroup | None = None
    """The models themselves, with `Keep.IN_RESULT`."""
    counts: tuple[Counts, ...] = ()
    """Counts of the plan's statistics on the held-out rows, with `Keep.IN_RESULT`."""


@dataclass(frozen=True)
class CountedJob:
    """Result of a `CountJob`."""

    job: CountJob
    results: tuple[CountResult, ...]
    """Result of each member."""


def join_tokens(tokens: dict[int, str]) -> str:
    """Return the tokens of a candidate's models, by split, as one text."""
    # Models that repeat exactly have no tokens, and their counts survive a new fit.
    if not any(tokens.values()):
        return ""
    text = ".".join(f"{split}:{tokens[split]}" for split in sorted(tokens))
    return blake2b(text.encode(), digest_size=12).hexdigest()
