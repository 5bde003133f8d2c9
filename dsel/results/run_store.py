"""The store of a run: records, from which a killed run continues, and its outcome.

A results folder belongs to one plan. A record depends on its key alone, so that two
runs in one folder may repeat work, but never get another result. A Dataset is stored as
zarr, with the checksums of all its files next to it. The outcome is written last, and
once.
"""

import json
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from dsel.data.query_rows import POOL_INDEX, POOL_ROW
from dsel.errors import NewerRecordError
from dsel.results.cube import check_schema, cube_of
from dsel.results.model_files import read_model, write_model
from dsel.results.place import (
    CUBE,
    JOURNAL,
    MAKE_ANEW,
    OUTCOME,
    QUERIES,
    Place,
    check_has_results,
    claim,
    read_journal,
    read_outcome,
    replace_folder,
    seal,
    stamp,
    unseal,
)
from dsel.typing import Options, PathLike, ResultsLike
from dsel.zarr_stores import BAD_HEADER, check_codecs, consolidate

AS_JSON: Final = methodcaller("tolist")
"""Turns numbers and arrays of numpy into JSON types."""
LEAST_SECONDS: Final = 0.5
"""Least time from a record to its file."""
LOST_PART: Final = 0.02
"""Part of its time that a killed run may lose: records wait for this part of it, at
least `LEAST_SECONDS` and at most `MOST_SECONDS`. So the number of files stays small."""
MOST_SECONDS: Final = 300.0
"""Most time from a record to its file."""


LONGEST_NAME: Final = 255
"""Most bytes of a file's name, on all common file systems."""


