"""The journal: what a run has counted, as a set of objects that never change.

Each flush writes the records that finished since the last one as one object, under a
name that no other has. To resume is to list the objects, read them and unite their
records; one that is damaged is one that is not there, and what it held is counted
again. There is no lock: a record depends on its key alone, so that two runs in one
place can do the same work twice, and no harm.

What counts of a run depend on stands in every object, so that records of different runs
are never united. Names begin with a number that is larger than all that were there
when the object was written: records are read in the order in which they were written.
"""

import os
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from zarr.abc.store import Store
from zarr.core.sync import sync

from dsel.errors import DselWarning, StoreMismatchError, warn
from dsel.results.fingerprint import check_fingerprint, plain
from dsel.results.records import (
    FOLDER,
    Block,
    Record,
    blocks_of,
    decode,
    encode,
    in_order,
    number_of,
    read_objects,
    storable,
    write_object,
)
from dsel.results.store import (
    make_root,
    naming_damage,
    naming_place,
    open_store,
    read_root,
)

LEAST_SECONDS: Final = 0.5
"""Between two writes when a run begins."""
SHARE: Final = 0.02
"""Part of a run that one that is killed may lose, if it is more than that ..."""
MOST_SECONDS: Final = 300.0
"""... and less than this. A day makes some 600 objects, which its end merges."""


