"""What dsel asks of zarr stores before it reads or writes them.

Zarr takes a missing chunk for one that holds the fill value only. What dsel writes has
all of its chunks, so one that is missing was lost, and must not be read as zeros.

Zarr decodes a chunk with whatever codec the array's header names, and one of those
unpickles, which runs code. Arrays may come from anywhere, so dsel decodes chunks with
codecs that only move and compress bytes.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from zarr.abc.store import ByteRequest, Store
from zarr.core.sync import sync
from zarr.storage import WrapperStore

from dsel.checks import listed
from dsel.files import PARTIAL

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

POOL: Final = "dsel_pool"
"""Attribute of pools that dsel wrote: ``dense`` or ``csr``."""
HEAD: Final = "zarr.json"
"""What describes a group, and holds its attributes."""

BAD_HEADER: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What zarr raises at a header that is not as its format asks."""

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
"""How long writes of zarr that go on may take."""
HEADERS: Final = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
"""How the keys end that hold no chunk."""


class WholeStore(WrapperStore[Store]):
    """Another store of format 3, of which no chunk may be missing."""

    async def get(
        self,
        key: str,
        prototype: "BufferPrototype",
        byte_range: ByteRequest | None = None,
    ) -> "Buffer | None":
        """Return what is stored under a key; None for a header that is not there."""
        found = await super().get(key, prototype, byte_range)
        if found is None and not key.endswith(HEADERS):
            raise ValueError(f"the chunk {key} is missing")
        return found

    def with_read_only(self, read_only: bool = False) -> Self:
        """Return the same store for reading only, or for both: zarr 3.1.3 cannot."""
        return type(self)(self._store.with_read_only(read_only))

    def __str__(self) -> str:
        return str(self._store)


def finish_writes() -> None:
    """Wait for what zarr still writes: of several files one fails, the others go on.

    Removed before, they would be there again.
    """

    async def finish() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=MOST_SECONDS)

    sync(finish())


def check_array(array: Any) -> None:
    """Raise ValueError where a zarr array could run code when it is read."""
    stored = array.metadata.to_dict()
    where = f"the array {array.path or array.name!r} of {array.store}"
    codecs = stored.get("codecs", ())
    if stored["zarr_format"] == 2:
        if array.dtype.hasobject:
            raise ValueError(
                f"{where} holds Python objects, which dsel never decodes; write it as "
                f"numbers, or in zarr format 3."
            )
        found = filter(None, [*(stored["filters"] or ()), stored["compressor"]])
        codecs = [{"name": f"numcodecs.{each['id']}"} for each in found]
    check_codecs(codecs, where)


def check_codecs(codecs: Iterable[Mapping[str, Any]], where: str) -> None:
    """Raise ValueError where a codec is not known, or one that a shard has inside."""
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
    """Raise where anything is in a place: what dsel did not write it leaves alone."""
    if names:
        raise ValueError(
            f"`{argument}` {place} must be an empty place or hold dsel's own, but "
            f"{listed(names, 3)} is there; choose another place."
        )


def names_in(store: Store) -> list[str]:
    """Return what a store holds; a head that zarr was killed at is nothing."""

    async def found() -> list[str]:
        return [name async for name in store.list_dir("")]

    return sorted(name for name in sync(found()) if not PARTIAL.match(name))


def check_not_in_pool(path: str | Path, name: str) -> None:
    """Raise ValueError where a path is inside a zarr array, such as a pool.

    Errors call the argument `name`.
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
