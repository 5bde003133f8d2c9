"""Files of predictions: blocks of rows in order, as Parquet, CSV or zarr.

A file gets its final name when it has every row. pandas, Arrow and xarray write the
files, so that no format is dsel's own.
"""

import codecs
import os
import re
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import xarray as xr
from pandas.api.types import infer_dtype, is_list_like
from pyarrow import csv, parquet

from dsel.checks import show
from dsel.data.parquet import columns_of_few_values
from dsel.data.text import PLAIN_DIALECT, Dialect
from dsel.errors import explain_write_errors
from dsel.files import check_free, whole_file
from dsel.zarr_stores import consolidate

ROW: Final = "row"
"""Dimension in zarr; also the column of row numbers if no column is copied."""
ZARR_CHUNK_ROWS: Final = 2**16
_TIMES: Final = {"units": "microseconds since 1970-01-01", "dtype": "int64"}
"""Encoding of times in zarr; by default xarray chooses one by the first block, in which
later blocks may not be exact."""

Append = Callable[[pd.DataFrame], Any]


@contextmanager
def predictions_file(
    path: Path,
    head: pd.DataFrame,
    dialect: Dialect = PLAIN_DIALECT,
    *,
    rounded: Collection[str] = (),
) -> Iterator[Append]:
    """Yield a function that appends rows; the file exists after the `with` block.

    `head` has the columns of all blocks and no rows. If anything fails, no file is
    left. `dialect` is that of text files, in which the columns `rounded` have the
    digits of float32.
    """
    ending = next(known for known in _WRITERS if str(path).lower().endswith(known))
    write = _WRITERS[ending]
    if ending == ".csv":
        write = partial(write, dialect=dialect, rounded=rounded)
    with write(path, head) as append:
        yield append
        check_free(path, "out")  # another process may have made it in the meantime


def _schema_of(head: pd.DataFrame) -> pa.Schema:
    """Return the types of the columns; columns of Python objects have texts."""
    schema = pa.Schema.from_pandas(head, preserve_index=False)
    types = [pa.string() if pa.types.is_null(t) else t for t in schema.types]
    return pa.schema(list(zip(schema.names, types, strict=True)))


