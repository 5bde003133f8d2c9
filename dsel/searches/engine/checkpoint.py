"""Counts to the journal and back: one record for each finished task.

A record names its candidates by their keys, which say all that their counts depend on
beside the fingerprint, and the training or the rows of the span. A larger grid over the
same data therefore finds its old cells, and what was written is never counted again.

What failed is written apart, and tried again by the next run: a disk may have been
full. A bound may be read all the same, because delta is divided among all candidates,
those that failed too, before any is fitted; which of them can be fitted in the end is
no reading of the pool. Only fits that ran out of time are not tried again with as
little of it, and nothing is where the place cannot be written to.

Each finished task also gives one log line, which people and programs can read: lines go
to the logger ``dsel.searches`` as ``event name=value ...``; a handler that wants fields
finds them in the record's attribute `dsel`.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.models.family import FIT_FAILED
from dsel.results.journal import Journal
from dsel.searches.engine.count_task import SpanJob, SpanRecord
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fit_task import FitRecord, Group
from dsel.searches.engine.scheme import Scheme

FIT = "fit/"
SPAN = "span/"
LIMIT = "limit"
FAILED = "/failed"


@dataclass(frozen=True)
class Checkpoint:
    """Writes what tasks counted, and reads it back into a table."""

    journal: Journal | None
    """Where to; None keeps nothing."""
    keys: Mapping[int, str]
    """Key of every candidate by its number."""
    scheme: Scheme
    """Trainings and comparisons of the plan."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; those that took longer once may now have more."""

    def fit(self, record: FitRecord) -> None:
        """Write the counts of one fit job, and apart from them what failed."""
        failed = record.counts.status[:, 0] == FIT_FAILED
        late = f"/{LIMIT}-{self.fit_timeout}" if record.is_late else ""
        self._append_fits(record, np.flatnonzero(~failed), "")
        self._append_fits(record, np.flatnonzero(failed), late or FAILED)

    def _append_fits(
        self, record: FitRecord, mine: NDArray[np.intp], suffix: str
    ) -> None:
        """Write the fits at some places of a record that ended alike."""
        if self.journal is None or not len(mine):
            return
        job, counts = record.job, record.counts
        training = self.scheme.trainings[job.training]
        numbers = [job.candidates[place] for place in mine]
        keys = [self.keys[number] for number in numbers]
        limit = {LIMIT: self.fit_timeout} if record.is_late else {}
        self.journal.append(
            f"{FIT}{_joined(keys)}/{training.name}{suffix}",
            {
                "training": training.name,
                "keys": keys,
                "test_errors": counts.test_errors[mine, 0],
                "train_errors": counts.train_errors[mine, 0],
                "failed": counts.status[mine, 0] == FIT_FAILED,
                "seconds": counts.seconds[mine, 0],
                "messages": [
                    counts.messages.get((number, training.number), "")
                    for number in numbers
                ],
                **limit,
            },
        )

    def span(self, record: SpanRecord) -> None:
        """Write the counts of one span of the pool."""
        if self.journal is None:
            return
        job = record.job
        mine = [self.keys[number] for number in job.candidates]
        counts: dict[str, Any] = {}
        compared = self.scheme.all_comparisons(np.zeros(0, np.int64))
        for comparison, found, rows in zip(
            compared, record.differences, record.rows, strict=True
        ):
            counts[f"differences/{comparison.variable}"] = found
            counts[f"rows/{comparison.variable}"] = rows
        place = {"stage": job.stage, "start": job.start, "stop": job.stop, "keys": mine}
        self.journal.append(
            f"{SPAN}{job.stage}-{job.start}-{job.stop}/{_joined(mine)}",
            {**place, "seconds": record.seconds, **counts},
        )

    def replay(self, table: CountTable) -> None:
        """Put what an earlier run counted onto the table."""
        if self.journal is None:
            return
        numbers = {key: number for number, key in self.keys.items()}
        for key, record in self.journal.read().items():
            if key.startswith(FIT):
                self._replay_fit(table, record, numbers)
            elif key.startswith(SPAN):
                self._replay_span(table, record, numbers)

    def check(self) -> None:
        """Raise where what was counted could not be written."""
        if self.journal is not None:
            self.journal.check()

    def flush(self) -> None:
        """Write what is not written yet."""
        if self.journal is not None:
            self.journal.flush()

    def _replay_fit(
        self, table: CountTable, record: Any, numbers: dict[str, int]
    ) -> None:
        trainings = {each.name: each.number for each in self.scheme.trainings}
        training = trainings.get(record["training"])
        if training is None:
            return
        for i, key in enumerate(record["keys"]):
            if key not in numbers:
                continue
            if record["failed"][i] and self._is_tried_again(record):
                continue
            number = numbers[key]
            errors = int(record["test_errors"][i]), int(record["train_errors"][i])
            failed, seconds = bool(record["failed"][i]), float(record["seconds"][i])
            table.set_fit(number, training, errors, failed, seconds)
            table.messages[number, training] = record["messages"][i]

    def _is_tried_again(self, record: Any) -> bool:
        """Whether fits that failed may end otherwise now, and that can be kept."""
        limit = record.get(LIMIT)
        has_time = (
            limit is None or self.fit_timeout is None or self.fit_timeout > float(limit)
        )
        can_keep = self.journal is not None and not self.journal.is_read_only
        return has_time and can_keep

    def _replay_span(
        self, table: CountTable, record: Any, numbers: dict[str, int]
    ) -> None:
        start, stop = int(record["start"]), int(record["stop"])
        stage = int(record.get("stage", 0))
        variables = [comparison.variable for comparison in table.compared]
        known = [i for i, key in enumerate(record["keys"]) if key in numbers]
        # An earlier run may have compared less: its spans are counted anew.
        compared = all(f"differences/{variable}" in record for variable in variables)
        if not known or not compared or (stage, start, stop) not in table.span_number:
            return
        mine = tuple(numbers[record["keys"][i]] for i in known)
        job = SpanJob(start, stop, mine, stage)
        differences = tuple(
            np.asarray(record[f"differences/{variable}"])[known]
            for variable in variables
        )
        rows = tuple(np.asarray(record[f"rows/{variable}"]) for variable in variables)
        table.add_span(SpanRecord(job, differences, rows, float(record["seconds"])))


