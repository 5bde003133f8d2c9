"""The store of a run: records, from which a killed run goes on, and what it ends with.

A place belongs to one plan. A record depends on its key alone, so two runs in one place
can do the same work twice, and no harm. A Dataset is zarr beside the checksums of all
its files. What is final is written last, and once.
"""

import json
import os
import re
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from operator import methodcaller
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import xarray as xr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from dsel import names
from dsel.checks import show
from dsel.data.query_rows import POOL_ROW
from dsel.errors import NewerRecordError
from dsel.results.cube import check_schema, evidence
from dsel.results.models import read_model, write_model
from dsel.results.place import (
    CUBE,
    JOURNAL,
    MAKE_ANEW,
    OUTCOME,
    QUERIES,
    Place,
    check_kept,
    claim,
    read_journal,
    read_outcome,
    replacing,
    seal,
    stamp,
    unseal,
)
from dsel.zarr_stores import BAD_HEADER, check_codecs

SCHEMA: Final = "schema"
"""Folder of the schema of the labeled table."""
AS_JSON: Final = methodcaller("tolist")
"""Of numbers and arrays of numpy, for JSON."""
LEAST_SECONDS: Final = 0.5
"""From a record to its file when a run begins."""
LOST_PART: Final = 0.02
"""Part of a run that one that is killed may lose, if it is more than that ..."""
MOST_SECONDS: Final = 300.0
"""... and less than this."""


def save_results(
    results: xr.Dataset,
    place: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, object] | None = None,
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
    >>> from dsel.results.cube import grid_axes, make_cube
    >>> cube = make_cube(grid_axes({"C": [1, 10]}), {"fold": 5}, {})
    >>> with TemporaryDirectory() as place:
    ...     save_results(cube, place)
    ...     open_results(place).identical(cube)
    True
    """
    evidence(results)  # raises where it is no cube
    with replacing(place, storage_options, CUBE) as where:
        write_dataset(where, CUBE, results)


def open_results(
    place: str | os.PathLike[str],
    *,
    chunks: Mapping[str, int] | int | str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Open the results cube that a run or `save_results` kept.

    Parameters
    ----------
    place
        The ``out`` of a run, or what `save_results` was given.
    chunks
        As `xarray.open_zarr` takes them: with ``{}``, or the length of a chunk by
        dimension, variables are Dask arrays, and what is made of them is lazy. The
        files are read and their checksums compared in any case.
    storage_options
        Passed to fsspec with a URL.

    Returns
    -------
    xarray.Dataset
        The cube as it was saved.

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
    check_kept(where)
    final = (read_outcome(where) or {"datasets": {}})["datasets"].get(CUBE)
    try:
        cube = read_dataset(where, CUBE, final)
    except ValueError:  # it may have been replaced while it was read
        cube = read_dataset(where, CUBE, final)
    if chunks is None:
        return cube
    try:
        return cube.chunk(chunks)
    except Exception as error:  # xarray and Dask have one for each kind of value
        raise ValueError(
            f"`chunks` must be as `xarray.open_zarr` takes them, such as {{}} or the "
            f"length of a chunk by dimension, got {show(chunks)}."
        ) from error


def save_schema(
    place: str | os.PathLike[str],
    schema: str,
    *,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Keep the schema of the labeled table beside results, as JSON text.

    Of several the last one counts.

    Raises
    ------
    FileNotFoundError
        Where there are no results of dsel.
    """
    where = Place(place, storage_options=storage_options)
    check_kept(where)
    if load_schema(place, storage_options=storage_options) != schema:
        where.write({f"{SCHEMA}/{stamp()}.json": seal(schema.encode())})


def load_schema(
    place: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, object] | None = None,
) -> str | None:
    """Return the schema that `save_schema` kept; None where there is none."""
    where = Place(place, storage_options=storage_options, name="place")
    check_kept(where)
    for name in reversed(where.files(SCHEMA)):
        body = unseal(where.read(f"{SCHEMA}/{name}"))
        if body is not None:  # and not torn
            return body.decode()
    return None


def write_dataset(place: Place, name: str, dataset: xr.Dataset) -> str:
    """Write a Dataset under a stamp that is returned; it counts when all is there."""
    loaded, files = _with_texts(dataset.compute()), dict[str, Any]()
    loaded = _rename_variables(loaded, _stored_name)
    # In memory first: xarray asks for one thing after the other, some hundred times.
    with warnings.catch_warnings():
        # That other libraries of format 3 may not know it; xarray asks for it.
        warnings.filterwarnings("ignore", "Consolidated metadata")
        loaded.drop_encoding().to_zarr(
            MemoryStore(files),
            zarr_format=3,
            consolidated=True,
            encoding={
                each.name: {"dtype": "int64", "_FillValue": names.UNCOUNTED}
                for each in names.VARIABLES
                if each.kind == "count" and each.name in loaded.variables
            },
        )
    contents = {key: buffer.to_bytes() for key, buffer in files.items()}
    sums = {key: zlib.crc32(body) for key, body in contents.items()}
    mark = stamp()
    place.write({f"{name}/{mark}.zarr/{key}": body for key, body in contents.items()})
    try:
        place.write({f"{name}/{mark}.json": seal(json.dumps(sums).encode())})
    except OSError:  # without checksums it would take room for nothing
        with suppress(OSError, ValueError):
            place.remove(f"{name}/{mark}.zarr")
        raise
    return mark


