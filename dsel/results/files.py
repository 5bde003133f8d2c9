"""Saving a cube as zarr and opening it again, lazily."""

import asyncio
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any, Final

import xarray as xr
import zarr
from zarr.abc.store import Store
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from dsel import names
from dsel.results import schema
from dsel.results.cube import check_cube, evidence
from dsel.results.journal import read_fingerprint
from dsel.results.store import (
    MAKE_ANEW,
    CubeStore,
    make_root,
    naming_damage,
    naming_place,
    open_store,
    read_root,
)
from dsel.stores import HEAD

POINTER: Final = "dsel_cube"
"""Attribute of the root: the group of the cube that counts."""
VARIABLES: Final = "dsel_cube_variables"
"""Attribute of the root: names of its variables; all chunks of these are stored."""
PREFIX: Final = "cube-"
OWN_FILE: Final = re.compile(
    r"([^/]+/)?(zarr\.json|c(/\d+)*|(c/(\d+/)*)?[^/]+\.[0-9a-f]{32}\.partial)$"
)
"""What may be in the group of a cube, if only dsel wrote there."""


def save_results(
    results: xr.Dataset,
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Save a results cube as zarr (format 3), in the place of one already there.

    The old cube stays readable until the new one is complete, and one generation
    longer for those who have it open.

    Parameters
    ----------
    results
        A results cube.
    place
        Directory, fsspec URL or zarr store.
    storage_options
        Passed to fsspec with a URL.

    Raises
    ------
    ValueError
        Where `results` is no results cube, or a newer dsel wrote to `place`.

    See Also
    --------
    open_results : Opens what was saved.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> cube = make_cube(grid_axes({"C": [1, 10]}), fold_axes(5), {})
    >>> with TemporaryDirectory() as place:
    ...     save_results(cube, place)
    ...     open_results(place).load().identical(cube)
    True
    """
    check_cube(results)
    evidence(results)  # counts become integers in the file, and must be some
    store = open_store(place, storage_options=storage_options)
    with naming_place(store):
        root = make_root(store)
        before = _generation(root.attrs.get(POINTER))
        generation = before + 1  # may be left by a writer that was killed
        while not _is_removed(root, f"{PREFIX}{generation}"):
            generation += 1
        group = f"{PREFIX}{generation}"
        _write(results, store, group)
        names = sorted(map(str, results.variables))
        root.attrs.update({POINTER: group, VARIABLES: names})
        for old in range(max(1, before - 2), before):
            _is_removed(root, f"{PREFIX}{old}")


def open_results(
    place: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Open a saved results cube; values are read when they are used.

    Parameters
    ----------
    place, storage_options
        As :func:`save_results` takes them, written by it or by a run.

    Returns
    -------
    xarray.Dataset
        The cube as it was saved.

    Raises
    ------
    FileNotFoundError
        Where there are no results, or a run that has not ended, or an experiment.
    ValueError
        Where something else is there, a newer dsel wrote it, or it is damaged: in a
        variable that shows when its values are read.

    See Also
    --------
    save_results : Writes a cube; a run with ``out=`` does so at its end.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5, 9]}
    >>> plan = dsel.plan_search(KNeighborsClassifier(), grid, X, y, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = plan.run(out=f"{folder}/results")
    ...     dsel.select(open_results(f"{folder}/results")).params
    {'n_neighbors': 9}
    """
    store = open_store(place, storage_options=storage_options, read_only=True)
    root = read_root(store)
    group = root.get(POINTER)
    if group is None:
        raise FileNotFoundError(_what_else(store))
    with naming_damage(
        store, way_out=f"{MAKE_ANEW}; what was declared there is in the journal"
    ):
        return _open_group(store, str(group), root[VARIABLES])


def _what_else(store: Store) -> str:
    """Say what a store without a cube holds, and what to do with it."""
    if str(store).rpartition("/")[2].rstrip(">)").startswith(PREFIX):
        return f"{store} is a part of results; name the place that it lies in."
    with naming_damage(store):
        has_run = bool(read_fingerprint(store))
    if not has_run and sync(store.exists(f"{names.STATUS}/{HEAD}")):
        return f"{store} was written by xarray; open it by xarray.open_zarr."
    return (
        f"{store} holds a run that has not ended; run the same command again to go on "
        f"with it."
    )


def _open_group(store: Store, group: str, variables: list[str]) -> xr.Dataset:
    """Open one generation, of which all variables must be there."""
    try:
        with warnings.catch_warnings():  # named below, all of them
            warnings.filterwarnings("ignore", "Object at .* is not recognized")
            # Format 2 knows a codec that unpickles; a store may be from elsewhere.
            results: xr.Dataset = xr.open_zarr(
                CubeStore(store),
                group=group,
                consolidated=False,
                chunks=None,
                zarr_format=3,
            )
    except FileNotFoundError as error:
        found = sync(_files_in(store, group))
        if not all(name.endswith(".partial") for name in found):  # of a killed writer
            raise ValueError(f"{group}/{HEAD} is missing") from error
        raise FileNotFoundError(
            f"{store} had results in {group}, which was deleted; run the same command "
            f"again, which makes them anew of the counts."
        ) from error
    if lost := sorted(set(variables) - set(results.variables)):
        raise ValueError(f"{group} lacks {', '.join(map(str, lost))}")
    return results


def find_results(place: str | os.PathLike[str] | Store) -> xr.Dataset | None:
    """Return the saved results cube, or None where there is none."""
    try:
        return open_results(place)
    except FileNotFoundError:
        return None


def _generation(group: Any) -> int:
    number = str(group or "").removeprefix(PREFIX)
    return int(number) if number.isdecimal() else 0


def _is_removed(root: zarr.Group, group: str) -> bool:
    """Remove a cube, unless somebody put files there; return whether it is gone."""
    if not all(map(OWN_FILE.match, sync(_files_in(root.store, group)))):
        return False
    del root[group]
    return True


async def _files_in(store: Store, group: str) -> list[str]:
    prefix = f"{group}/"
    return [key.removeprefix(prefix) async for key in store.list_prefix(prefix)]


def _write(results: xr.Dataset, store: Store, group: str) -> None:
    """Write a cube, one chunk for each array, none left out, each with a checksum."""
    cube, files = results.compute().drop_encoding(), dict[str, Any]()
    # In memory first: xarray asks for one thing after the other, some hundred times.
    cube.to_zarr(
        MemoryStore(files),
        zarr_format=3,
        consolidated=False,
        write_empty_chunks=True,
        encoding={
            name: _encoding(str(name), each) for name, each in cube.variables.items()
        },
    )
    sync(_put({f"{group}/{name}": each for name, each in files.items()}, store))


def _encoding(name: str, variable: xr.Variable) -> dict[str, Any]:
    spec = schema.BY_NAME.get(name)
    return {
        "chunks": tuple(max(1, size) for size in variable.shape),
        "compressors": (ZstdCodec(), Crc32cCodec()),
        "_FillValue": None,
        **({} if spec is None else schema.ENCODING.get(spec.kind, {})),
    }


async def _put(files: Mapping[str, Any], store: Store) -> None:
    """Write all files at once, and wait for all, also where one fails.

    What is still on its way could else arrive in the group that is written next.
    """
    writes = [store.set(name, content) for name, content in files.items()]
    for failure in await asyncio.gather(*writes, return_exceptions=True):
        if failure is not None:
            raise failure
