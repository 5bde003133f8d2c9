"""The store of a run: how it is opened, and what is written to it.

A checkpoint is the place of a run: the journal, in which every finished task is a
record, the cube, and the chosen model. `engine.records` writes the counts of a grid
search to it; least squares write dataclasses and arrays.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, TypeVar

import xarray as xr

from dsel import names
from dsel.results import save_results
from dsel.results.files import find_results
from dsel.results.journal import Journal, open_journal, read_journal
from dsel.results.models import model_key, open_model, save_model
from dsel.results.records import Record
from dsel.runtime.versions import installed_versions
from dsel.searches.phases import WORK

Found = TypeVar("Found")


@dataclass(frozen=True)
class Checkpoint:
    """What a run has found so far, in its store; without a place nothing is stored."""

    place: Any = None
    journal: Journal | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether there is a store that cannot be written to."""
        return self.journal is not None and self.journal.is_read_only

    def read(self) -> Mapping[str, Record]:
        """Return all records by key."""
        return {} if self.journal is None else self.journal.read()

    def append(self, key: str, record: Record) -> None:
        """Store a record; where the key is there already, nothing changes."""
        if self.journal is not None:
            self.journal.append(key, record)

    def find(self, key: str, kind: type[Found]) -> Found | None:
        """Return what `keep` stored under a key as a dataclass, or None.

        Raises OSError where it is not there, and what the run finds instead cannot be
        stored.
        """
        record = self.read().get(key)
        if record is not None:
            # Numbers come back as arrays without dimensions.
            return kind(**{name: value[()] for name, value in record.items()})
        self.check_writable()
        return None

    def keep(self, key: str, found: Any) -> None:
        """Store a dataclass of numbers and arrays under a key."""
        self.append(
            key, {each.name: getattr(found, each.name) for each in fields(found)}
        )

    def check_writable(self) -> None:
        """Raise OSError where there is a store and it cannot be written to."""
        if self.journal is not None:
            self.journal.check_writable()

    def check(self) -> None:
        """Raise OSError where an earlier record could not be written."""
        if self.journal is not None:
            self.journal.check()

    def flush(self) -> None:
        """Write what is not written yet."""
        if self.journal is not None:
            self.journal.flush()

    def save_results(self, results: xr.Dataset) -> None:
        """Save the cube, unless it is there already and nothing can be written.

        Raises OSError where nothing can be written and another cube is there, or none.
        """
        if self.place is None:
            return
        if self.is_read_only:
            earlier = find_results(self.place)
            if earlier is not None and _says_the_same(earlier, results):
                return
        save_results(results, self.place)

    def model(self, path: str, fit: Callable[[], Any]) -> Any:
        """Return the stored model of a path, else that of `fit`, which is then stored.

        The path says what the model depends on besides the fingerprint, its split
        included.
        """
        if self.place is None or find_spec("skops") is None:
            return fit()
        # A damaged model, or one of the user's own types, is fitted again.
        with suppress(ValueError):
            if model_key(self.place) == path:
                return open_model(self.place)
        model = fit()
        if not self.is_read_only:
            save_model(model, self.place, key=path)
        return model


@contextmanager
def open_checkpoint(place: Any, fingerprint: Mapping[str, Any]) -> Iterator[Checkpoint]:
    """Open the store of a run to continue it, and close it at the end.

    A run that has ended is opened also where nothing can be written. Versions are added
    to the fingerprint. Raises StoreMismatchError where the store holds another run,
    OSError where nothing can be written and no run was begun.
    """
    if place is None:
        yield Checkpoint()
        return
    with open_journal(place, _with_versions(fingerprint)) as journal:
        yield Checkpoint(place, journal)


def stored_records(place: Any, fingerprint: Mapping[str, Any]) -> Mapping[str, Record]:
    """Return what earlier runs wrote, and write nothing: the run may yet be refused."""
    return {} if place is None else read_journal(place, _with_versions(fingerprint))


def _with_versions(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return {**fingerprint, "versions": installed_versions()}


def _says_the_same(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Whether counts and assumptions are equal: times and what was read may differ."""
    counts = (each.drop_vars(WORK.values(), errors="ignore") for each in (one, other))
    same = one.attrs[names.ASSUMPTIONS] == other.attrs[names.ASSUMPTIONS]
    return same and next(counts).equals(next(counts))
