"""Cubes as zarr beside checksums of all their files, and the outcome of a run."""

import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from dsel.results import schema
from dsel.results.cube import check_cube, evidence
from dsel.results.place import Place, claim, read_owner, seal, stamp, unseal
from dsel.stores import check_codecs

CUBE: Final = "cube"
PAIRS: Final = "pairs"
OUTCOME: Final = "outcome.json"
PLAIN: Final = "results"
"""Kind of a place without a plan."""
HEAD_OF_ZARR: Final = "zarr.json"
MAKE_ANEW: Final = "run the same command again with the same `out`, which makes it anew"


@dataclass
class Outcome:
    """What a run ended with, and which of the files beside it belong to that."""

    said: dict[str, Any] = field(default_factory=dict)
    """Certificates and choice."""
    datasets: dict[str, str] = field(default_factory=dict)
    """Stamp of the cube, and of the pairs, by name."""
    models: dict[str, str] = field(default_factory=dict)
    """File of each model by name."""


def save_results(
    results: xr.Dataset,
    place: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Save a results cube as zarr (format 3), in the place of one already there.

    The old cube stays readable until the new one is complete.

    Parameters
    ----------
    results
        A results cube.
    place
        Folder or fsspec URL that is empty, or holds what was saved by this function.
    storage_options
        Passed to fsspec with a URL.

    Raises
    ------
    ValueError
        Where `results` is no results cube, or the place holds anything else, such as
        the results of a run.
    OSError
        Where nothing can be written.

    See Also
    --------
    open_results : Opens what was saved.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from dsel.results.cube import make_cube
    >>> from dsel.results.grid import fold_axes, grid_axes
    >>> cube = make_cube(grid_axes({"C": [1, 10]}), fold_axes(5), {})
    >>> with TemporaryDirectory() as place:
    ...     save_results(cube, place)
    ...     open_results(place).identical(cube)
    True
    """
    check_cube(results)
    evidence(results)  # counts become integers in the file, and must be some
    where = Place(place, storage_options=storage_options, name="place")
    claim(where, PLAIN, {})
    before = where.files(CUBE)
    write_dataset(where, CUBE, results)
    for old in before:
        where.remove(f"{CUBE}/{old}")


def open_results(
    place: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Open the results cube that a run or `save_results` kept.

    Parameters
    ----------
    place
        The ``out`` of a run, or what `save_results` was given.
    storage_options
        Passed to fsspec with a URL.

    Returns
    -------
    xarray.Dataset
        The cube as it was saved, in memory.

    Raises
    ------
    FileNotFoundError
        Where there are no results, or a run that has not ended.
    ValueError
        Where something else is there, another version of dsel wrote it, or it is
        damaged.

    See Also
    --------
    save_results : Writes a cube; a run with ``out=`` does so at its end.
    """
    where = Place(place, storage_options=storage_options, name="place")
    found = read_owner(where)
    if found is None:
        raise FileNotFoundError(
            f"there are no results at {where}; name the place that `out` named."
        )
    before = None
    while True:
        marks = _stamps(where, CUBE)
        try:
            return read_dataset(where, CUBE, read_outcome(where))
        except ValueError:
            if marks == before:
                raise
            before = marks  # it may have been replaced while it was read


def write_dataset(place: Place, name: str, dataset: xr.Dataset) -> str:
    """Write a Dataset under a stamp that is returned; it counts when all is there."""
    files: dict[str, Any] = {}
    # In memory first: xarray asks for one thing after the other, some hundred times.
    loaded = _each_variable(dataset.compute().drop_encoding(), _without_gaps)
    loaded.to_zarr(
        MemoryStore(files),
        zarr_format=3,
        consolidated=False,
        encoding={
            str(key): _encoding(str(key), each)
            for key, each in loaded.variables.items()
        },
    )
    contents = {key: buffer.to_bytes() for key, buffer in files.items()}
    mark = stamp()
    place.write({f"{name}/{mark}.zarr/{key}": body for key, body in contents.items()})
    sums = {key: zlib.crc32(body) for key, body in contents.items()}
    place.write({f"{name}/{mark}.json": seal(json.dumps(sums).encode())})
    return mark


def read_dataset(place: Place, name: str, outcome: Outcome | None) -> xr.Dataset:
    """Return the Dataset that belongs to the outcome, else the one written last.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    ValueError
        Where it is damaged.
    """
    marks = _stamps(place, name)
    final = None if outcome is None else outcome.datasets.get(name)
    if final is None and not marks:
        raise FileNotFoundError(
            f"{place} holds a run that has not ended; run the same command again to go "
            f"on with it."
        )
    wanted = [final] if final else []
    if marks and marks[-1] != final:
        wanted.append(marks[-1])  # made anew where the outcome's was damaged
    for mark in wanted:
        found = _read(place, f"{name}/{mark}")
        if found is not None:
            return found
    raise ValueError(f"the {name} at {place} is damaged; {MAKE_ANEW}.")


def _read(place: Place, path: str) -> xr.Dataset | None:
    """Return a Dataset; None where any of its files is not as it was written."""
    listed = unseal(place.read(f"{path}.json"))
    if listed is None:
        return None
    sums = json.loads(listed)
    files: dict[str, Any] = {}
    found = place.read_all(f"{path}.zarr/{name}" for name in sums)
    for (name, checksum), content in zip(sums.items(), found.values(), strict=True):
        if content is None or zlib.crc32(content) != checksum:
            return None
        if name.endswith(HEAD_OF_ZARR):
            # A store may be from elsewhere, and zarr knows codecs that unpickle.
            check_codecs(json.loads(content).get("codecs", ()), f"{path}.zarr/{name}")
        files[name] = default_buffer_prototype().buffer.from_bytes(content)
    opened: xr.Dataset = xr.open_zarr(
        MemoryStore(files), consolidated=False, chunks=None, zarr_format=3
    )
    return _each_variable(opened.load().drop_encoding(), _as_objects)


def read_outcome(place: Place) -> Outcome | None:
    """Return the outcome of a run; None where it has not ended.

    Raises
    ------
    ValueError
        Where it is damaged: what is final is not made anew.
    """
    content = place.read(OUTCOME)
    if not content:  # without bytes where a run was killed
        return None
    body = unseal(content)
    if body is None:
        raise ValueError(
            f"{OUTCOME} in {place} is damaged, and a certificate that was written is "
            f"not made anew; bring it back from a copy, or choose another place."
        )
    return Outcome(**json.loads(body))


def write_outcome(place: Place, outcome: Outcome) -> Outcome:
    """Write an outcome unless there is one; return the one that is there."""
    place.create(OUTCOME, seal(json.dumps(asdict(outcome)).encode()))
    return read_outcome(place) or outcome


def _stamps(place: Place, name: str) -> list[str]:
    """Return the stamps of all whole Datasets of that name, the last one last."""
    names = [each for each in place.files(name) if each.endswith(".json")]
    listed = place.read_all(f"{name}/{each}" for each in names)
    return [
        each.removesuffix(".json")
        for each, content in zip(names, listed.values(), strict=True)
        if unseal(content) is not None
    ]


def _encoding(name: str, variable: xr.Variable) -> dict[str, Any]:
    spec = schema.BY_NAME.get(name)
    is_count = spec is not None and spec.kind == schema.COUNT
    return {
        "chunks": tuple(max(1, size) for size in variable.shape),
        **(schema.COUNT_IN_FILE if is_count else {}),
    }


def _each_variable(
    dataset: xr.Dataset, change: Callable[[xr.Variable], xr.Variable]
) -> xr.Dataset:
    """Return a Dataset with all variables changed, coordinates included."""
    data, coords = (
        {name: change(dataset.variables[name]) for name in those}
        for those in (dataset.data_vars, dataset.coords)
    )
    return xr.Dataset(data, coords, dataset.attrs)


def _without_gaps(variable: xr.Variable) -> xr.Variable:
    """Return texts with "" where none is set, which is NaN in a cube that was grown."""
    if variable.dtype != object:
        return variable
    texts = variable.to_numpy()
    return variable.copy(data=np.where(pd.isna(texts), "", texts))


def _as_objects(variable: xr.Variable) -> xr.Variable:
    """Return texts as objects, a type that numpy promotes."""
    return variable.astype(object) if variable.dtype.kind in "TU" else variable