def _joined(keys: Iterable[str]) -> str:
    """Return one short key of several."""
    return blake2b(".".join(keys).encode(), digest_size=12).hexdigest()


def candidate_keys(groups: Iterable[Group]) -> dict[int, str]:
    """Return the key of every candidate by its number."""
    return {
        candidate.number: key
        for group in groups
        for candidate, key in zip(group.candidates, group.keys, strict=True)
    }


logger: Final = logging.getLogger("dsel.searches")


def log_fit(scheme: Scheme, record: FitRecord) -> None:
    """Say which candidates were fitted on which training, in what time."""
    _log(
        logging.INFO,
        "fit",
        candidates=",".join(map(str, record.job.candidates)),
        training=scheme.trainings[record.job.training].name,
        seconds=round(float(record.counts.seconds.sum()), 6),
        bytes=record.nbytes,
        failed=len(record.counts.messages),
    )


def log_span(record: SpanRecord, nbytes: int) -> None:
    """Say which rows of the pool, of so many bytes, were compared for whom."""
    job = record.job
    _log(
        logging.INFO,
        "span",
        rows=f"{job.start}-{job.stop}",
        candidates=",".join(map(str, job.candidates)),
        seconds=round(record.seconds, 6),
        bytes=nbytes,
    )


def log_retry(what: str, reason: BaseException) -> None:
    """Say that a task is submitted again, and what became of it."""
    _log(logging.WARNING, "retry", task=what, reason=type(reason).__name__)


def _log(level: int, event: str, **fields: Any) -> None:
    if logger.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in fields.items())
        extra = {"dsel": {"event": event, **fields}}
        logger.log(level, "%s %s", event, text, extra=extra)