def read_dataset(place: Place, name: str, final: str | None = None) -> xr.Dataset:
    """Return the Dataset of the stamp that is final, else the last one that is whole.

    All are of one plan: another was made anew, or by another run.
    """
    files = [each for each in place.files(name) if each.endswith(".json")]
    marks = [each.removesuffix(".json") for each in reversed(files)]
    why = ""
    for mark in dict.fromkeys([final, *marks] if final else marks):
        sums = json.loads(unseal(place.read(f"{name}/{mark}.json")) or "{}")
        bodies = place.read_all(f"{name}/{mark}.zarr/{key}" for key in sums)
        found = {key: body or b"" for key, body in zip(sums, bodies, strict=True)}
        if sums and sums == {key: zlib.crc32(body) for key, body in found.items()}:
            try:
                opened = _open_files(found)
                check_schema(opened)
                return opened
            except NewerRecordError:
                raise  # it says its number
            except BAD_HEADER as error:  # whole, and of somebody else
                why = f" ({' '.join(str(error).split())})"
    if final is None and not marks:
        raise FileNotFoundError(
            f"`{place.name}` {place} holds a run that has not ended; run the same "
            f"command again to go on with it."
        )
    raise ValueError(
        f"the {name} at `{place.name}` {place} is damaged{why}; {MAKE_ANEW}."
    )


def _open_files(files: Mapping[str, bytes]) -> xr.Dataset:
    for key, content in files.items():
        if key.endswith("zarr.json"):
            # A store may be from elsewhere, and zarr knows codecs that unpickle.
            check_codecs(json.loads(content).get("codecs", ()), key)
    make = default_buffer_prototype().buffer.from_bytes
    store = MemoryStore({key: make(content) for key, content in files.items()})
    opened: xr.Dataset = xr.open_zarr(
        store, consolidated=False, chunks=None, zarr_format=3
    )
    return _rename_variables(_with_texts(opened.load().drop_encoding()), unquote)


def _stored_name(name: str) -> str:
    """Return a name that zarr, netCDF and file systems take; `unquote` gives it back.

    A slash in a name, as in that of a pipeline's step, would begin a zarr group.
    """
    quoted = re.sub(
        r'[%/\\:*?"<>|\x00-\x1f]', lambda sign: f"%{ord(sign[0]):02X}", name
    )
    # Names of dots are folders, and zarr keeps what begins with two lines for itself.
    is_special = not quoted.strip(".") or quoted.startswith(("__", "zarr.json"))
    return f"%{ord(quoted[0]):02X}{quoted[1:]}" if is_special and quoted else quoted


def _rename_variables(dataset: xr.Dataset, rename: Callable[[str], str]) -> xr.Dataset:
    names_of = {*dataset.dims, *dataset.variables}
    changed = {name: rename(str(name)) for name in names_of}
    return dataset.rename({old: new for old, new in changed.items() if old != new})


