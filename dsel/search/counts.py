"""Counts of every candidate so far, which fits are still needed, and their records.

The table is what the driver knows; records are how a store keeps it. A record names its
candidates by their keys, and the split, or the rows of the span.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dsel import names
from dsel.bounds.cross_validation import best_fold_number
from dsel.data.pool import Span
from dsel.families.family import FIT_DONE, FIT_FAILED, FitCounts
from dsel.search.comparisons import BestFold, Comparison
from dsel.search.folds import Layout
from dsel.search.tasks import (
    FitJob,
    FitRecord,
    Group,
    SpanJob,
    SpanRecord,
    joined_tokens,
)

UNKNOWN: Final = -1


@dataclass
class CountTable:
    """Counts by candidate; only the driver writes to it."""

    layout: Layout
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    """What is counted on the pool; empty without one."""
    spans: tuple[Span, ...]
    """Parts of the pool, one task each; empty without one."""
    n_candidates: int

    def __post_init__(self) -> None:
        n, fits = self.n_candidates, (self.n_candidates, len(self.layout.splits))
        # On the test rows; and on the second rows of a pair of folds, or a half's
        # training rows.
        self.errors = np.full((*fits, 2), names.UNCOUNTED, np.int64)
        # The declared loss on both parts, where errors do not rank the candidates.
        self.losses = np.full((*fits, 2), np.nan)
        self.fit_status = np.full(fits, UNKNOWN, np.int8)
        self.fit_seconds = np.full(fits, np.nan)
        # By candidate and split; tokens tell each model from another fit's.
        self.tokens: dict[tuple[int, int], str] = {}
        self.messages: dict[tuple[int, int], str] = {}
        self.differences = [np.zeros((n, c.n_bins), np.int64) for c in self.comparisons]
        self.pool_rows = [np.zeros_like(counts) for counts in self.differences]
        self.score_seconds = np.zeros(n)
        self.visited = np.zeros((n, len(self.spans)), bool)
        # Fits that may be made: all at first, unless candidates go by rounds.
        self.allowed = np.ones(fits, bool)
        self.submitted = np.zeros(fits, bool)
        self.pruned = np.zeros(n, bool)  # they cannot win any more
        self.span_number = {(s.start, s.stop): i for i, s in enumerate(self.spans)}
        # Of every candidate in the store, by its number.
        self.keys = {
            candidate.number: key
            for group in self.groups
            for candidate, key in zip(group.candidates, group.keys, strict=True)
        }

    def add_fit(self, record: FitRecord) -> None:
        """Write the counts of one job; those of another fit of a model are dropped."""
        counts, split = record.counts, record.job.split
        for place, number in enumerate(record.job.candidates):
            key, token = (number, split), record.tokens[place]
            if self.fit_status[key] == FIT_DONE and self.tokens.get(key, "") != token:
                self.forget_pool(number)
            self.errors[key] = (
                counts.test_errors[place, 0],
                counts.train_errors[place, 0],
            )
            if record.losses is not None:
                self.losses[key] = record.losses[place]
            self.fit_status[key] = counts.status[place, 0]
            self.fit_seconds[key] = counts.seconds[place, 0]
            self.tokens[key] = token
        self.messages.update(counts.messages)

    def fail(self, number: int, split: int, message: str) -> None:
        """Record that a fit failed."""
        self.errors[number, split] = names.UNCOUNTED
        self.fit_status[number, split] = FIT_FAILED
        self.messages[number, split] = message

    def forget_fits(self, number: int) -> None:
        """Drop all counts of a candidate, whose models are others than were counted."""
        self.fit_status[number] = UNKNOWN
        self.errors[number] = names.UNCOUNTED
        self.forget_pool(number)

    def forget_pool(self, number: int) -> None:
        """Drop what was counted on the pool with a candidate's earlier models."""
        self.visited[number] = False
        self.score_seconds[number] = 0.0
        for total in (*self.differences, *self.pool_rows):
            total[number] = 0

    def add_span(self, record: SpanRecord) -> list[int]:
        """Add the counts of one span, once for each candidate.

        Returns the candidates whose models are others than those that were counted.
        """
        span = self.span_number[record.job.start, record.job.stop]
        strangers, splits = [], self.layout.with_models
        for place, number in enumerate(record.job.candidates):
            if self.visited[number, span]:
                continue
            told = {s: self.tokens.get((number, s), "") for s in splits}
            if record.tokens[place] != joined_tokens(told):
                strangers.append(number)
                continue
            for total, found in zip(self.differences, record.differences, strict=True):
                total[number] += found[place]
            for total, rows in zip(self.pool_rows, record.rows, strict=True):
                total[number] += rows
            self.visited[number, span] = True
            self.score_seconds[number] += record.seconds / len(record.job.candidates)
        return strangers

    @property
    def in_order(self) -> NDArray[np.bool_]:
        """Fits that ended, and so did those of its earlier splits.

        Exact pruning reads only these. A count that comes early waits for those before
        it, so that the outcome does not depend on the order in which tasks end.
        """
        ended = self.fit_status != UNKNOWN
        return np.asarray(np.logical_and.accumulate(ended, axis=1))

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Candidates of which a fit failed, (n_candidates,); nested: of each search."""
        found = (self.fit_status == FIT_FAILED) & self.in_order
        return np.asarray(found.any(axis=1))

    @property
    def fitted(self) -> NDArray[np.bool_]:
        """Candidates of which every fit is done."""
        return np.asarray((self.fit_status == FIT_DONE).all(axis=1))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Candidates that are counted on the whole pool."""
        return np.asarray(self.visited.all(axis=1))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Candidates that may win and are not complete."""
        if self.layout.is_nested:
            open_fits = (self.fit_status == UNKNOWN) & self.allowed
            return np.asarray(open_fits.any(axis=1) & ~self.pruned)
        return ~(self.pruned | self.failed | (self.fitted & self.scored))

    @property
    def open_fits(self) -> NDArray[np.bool_]:
        """Fits that are needed and not submitted, (n_candidates, n_splits)."""
        unknown = (self.fit_status == UNKNOWN) & self.allowed & ~self.submitted
        return np.asarray(unknown & self.active[:, np.newaxis])

    @property
    def status(self) -> NDArray[np.int8]:
        """Status of each candidate, as the cube has it."""
        status = np.full(self.n_candidates, names.STATUS_MISSING, np.int8)
        status[self.fitted & self.scored] = names.STATUS_DONE
        status[self.pruned] = names.STATUS_PRUNED
        status[self.failed] = names.STATUS_FAILED
        return status

    def current_comparisons(self) -> tuple[Comparison, ...]:
        """Return what is counted, each candidate's best fold as it is known now."""
        k, best = self.layout.n_folds, np.full(self.n_candidates, -1)
        errors = self.errors[:, :k, 0]
        known = (errors >= 0).all(axis=1)
        if known.any():
            best[known] = best_fold_number(errors[known], self.layout.fold_rows)
        return tuple(
            replace(each, folds=best) if isinstance(each, BestFold) else each
            for each in self.comparisons
        )

    def texts(self, shown: NDArray[np.bool_]) -> NDArray[Any]:
        """Return for each candidate what its first fit with a message says, or ""."""
        texts = np.full(self.n_candidates, "", dtype=object)
        for (number, split), text in sorted(self.messages.items(), reverse=True):
            if text and shown[number, split]:
                texts[number] = f"{self.layout.splits[split].name}: {text}"
        return texts

    def evidence(
        self,
        shown: NDArray[np.bool_] | None = None,
        scored: NDArray[np.bool_] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Return the counts under the names of the cube, candidates first.

        By default of the fits in order, (n_candidates, n_splits), and the pool counts
        of the candidates that need no more.
        """
        layout, k = self.layout, self.layout.n_folds
        shown = self.in_order if shown is None else shown
        scored = self.scored if scored is None else scored
        errors, train_errors = (
            np.where(shown, self.errors[..., side], names.UNCOUNTED) for side in (0, 1)
        )
        seconds = np.where(shown, self.fit_seconds, np.nan)
        evidence: dict[str, NDArray[Any]] = {
            names.FOLD_ERRORS: errors[:, :k],
            names.FOLD_ROWS: layout.fold_rows,
            names.TRAIN_ROWS: np.array([len(t.train_rows) for t in layout.splits[:k]]),
            names.FIT_SECONDS: seconds[:, :k],
            names.STATUS: self.status,
        }
        if layout.n_halvings:
            evidence[names.TRAIN_ERRORS] = train_errors[:, :k]
        if layout.full is not None:
            evidence[names.FULL_FIT_SECONDS] = seconds[:, layout.full]
        if layout.leave_one_out is not None:
            evidence[names.LOO_ERRORS] = errors[:, layout.leave_one_out]
        for comparison, found, rows in zip(
            self.comparisons, self.differences, self.pool_rows, strict=True
        ):
            counts = np.where(scored[:, np.newaxis], found, names.UNCOUNTED)
            if comparison.variable == names.BEST_FOLD_DISAGREEMENTS:
                evidence[comparison.variable] = counts[:, 0]
                continue
            evidence[comparison.variable] = counts
            given = np.where(scored[:, np.newaxis], rows, 0)
            evidence[names.POOL_ROWS] = given
            share = given / np.maximum(1, given.sum(axis=1, keepdims=True))
            spent = share * self.score_seconds[:, np.newaxis]
            evidence[names.SCORE_SECONDS] = np.where(
                scored[:, np.newaxis], spent, np.nan
            )
        return evidence


FIT: Final = "fit"
SPAN: Final = "span"


def fit_entry(record: FitRecord, table: CountTable) -> dict[str, dict[str, Any]]:
    """Return a fit record for the store, by its key: one entry for each candidate.

    Failures are not kept: their cause may be gone when the run goes on.
    """
    job, counts = record.job, record.counts
    split = table.layout.splits[job.split]
    return {
        f"{FIT}/{split.name}/{table.keys[number]}": {
            "errors": int(counts.test_errors[place, 0]),
            "second_errors": int(counts.train_errors[place, 0]),
            "seconds": round(float(counts.seconds[place, 0]), 6),
            "token": record.tokens[place],
            **(
                {}
                if record.losses is None
                else {"losses": record.losses[place].tolist()}
            ),
            "message": counts.messages.get((number, job.split), ""),
        }
        for place, number in enumerate(job.candidates)
        if counts.status[place, 0] == FIT_DONE
    }


def span_entry(record: SpanRecord, table: CountTable) -> dict[str, dict[str, Any]]:
    """Return a span record for the store, by its key: one entry for each candidate."""
    job, comparisons = record.job, table.comparisons
    return {
        f"{SPAN}/{job.start}-{job.stop}/{table.keys[number]}/{record.tokens[place]}": {
            "start": job.start,
            "stop": job.stop,
            "seconds": round(record.seconds / len(job.candidates), 6),
            "token": record.tokens[place],
            "differences": {
                c.variable: found[place].tolist()
                for c, found in zip(comparisons, record.differences, strict=True)
            },
            "rows": {
                c.variable: rows.tolist()
                for c, rows in zip(comparisons, record.rows, strict=True)
            },
        }
        for place, number in enumerate(job.candidates)
    }


def replay(table: CountTable, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what an earlier run counted into the table: fits first, then spans."""
    numbers = {key: number for number, key in table.keys.items()}
    splits = {split.name: split.number for split in table.layout.splits}
    for key in sorted(records):  # "fit" before "span"
        kind, what, *rest = [*key.split("/"), ""]
        number = numbers.get(rest[0])
        entry = records[key]
        if kind == FIT and number is not None and what in splits:
            counts = FitCounts.empty(1, 1)
            counts.record((0, 0), entry["errors"], entry["second_errors"])
            counts.seconds[0, 0] = entry["seconds"]
            job = FitJob(0, (number,), splits[what])
            if entry["message"]:
                counts.messages[number, job.split] = entry["message"]
            losses = np.array([entry["losses"]]) if "losses" in entry else None
            table.add_fit(FitRecord(job, counts, 0, (entry["token"],), losses))
        elif kind == SPAN and number is not None:
            place = entry["start"], entry["stop"]
            variables = [c.variable for c in table.comparisons]
            if place in table.span_number and set(variables) <= entry["rows"].keys():
                found = (np.array([entry["differences"][v]]) for v in variables)
                rows = (np.array(entry["rows"][v]) for v in variables)
                span = SpanJob(*place, (number,))
                table.add_span(SpanRecord(
                    span, tuple(found), tuple(rows), entry["seconds"], (entry["token"],)
                ))  # fmt: skip
