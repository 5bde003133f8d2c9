"""The journal: every finished task is on disk within a second, and is found again.

Rows are buffered by `append` and written by a thread of the driver's process, in one
write for all that finished since the last. A process that is killed at any moment
leaves whole writes only; what it had not written is counted again.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import zarr
from numpy.typing import ArrayLike
from zarr.abc.store import Store
from zarr.storage import LocalStore

from dsel.errors import DselWarning, warn
from dsel.results.fingerprint import check_fingerprint, plain
from dsel.results.lock import BEAT_SECONDS, PATIENCE_SECONDS, WriterLock
from dsel.results.log import Log, create_log, read_log, write_payload
from dsel.results.records import Rows, decode, encode, make_rows
from dsel.results.store import make_root, open_store, read_root

GROUP: Final = "journal"
POINTER: Final = "log"
FINGERPRINT: Final = "fingerprint"
WRITE_SECONDS: Final = 0.5
"""How often the thread looks for rows to write."""
COMPACT_CHUNKS: Final = 16
"""A journal of more chunks is rewritten into few when it is closed."""


class Journal:
    """An open journal; made by `open_journal`, ended by `close` or a ``with``."""

    def __init__(self, root: zarr.Group, lock: WriterLock) -> None:
        self._lock = lock
        self._group = root.require_group(GROUP)
        self._log = _current_log(self._group)
        self._rows, self._next = _read_rows(self._log)
        self._buffer: list[Rows] = []
        self._guard = threading.Lock()
        self._failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._write_on, name="dsel-journal", daemon=True
        )
        self._thread.start()

    @property
    def place(self) -> str:
        """Where the journal is."""
        return str(self._group.store)

    def rows(self, kind: str) -> Rows:
        """Return all rows of one kind, appended ones included.

        A key that was appended twice counts once, as it stood first.
        """
        with self._guard:
            found = [rows for rows in self._rows if rows.kind == kind]
        return _joined(kind, found)

    def append(
        self, kind: str, keys: Iterable[bytes], columns: Mapping[str, ArrayLike]
    ) -> None:
        """Take rows to be written within a second.

        Parameters
        ----------
        kind
            What the rows tell of.
        keys
            One key per row, from `make_key`.
        columns
            Numbers or text by name, one entry per row; copied.

        Raises
        ------
        OSError
            Where an earlier write failed; the rows that were not written are kept.
        """
        rows = make_rows(kind, keys, columns)
        with self._guard:
            self._rows.append(rows)
            self._buffer.append(rows)
        self._raise_failure()

    def flush(self) -> None:
        """Write what was appended; return when it is there.

        Raises
        ------
        OSError
            Where the place is full or read-only; call again when there is room.
        StoreBusyError
            Where another process took the store over.
        """
        with self._guard:
            self._failure = None
            self._write()

    def close(self) -> None:
        """Write what was appended, tidy up and let others write."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        try:
            self.flush()
            if self._next > COMPACT_CHUNKS:
                self._compact()
        finally:
            with suppress(OSError):
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
        if not self._buffer:
            return
        self._lock.check()
        try:
            end = write_payload(self._log, encode(self._buffer), at=self._next)
        except OSError as error:
            raise _explained(error, self.place, len(self._buffer)) from error
        self._next, self._buffer = end, []

    def _write_on(self) -> None:
        beaten = time.monotonic()
        while not self._ended.wait(WRITE_SECONDS):
            try:
                with self._guard:
                    self._write()
                self._failure = None
                if time.monotonic() - beaten > BEAT_SECONDS:
                    self._lock.beat()
                    beaten = time.monotonic()
            except Exception as error:  # shown to the driver by its next append
                self._failure = error

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is not None:
            self._failure = None
            raise failure

    def _compact(self) -> None:
        name = str(self._group.attrs[POINTER])
        _, fresh = _neighbours(name)
        log = create_log(self._group, fresh)
        kinds = dict.fromkeys(rows.kind for rows in self._rows)
        self._next = write_payload(
            log, encode([self.rows(kind) for kind in kinds]), at=0
        )
        self._group.attrs[POINTER] = fresh
        self._log = log
        del self._group[name]


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
    >>> from dsel.results.keys import make_key
    >>> with TemporaryDirectory() as place:
    ...     with open_journal(place, {"seed": 7}) as journal:
    ...         journal.append("fit", [make_key("fold-0")], {"errors": [3]})
    ...     with open_journal(place, {"seed": 7}) as journal:
    ...         journal.rows("fit").columns["errors"].tolist()
    [3]
    """
    store = open_store(place, storage_options=storage_options)
    try:
        root = make_root(store)
        lock = WriterLock(root, patience=patience)
        lock.acquire()
    except OSError as error:
        raise _explained(error, str(store), 0) from error
    try:
        _sweep(store)
        group = root.require_group(GROUP)
        stored = group.attrs.get(FINGERPRINT)
        if isinstance(stored, Mapping):
            check_fingerprint(stored, fingerprint, place=str(store))
        else:
            group.attrs[FINGERPRINT] = plain(fingerprint)
        return Journal(root, lock)
    except BaseException:
        with suppress(OSError):
            lock.release()
        raise


def read_fingerprint(
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fingerprint of the run at a place; empty where none was begun."""
    store = open_store(place, storage_options=storage_options, read_only=True)
    read_root(store)
    root = zarr.open_group(store, mode="r", zarr_format=3)
    stored = root[GROUP].attrs.get(FINGERPRINT) if GROUP in root else None
    return dict(stored) if isinstance(stored, Mapping) else {}


def _current_log(group: zarr.Group) -> Log:
    name = group.attrs.get(POINTER)
    if name is None:
        log = create_log(group, "log-1")
        group.attrs[POINTER] = "log-1"
        return log
    before, _ = _neighbours(str(name))
    del group[before]  # may be left by a rewrite that was cut short
    found = group[str(name)]
    assert isinstance(found, zarr.Array)
    return found


def _neighbours(name: str) -> tuple[str, str]:
    number = int(name.removeprefix("log-"))
    return f"log-{number - 1}", f"log-{number + 1}"


def _read_rows(log: Log) -> tuple[list[Rows], int]:
    content = read_log(log)
    if content.n_damaged:
        warn(
            f"{content.n_damaged} of {content.n_chunks} parts of the journal at "
            f"{log.store} are incomplete; what they held is counted again.",
            DselWarning,
        )
    batches = [rows for payload in content.payloads for rows in decode(payload)]
    return batches, content.n_chunks


def _joined(kind: str, batches: list[Rows]) -> Rows:
    keys = [key for rows in batches for key in rows.keys]
    first: dict[bytes, int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    kept = list(first.values())
    names = batches[0].columns if batches else ()
    columns = {
        name: np.concatenate([rows.columns[name] for rows in batches])[kept]
        for name in names
    }
    return Rows(kind, tuple(first), columns)


def _sweep(store: Store) -> None:
    """Delete what writers that were killed left half-written."""
    if isinstance(store, LocalStore):
        root = Path(store.root)
        for leftover in (*root.glob("*.partial"), *(root / GROUP).rglob("*.partial")):
            leftover.unlink(missing_ok=True)


def _explained(error: OSError, place: str, n_unwritten: int) -> OSError:
    kept = (
        f"; {n_unwritten} finished tasks are not in it and will be counted again, all "
        f"others are safe"
        if n_unwritten
        else ""
    )
    text = (
        f"cannot write to {place}: {error.strerror or error}{kept}. Make room or "
        f"choose another `out`, then run the same command again."
    )
    return type(error)(error.errno, text) if error.errno else OSError(text)
