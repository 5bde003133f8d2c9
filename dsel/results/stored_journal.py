"""What a journal holds, read without the right to write."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NoReturn, Self

import zarr
from zarr.abc.store import Store

from dsel.errors import DselWarning, warn
from dsel.results.fingerprint import check_fingerprint
from dsel.results.log import NOTHING, Log, LogContent, open_log, read_log
from dsel.results.records import Record, decode
from dsel.results.store import naming_damage, open_store, read_root

GROUP: Final = "journal"
POINTER: Final = "log"
FINGERPRINT: Final = "fingerprint"


@dataclass(frozen=True)
class StoredJournal:
    """The journal of a place that cannot be written to; does what `Journal` does."""

    records: Mapping[str, Record]
    """All records by key."""
    reason: OSError
    """Why nothing can be written."""

    def read(self) -> dict[str, Record]:
        """Return all records by key."""
        return dict(self.records)

    def append(self, key: str, record: Record) -> None:
        """Take what is there already; nothing else can be kept.

        Raises
        ------
        OSError
            Where the record is new.
        """
        del record
        if key not in self.records:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raise what says why nothing can be written."""
        raise self.reason

    def check(self) -> None:
        """Do nothing: there is no lock to lose."""

    def flush(self) -> None:
        """Do nothing: there is nothing to write."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return


def read_journal(
    place: str | os.PathLike[str] | Store,
    fingerprint: Mapping[str, Any],
    *,
    reason: OSError,
) -> StoredJournal | None:
    """Return the journal of a run; None where none was begun.

    Parameters
    ----------
    place
        Directory, fsspec URL or zarr store.
    fingerprint
        As for `open_journal`.
    reason
        Why it cannot be opened for writing.

    Raises
    ------
    StoreMismatchError
        Where the journal has another fingerprint; the differences are shown.
    """
    store = open_store(place, read_only=True)
    try:
        read_root(store)
    except FileNotFoundError:
        return None
    with naming_damage(store):
        root = zarr.open_group(store, mode="r", zarr_format=3)
        stored = fingerprint_in(root)
    if not stored:
        return None
    check_fingerprint(stored, fingerprint, place=str(store))
    with naming_damage(store):
        records, _ = read_records(find_log(root))
    return StoredJournal(records, reason)


def read_fingerprint(
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fingerprint of the run at a place; empty where none was begun."""
    store = open_store(place, storage_options=storage_options, read_only=True)
    read_root(store)
    return fingerprint_in(zarr.open_group(store, mode="r", zarr_format=3))


def fingerprint_in(root: zarr.Group) -> dict[str, Any]:
    """Return the fingerprint of a journal; empty where there is none."""
    stored = root[GROUP].attrs.get(FINGERPRINT) if GROUP in root else None
    return dict(stored) if isinstance(stored, Mapping) else {}


def find_log(root: zarr.Group) -> "Log | None":
    """Return the log that counts; None where there is none."""
    group = root.get(GROUP)
    if not isinstance(group, zarr.Group) or POINTER not in group.attrs:
        return None
    return open_log(group, str(group.attrs[POINTER]))


def read_records(log: "Log | None") -> tuple[dict[str, Record], LogContent]:
    """Return the records of a log, of each key the first, and what was read."""
    if log is None:
        return {}, NOTHING
    content = read_log(log)
    if content.n_damaged:
        warn(
            f"{content.n_damaged} of {content.n_chunks} parts of the journal at "
            f"{log.store} are missing or damaged; what they held is counted again.",
            DselWarning,
        )
    records: dict[str, Record] = {}
    for payload in content.payloads:
        for key, record in decode(payload):
            records.setdefault(key, record)
    return records, content
