"""Writing a CSV file of any types as Parquet, some rows at a time."""

import os
import uuid
from collections.abc import Callable
from typing import Any

import pandas as pd

from dsel.data.tables import CSV, RowStream, parquet_module


def check_csv(source: str, path: str) -> None:
    """Raise ValueError where a source is not written as Parquet."""
    if not source.endswith(CSV) or "://" in path:
        raise ValueError(
            f"`path` may end in .parquet where `source` is a CSV or TSV file and the "
            f"path is no URL, got {path!r}; leave out the ending to write a zarr pool."
        )


def write_parquet(
    stream: RowStream,
    path: str,
    *,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> None:
    """Write a stream of rows as one Parquet file; numbers become float64.

    Types are those of the first rows. Until all rows are written nothing is at `path`.
    """
    parquet = parquet_module()
    import pyarrow as pa

    if os.path.exists(path):
        raise FileExistsError(
            f"`path` must be free, but {path!r} is there; choose another path, or "
            f"remove it."
        )
    unfinished, n_rows, schema, writer = f"{path}.{uuid.uuid4().hex}", 0, None, None
    try:
        for frame in stream.frames():
            schema = schema or _schema(frame)
            try:
                table = pa.Table.from_pandas(frame, schema, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise TypeError(
                    f"`source` {stream.path!r} must have one type in a column, but "
                    f"behind row {n_rows:,} {' '.join(map(str, error.args))}."
                ) from error
            writer = writer or parquet.ParquetWriter(unfinished, schema)
            writer.write_table(table)
            n_rows += len(frame)
            if on_progress is not None:
                on_progress(n_rows, None)
        if writer is None:
            raise ValueError(f"`source` {stream.path!r} must hold a row at least.")
        writer.close()
        os.replace(unfinished, path)
    finally:
        if writer is not None:
            writer.close()
        if os.path.exists(unfinished):
            os.remove(unfinished)


def _schema(frame: pd.DataFrame) -> Any:
    """Return types for all rows by the first ones: later ones may have gaps."""
    import pyarrow as pa

    wide = {
        name: "float64"
        for name, dtype in frame.dtypes.items()
        if getattr(dtype, "kind", "O") in "iuf"
    }
    schema = pa.Schema.from_pandas(frame.astype(wide), preserve_index=False)
    fields = [
        field.with_type(pa.string()) if pa.types.is_null(field.type) else field
        for field in schema
    ]
    return pa.schema(fields)
