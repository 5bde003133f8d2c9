"""Board to journal and back: one record for each finished task."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dsel.models.base import FIT_FAILED
from dsel.searches.board import Board
from dsel.searches.scheme import Scheme
from dsel.searches.tasks import FitRecord, Group, SpanJob, SpanRecord

FLUSH_SECONDS = 0.8  # what is finished is on disk within a second

Record = Mapping[str, Any]


class RecordStore(Protocol):
    """Where records are kept; `dsel.results` has the one on disk."""

    def read(self) -> Mapping[str, Record]:
        """Return all records by key."""

    def append(self, key: str, record: Record) -> None:
        """Take one record; it is on disk after the next flush."""

    def flush(self) -> None:
        """Write what was appended since the last flush, whole or not at all."""


@dataclass
class Journaling:
    """Writes what tasks counted, and reads it back into a board."""

    store: RecordStore | None
    """Where to; None keeps nothing."""
    run_id: str
    """Tells this run's task names from those of others."""
    flushed: float = field(default_factory=time.monotonic)

    def fit(self, group: Group, scheme: Scheme, record: FitRecord) -> None:
        """Write the counts of one fit job."""
        if self.store is None:
            return
        counts, n = record.counts, record.job.n_candidates
        training = scheme.trainings[record.job.training].name
        messages = [
            counts.messages.get((c.number, record.job.training), "")
            for c in group.candidates[:n]
        ]
        self.store.append(
            f"fit/{group.paths[n - 1]}/{training}",
            {
                "training": training,
                "paths": list(group.paths[:n]),
                "test_errors": counts.test_errors[:, 0],
                "train_errors": counts.train_errors[:, 0],
                "failed": (counts.status[:, 0] == FIT_FAILED).astype(np.int64),
                "seconds": counts.seconds[:, 0],
                "messages": messages,
            },
        )

    def span(self, board: Board, record: SpanRecord) -> None:
        """Write the counts of one span of the pool."""
        if self.store is None:
            return
        job, paths = record.job, paths_of(board.groups)
        mine = [paths[number] for number in job.candidates]
        variables = [c.variable for c in board.scheme.comparisons]
        counts = {
            f"differences/{name}": found
            for name, found in zip(variables, record.differences, strict=True)
        }
        rows = {
            f"rows/{name}": found
            for name, found in zip(variables, record.rows, strict=True)
        }
        self.store.append(
            f"span/{job.start}-{job.stop}/{'.'.join(mine)}",
            {
                "start": job.start,
                "stop": job.stop,
                "paths": mine,
                "seconds": record.seconds,
                **counts,
                **rows,
            },
        )

    def replay(self, board: Board) -> int:
        """Put what an earlier run counted onto the board; return the records used."""
        if self.store is None:
            return 0
        numbers = {path: number for number, path in paths_of(board.groups).items()}
        used = 0
        for key, record in self.store.read().items():
            if key.startswith("fit/"):
                used += _replay_fit(board, record, numbers)
            elif key.startswith("span/"):
                used += _replay_span(board, record, numbers)
        return used

    def flush_if_due(self) -> None:
        """Write if something may have waited long enough."""
        if time.monotonic() - self.flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet."""
        if self.store is not None:
            self.store.flush()
        self.flushed = time.monotonic()


def paths_of(groups: Iterable[Group]) -> dict[int, str]:
    """Return the path of every candidate by its number."""
    return {
        candidate.number: path
        for group in groups
        for candidate, path in zip(group.candidates, group.paths, strict=True)
    }


def _replay_fit(board: Board, record: Record, numbers: Mapping[str, int]) -> int:
    names = {training.name: training.number for training in board.scheme.trainings}
    training = names.get(str(record["training"]))
    if training is None:
        return 0
    found = [
        (i, numbers[str(p)]) for i, p in enumerate(record["paths"]) if p in numbers
    ]
    for i, number in found:
        errors = int(record["test_errors"][i]), int(record["train_errors"][i])
        seconds = float(record["seconds"][i])
        failed = bool(record["failed"][i])
        board.set_fit(number, training, errors, failed, seconds)
        message = str(record["messages"][i])
        if message:
            name = board.scheme.trainings[training].name
            board.messages.setdefault(number, f"{name}: {message}")
    return int(bool(found))


def _replay_span(board: Board, record: Record, numbers: Mapping[str, int]) -> int:
    span = (int(record["start"]), int(record["stop"]))
    variables = [c.variable for c in board.scheme.comparisons]
    wanted = [f"differences/{name}" for name in variables]
    known = [i for i, path in enumerate(record["paths"]) if str(path) in numbers]
    if (
        span not in board.span_number
        or not known
        or any(w not in record for w in wanted)
    ):
        return 0
    job = SpanJob(*span, tuple(numbers[str(record["paths"][i])] for i in known))
    differences = tuple(np.asarray(record[name])[known] for name in wanted)
    rows = tuple(np.asarray(record[f"rows/{name}"]) for name in variables)
    board.add_span(SpanRecord(job, differences, rows, float(record["seconds"])))
    return 1
