"""Rows of a zarr pool of which nothing is stored, which zarr would read as zeros."""

from collections.abc import Iterable
from typing import Any

import zarr
from zarr.core.sync import sync

from dsel.data.base import Layout
from dsel.data.zarr_sparse import part_name
from dsel.stores import WholeStore


def guarded(node: Any) -> Any:
    """Return a node of a pool that dsel wrote; a chunk that is lost is an error."""
    return zarr.open(WholeStore(node.store), path=node.path, mode="r")


def check_chunks(array: Any, layout: Layout, location: str) -> None:
    """Raise where no chunk of some rows is stored.

    A chunk of some columns may be left out: zarr does so where it holds zeros only.

    Raises
    ------
    ValueError
        Where rows were lost, or never written.
    """
    lengths = array.shards or array.chunks
    n_rows, n_beside = (-(-n // m) for n, m in zip(array.shape, lengths, strict=True))
    key_of = array.metadata.encode_chunk_key
    wanted = ([key_of((i, j)) for j in range(n_beside)] for i in range(n_rows))
    if array.size:
        _check(array, wanted, lengths[0], layout, location)


def check_parts(group: Any, layout: Layout, location: str) -> None:
    """Raise where a part of a sparse pool is not stored, as `check_chunks` does."""
    bounds = layout.boundaries
    wanted = ([f"{part_name(i)}/indptr/c/0"] for i in range(len(bounds) - 1))
    if len(bounds) > 1:
        _check(group, wanted, int(bounds[1]), layout, location)


def _check(
    node: Any, wanted: Iterable[list[str]], size: int, layout: Layout, location: str
) -> None:
    stored = sync(_stored_keys(node))
    if not stored:  # a place that does not list what it has
        return
    for number, keys in enumerate(wanted):
        if stored.isdisjoint(keys):
            first, last = number * size, min((number + 1) * size, layout.n_rows) - 1
            raise ValueError(
                f"`pool` {location!r} is damaged, or was not written to the end: "
                f"nothing is stored for rows {first} to {last}. Write it again with "
                f"`write_pool`; if zarr left them out as zeros, pass the open array."
            )


async def _stored_keys(node: Any) -> set[str]:
    """Return the names of all that is stored under a node, its header among them."""
    prefix = f"{node.path}/" if node.path else ""
    return {key.removeprefix(prefix) async for key in node.store.list_prefix(prefix)}
