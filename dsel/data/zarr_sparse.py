"""Sparse rows in zarr: parts of CSR, each with its row numbers.

A group with the attributes of `SparseLayout` holds one group per part, named by
`part_name`, with the arrays ``data``, ``indices`` and ``indptr`` in one chunk each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np
import zarr
from scipy import sparse
from zarr.codecs import BloscCodec, Crc32cCodec

from dsel.data.base import Layout, regular_boundaries, slices
from dsel.data.canonical import canonical_text
from dsel.data.zarr_rows import file_stamps
from dsel.errors import reached
from dsel.stores import BAD_HEADER, check_array

PART_ROWS: Final = "part_rows"
N_ROWS: Final = "n_rows"
N_COLUMNS: Final = "n_columns"
ENTRIES: Final = "entries"
DTYPE: Final = "dtype"


@dataclass(frozen=True)
class CsrParts:
    """Some parts of a sparse pool, which the task opens itself."""

    group: Any
    """The zarr group; small to pickle."""
    start: int
    stop: int
    part_rows: int
    n_columns: int

    def blocks(self, block_rows: int) -> Iterator[tuple[int, Any]]:
        """Read part by part."""
        for start in range(self.start, self.stop, self.part_rows):
            n_rows = min(self.part_rows, self.stop - start)
            shape = (n_rows, self.n_columns)
            rows = read_part(self.group, start // self.part_rows, shape)
            yield from slices(start, rows, block_rows)


@dataclass(frozen=True, eq=False)
class ZarrSparseStorage:
    """A zarr group of CSR parts."""

    group: Any
    """The zarr group."""
    columns: tuple[str, ...] | None
    """Names of the features."""
    url: str
    """Where the group is."""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """For fsspec; may hold secrets, so they are neither shown nor stored."""

    @cached_property
    def layout(self) -> Layout:
        """What the attributes say; chunks are the parts."""
        n_rows = self._count(N_ROWS)
        dtype = self._dtype()
        entry_nbytes = dtype.itemsize + np.dtype(np.int32).itemsize
        return Layout(
            n_rows=n_rows,
            n_columns=self._count(N_COLUMNS),
            dtype=dtype,
            columns=self.columns,
            is_sparse=True,
            nbytes=self._count(ENTRIES) * entry_nbytes + 4 * n_rows,
            boundaries=regular_boundaries(n_rows, self._count(PART_ROWS, at_least=1)),
        )

    def _count(self, name: str, at_least: int = 0) -> int:
        value = self.group.attrs.get(name)
        if type(value) is not int or not at_least <= value < 2**48:
            raise self._damaged(name, f"a whole number from {at_least} on", value)
        return value

    def _dtype(self) -> np.dtype[Any]:
        value = self.group.attrs.get(DTYPE)
        try:
            dtype = np.dtype(value if isinstance(value, str) else object)
        except (TypeError, ValueError):
            dtype = np.dtype(object)
        if dtype.kind not in "buif":
            raise self._damaged(DTYPE, "a type of numbers", value)
        return dtype

    def _damaged(self, name: str, rule: str, value: Any) -> ValueError:
        return ValueError(
            f"`pool` {self.url!r} is damaged: {name!r} in its head must be {rule}, got "
            f"{value!r}; write the pool again."
        )

    @cached_property
    def token(self) -> str:
        """Attributes, and size and stamp of every stored part."""
        digest = blake2b(digest_size=16)
        digest.update(canonical_text(dict(self.group.attrs)).encode())
        digest.update(file_stamps(self.url, self.storage_options).encode())
        return f"zarr-csr-{digest.hexdigest()}"

    @property
    def tells_content(self) -> bool:
        """Whoever writes a part changes its stamp."""
        return True

    def reopened(self) -> Self:
        """Open the group again, where it is."""
        here = f"`pool` at {self.group.store}"
        try:
            group = zarr.open_group(self.group.store, path=self.group.path, mode="r")
        except FileNotFoundError as error:
            raise ValueError(
                f"{here} is gone; open the pool that is to be read."
            ) from error
        if dict(group.attrs) != dict(self.group.attrs):
            raise ValueError(
                f"{here} was written anew since it was opened; open it again, and plan "
                f"with it."
            )
        return replace(self, group=group)

    def pieces(self, start: int, stop: int, client: Any) -> tuple[list[int], list[Any]]:
        """Return the parts' place; the task opens them."""
        part_rows = int(self.group.attrs[PART_ROWS])
        parts = CsrParts(self.group, start, stop, part_rows, self.layout.n_columns)
        return [start], [parts]


def part_name(number: int) -> str:
    """Return the name of a part's group."""
    return f"part-{number:07d}"


def read_part(group: Any, number: int, shape: tuple[int, int]) -> Any:
    """Return one part as CSR, checked: a damaged file must not reach compiled code.

    Raises
    ------
    ValueError
        Where the part is missing or is no CSR matrix of this shape.
    """
    try:
        arrays = reached(
            f"`pool` at {group.store}", lambda: _arrays(group[part_name(number)])
        )
        matrix = sparse.csr_matrix(arrays, shape=shape)
        matrix.check_format(full_check=True)
    except (*BAD_HEADER, RuntimeError) as error:
        raise ValueError(
            f"`pool` is damaged: part {number} cannot be read ({error}); write the "
            "pool again."
        ) from error
    return matrix


def _arrays(part: Any) -> tuple[Any, ...]:
    arrays = [part[name] for name in ("data", "indices", "indptr")]
    for array in arrays:
        check_array(array)
    return tuple(array[:] for array in arrays)


def write_part(group: Any, number: int, rows: Any) -> None:
    """Write one part; written again, it is replaced."""
    part = group.create_group(part_name(number), overwrite=True)
    arrays = {
        "data": rows.data,
        "indices": rows.indices.astype(np.int32),
        "indptr": rows.indptr.astype(np.int64),
    }
    for name, values in arrays.items():
        part.create_array(
            name,
            data=values,
            chunks=(max(len(values), 1),),
            compressors=fast_codecs(values.dtype),
            config={"write_empty_chunks": True},
        )


def fast_codecs(dtype: np.dtype[Any]) -> list[Any]:
    """Return the codecs of pools: measurements hardly compress, so they must be quick.

    The checksum costs a seventh of reading a chunk that is in the page cache.
    """
    blosc = BloscCodec(cname="lz4", shuffle="shuffle", typesize=dtype.itemsize)
    return [blosc, Crc32cCodec()]


def is_sparse_group(node: Any, format_name: str) -> bool:
    """Tell whether a zarr node is a sparse pool."""
    return isinstance(node, zarr.Group) and node.attrs.get(format_name) == "csr"