def _with_texts(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with its texts as objects; NaN, in one that was grown, is ""."""
    texts = {
        name: each.to_numpy().astype(object)
        for name, each in dataset.variables.items()
        if each.dtype.kind in "OUT"
    }
    return dataset.assign(
        {
            name: dataset.variables[name].copy(data=np.where(pd.isna(each), "", each))
            for name, each in texts.items()
        }
    )


def read_query_rows(place: Place) -> pd.DataFrame | None:
    """Return the queried rows that a run has kept; None where there are none."""
    for name in reversed(place.files(QUERIES)):
        body = unseal(place.read(f"{QUERIES}/{name}"))
        if body is not None:  # and not torn
            return pd.read_feather(BytesIO(body)).set_index(POOL_ROW)
    return None


def _arrow_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows as a frame that Arrow takes: mixed objects as texts."""
    frame = rows.rename(columns=str).reset_index()
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            try:
                pa.Array.from_pandas(frame.iloc[:, place])
            except pa.ArrowException:
                frame.isetitem(place, frame.iloc[:, place].astype(str))
    return frame


class Store(AbstractContextManager["Store"]):
    """What a plan keeps in its place; one that ended is only read.

    `out` is empty or belongs to this plan; `kind` is which of dsel's systems keeps its
    results there, `plan` has tokens of all that counts and certificates depend on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as out:
    ...     with Store(out, kind="search", plan={"seed": "7"}) as store:
    ...         store.append("fit/0", {"errors": [3, 4]})
    ...     Store(out, kind="search", plan={"seed": "7"}).records
    {'fit/0': {'errors': [3, 4]}}
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        *,
        kind: str,
        plan: Mapping[str, str],
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        self.place = Place(out, storage_options=storage_options)
        self.records: dict[str, dict[str, Any]] = {}
        """Records by key, those of earlier runs included; of two the first counts."""
        self._head = claim(self.place, kind, plan)
        self._lines: list[str] = []
        self._guard = threading.RLock()
        self._timer: threading.Timer | None = None
        self._began = time.monotonic()
        for head, records in read_journal(self.place):
            if head == self._head:  # and not of another plan that came at the same time
                # Of two records the first counts: a learner without a seed may count
                # another number when another run does the same work.
                self.records = records | self.records
        self._final = read_outcome(self.place)
        self._kept: dict[str, Any] = {"datasets": {}, "models": {}}
        if self._final is None:
            self._write()  # says before work starts that nothing can be written

    def append(self, key: str, record: Mapping[str, object]) -> None:
        """Keep a record, as JSON gives it back; nothing where its key is known.

        It is written soon, the later the longer a run is. Raises OSError where an
        earlier write failed; what was not written is kept.
        """
        line = json.dumps([key, record], default=AS_JSON)
        with self._guard:
            if key not in self.records:
                self.records[key] = json.loads(line)[1]
                self._lines.append(line)
            if self._timer is not None and not self._timer.is_alive():
                self.flush()  # it could not write
            elif self._lines and self._timer is None:
                lost = LOST_PART * (time.monotonic() - self._began)
                pause = min(max(LEAST_SECONDS, lost), MOST_SECONDS)
                self._timer = threading.Timer(pause, self._write_late)
                # It must not keep a process that fails alive; `__exit__` writes.
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write what was appended; return when it is there."""
        with self._guard:
            if self._lines:
                self._write()

    def __exit__(self, *error: object) -> None:
        self.flush()

    def _write_late(self) -> None:
        with suppress(OSError):  # the next append tries again, and raises
            self.flush()

    def _write(self) -> None:
        name = f"{JOURNAL}/{stamp()}.json"
        self.place.write({name: seal("\n".join([self._head, *self._lines]).encode())})
        if self._timer is not None:
            self._timer.cancel()
        self._lines, self._timer = [], None

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What `save_outcome` was given first, by this run or another."""
        return None if self._final is None else self._final["said"]

    def save(self, name: str, dataset: xr.Dataset) -> None:
        """Keep a Dataset, `CUBE` or `PAIRS`, in the place of an earlier one."""
        self._kept["datasets"][name] = write_dataset(self.place, name, dataset)

    def dataset(self, name: str) -> xr.Dataset | None:
        """Return a Dataset; None where none was kept, or it must be made anew."""
        final = (self._final or self._kept)["datasets"].get(name)
        try:
            return read_dataset(self.place, name, final)
        except NewerRecordError:
            raise  # to make it anew would be to lose it
        except (FileNotFoundError, ValueError):
            return None

    def save_model(self, name: str, content: bytes) -> None:
        """Keep what `dump_model` returned, to be found when the outcome was saved."""
        self._kept["models"][name] = write_model(self.place, name, content)

    def load_model(self, name: str, trusted: Sequence[str] = ()) -> Any:
        """Return the model that belongs to the outcome; KeyError where none does."""
        file = (self._final or self._kept)["models"][name]
        return read_model(self.place, file, trusted)

    def save_rows(self, rows: pd.DataFrame) -> None:
        """Keep queried rows, with their numbers, in the place of earlier ones."""
        content = BytesIO()
        # Arrow, which keeps numbers exact and holds nothing that could be run.
        _arrow_rows(rows).to_feather(content)
        file = f"{QUERIES}/{stamp()}.feather"
        self.place.write({file: seal(content.getvalue())})

    def save_outcome(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Make certificates and choice final; return those that are.

        Save the cube and the models before: the outcome says which belong to it. Where
        another run was first, its outcome is returned, and nothing is written.
        """
        self.flush()
        made = json.dumps({"said": outcome, **self._kept}, default=AS_JSON)
        # Created, never replaced: a bound that was taken from several outcomes of one
        # plan would not hold at its delta.
        self.place.create(OUTCOME, seal(made.encode()))
        self._final = read_outcome(self.place) or json.loads(made)
        said: dict[str, Any] = self._final["said"]
        return said
