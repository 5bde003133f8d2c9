"""Counts to the journal and back: one record for each finished task.

A record names its candidates by their keys and the split, or the rows of the span. A
key is a hash of all that a candidate's counts depend on besides the fingerprint. A
larger grid over the same data therefore finds its old cells: what was written is never
counted again.

Failures are written as records of their own, and the next run tries these fits again,
since the cause may be gone (a full disk). Bounds stay valid, because delta is divided
among all candidates before any is fitted, those that fail included, and whether a fit
fails does not depend on the pool. Not tried again are failures in a store that cannot
be written to.

Each finished task also writes one log line, ``event name=value ...``, to the logger
``dsel.searches``; the same fields are in the log record's attribute `dsel`.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel.families.family import FIT_FAILED
from dsel.searches.checkpoint import Checkpoint
from dsel.searches.engine.count_task import SpanJob, SpanRecord
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fit_task import FitRecord, Group
from dsel.searches.engine.scheme import Scheme

FIT = "fit/"
SPAN = "span/"
FAILED = "/failed"


@dataclass(frozen=True)
class CountCheckpoint:
    """Writes what tasks counted, and reads it back into a table."""

    store: Checkpoint
    keys: Mapping[int, str]
    """Key of every candidate by its number."""
    scheme: Scheme

    def fit(self, record: FitRecord) -> None:
        """Write the counts of one fit job, and its failures as another record."""
        failed = record.counts.status[:, 0] == FIT_FAILED
        self._append_fits(record, np.flatnonzero(~failed), "")
        self._append_fits(record, np.flatnonzero(failed), FAILED)

    def _append_fits(
        self, record: FitRecord, mine: NDArray[np.intp], suffix: str
    ) -> None:
        """Write the fits at some places of a record that ended alike."""
        if not len(mine):
            return
        job, counts = record.job, record.counts
        split = self.scheme.splits[job.split]
        numbers = [job.candidates[place] for place in mine]
        keys = [self.keys[number] for number in numbers]
        self.store.append(
            f"{FIT}{_joined(keys)}/{split.name}{suffix}",
            {
                "split": split.name,
                "keys": keys,
                "test_errors": counts.test_errors[mine, 0],
                "train_errors": counts.train_errors[mine, 0],
                "failed": counts.status[mine, 0] == FIT_FAILED,
                "seconds": counts.seconds[mine, 0],
                "messages": [
                    counts.messages.get((number, split.number), "")
                    for number in numbers
                ],
            },
        )

    def span(self, record: SpanRecord) -> None:
        """Write the counts of one span of the pool."""
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
        self.store.append(
            f"{SPAN}{job.stage}-{job.start}-{job.stop}/{_joined(mine)}",
            {**place, "seconds": record.seconds, **counts},
        )

    def replay(self, table: CountTable) -> None:
        """Write what earlier runs counted into the table."""
        numbers = {key: number for number, key in self.keys.items()}
        for key, record in self.store.read().items():
            if key.startswith(FIT):
                self._replay_fit(table, record, numbers)
            elif key.startswith(SPAN):
                self._replay_span(table, record, numbers)

    def _replay_fit(
        self, table: CountTable, record: Any, numbers: dict[str, int]
    ) -> None:
        splits = {each.name: each.number for each in self.scheme.splits}
        split = splits.get(record["split"])
        if split is None:
            return
        for i, key in enumerate(record["keys"]):
            if key not in numbers:
                continue
            if record["failed"][i] and not self.store.is_read_only:
                continue  # what failed may succeed now
            errors = int(record["test_errors"][i]), int(record["train_errors"][i])
            failed, seconds = bool(record["failed"][i]), float(record["seconds"][i])
            if not failed and self.scheme.splits[split].counts_others and errors[1] < 0:
                continue  # an earlier run did not count them: the fit is done again
            number = numbers[key]
            table.set_fit(number, split, errors, failed, seconds)
            table.messages[number, split] = record["messages"][i]

    def _replay_span(
        self, table: CountTable, record: Any, numbers: dict[str, int]
    ) -> None:
        start, stop = int(record["start"]), int(record["stop"])
        stage = int(record.get("stage", 0))
        variables = [comparison.variable for comparison in table.compared]
        known = [i for i, key in enumerate(record["keys"]) if key in numbers]
        # An earlier run may have made fewer comparisons: its spans are counted again.
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
    """Log which candidates were fitted on which split, in what time."""
    _log(
        logging.INFO,
        "fit",
        candidates=",".join(map(str, record.job.candidates)),
        split=scheme.splits[record.job.split].name,
        seconds=round(float(record.counts.seconds.sum()), 6),
        bytes=record.nbytes,
        failed=len(record.counts.messages),
    )


def log_span(record: SpanRecord, nbytes: int) -> None:
    """Log for which candidates models were compared on which rows of the pool."""
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
    """Log that a task is submitted again, and how it failed."""
    _log(logging.WARNING, "retry", task=what, reason=type(reason).__name__)


def _log(level: int, event: str, **fields: Any) -> None:
    if logger.isEnabledFor(level):
        text = " ".join(f"{name}={value}" for name, value in fields.items())
        extra = {"dsel": {"event": event, **fields}}
        logger.log(level, "%s %s", event, text, extra=extra)
