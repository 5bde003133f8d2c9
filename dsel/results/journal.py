"""The journal: every finished task is on disk within a second, and is found again.

Records are buffered by `append` and written by a thread of the driver's process, in one
write for all that finished since the last. A process that is killed at any moment
leaves whole writes only; what it had not written is counted again.
"""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import zarr
from zarr.abc.store import Store
from zarr.core.sync import sync
from zarr.storage import LocalStore

from dsel.errors import StoreBusyError
from dsel.results.fingerprint import check_fingerprint, plain
from dsel.results.lock import BEAT_SECONDS, PATIENCE_SECONDS, WriterLock
from dsel.results.log import (
    ROOM,
    Log,
    create_log,
    mend_header,
    write_payload,
)
from dsel.results.records import Record, encode, storable
from dsel.results.store import (
    holds,
    make_root,
    naming_damage,
    naming_place,
    open_store,
)
from dsel.results.stored_journal import (
    FINGERPRINT,
    GROUP,
    POINTER,
    find_log,
    fingerprint_in,
    read_records,
)
from dsel.stores import HALF_WRITTEN, HEAD

WRITE_SECONDS: Final = 0.5
"""How often the thread looks for records to write."""
COMPACT_CHUNKS: Final = 16
"""A journal with that many chunks more than it needs is rewritten when it is closed."""


