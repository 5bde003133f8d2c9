"""Checks of zarr stores before dsel reads or writes them.

Zarr reads a missing chunk as one that has the fill value only. Stores of dsel have all
of their chunks, so that a missing one was lost, and must not be read as zeros.

Zarr decodes a chunk with any codec that the array's header names, and one of those
unpickles, which runs code. Since arrays may come from strangers, dsel only decodes
chunks with codecs that move and compress bytes.
"""

import asyncio
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.sync import sync
from zarr.storage import StoreLike, WrapperStore

from dsel.checks import listing
from dsel.files import PARTIAL

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

POOL: Final = "dsel_pool"
"""Attribute of pools that dsel wrote: ``dense`` or ``csr``."""
HEAD: Final = "zarr.json"
"""File that describes a group, and has its attributes."""

BAD_HEADER: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that zarr raises if a header violates its format."""

# fmt: off
CODECS: Final = frozenset({
    "bytes", "endian", "blosc", "crc32c", "gzip", "sharding_indexed", "transpose",
    "vlen-bytes", "vlen-utf8", "zstd",
}) | {f"numcodecs.{name}" for name in (
    "adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma",
    "packbits", "quantize", "shuffle", "zlib", "zstd",
)}
"""Codecs of format 3; without "numcodecs." the others are those of format 2."""
# fmt: on

MOST_SECONDS: Final = 10.0
"""Longest wait for writes that zarr has begun."""
HEADERS: Final = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
"""Endings of keys that are no chunks."""


class WholeStore(WrapperStore[Store]):
    """Wrapper of a store of format 3 that raises if a chunk is missing."""

    async def get(
        self,
        key: str,
        prototype: "BufferPrototype",
        byte_range: ByteRequest | None = None,
    ) -> "Buffer | None":
        """Return the bytes of a key; None for a missing header."""
        content = await super().get(key, prototype, byte_range)
        if content is None and not key.endswith(HEADERS):
            raise ValueError(f"the chunk {key} is missing")
        return content

    def with_read_only(self, read_only: bool = False) -> Self:
        """Return the same store as read-only or writable: zarr 3.1.3 raises here."""
        return type(self)(self._store.with_read_only(read_only))

    def __str__(self) -> str:
        return str(self._store)


def consolidate(store: StoreLike) -> None:
    """Consolidate the metadata of a group, which xarray looks for."""
    with warnings.catch_warnings(action="ignore"):  # format 3 does not specify it
        zarr.consolidate_metadata(store)


def finish_writes() -> None:
    """Wait for the files that zarr is still writing after one of them failed.

    If they were removed before, zarr would write them again.
    """

    async def finish() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=MOST_SECONDS)

    sync(finish())


def check_array(array: Any) -> None:
    """Raise ValueError if reading a zarr array could run code."""
    stored = array.metadata.to_dict()
    where = f"the array {array.path or array.name!r} of {array.store}"
    codecs = stored.get("codecs", ())
    if stored["zarr_format"] == 2:
        if array.dtype.hasobject:
            raise ValueError(
                f"{where} holds Python objects, which dsel never decodes; write it as "
                f"numbers, or in zarr format 3."
            )
        used = filter(None, [*(stored["filters"] or ()), stored["compressor"]])
        codecs = [{"name": f"numcodecs.{codec['id']}"} for codec in used]
    check_codecs(codecs, where)


def check_codecs(codecs: Iterable[Mapping[str, Any]], where: str) -> None:
    """Raise ValueError if a codec, or one inside of a shard, is not in `CODECS`."""
    for codec in codecs:
        if codec["name"] not in CODECS:
            raise ValueError(
                f"{where} is stored with {codec['name']}, which dsel never decodes; "
                f"write it with blosc, gzip or zstd, or without any codec."
            )
        inside = codec.get("configuration", {})
        for key in ("codecs", "index_codecs"):
            check_codecs(inside.get(key, ()), where)


def check_empty(names: Sequence[str], place: object, argument: str) -> None:
    """Raise if a place has files of others, which dsel must not change."""
    if names:
        raise ValueError(
            f"`{argument}` {place} must be an empty place or hold dsel's own, but "
            f"{listing(names, 3)} is there; choose another place."
        )


def names_in(store: Store) -> list[str]:
    """Return the names in a store, without the partial files of a killed writer."""

    async def listing() -> list[str]:
        return [name async for name in store.list_dir("")]

    return sorted(name for name in sync(listing()) if not PARTIAL.match(name))


def check_not_in_pool(path: str | Path, name: str) -> None:
    """Raise ValueError if a path is inside a zarr array, such as a pool.

    Errors name the argument `name`.
    """
    try:
        parents = Path(path).resolve().parents
    except (OSError, RuntimeError) as error:  # before Python 3.13 a loop is the latter
        raise ValueError(
            f"`{name}` {path} is a symbolic link to itself; choose another place."
        ) from error
    for parent in parents:
        try:
            head = json.loads((parent / HEAD).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(head, dict) and head.get("node_type") == "array":
            raise ValueError(
                f"`{name}` {path} is inside the pool {parent}, and writing "
                f"there would change the pool; choose another place."
            )
