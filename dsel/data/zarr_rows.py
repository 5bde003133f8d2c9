"""Collections of rows in zarr, on disk or in object storage."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import fsspec
import zarr
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore

from dsel.data.collection import Collection, array_of_reads
from dsel.data.content import canonical_text
from dsel.errors import reached
from dsel.stores import WholeStore

COLUMNS: Final = "columns"
"""Attribute of a zarr pool: names of its columns."""

_STAMPS: Final = (
    *("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "modified"),
    "created",
)
"""How file systems call what changes when a file is written, the best first."""


def from_zarr(
    array: Any,
    columns: tuple[str, ...] | None,
    url: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Collection:
    """Return the collection of a numeric 2-d zarr array, which tasks read themselves.

    `url` is where it is, if that is known. Options for fsspec may hold secrets: they
    are neither shown nor stored, nor part of a graph.
    """
    nbytes = int(array.shape[0]) * int(array.shape[1]) * array.dtype.itemsize
    rows = array_of_reads(partial(_read, array), array.chunks[0], nbytes, array)
    tell = partial(_told, array, url, storage_options or {})
    reopen = partial(_reopened, array, url, storage_options)
    return Collection(rows, columns, nbytes, tell, reopen)


def _read(array: Any, start: int, stop: int) -> Any:
    """Read whole chunks, several at once where they are small."""
    try:
        return reached(f"`pool` at {array.store}", lambda: array[start:stop])
    except (RuntimeError, ValueError) as error:
        step = array.chunks[0]
        if stop - start > step:  # of several chunks, find the one
            for first in range(start, stop, step):
                _read(array, first, min(first + step, stop))
        raise ValueError(
            f"`pool` at {array.store} is damaged: rows {start} to {stop - 1} "
            f"cannot be read ({error}); write the pool again."
        ) from error


def _told(
    array: Any, url: str | None, storage_options: Mapping[str, Any]
) -> tuple[str, bool]:
    # An array in a store without a place, as one in memory, is itself and no other.
    if url is None:
        return f"zarr-{uuid.uuid4().hex}", False
    text, has_stamps = told_by_stamps(array.metadata.to_dict(), url, storage_options)
    return f"zarr-{text}", has_stamps


def told_by_stamps(
    header: Mapping[str, Any], url: str, storage_options: Mapping[str, Any]
) -> tuple[str, bool]:
    """Hash a header, and size and stamp of every file; tell whether all have one."""
    stamps = file_stamps(url, storage_options)
    digest = blake2b(canonical_text(header).encode(), digest_size=16)
    digest.update(stamps.encode())
    has_stamps = not any(line.endswith(" ") for line in stamps.splitlines())
    return digest.hexdigest(), has_stamps


def _reopened(
    array: Any,
    url: str | None,
    storage_options: Mapping[str, Any] | None,
    collection: Collection,
) -> Collection:
    again = opened_again(array, _heading)
    return from_zarr(again, collection.columns, url, storage_options)


def _heading(array: Any) -> dict[str, Any]:
    """Return what must be known of an array to read its chunks."""
    found = dict(array.metadata.to_dict())
    found.pop("attributes", None)
    return found


def opened_again(node: Any, heading: Callable[[Any], dict[str, Any]]) -> Any:
    """Open a node of a pool where it is; ValueError where its heading has changed."""
    here = f"`pool` at {node.store}"
    try:
        again = zarr.open(node.store, path=node.path, mode="r")
    except FileNotFoundError as error:
        raise ValueError(
            f"{here} is gone; open the pool that is to be read."
        ) from error
    if type(again) is not type(node) or heading(again) != heading(node):
        raise ValueError(
            f"{here} was written anew since it was opened, with another shape, "
            f"type or chunks; open it again, and plan with it."
        )
    return again


def place_of(array: Any) -> tuple[str | None, dict[str, Any]]:
    """Return path or URL of an open zarr array, and the options to reach it by.

    None where its store has neither.
    """
    store = array.store
    if isinstance(store, LocalStore):
        return str(Path(store.root) / array.path), {}
    if not isinstance(store, FsspecStore):
        return None, {}
    files = getattr(store.fs, "sync_fs", store.fs)
    options = dict(files.storage_options)
    for only_here in ("asynchronous", "loop"):
        options.pop(only_here, None)
    return files.unstrip_protocol(f"{store.path}/{array.path}".rstrip("/")), options


def file_stamps(url: str, storage_options: Mapping[str, Any]) -> str:
    """List size and stamp of every file under `url`, the place itself left out.

    A copy that keeps the times (``cp -a``, ``rsync -a``) has the same stamps. A line
    ends in a space where there is none.
    """
    files, root = fsspec.core.url_to_fs(url, **storage_options)
    files.invalidate_cache(root)  # what was listed before may have been written since
    found = files.find(root, detail=True)
    stamps = [
        f"{name.removeprefix(root)} {entry.get('size')} {_stamp(entry)}"
        for name, entry in sorted(found.items())
        if not name.endswith(".partial")
    ]
    return "\n".join(stamps)


def _stamp(entry: Mapping[str, Any]) -> str:
    for key in _STAMPS:
        if entry.get(key):
            return str(entry[key])
    return ""


def stored_columns(attributes: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the column names in the attributes of a zarr pool, if there are any."""
    names = attributes.get(COLUMNS)
    return tuple(map(str, names)) if isinstance(names, list) else None


def guarded(node: Any) -> Any:
    """Return a node of a pool that dsel wrote; a chunk that is lost is an error.

    Zarr would read it as zeros.
    """
    return zarr.open(WholeStore(node.store), path=node.path, mode="r")


def check_chunks(array: Any, location: str) -> None:
    """Raise ValueError where no chunk of some rows is stored: lost, or never written.

    A chunk of some columns may be left out: zarr does so where it holds zeros only.
    """
    lengths = array.shards or array.chunks
    n_rows, n_beside = (-(-n // m) for n, m in zip(array.shape, lengths, strict=True))
    key_of = array.metadata.encode_chunk_key
    wanted = ([key_of((i, j)) for j in range(n_beside)] for i in range(n_rows))
    if array.size:
        check_stored(array, wanted, lengths[0], array.shape[0], location)


def check_stored(
    node: Any, wanted: Iterable[list[str]], size: int, n_rows: int, location: str
) -> None:
    """Raise ValueError where of the keys of some `size` rows none is stored."""
    stored = sync(_stored_keys(node))
    if not stored:  # a place that does not list what it has
        return
    for number, keys in enumerate(wanted):
        if stored.isdisjoint(keys):
            first, last = number * size, min((number + 1) * size, n_rows) - 1
            raise ValueError(
                f"`pool` {location!r} is damaged, or was not written to the end: "
                f"nothing is stored for rows {first} to {last}. Write it again with "
                f"`write_pool`; if zarr left them out as zeros, pass the open array."
            )


async def _stored_keys(node: Any) -> set[str]:
    """Return the names of all that is stored under a node, its header among them."""
    prefix = f"{node.path}/" if node.path else ""
    return {key.removeprefix(prefix) async for key in node.store.list_prefix(prefix)}
