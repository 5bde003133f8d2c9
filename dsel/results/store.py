"""Where results live: a directory, an fsspec URL or a zarr store."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EROFS
from pathlib import Path
from typing import Any, Final

import zarr
from fsspec.core import strip_protocol
from google_crc32c import value as crc32c
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.sync import sync
from zarr.errors import ContainsArrayError
from zarr.storage import FsspecStore, LocalStore

from dsel.checks import check_path, check_url
from dsel.errors import without_queries
from dsel.results.schema import SCHEMA_VERSION
from dsel.stores import (
    HEAD,
    HEADERS,
    VERSION_ATTRIBUTE,
    WholeStore,
    check_empty,
    check_outside,
)

GROUPS: Final = ("journal", "cube-")
"""How the names of groups begin that are of use with the store's own head only."""
MAKE_ANEW: Final = (
    "run the same command again with the same `out`, which makes it anew of what was "
    "counted"
)
"""What can be done about a cube that is damaged."""


class CubeStore(WholeStore):
    """The store of a cube, each chunk of which ends with its checksum.

    Values are read long after a cube was opened, so what is lost or changed is named
    here, with what can be done about it.
    """

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return what is stored under a key; raise where a chunk is not as written."""
        is_head = key.endswith(HEADERS)
        try:
            found = await super().get(key, prototype, byte_range)
            if found is not None and not is_head:
                _check_sum(key, found.to_bytes())
        except ValueError as error:
            if is_head:  # known when a cube is opened
                raise
            raise ValueError(f"{self} is damaged: {error}; {MAKE_ANEW}.") from error
        return found


def _check_sum(key: str, chunk: bytes) -> None:
    if crc32c(chunk[:-4]).to_bytes(4, "little") != chunk[-4:]:
        raise ValueError(f"the chunk {key} has another checksum than its bytes")


def open_store(
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
    read_only: bool = False,
    name: str = "out",
) -> Store:
    """Return the zarr store at a path or URL; a store is returned as it is.

    Errors call the argument `name`: TypeError where it is neither, ValueError or
    ImportError where it is empty or nothing here knows its protocol.
    """
    if isinstance(place, Store):
        return place
    if not isinstance(place, (str, os.PathLike)):
        raise TypeError(
            f"`{name}` must be a path, a URL or a zarr store, got {place!r}."
        )
    text = os.fspath(place)
    if not text:
        raise ValueError(f"`{name}` must name a place, got ''; '.' is this directory.")
    check_path(text, name)
    if "://" in text:
        check_url(text, name)
    if text.startswith(("file://", "local://")):
        text = str(strip_protocol(text))
    if "://" not in text:
        return LocalStore(Path(text).absolute(), read_only=read_only)
    options = dict(storage_options or {})
    store = FsspecStore.from_url(text, storage_options=options, read_only=read_only)
    store.fs.invalidate_cache()  # others may have written since this process looked
    return store


def read_root(store: Store) -> dict[str, Any]:
    """Return the attributes of a results store, having checked its version."""
    try:
        with naming_damage(store):
            root = zarr.open_group(store, mode="r", zarr_format=3)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there is no results store at {store}; name the place that `out` named."
        ) from error
    attributes = dict(root.attrs)
    check_version(attributes, str(store))
    return attributes


def make_root(store: Store) -> zarr.Group:
    """Return the root group for writing, made if need be.

    Raises OSError where the store takes no writes, ValueError where its head was lost,
    and with it the name of the cube, or where the place holds anything else, or lies in
    a pool.
    """
    if store.read_only:
        raise OSError(EROFS, "the zarr store was opened for reading only")
    if isinstance(store, LocalStore):
        check_outside(store.root, "out")
    with naming_damage(store):
        root = _stored_root(store)
    if root is None:
        check_empty(store, "out")
        attributes: dict[str, Any] = {VERSION_ATTRIBUTE: SCHEMA_VERSION}
        root = zarr.open_group(store, mode="a", zarr_format=3, attributes=attributes)
    check_version(dict(root.attrs), str(store))
    return root


def _stored_root(store: Store) -> zarr.Group | None:
    try:
        return zarr.open_group(store, mode="r+", zarr_format=3)
    except FileNotFoundError:
        if lost := sync(_groups_in(store)):
            raise ValueError(f"{HEAD} is missing beside {', '.join(lost)}") from None
        return None


async def _groups_in(store: Store) -> list[str]:
    """Return what is there of a store of ours that has no head of its own."""
    names = [name async for name in store.list_dir("") if name.startswith(GROUPS)]
    return [name for name in names if await store.exists(f"{name}/{HEAD}")]


@contextmanager
def naming_damage(
    store: Store, *, way_out: str = "bring it back from a copy, or choose another `out`"
) -> Iterator[None]:
    """Say where it was that a group could not be read, and the `way_out`.

    A ValueError stands for what JSON and zarr say of a file that is cut short or
    missing, a ConnectionError for what a library says that does not get there.
    """
    try:
        yield
    except FileNotFoundError:  # zarr's own is a ValueError too
        raise
    except ContainsArrayError as error:
        raise ValueError(
            f"{store} is a zarr array, such as a pool, and holds no dsel results; "
            f"choose another place."
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # zarr has these for a head of the wrong kind, and mistakes of ours raise them.
        said = error if isinstance(error, ValueError) else _broken_head(store)
        if not said:
            raise
        raise ValueError(
            f"{store} is damaged, a file in it cannot be read ({said}); {way_out}."
        ) from error
    except Exception as error:
        if not _is_of_no_kind(error):
            raise
        told = without_queries(str(error))
        raise ConnectionError(
            f"cannot reach {store}: {told}. See that it is there and that its options "
            f"are right, then run the same command again."
        ) from (error if told == str(error) else None)


def _broken_head(store: Store) -> str:
    """Return which group or array has a head that zarr cannot read, and why."""
    for key in sorted(sync(_heads_in(store))):
        try:
            zarr.open(store, path=key[: -len(HEAD)], mode="r", zarr_format=3)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return f"{key}: {error!r}"
    return ""


async def _heads_in(store: Store) -> list[str]:
    return [key async for key in store.list_prefix("") if key.endswith(HEAD)]


@contextmanager
def naming_place(store: Store, *, unwritten: int = 0) -> Iterator[None]:
    """Say where nothing could be written, in an OSError of the same kind.

    `unwritten` is the number of finished tasks that the write is about.
    """
    try:
        yield
    except Exception as error:
        is_told = isinstance(error, ConnectionError) and error.errno is None
        if is_told or not (isinstance(error, OSError) or _is_of_no_kind(error)):
            raise
        lost = (
            f"; {unwritten} finished tasks are not in it and will be counted again, "
            f"all others are safe"
        )
        text = (
            f"cannot write to {store}: {getattr(error, 'strerror', None) or error}"
            f"{lost if unwritten else ''}. Make room or choose another `out`, then run "
            f"the same command again."
        )
        number = getattr(error, "errno", None)
        # Others are made of other arguments.
        kind = type(error) if type(error).__module__ == "builtins" else OSError
        raise (kind(number, text) if number else OSError(text)) from error


def _is_of_no_kind(error: Exception) -> bool:
    """Tell errors of libraries that reach places, which are of no builtin kind."""
    kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return kinds == [Exception, BaseException, object]


def check_version(attributes: Mapping[str, Any], place: str) -> None:
    """Raise ValueError unless this version of dsel can read what was written."""
    found = attributes.get(VERSION_ATTRIBUTE)
    if not isinstance(found, int):
        raise ValueError(
            f"{place} is a zarr group but holds no dsel results; choose another place."
        )
    if found < SCHEMA_VERSION:
        raise ValueError(
            f"{place} was written by an older dsel (schema {found}, this one reads "
            f"{SCHEMA_VERSION}); choose another place and run the search again."
        )
    if found > SCHEMA_VERSION:
        raise ValueError(
            f"{place} was written by a newer dsel (schema {found}, this one reads "
            f"{SCHEMA_VERSION}); update dsel to open it."
        )
