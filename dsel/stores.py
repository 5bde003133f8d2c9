"""Zarr stores in which a chunk that is not there is an error.

Zarr takes a missing chunk for one that holds the fill value only. What dsel writes has
all of its chunks, so one that is missing was lost, and must not be read as zeros.
"""

from typing import TYPE_CHECKING, Final

from zarr.abc.store import ByteRequest, Store
from zarr.storage import WrapperStore

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer, BufferPrototype

HEADERS: Final = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
"""How the keys end that hold no chunk."""


class WholeStore(WrapperStore[Store]):
    """Another store, of which every chunk that is asked for must be there."""

    async def get(
        self,
        key: str,
        prototype: "BufferPrototype",
        byte_range: ByteRequest | None = None,
    ) -> "Buffer | None":
        """Return what is stored under a key; None for a header that is not there.

        Raises
        ------
        ValueError
            Where a chunk is not there.
        """
        found = await super().get(key, prototype, byte_range)
        if found is None and not key.endswith(HEADERS):
            raise ValueError(f"the chunk {key} is missing")
        return found

    def with_read_only(self, read_only: bool = False) -> "WholeStore":
        """Return the same store for reading only, or for both: zarr 3.1.3 cannot."""
        return WholeStore(self._store.with_read_only(read_only))

    def __str__(self) -> str:
        return str(self._store)