def _as_table(rows: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return rows in the types of a file; raise ValueError where one has no such type.

    Objects of Python, such as dates and decimals, are written as texts.
    """
    texts = {}
    for name, values in rows.items():
        kind = infer_dtype(values, skipna=True) if values.dtype == object else "string"
        if kind in ("string", "empty", "bytes"):
            continue
        known = values[values.notna()]
        if is_list_like(known.iloc[0]):
            raise ValueError(
                f"column {name!r} cannot be written with predictions: it holds "
                f"{show(known.iloc[0])}; name a column of texts, numbers or times."
            )
        texts[name] = known.map(str).reindex(values.index)
    try:
        frame = rows.assign(**texts) if texts else rows
        return pa.Table.from_pandas(frame, schema, preserve_index=False)
    except pa.ArrowException as error:
        raise ValueError(
            f"a column that is copied to predictions changes its type: {error}; write "
            f"it as text."
        ) from error


@contextmanager
def _parquet_file(path: Path, head: pd.DataFrame) -> Iterator[Append]:
    """Yield a function that appends rows to a new Parquet file."""
    schema = _schema_of(head)
    writer = None
    with whole_file(path, "out") as unfinished, ExitStack() as stack:

        def append(rows: pd.DataFrame) -> None:
            nonlocal writer
            table = _as_table(rows, schema)
            if writer is None:
                few = columns_of_few_values(table)
                writer = stack.enter_context(
                    parquet.ParquetWriter(unfinished, schema, use_dictionary=few)
                )
            writer.write_table(table)

        yield append
        if writer is None:
            append(head)


@contextmanager
def _csv_file(
    path: Path, head: pd.DataFrame, dialect: Dialect, rounded: Collection[str]
) -> Iterator[Append]:
    """Yield a function that appends rows to a new CSV file of this dialect."""
    sep, decimal = dialect.separator, dialect.decimal
    # People read the first of the 17 digits of a float64. These are the fewest from
    # which the same float32 comes back.
    types = {name: np.float32 for name in rounded if name in head}
    schema = _schema_of(head.astype(types))
    form: dict[str, Any] = {"index": False, "lineterminator": "\n", "sep": sep}
    with whole_file(path, "out") as unfinished, unfinished.open("wb") as file:
        if dialect.has_mark:
            file.write(codecs.BOM_UTF8)
        file.write(head.to_csv(**form).encode())
        if decimal != ".":  # Arrow writes no decimal comma
            yield lambda rows: file.write(
                rows.astype(types)
                .to_csv(header=False, decimal=decimal, **form)
                .encode()
            )
            return
        # Arrow writes quotes around all texts or none, so that each block is written by
        # one of two writers.
        with ExitStack() as stack:
            plain, quoting = (
                stack.enter_context(
                    csv.CSVWriter(
                        file,
                        schema,
                        write_options=csv.WriteOptions(
                            include_header=False, delimiter=sep, quoting_style=style
                        ),
                    )
                )
                for style in ("none", "needed")
            )

            def append(rows: pd.DataFrame) -> None:
                table = _as_table(rows, schema)
                (quoting if _needs_quotes(table, sep) else plain).write_table(table)

            yield append


def _needs_quotes(table: pa.Table, sep: str) -> bool:
    """Return whether a text is empty, or has a sign with a meaning in a CSV file."""
    pattern = f'["\\r\\n{re.escape(sep)}]|^$'
    texts = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
        if not (pa.types.is_primitive(column.type) or pa.types.is_temporal(column.type))
    ]
    return any(
        pc.any(pc.match_substring_regex(text, pattern), min_count=0).as_py()
        for text in texts
        if pa.types.is_string(text.type) or pa.types.is_large_string(text.type)
    )


@contextmanager
def _zarr_folder(path: Path, head: pd.DataFrame) -> Iterator[Append]:
    """Yield a function that appends rows to a new zarr store."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    start = 0

    def append(rows: pd.DataFrame) -> None:
        nonlocal start
        block = xr.Dataset(
            # A variable needs a name, which names of rows may lack.
            {
                str(name) or ROW: (ROW, _zarr_values(values))
                for name, values in rows.items()
            }
        )
        mode: dict[str, Any] = {"append_dim": ROW}
        if not start:
            mode = {
                "mode": "w",
                "encoding": {
                    name: {"chunks": (ZARR_CHUNK_ROWS,)}
                    | (_TIMES if variable.dtype.kind == "M" else {})
                    for name, variable in block.variables.items()
                },
            }
        block.to_zarr(partial, zarr_format=3, consolidated=False, **mode)
        start += len(rows)

    try:
        with explain_write_errors(path, "out"):
            path.parent.mkdir(parents=True, exist_ok=True)
        with explain_write_errors(path, "out", also_reads=True):
            yield append
        if not start:
            append(head)
        with explain_write_errors(path, "out"):
            consolidate(partial)
            os.rename(partial, path)  # raises if a folder with files is there
    finally:
        with suppress(OSError):
            shutil.rmtree(partial)


def _zarr_values(values: pd.Series) -> Any:
    """Return a column as xarray writes it to zarr: a missing text is an empty one."""
    if values.dtype.kind in "biuf":
        return values.to_numpy()
    if values.dtype.kind == "M":
        zone = getattr(values.dtype, "tz", None)
        plain = values if zone is None else values.dt.tz_convert(None)
        return plain.to_numpy()
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy(object)


_WRITERS: Final[dict[str, Any]] = {
    ".parquet": _parquet_file,
    ".csv": _csv_file,
    ".zarr": _zarr_folder,
}
"""Context managers that write a file, by its ending."""