class Journal:
    """An open journal; made by `open_journal`, ended by `close` or a ``with``."""

    def __init__(
        self, root: zarr.Group, lock: WriterLock, fingerprint: Mapping[str, Any]
    ) -> None:
        self._root, self._lock, self._fingerprint = root, lock, fingerprint
        self._records, content = read_records(find_log(root))
        self._next, self._n_bytes = content.n_chunks, content.n_bytes
        self._log: Log | None = None  # until it is ours to write to
        self._buffer: list[tuple[str, Record]] = []
        self._guard = threading.Lock()  # of records and buffer
        self._writing = threading.Lock()  # of everything else
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._write_on, name="dsel-journal", daemon=True
        )
        self._thread.start()

    @property
    def place(self) -> str:
        """Where the journal is."""
        return str(self._root.store)

    def read(self) -> dict[str, Record]:
        """Return all records by key, appended ones included.

        Of a key that was appended twice the first record counts.
        """
        with self._guard:
            return dict(self._records)

    def append(self, key: str, record: Record) -> None:
        """Take a record, to be written within a second.

        Parameters
        ----------
        key
            What the record tells of; a key that is there already changes nothing.
        record
            Numbers, arrays of numbers, strings and lists of strings by name; copied.

        Raises
        ------
        OSError
            Where an earlier write failed; the records that were not written are kept.
        """
        copy = storable(record)
        with self._guard:
            if key not in self._records:
                self._records[key] = copy
                self._buffer.append((key, copy))
        self._raise_failure()

    def check(self) -> None:
        """Raise where the heartbeat has seen that the lock is no longer ours.

        Raises
        ------
        StoreBusyError
            Where another process took the store over, or the lock was removed.
        """
        if isinstance(self._failure, StoreBusyError):
            raise self._failure

    def flush(self) -> None:
        """Write what was appended; return when it is there.

        Raises
        ------
        OSError
            Where the place is full or read-only; call again when there is room.
        StoreBusyError
            Where another process took the store over.
        """
        self._failure = None
        with naming_place(self._root.store, unwritten=len(self._buffer)):
            self._lock.check()
        self._write()

    def close(self) -> None:
        """Write what was appended, tidy up and let others write."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        try:
            self.flush()
            if self._next > self._n_bytes // ROOM + COMPACT_CHUNKS:
                self._compact()
        finally:
            with suppress(OSError), naming_place(self._root.store):
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self) -> None:
        """Write the buffer; `append` goes on taking records meanwhile."""
        with self._writing:
            self._log = log = self._log or self._begin()
            with self._guard:
                buffer, self._buffer = self._buffer, []
            if not buffer:
                return
            try:
                payload = encode(buffer)
                with naming_place(self._root.store, unwritten=len(buffer)):
                    self._lock.check()
                    self._next = write_payload(log, payload, at=self._next)
                self._n_bytes += len(payload)
            except BaseException:
                with self._guard:
                    self._buffer = buffer + self._buffer
                raise

    def _begin(self) -> Log:
        """Return the log to write to; what was left half-done is tidied up first."""
        with naming_place(self._root.store):
            self._lock.check()
            group = self._root.require_group(GROUP)
            if not group.attrs.get(FINGERPRINT):
                group.attrs[FINGERPRINT] = plain(self._fingerprint)
            log = find_log(self._root)
            if log is None:
                return _make_log(group)
            before, _ = _neighbours(log.basename)
            del group[before]  # may be left by a rewrite that was cut short
            mend_header(log)
            return log

    def _write_on(self) -> None:
        """Write at once, to see that it can be done, and then now and then."""
        beaten = time.monotonic()
        while True:
            try:
                self._write()
                if time.monotonic() - beaten > BEAT_SECONDS:
                    with naming_place(self._root.store):
                        self._lock.beat()
                    beaten = time.monotonic()
            except Exception as error:  # shown to the driver by its next append
                self._failure = error
            else:
                self._failure = None
            if self._ended.wait(WRITE_SECONDS):
                return

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is not None:
            self._failure = None
            raise failure

    def _compact(self) -> None:
        with naming_place(self._root.store):
            self._lock.check()
            group = self._root.require_group(GROUP)
            name = str(group.attrs[POINTER])
            _, fresh = _neighbours(name)
            log = create_log(group, fresh)
            self._next = write_payload(log, encode(self._records.items()), at=0)
            group.attrs[POINTER] = fresh
            self._log = log
            del group[name]


def open_journal(
    place: str | os.PathLike[str] | Store,
    fingerprint: Mapping[str, Any],
    *,
    storage_options: Mapping[str, Any] | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Journal:
    """Open the journal of a run for writing, made if it is not there.

    Parameters
    ----------
    place
        Directory, fsspec URL or zarr store, which may hold a cube as well.
    fingerprint
        What every count depends on (data, trainings, estimator, seeds, versions) as
        JSON-like values; not the grid, the criterion or delta.
    storage_options
        Passed to fsspec with a URL.
    patience
        Seconds to watch a writer on another machine before it counts as dead.

    Raises
    ------
    StoreMismatchError
        Where the journal has another fingerprint; the differences are shown.
    StoreBusyError
        Where another process is writing.
    OSError
        Where the place cannot be written to.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     with open_journal(place, {"seed": 7}) as journal:
    ...         journal.append("fit/fold-0", {"errors": [3, 4]})
    ...     with open_journal(place, {"seed": 7}) as journal:
    ...         journal.read()
    {'fit/fold-0': {'errors': array([3, 4])}}
    """
    store = open_store(place, storage_options=storage_options)
    with naming_place(store):
        root = make_root(store)
        lock = WriterLock(root, patience=patience)
        with naming_damage(
            store, way_out="if no other run writes there, delete lock in it"
        ):
            lock.acquire()
        _sweep(store)  # before any write of our own is under way
    try:
        with naming_damage(store):
            stored = fingerprint_in(root)
            if GROUP not in root and sync(holds(store, GROUP)):
                raise ValueError(f"{GROUP}/{HEAD} is missing")
        if stored:
            check_fingerprint(stored, fingerprint, place=str(store))
        with naming_damage(store):
            return Journal(root, lock, fingerprint)
    except BaseException:
        with suppress(OSError), naming_place(store):
            lock.release()
        raise


def _make_log(group: zarr.Group) -> Log:
    log = create_log(group, "log-1")
    group.attrs[POINTER] = "log-1"
    return log


def _neighbours(name: str) -> tuple[str, str]:
    number = int(name.removeprefix("log-"))
    return f"log-{number - 1}", f"log-{number + 1}"


def _sweep(store: Store) -> None:
    """Delete what writers that were killed left half-written."""
    if isinstance(store, LocalStore):
        root = Path(store.root)
        found = (*root.glob("zarr.*.partial"), *(root / GROUP).rglob("*.partial"))
        for leftover in found:
            if HALF_WRITTEN.match(leftover.name):
                leftover.unlink(missing_ok=True)