def save_results(
    results: ResultsLike, place: PathLike, *, storage_options: Options | None = None
) -> None:
    """Save a results cube as zarr (format 3); it replaces one that is there already.

    The old cube stays readable until the new one is complete.

    Parameters
    ----------
    results
        A results cube; or a fitted search or an outcome, which has one.
    place
        Folder or fsspec URL that is empty, or holds what was saved by this function.
    storage_options
        Passed to fsspec with a URL.

    Raises
    ------
    ValueError
        If `results` is no results cube, or the place holds anything else, such as the
        results of a run.
    OSError
        If the files cannot be written.

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
    results = cube_of(results)
    with replace_folder(place, storage_options, CUBE) as where:
        write_dataset(where, CUBE, results)


def open_results(
    place: PathLike,
    *,
    chunks: Mapping[str, int] | int | str | None = None,
    storage_options: Options | None = None,
) -> xr.Dataset:
    """Open the results cube that a run or `save_results` stored.

    Parameters
    ----------
    place
        The ``out`` of a run, or the ``place`` of `save_results`.
    chunks
        As for `xarray.open_zarr`: with ``{}``, or the length of a chunk by dimension,
        variables are Dask arrays, and computations with them are lazy. The files are
        read and their checksums compared in any case.
    storage_options
        Passed to fsspec with a URL.

    Returns
    -------
    xarray.Dataset
        The cube as it was saved.

    Raises
    ------
    FileNotFoundError
        If there are no results, or the run has not ended.
    ValueError
        If something else is there, another version of dsel wrote it, or it is damaged.

    See Also
    --------
    save_results : Writes a cube; a run with ``out=`` does so at its end.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> from tempfile import TemporaryDirectory
    >>> from dsel import certify
    >>> with TemporaryDirectory() as folder:
    ...     outcome = certify(SVC(), X, y, out=f"{folder}/results", random_state=0)
    ...     cube = open_results(f"{folder}/results")
    >>> cube.identical(outcome.results)
    True
    """
    where = Place(place, storage_options=storage_options, name="place")
    check_has_results(where)
    final = (read_outcome(where) or {"datasets": {}})["datasets"].get(CUBE)
    try:
        cube = read_dataset(where, CUBE, final)
    except ValueError:  # read again, since it may have been replaced while it was read
        cube = read_dataset(where, CUBE, final)
    if chunks is None:
        return cube
    try:
        return cube.chunk(chunks)
    except Exception as error:  # xarray and Dask raise errors of many types
        raise ValueError(
            f"`chunks` must be as `xarray.open_zarr` takes them, such as {{}} or the "
            f"length of a chunk by dimension, got {show(chunks)}."
        ) from error


def write_dataset(place: Place, name: str, dataset: xr.Dataset) -> str:
    """Write a Dataset and return its stamp.

    The file of checksums is written last: without it a Dataset does not count.
    """
    loaded = _with_texts(dataset.compute())
    files = dict[str, Any]()
    loaded = _rename_variables(loaded, _stored_name)
    # The store is written in memory first: xarray makes some hundred requests, one
    # after the other, which would take seconds in an object store.
    loaded.drop_encoding().to_zarr(
        MemoryStore(files),
        zarr_format=3,
        consolidated=False,
        encoding={
            variable.name: {"dtype": "int64", "_FillValue": names.UNCOUNTED}
            for variable in names.VARIABLES
            if variable.kind == "count" and variable.name in loaded.variables
        },
    )
    consolidate(MemoryStore(files))
    contents = {key: buffer.to_bytes() for key, buffer in files.items()}
    sums = {key: zlib.crc32(body) for key, body in contents.items()}
    mark = stamp()
    place.write({f"{name}/{mark}.zarr/{key}": body for key, body in contents.items()})
    try:
        place.write({f"{name}/{mark}.json": seal(json.dumps(sums).encode())})
    except OSError:  # a store without checksums cannot be read, so its space is freed
        with suppress(OSError, ValueError):
            place.remove(f"{name}/{mark}.zarr")
        raise
    return mark


def read_dataset(place: Place, name: str, final: str | None = None) -> xr.Dataset:
    """Return the Dataset with the stamp `final`, else the last one that is complete.

    All Datasets in a folder are results of one plan: another one was computed again
    after damage, or by another run.
    """
    listed = [file for file in place.files(name) if file.endswith(".json")]
    marks = [file.removesuffix(".json") for file in reversed(listed)]
    reason = ""
    for mark in dict.fromkeys([final, *marks] if final else marks):
        sums = json.loads(unseal(place.read(f"{name}/{mark}.json")) or "{}")
        bodies = place.read_all(f"{name}/{mark}.zarr/{key}" for key in sums)
        files = {key: body or b"" for key, body in zip(sums, bodies, strict=True)}
        if sums and sums == {key: zlib.crc32(body) for key, body in files.items()}:
            try:
                opened = _open_files(files)
                check_schema(opened)
                return opened
            except NewerRecordError:
                raise  # its message names the version
            # The store is not damaged, but was not written by dsel.
            except BAD_HEADER as error:
                reason = f" ({' '.join(str(error).split())})"
    if final is None and not marks:
        raise FileNotFoundError(
            f"`{place.name}` {place} holds a run that has not ended; run the same "
            f"command again to continue it."
        )
    raise ValueError(
        f"the {name} at `{place.name}` {place} is damaged{reason}; {MAKE_ANEW}."
    )


def _open_files(files: Mapping[str, bytes]) -> xr.Dataset:
    """Return the Dataset of a zarr store whose files are given by name."""
    for key, content in files.items():
        if key.endswith("zarr.json"):
            # A store may come from a stranger, and zarr has codecs that unpickle.
            check_codecs(json.loads(content).get("codecs", ()), key)
    make = default_buffer_prototype().buffer.from_bytes
    store = MemoryStore({key: make(content) for key, content in files.items()})
    opened: xr.Dataset = xr.open_zarr(
        store, consolidated=False, chunks=None, zarr_format=3
    )
    return _rename_variables(_with_texts(opened.load().drop_encoding()), unquote)


def _stored_name(name: str) -> str:
    """Return a name that zarr, netCDF and file systems accept; `unquote` inverts it.

    A slash in a name, as in that of a pipeline's step, would begin a zarr group.
    """
    quoted = re.sub(
        r'[%/\\:*?"<>|\x00-\x1f]', lambda sign: f"%{ord(sign[0]):02X}", name
    )
    # A name of dots is a folder, and zarr reserves names that begin with "__".
    is_special = not quoted.strip(".") or quoted.startswith(("__", "zarr.json"))
    return f"%{ord(quoted[0]):02X}{quoted[1:]}" if is_special and quoted else quoted


def check_names(names_of_cube: Iterable[object], argument: str) -> None:
    """Raise ValueError if a store cannot have a variable of one of these names.

    File systems take 255 bytes for a name; a run would find that after its fits.
    """
    for name in map(str, names_of_cube):
        if (size := len(_stored_name(name).encode())) > LONGEST_NAME:
            raise ValueError(
                f"`{argument}` has a name of {size} bytes, and a file in `out` can "
                f"have one of {LONGEST_NAME}: {show(name)}; use shorter names, such as "
                f"those of a pipeline's steps."
            )


def _rename_variables(dataset: xr.Dataset, rename: Callable[[str], str]) -> xr.Dataset:
    names_of = {*dataset.dims, *dataset.variables}
    changed = {name: rename(str(name)) for name in names_of}
    return dataset.rename({old: new for old, new in changed.items() if old != new})


def _with_texts(dataset: xr.Dataset) -> xr.Dataset:
    """Return a Dataset with texts as objects; NaN, from a join, becomes ""."""
    texts = {
        name: variable.to_numpy().astype(object)
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "OUT"
    }
    return dataset.assign(
        {
            name: dataset.variables[name].copy(
                data=np.where(pd.isna(variable), "", variable)
            )
            for name, variable in texts.items()
        }
    )


def read_query_rows(place: Place) -> pd.DataFrame | None:
    """Return the queried rows that a run stored; None if there are none."""
    body = place.read_last(QUERIES)
    if body is None:
        return None
    rows = pd.read_feather(BytesIO(body))
    if rows.columns[0] == POOL_ROW:
        return rows.set_index(POOL_ROW)
    return rows.set_index(rows[POOL_INDEX].astype(object)).drop(columns=POOL_INDEX)


class Store(AbstractContextManager["Store"]):
    """Stored records and results of a plan; after its end they are only read.

    `out` is empty or belongs to this plan; `kind` names the kind of run, ``plan`` has
    tokens of everything on which counts and certificates depend.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as out:
    ...     with Store(out, kind="search", identity={"seed": "7"}) as store:
    ...         store.append("fit/0", {"errors": [3, 4]})
    ...     Store(out, kind="search", identity={"seed": "7"}).records
    {'fit/0': {'errors': [3, 4]}}
    """

    def __init__(
        self,
        out: PathLike,
        *,
        kind: str,
        identity: Mapping[str, str],
        storage_options: Options | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        self.place = Place(out, storage_options=storage_options)
        self.records: dict[str, dict[str, Any]] = {}
        """Records by key, those of earlier runs included; the first of a key counts."""
        self._head = claim(self.place, kind, identity, columns)
        self._lines: list[str] = []
        self._guard = threading.RLock()
        self._timer: threading.Timer | None = None
        self._began = time.monotonic()
        for head, records in read_journal(self.place):
            if head == self._head:  # not of another plan that started at the same time
                # The first record of a key counts: a learner without a seed may give
                # another count when another run does the same work.
                self.records = records | self.records
        self._final = read_outcome(self.place)
        self._stored: dict[str, Any] = {"datasets": {}, "models": {}}
        if self._final is None:
            self._write()  # fails before work starts if nothing can be written

    def append(self, key: str, record: Options) -> None:
        """Store a record, as JSON returns it, unless its key is known.

        It is written after a pause that grows with the time of the run. Raises OSError
        if an earlier write failed; its records are written with the next ones.
        """
        line = json.dumps([key, record], default=AS_JSON)
        with self._guard:
            if key not in self.records:
                self.records[key] = json.loads(line)[1]
                self._lines.append(line)
            if self._timer is not None and not self._timer.is_alive():
                self.flush()  # the thread could not write
            elif self._lines and self._timer is None:
                lost = LOST_PART * (time.monotonic() - self._began)
                pause = min(max(LEAST_SECONDS, lost), MOST_SECONDS)
                self._timer = threading.Timer(pause, self._write_waiting_records)
                # A daemon, so that a process that fails can end; `__exit__` writes.
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Write the appended records; return when they are written."""
        with self._guard:
            if self._lines:
                self._write()

    def __exit__(self, *error: object) -> None:
        self.flush()

    def _write_waiting_records(self) -> None:
        """Write records that no later one has written with it; a timer calls this."""
        with suppress(OSError):  # the next append tries again, and raises
            self.flush()

    def _write(self) -> None:
        name = f"{JOURNAL}/{stamp()}.json"
        self.place.write({name: seal("\n".join([self._head, *self._lines]).encode())})
        if self._timer is not None:
            self._timer.cancel()
        self._lines = []
        self._timer = None

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The first outcome that this or another run saved; None before."""
        return None if self._final is None else self._final["said"]

    def save(self, name: str, dataset: xr.Dataset) -> None:
        """Store a Dataset, `CUBE` or `PAIRS`, which replaces an earlier one."""
        self._stored["datasets"][name] = write_dataset(self.place, name, dataset)

    def dataset(self, name: str) -> xr.Dataset | None:
        """Return a Dataset; None if none was stored, or it must be computed again."""
        final = (self._final or self._stored)["datasets"].get(name)
        try:
            return read_dataset(self.place, name, final)
        except NewerRecordError:
            raise  # computing it again would overwrite results of the newer version
        except (FileNotFoundError, ValueError):
            return None

    def save_model(self, name: str, content: bytes) -> None:
        """Store the bytes of `dump_model`; the outcome will name the file."""
        self._stored["models"][name] = write_model(self.place, name, content)

    def load_model(self, name: str, trusted: Sequence[str] = ()) -> Any:
        """Return a model of the outcome; KeyError if it was not stored."""
        file = (self._final or self._stored)["models"][name]
        return read_model(self.place, file, trusted)

    def save_rows(self, rows: pd.DataFrame) -> None:
        """Store queried rows, with their numbers; they replace earlier ones."""
        content = BytesIO()
        frame = rows.rename(columns=str).reset_index()
        # Arrow stores numbers exactly, and unlike a pickle it cannot contain code.
        # Objects of several types, for which it has none, become texts.
        for place, dtype in enumerate(frame.dtypes):
            if dtype.kind == "O":
                try:
                    pa.Array.from_pandas(frame.iloc[:, place])
                except pa.ArrowException:
                    frame.isetitem(place, frame.iloc[:, place].astype(str))
        frame.to_feather(content)
        file = f"{QUERIES}/{stamp()}.feather"
        self.place.write({file: seal(content.getvalue())})

    def save_outcome(self, outcome: Options) -> dict[str, Any]:
        """Make certificates and choice final; return the final ones.

        Save the cube and the models before: the outcome lists their files. If another
        run was first, its outcome is returned, and nothing is written.
        """
        self.flush()
        record = json.dumps({"said": outcome, **self._stored}, default=AS_JSON)
        # The record is created, never replaced: a bound that is picked from several
        # outcomes of one plan would not hold at its delta.
        self.place.create(OUTCOME, seal(record.encode()))
        self._final = read_outcome(self.place) or json.loads(record)
        final: dict[str, Any] = self._final["said"]
        return final
