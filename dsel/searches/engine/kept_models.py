"""Fitted models in the store, so that a run which was killed repeats no slow fit.

Kept are the models of tasks that took long and are not too large, until no row of the
pool is left to predict with them. A record of the journal names the fits.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from dsel.models.family import FIT_DONE, FittedGroup
from dsel.results.signed import read_signed, remove_signed, write_signed
from dsel.searches.checkpoint import Checkpoint
from dsel.searches.engine.counts import CountTable
from dsel.searches.engine.fit_task import FitJob, FitRecord, Payload, Work, records_of
from dsel.searches.engine.scheme import Scheme

MODELS: Final = "models/"
LONG: Final = 1.0
"""Seconds of fits, at least, for which models are kept."""
NBYTES_PER_SECOND: Final = 2**24
"""Of models at most: to write and read them should take less time than to fit."""


Packed = tuple[list[FitJob], bytes]
"""Fits, and their models as pickled."""


def pack_models(work: Work, payloads: Sequence[Payload]) -> tuple[Packed, None]:
    """Return the models that a task keeps, pickled."""
    del work
    return (_jobs_of(payloads[0]), cloudpickle.dumps(payloads[0])), None


def load_models(
    work: Work, payloads: Sequence[Payload], jobs: Sequence[FitJob], packed: bytes
) -> tuple[list[FitRecord], Payload]:
    """Return what the fits of these jobs returned in an earlier run.

    `packed` is what `pack_models` made, and this user wrote. Raises ValueError where it
    holds other models.
    """
    del work, payloads
    found: Payload = cloudpickle.loads(packed)
    if set(_jobs_of(found)) != set(jobs):
        raise ValueError("the kept models are those of other fits")
    records = [
        record
        for first, models in found.items()
        for record in records_of(_together(first, models), models)
    ]
    return records, found


def _jobs_of(payload: Payload) -> list[FitJob]:
    """Return all fits of which a task keeps the models."""
    return [
        job for first, models in payload.items() for job in _together(first, models)
    ]


def _together(first: FitJob, models: FittedGroup) -> list[FitJob]:
    return [FitJob(first.group, models.candidates, split) for split in models.splits]


@dataclass
class KeptModels:
    """The models of a run in its store; without a store nothing is kept."""

    store: Checkpoint
    keys: Mapping[int, str]
    """Key of every candidate by its number."""
    scheme: Scheme
    jobs: dict[str, list[FitJob]] = field(default_factory=dict)
    """The fits of each object, by its name."""

    @property
    def has_place(self) -> bool:
        """Whether anything can be kept."""
        return self.store.journal is not None and not self.store.is_read_only

    def replay(self, table: CountTable) -> None:
        """Take what earlier runs kept, of fits that the table has."""
        numbers = {key: number for number, key in self.keys.items()}
        splits = {each.name: each.number for each in self.scheme.splits}
        groups = {
            c.number: each.number for each in table.groups for c in each.candidates
        }
        for name, record in self.store.read().items():
            if not name.startswith(MODELS):
                continue
            jobs = []
            for split, text in zip(record["splits"], record["keys"], strict=True):
                keys = text.split(",")
                if split in splits and numbers.keys() >= set(keys):
                    mine = tuple(numbers[key] for key in keys)
                    if (table.fit_status[list(mine), splits[split]] == FIT_DONE).all():
                        jobs.append(FitJob(groups[mine[0]], mine, splits[split]))
            if len(jobs) == len(record["splits"]):
                self.jobs[name.removeprefix(MODELS)] = jobs

    def wants(self, records: Sequence[FitRecord]) -> bool:
        """Whether the models of a task are to be kept, which returned these records."""
        seconds = sum(float(np.nansum(record.counts.seconds)) for record in records)
        nbytes = sum(record.nbytes for record in records)
        known = {job for jobs in self.jobs.values() for job in jobs}
        return (
            self.has_place
            and seconds >= LONG
            and not any(record.counts.messages for record in records)
            and 0 < nbytes <= NBYTES_PER_SECOND * seconds
            and not known.issuperset(record.job for record in records)
        )

    def add(self, jobs: Sequence[FitJob], packed: bytes) -> None:
        """Write the models of some jobs."""
        name = uuid.uuid4().hex
        if not write_signed(self.store.place, name, packed):
            return
        splits = [self.scheme.splits[job.split].name for job in jobs]
        keys = [",".join(self.keys[each] for each in job.candidates) for job in jobs]
        self.store.append(f"{MODELS}{name}", {"splits": splits, "keys": keys})
        self.jobs[name] = list(jobs)

    def find(self, lost: NDArray[np.bool_]) -> Iterator[Packed]:
        """Yield fits and their models: of those lost, (n_candidates, n_splits)."""
        for name, jobs in list(self.jobs.items()):
            if not any(lost[list(job.candidates), job.split].any() for job in jobs):
                continue
            packed = read_signed(self.store.place, name)
            if packed is None:
                del self.jobs[name]
            else:
                yield jobs, packed

    def release(self, needed: Collection[int]) -> None:
        """Remove what holds no model of a needed candidate."""
        for name, jobs in list(self.jobs.items()):
            if not any(number in needed for job in jobs for number in job.candidates):
                del self.jobs[name]
                if self.has_place:
                    remove_signed(self.store.place, name)
