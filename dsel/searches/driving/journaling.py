"""Board to journal and back: one record for each finished task.

A record names its candidates by their paths, which say all that their counts depend on
beside the fingerprint, and the training or the rows of the span. A larger grid over the
same data therefore finds its old cells, and what was written is never counted again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from dsel.models.base import FIT_FAILED
from dsel.searches.comparing.scheme import Scheme
from dsel.searches.driving.board import Board
from dsel.searches.driving.tasks import FitRecord, Group, SpanJob, SpanRecord
from dsel.searches.executing.keeping import Notes

FIT = "fit/"
SPAN = "span/"
LIMIT = "limit"


@dataclass(frozen=True)
class Journaling:
    """Writes what tasks counted, and reads it back into a board."""

    journal: Notes | None
    """Where to; None keeps nothing."""
    paths: Mapping[int, str]
    """Path of every candidate by its number."""
    scheme: Scheme
    """Trainings and comparisons of the plan."""
    fit_timeout: float | None = None
    """Seconds that one fit may take; those that took longer once may now have more."""

    def fit(self, record: FitRecord) -> None:
        """Write the counts of one fit job.

        What failed for want of memory is not written: there may be more next time.
        """
        if any(
            text.startswith("MemoryError") for text in record.counts.messages.values()
        ):
            return
        if self.journal is None:
            return
        job, counts = record.job, record.counts
        training = self.scheme.trainings[job.training]
        paths = [self.paths[number] for number in job.candidates]
        limit = {LIMIT: self.fit_timeout} if record.is_late else {}
        suffix = f"/{LIMIT}-{self.fit_timeout}" if record.is_late else ""
        self.journal.append(
            f"{FIT}{_joined(paths)}/{training.name}{suffix}",
            {
                "training": training.name,
                "paths": paths,
                "test_errors": counts.test_errors[:, 0],
                "train_errors": counts.train_errors[:, 0],
                "failed": counts.status[:, 0] == FIT_FAILED,
                "seconds": counts.seconds[:, 0],
                "messages": [
                    counts.messages.get((number, training.number), "")
                    for number in job.candidates
                ],
                **limit,
            },
        )

    def span(self, record: SpanRecord) -> None:
        """Write the counts of one span of the pool."""
        if self.journal is None:
            return
        job = record.job
        mine = [self.paths[number] for number in job.candidates]
        counts: dict[str, Any] = {}
        for comparison, found, rows in zip(
            self.scheme.comparisons, record.differences, record.rows, strict=True
        ):
            counts[f"differences/{comparison.variable}"] = found
            counts[f"rows/{comparison.variable}"] = rows
        place = {"look": job.look, "start": job.start, "stop": job.stop, "paths": mine}
        self.journal.append(
            f"{SPAN}{job.look}-{job.start}-{job.stop}/{_joined(mine)}",
            {**place, "seconds": record.seconds, **counts},
        )

    def replay(self, board: Board) -> None:
        """Put what an earlier run counted onto the board."""
        if self.journal is None:
            return
        numbers = {path: number for number, path in self.paths.items()}
        for key, record in self.journal.read().items():
            if key.startswith(FIT):
                self._replay_fit(board, record, numbers)
            elif key.startswith(SPAN):
                self._replay_span(board, record, numbers)

    def check(self) -> None:
        """Raise where another run has taken the store over."""
        if self.journal is not None:
            self.journal.check()

    def flush(self) -> None:
        """Write what is not written yet."""
        if self.journal is not None:
            self.journal.flush()

    def _replay_fit(self, board: Board, record: Any, numbers: dict[str, int]) -> None:
        trainings = {each.name: each.number for each in self.scheme.trainings}
        training = trainings.get(record["training"])
        if training is None or self._has_more_time(record):
            return
        for i, path in enumerate(record["paths"]):
            if path not in numbers:
                continue
            number = numbers[path]
            errors = int(record["test_errors"][i]), int(record["train_errors"][i])
            failed, seconds = bool(record["failed"][i]), float(record["seconds"][i])
            board.set_fit(number, training, errors, failed, seconds)
            if record["messages"][i]:
                board.messages[number, training] = record["messages"][i]

    def _has_more_time(self, record: Any) -> bool:
        """Whether these fits ran out of time, and of less than they would have now."""
        limit = record.get(LIMIT)
        return limit is not None and (
            self.fit_timeout is None or self.fit_timeout > float(limit)
        )

    def _replay_span(self, board: Board, record: Any, numbers: dict[str, int]) -> None:
        start, stop = int(record["start"]), int(record["stop"])
        look = int(record.get("look", 0))
        variables = [comparison.variable for comparison in self.scheme.comparisons]
        known = [i for i, path in enumerate(record["paths"]) if path in numbers]
        # An earlier run may have compared less: its spans are counted anew.
        compared = all(f"differences/{variable}" in record for variable in variables)
        if not known or not compared or (look, start, stop) not in board.span_number:
            return
        mine = tuple(numbers[record["paths"][i]] for i in known)
        job = SpanJob(start, stop, mine, look)
        differences = tuple(
            np.asarray(record[f"differences/{variable}"])[known]
            for variable in variables
        )
        rows = tuple(np.asarray(record[f"rows/{variable}"]) for variable in variables)
        board.add_span(SpanRecord(job, differences, rows, float(record["seconds"])))


def _joined(paths: Iterable[str]) -> str:
    """Return one short path of several."""
    return blake2b(".".join(paths).encode(), digest_size=12).hexdigest()


def paths_of(groups: Iterable[Group]) -> dict[int, str]:
    """Return the path of every candidate by its number."""
    return {
        candidate.number: path
        for group in groups
        for candidate, path in zip(group.candidates, group.paths, strict=True)
    }