class Journal:
    """An open journal; made by `open_journal`, ended by `close` or a ``with``."""

    def __init__(
        self,
        store: Store,
        fingerprint: Mapping[str, Any],
        *,
        reason: OSError | None = None,
    ) -> None:
        self._store, self._fingerprint = store, plain(fingerprint)
        self._reason = reason  # why nothing can be written
        self._records: dict[str, Record] = {}
        self._buffer: list[tuple[str, Record]] = []
        self._sizes: dict[str, int] = {}  # bytes of each object read or written here
        self._blocks: dict[bytes, None] = {}  # with records, in the order of `_records`
        self._damaged: set[str] = set()
        self._next = 1
        self._guard = threading.Lock()  # of records and buffer
        self._writing = threading.Lock()  # one write at a time
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self.refresh()
        self._thread = threading.Thread(
            target=self._write_on, name="dsel-journal", daemon=True
        )
        if reason is None:
            self._begin()
        elif not self._sizes:
            raise reason

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written; a run that has ended is opened all the same.

        The place may be mounted for reading only, or full.
        """
        return self._reason is not None

    @property
    def n_damaged(self) -> int:
        """Number of objects whose records could not be read."""
        return len(self._damaged)

    def read(self) -> dict[str, Record]:
        """Return all records by key, appended ones included.

        Of a key that was appended twice the first record counts.
        """
        with self._guard:
            return dict(self._records)

    def append(self, key: str, record: Record) -> None:
        """Take a copy of a record, to be written soon; nothing where its key is known.

        Raises OSError where it is new and nothing can be written, or where an earlier
        write failed; the records that were not written are kept.
        """
        copy = storable(record)
        with self._guard:
            is_new = key not in self._records
            if is_new and self._reason is None:
                self._records[key] = copy
                self._buffer.append((key, copy))
        if is_new:
            self.check_writable()
        self.check()

    def check_writable(self) -> None:
        """Raise the OSError that says why nothing can be written, unless it can."""
        if self._reason is not None:
            raise self._reason

    def check(self) -> None:
        """Raise why the last write failed, once; it is tried again all the same."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def flush(self) -> None:
        """Write what was appended; return when it is there.

        Where it raises OSError, call it again when there is room.
        """
        self._failure = None
        self._write()

    def refresh(self) -> None:
        """Read what other runs wrote since this journal last looked.

        Raises StoreMismatchError where they are runs of something else.
        """
        with naming_damage(self._store):
            found = sync(read_objects(self._store, {*self._sizes, *self._damaged}))
        damaged = [name for name in in_order(found) if not self._take(name, found)]
        self._damaged.update(damaged)
        self._next = max([self._next, *(number_of(name) + 1 for name in found)])
        if damaged:
            names = ", ".join(f"{FOLDER}/{name}" for name in damaged)
            warn(
                f"{names} in {self._store} is damaged; what was counted there is "
                f"counted again.",
                DselWarning,
            )

    def close(self) -> None:
        """Write what was appended, and all records as one object."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self.is_read_only:
            return
        self._thread.join()
        self.flush()
        with suppress(OSError), naming_place(self._store):
            self._merge()  # what cannot be merged is safe as it is

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _begin(self) -> None:
        """Write an object without records, to see that the place can be written to.

        It says whose place this is, too: of two different runs that begin at the same
        moment at least one sees the other's.
        """
        try:
            with naming_place(self._store):
                mine = self._write_object(
                    encode([], about=self._fingerprint), self._next
                )
        except OSError as error:
            if not self._sizes:
                raise
            self._reason = error
            return
        try:
            self.refresh()
        except StoreMismatchError:
            self._remove([mine])
            raise
        self._thread.start()

    def _take(self, name: str, payloads: Mapping[str, bytes]) -> bool:
        """Unite with the records of an object; return whether it is whole."""
        try:
            blocks = blocks_of(payloads[name])
        except ValueError:
            return False
        for block in blocks:
            fingerprint, records = decode(block)
            check_fingerprint(fingerprint, self._fingerprint, place=str(self._store))
            if records:
                self._blocks.setdefault(block)
            with self._guard:
                for key, record in records.items():
                    self._records.setdefault(key, record)
        self._sizes[name] = len(payloads[name])
        return True

    def _write(self) -> None:
        """Write the buffer; `append` goes on taking records meanwhile."""
        with self._writing:
            with self._guard:
                buffer, self._buffer = self._buffer, []
            if not buffer:
                return
            try:
                block = encode(buffer, about=self._fingerprint)
                with naming_place(self._store, unwritten=len(buffer)):
                    self._write_object(block, self._next)
                self._blocks[block] = None
            except BaseException:
                with self._guard:
                    self._buffer = buffer + self._buffer
                raise

    def _write_object(self, payload: bytes, number: int) -> str:
        name = f"{number:06d}-{uuid.uuid4().hex}.records"
        write_object(self._store, f"{FOLDER}/{name}", payload)
        self._sizes[name] = len(payload)
        self._next = max(self._next, number + 1)
        return name

    def _write_on(self) -> None:
        """Write now and then, more rarely the longer the run goes on."""
        began = time.monotonic()
        pause = LEAST_SECONDS
        while not self._ended.wait(pause):
            try:
                self._write()
            except Exception as error:  # shown to the driver by its next append
                self._failure = error
            else:
                self._failure = None
            share = SHARE * (time.monotonic() - began)
            pause = min(max(LEAST_SECONDS, share), MOST_SECONDS)

    def _merge(self) -> None:
        """Leave one object with all records, of those that this journal knows.

        The new one is there before any other goes, and has the number of the first of
        them: what other runs write meanwhile was written after that.
        """
        whole = max(self._sizes, key=lambda name: self._sizes[name])
        # Objects hold these blocks and, at most, one that says whose place this is.
        merged = b"".join(self._blocks)
        if self._sizes[whole] < len(merged):
            first = min(map(number_of, self._sizes))
            whole = self._write_object(merged, first)
        self._remove([name for name in self._sizes if name != whole])

    def _remove(self, names: list[str]) -> None:
        for name in names:
            sync(self._store.delete(f"{FOLDER}/{name}"))
            del self._sizes[name]


def open_journal(
    place: str | os.PathLike[str] | Store,
    fingerprint: Mapping[str, Any],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Journal:
    """Open the journal of a run, made if it is not there.

    One that was begun is opened for reading where nothing can be written.

    Parameters
    ----------
    place, storage_options
        As :func:`save_results` takes them; a cube may be there as well.
    fingerprint
        What every count depends on (data, splits, estimator, seeds, versions) as
        JSON-like values; not the grid, the criterion or delta.

    Raises
    ------
    StoreMismatchError
        Where the journal has another fingerprint; the differences are shown.
    OSError
        Where nothing can be written, and no run was begun.

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
    try:
        with naming_place(store):
            make_root(store)
    except OSError as error:
        with suppress(FileNotFoundError):
            read_root(store)
            return Journal(store, fingerprint, reason=error)
        raise
    return Journal(store, fingerprint)


def read_journal(
    place: str | os.PathLike[str] | Store, fingerprint: Mapping[str, Any]
) -> dict[str, Record]:
    """Return the records of a journal and write nothing; none where none was begun.

    Raises StoreMismatchError where the journal has another fingerprint.
    """
    store, records = open_store(place, read_only=True), dict[str, Record]()
    with suppress(FileNotFoundError):
        for about, theirs in _read_whole(store):
            check_fingerprint(about, plain(fingerprint), place=str(store))
            records = {**theirs, **records}
    return records


def read_fingerprint(place: str | os.PathLike[str] | Store) -> dict[str, Any]:
    """Return the fingerprint of the run at a place; empty where none was begun."""
    store = open_store(place, read_only=True)
    return next((about for about, _ in _read_whole(store)), {})


def _read_whole(store: Store) -> list[Block]:
    """Return the blocks of all objects that are not damaged, in order."""
    read_root(store)
    with naming_damage(store):
        found = sync(read_objects(store, set()))
    whole: list[Block] = []
    for name in in_order(found):
        with suppress(ValueError):
            whole += map(decode, blocks_of(found[name]))
    return whole
