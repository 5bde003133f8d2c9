"""Readers of formats that have types, which they keep: Parquet, arrays and others."""

import io
import json
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from math import isinf
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import zarr
from numpy.typing import NDArray
from pyarrow import dataset, feather, parquet
from pyarrow.fs import LocalFileSystem
from scipy import sparse

from dsel.arrays import Floats
from dsel.checks import show
from dsel.data.frame_columns import NOTHING, NUMBER, TEXT, columns_of, texts_of
from dsel.data.frames import check_names
from dsel.data.parquet import join_schemas, to_exact_pandas
from dsel.data.schema import (
    convert_frame,
    convert_to_common_types,
    number_column,
    refuse_wrong_values,
    remove_gap_words,
    schema_of,
    to_pandas,
    with_classes,
)
from dsel.data.table_files import FEATHER, PARQUET, files_in, list_formats, name_file
from dsel.data.table_request import (
    Table,
    TableRequest,
    check_distinct_names,
    count_row_names,
    notes_on_row_names,
    rows_on_left_out,
)
from dsel.data.targets import notes_on_similar_labels
from dsel.data.text import open_binary
from dsel.data.text_columns.column_scan import ColumnScan
from dsel.data.text_columns.decimal_mark import decimal_mark
from dsel.data.text_columns.gaps import GAP_WORDS
from dsel.data.text_columns.kinds import PLAIN, Form, Kind
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.data.text_columns.text_reasons import TextReason, text_reason
from dsel.data.zarr_rows import meanings_of, read_and_decode, stored_columns
from dsel.errors import ROWS_FROM_0
from dsel.option_values import quote_names
from dsel.zarr_stores import BAD_HEADER, check_array

MOST_TEXTS: Final = 100
"""Most different texts that are numbers of a column which probably holds codes."""


def read_parquet(location: str, request: TableRequest) -> Table:
    """Read a Parquet file, or a folder of them with equal columns, into memory."""
    files = files_in(location, PARQUET)
    with name_file(location):
        if not files:
            if os.path.isfile(location):
                names = parquet.read_schema(location).names
                check_distinct_names(names, location)
            frame = to_exact_pandas(parquet.read_table(location))
        else:
            make = dataset.ParquetFileFormat().make_fragment
            fragments = [make(file, LocalFileSystem()) for file in files]
            first, joined = fragments[0].physical_schema, join_schemas(fragments)
            # Types of pandas stay where all files have the same.
            are_same = all(part.physical_schema.equals(first) for part in fragments)
            schema = first if are_same else joined
            rows = dataset.dataset(files, format="parquet", schema=schema).to_table()
            frame = to_exact_pandas(rows)
    return _table_of_frame(frame, request, location)


def read_feather(location: str, request: TableRequest) -> Table:
    """Read a Feather file, which is an Arrow file, into memory."""
    frame = to_exact_pandas(_read_arrow(location))
    return _table_of_frame(frame, request, location)


def _read_arrow(location: str) -> pa.Table:
    with name_file(location):
        with suppress(pa.ArrowInvalid):  # version 1 of Feather is no Arrow file
            check_distinct_names(pa.ipc.open_file(location).schema.names, location)
        return feather.read_table(location)


def read_json_lines(location: str, request: TableRequest) -> Table:
    """Read a file with one JSON object in each line."""
    return _table_of_frame(_frame_of_json(location), request, location)


def read_typed_rows(location: str) -> pa.Table:
    """Read a Feather file or JSON lines with the types that they have.

    Raises ValueError where the file cannot be read, has a column name twice, or a
    column has values of several types.
    """
    with name_file(location):
        if location.lower().endswith(FEATHER):
            rows = _read_arrow(location)
        else:
            frame = _frame_of_json(location)
            try:
                rows = pa.Table.from_pandas(frame, preserve_index=False)
            except pa.ArrowException as error:
                raise ValueError(
                    f"a column has values of several types: {error}"
                ) from error
    check_distinct_names(rows.column_names, location)
    return rows


def _frame_of_json(location: str) -> pd.DataFrame:
    """Return the objects in the lines of a file as a data frame."""
    with name_file(location):
        # The file is parsed line by line: the reader of pandas converts texts to dates
        # in columns with certain names.
        records = []
        with open_binary(location) as file:
            content = io.BytesIO(file.read())
        with io.TextIOWrapper(content, encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    if line.strip():
                        record = json.loads(
                            line,
                            object_pairs_hook=_distinct_pairs,
                            parse_float=_exact_number,
                        )
                        records.append(record)
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
        if not records or not all(isinstance(record, dict) for record in records):
            raise ValueError("it must have an object with names in every line")
        frame = pd.DataFrame(records)
        for name in frame.select_dtypes("float64"):  # such as whole numbers with gaps
            if (frame[name].abs() > LARGEST_EXACT).any():
                values = [record.get(name) for record in records]
                if all(value is None or type(value) is int for value in values):
                    frame[name] = pd.array(values, dtype="Int64")
                    continue
                whole = (v for v in values if type(v) is int and int(float(v)) != v)
                if (rounded := next(whole, None)) is not None:
                    raise ValueError(
                        f"column {name!r} has {rounded}, which is too large to be "
                        f"held exactly next to numbers with fractions; write texts"
                    )
        return frame


def _exact_number(text: str) -> float:
    """Return a number with a fraction; ValueError for another one than it would be."""
    number = float(text)
    # The conversion goes through decimals, which have no largest number.
    if isinf(number) or (number == 0 and Decimal(text) != 0):
        raise ValueError(
            f"{text} is too large, or too near to 0, to be held as a number; correct "
            f"it, or write null for a gap"
        )
    return number


def _distinct_pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError where it has a name twice."""
    if twice := [name for name, n in Counter(n for n, _ in pairs).items() if n > 1]:
        raise ValueError(f"an object has the name {twice[0]!r} twice; rename one")
    return dict(pairs)


def read_npz(location: str, request: TableRequest) -> Table:
    """Read the arrays `X`, `y` and others, or one CSR matrix, of an npz file."""
    # The file is opened here, because numpy leaves it open if it is no archive.
    with (
        name_file(location),
        open(location, "rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        if {"format", "shape"} <= {*arrays} and request.target is None:
            return Table(sparse.load_npz(location).tocsr(), None)
        table = _table_of_arrays(arrays, request.target, location)
    return _with_schema(table, request, location)


def read_npy(location: str, request: TableRequest) -> Table:
    """Read the rows of an npy file, which has no labels."""
    _refuse_names(location, request, "holds one array without labels")
    with name_file(location):
        return Table(np.load(location, allow_pickle=False), None)


def read_svmlight(location: str, request: TableRequest) -> Table:
    """Read rows as CSR, and their labels, from a file in svmlight format."""
    from sklearn.datasets import load_svmlight_file  # takes a while to import

    _refuse_names(location, request, "has lines that begin with their label")
    with name_file(location):
        X, y = load_svmlight_file(location)
        if (np.abs(y) > LARGEST_EXACT).any():
            raise ValueError(
                f"it has a label above {LARGEST_EXACT}, which floats cannot tell from "
                f"others, such as {y[np.abs(y) > LARGEST_EXACT][0]:.0f}"
            )
    return Table(X, _typed_labels(pd.Series(y, name="y")))


def _refuse_names(location: str, request: TableRequest, why: str) -> None:
    """Raise ValueError if columns of a file without names are asked for by name."""
    if request.groups is not None:
        raise ValueError(
            f"--groups names no column of {location!r}, which {why}, got "
            f"{request.groups!r}; write a table with names of columns."
        )
    if request.target is not None:
        raise ValueError(
            f"`target` names no column of {location!r}, which {why}, got "
            f"{request.target!r}; leave it out."
        )


def read_zarr(location: str, request: TableRequest) -> Table:
    """Read the arrays `X`, `y` and others of a zarr group."""
    with name_file(location):
        try:
            group = zarr.open_group(location, mode="r")
            arrays = dict(group.arrays())
        except (FileNotFoundError, *BAD_HEADER) as error:
            raise ValueError(
                f"`path` must end in one of {', '.join(list_formats())} or be a zarr "
                f"group with X and y, got {show(location)}."
            ) from error
        # Other arrays, such as coordinates of xarray, may be times.
        used = ("X", request.target or "y", "classes", "feature_names", "columns")
        for name in {*used} & {*arrays}:
            array = arrays[name]
            check_array(array)
            if meanings := meanings_of(array):
                arrays[name] = read_and_decode(array, meanings, slice(None))
        table = _table_of_arrays(arrays, request.target, location)
        names = table.columns or stored_columns(group.attrs, repr(location))
    return _with_schema(table._replace(columns=names), request, location)


def _table_of_frame(frame: pd.DataFrame, request: TableRequest, path: str) -> Table:
    """Return a data frame from a format that has types as a table."""
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    check_distinct_names(frame.columns, path)
    frame = _with_named_index(frame, request)
    n = count_row_names(frame.columns)
    row_names, columns = list(frame.columns[:n]), list(frame.columns[n:])
    names = request.features(columns, repr(path), row_names)
    ids = frame[list(request.id_columns)].astype(str) if request.id_columns else None
    if request.like is not None:
        X = convert_frame(frame, replace(request.like, ids=()), where=repr(path))
        return Table(X, None, tuple(names), request.like, ids)
    frame = remove_gap_words(frame, names, request.gaps)
    why_texts = _why_texts(frame, names, request)
    frame, amounts = _read_amounts(frame, request.number, repr(path))
    for name in request.text:
        if texts_of(frame[name]) is None:
            raise ValueError(
                f"--text names {name!r}, which holds no texts in {path!r} but values "
                f"of type {frame[name].dtype}; write them as text there."
            )
    y = None if request.target is None else _typed_labels(frame[request.target])
    X = frame[names]
    # Columns without any value get one type, whatever type the format gave them.
    X = X.assign(**{name: None for name in names if len(X) and X[name].isna().all()})
    X = convert_to_common_types(X)
    schema = schema_of(X, target=request.target)
    forms = (replace(c, form=amounts.get(c.name, PLAIN)) for c in schema.columns)
    target_form = amounts.get(request.target or "", PLAIN)
    dropped = (*(n for n in row_names if n not in request.ids), *request.dropped)
    schema = replace(
        schema,
        columns=tuple(forms),
        target_form=target_form,
        ids=request.ids,
        dropped=dropped,
        gap_words=(*GAP_WORDS, *request.gaps),
    )
    caveats = notes_on_row_names(row_names)
    levels = (str(name) for name in frame.index.names if name is not None)
    index = [name for name in levels if name not in frame]
    if index:
        caveats += [
            f"{' and '.join(map(repr, index))}, the index of the data frame in "
            f"{path!r}, is left out; if it identifies rows or groups, name it by --id "
            f"or --groups {shlex.quote(index[0])}"
        ]
    if y is not None:
        schema = with_classes(schema, y)
        texts = [label for label in schema.classes or () if isinstance(label, str)]
        caveats += notes_on_similar_labels(texts)
    return Table.from_frame(
        X,
        y,
        schema,
        ids=ids,
        notes=tuple(rows_on_left_out(schema, row_names)),
        caveats=caveats,
        why_texts=why_texts,
        groups=None
        if request.groups is None
        else frame[request.groups].to_numpy(object),
        left_out=frame[list(request.drop)] if request.drop else None,
    )


def _with_named_index(frame: pd.DataFrame, request: TableRequest) -> pd.DataFrame:
    """Return a frame that has those levels of its index which options name as columns.

    Data frames have identifiers there, which are no features.
    """
    like_ids = () if request.like is None else request.like.ids
    wanted = {*request.ids, *request.drop, request.groups, *like_ids} - {None}
    levels = {
        str(name): frame.index.get_level_values(name)
        for name in frame.index.names
        if str(name) in wanted and str(name) not in frame
    }
    if not levels:
        return frame
    columns = {
        name: values.to_series(index=frame.index) for name, values in levels.items()
    }
    return frame.assign(**columns)


def _why_texts(
    frame: pd.DataFrame, names: Sequence[str], request: TableRequest
) -> dict[str, TextReason]:
    """Return why columns of texts are no other kind that they look like, by name."""
    reasons = {}
    for name in names:
        values = frame[name]
        texts = None if name in (*request.text, *request.number) else texts_of(values)
        if texts is None or columns_of(values.to_frame(name))[0].kind != TEXT:
            continue
        scan = ColumnScan()
        scan.is_typed, scan.quote = True, partial(_quote_row, texts)
        scan.add(texts)
        reason = text_reason(scan, name) if scan.kind() is Kind.TEXT else None
        if scan.kind().is_number and values.nunique() > MOST_TEXTS:
            way = f"; --number {quote_names(name)} reads it as numbers"
            reason = TextReason(
                f"column {name!r} holds texts, all of which are numbers{way}",
                (("--number", name),),
                way=way,
            )
        if reason is not None:
            reasons[name] = reason
    return reasons


def _quote_row(texts: pa.Array, value: str) -> str:
    """Return a value with the row in which it is first."""
    return f"{value!r} in row {pc.index(texts, value).as_py()} ({ROWS_FROM_0})"


def _read_amounts(
    frame: pd.DataFrame, names: Sequence[str], where: str
) -> tuple[pd.DataFrame, dict[str, Form]]:
    """Return a frame in which these columns are numbers, and their forms."""
    numbers, columns = {}, {}
    for name in names:
        values = frame[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        kind = columns_of(values.to_frame(name))[0].kind
        if kind not in (TEXT, NUMBER, NOTHING):
            raise ValueError(
                f"--number names {name!r}, which holds {kind} values such as "
                f"{show(values.dropna().iloc[0])} in {where}; leave it out."
            )
        if (texts := texts_of(values)) is not None:
            scan = ColumnScan()
            scan.add(texts)
            decimal = decimal_mark({name: scan}, ",", {name: None})
            column = number_column(name, scan, decimal)
            typed, bad = column.convert(texts)
            if typed is None:
                refuse_wrong_values([(column, bad)], where, 0)
            else:
                series = to_pandas(typed, column.kind)
                numbers[name] = series.set_axis(frame.index)
            columns[name] = column.form
    return frame.assign(**numbers), columns


def _typed_labels(values: pd.Series) -> NDArray[Any]:
    """Return the labels of a typed column.

    Floats and decimals without fractions become integers.
    """
    missing = values.isna().to_numpy()
    kind, first_value = (
        getattr(values.dtype, "kind", "O"),
        values[~missing].head(1).to_list(),
    )
    if first_value and isinstance(first_value[0], list | dict | np.ndarray):
        raise ValueError(
            f"`target` {values.name!r} must hold a label for each row, got "
            f"{show(first_value[0])}; name a column of texts, whole numbers or truth "
            f"values."
        )
    if kind == "O" and len({isinstance(v, str) for v in values[~missing]}) > 1:
        other = next(v for v in values[~missing] if type(v) is not type(first_value[0]))
        raise ValueError(
            f"`target` {values.name!r} must hold labels of one type, got "
            f"{show(first_value[0])} and {show(other)}; make texts of them."
        )
    known = values[~missing].to_numpy()
    if first_value and isinstance(first_value[0], Decimal):
        # If they became floats first, two labels of more than 15 digits could become
        # one.
        is_whole = all(label == int(label) for label in known)
        known = np.array([(int if is_whole else float)(label) for label in known])
    elif kind == "f":
        known = _as_integers(known.astype(np.float64))
    if not missing.any():
        return np.asarray(known)
    labels = np.empty(len(values), dtype=object)
    # `tolist` makes whole numbers of times in nanoseconds.
    is_time = known.dtype.kind in "mM"
    labels[~missing] = pd.Series(known).tolist() if is_time else known.tolist()
    return labels


def _with_schema(table: Table, request: TableRequest, path: str) -> Table:
    """Return arrays as a table, with the requested columns."""
    if table.columns is not None and table.X.ndim == 2:
        check_names(table.columns, table.X.shape[1], f"feature_names of {path!r}")
    else:
        if request.dropped or request.ids or request.like is not None:
            raise ValueError(
                f"{path!r} has no names of columns, by which --drop, --id, --groups "
                f"and a schema find them; add an array feature_names."
            )
        return table
    frame = pd.DataFrame(table.X, columns=list(table.columns or ()))
    keys = None
    if request.dropped or request.ids or request.like is not None:
        selected = _table_of_frame(frame, request._replace(target=None), path)
        schema, X, columns = selected.schema, selected.X, selected.columns
        ids, keys = selected.ids, selected.groups
    else:
        schema, X, columns, ids = schema_of(frame), table.X, table.columns, None
    if schema is not None and table.y is not None and request.like is None:
        schema = with_classes(replace(schema, target=request.target), table.y)
    return Table(X, table.y, columns, schema, ids, groups=keys)


def _table_of_arrays(arrays: Mapping[str, Any], target: str | None, path: str) -> Table:
    """Return the table of an .npz file; codes in y become names of `classes`."""
    for needed in ("X", target):
        if needed is not None and needed not in arrays:
            array_names = ", ".join(arrays) or "nothing"
            raise ValueError(
                f"{path!r} must hold an array {needed!r}, found {array_names}."
            )
    name = "y" if target is None else target
    y = _decode(arrays[name]) if name in arrays else None
    if y is not None and y.dtype.names:
        raise ValueError(
            f"{path!r} must hold one label for each row in {name!r}, got records of "
            f"{', '.join(y.dtype.names)}; write one of them as an array."
        )
    if y is not None and name == "y" and "classes" in arrays:
        classes = _decode(arrays["classes"])
        codes = _as_integers(y) if y.dtype.kind in "fb" else y
        are_codes = codes.dtype.kind in "iu" and codes.ndim == classes.ndim == 1
        n_names, wrong = len(np.unique(classes)), np.zeros(1, dtype=np.int64)
        if are_codes:
            wrong = np.flatnonzero((codes < 0) | (codes >= len(classes)))
        if len(wrong) or n_names < len(classes):
            example = f", {y[wrong[0]]} in row {wrong[0]}" if len(wrong) else ""
            raise ValueError(
                f"{path!r} must hold distinct names in its array classes, and in y "
                f"their codes, whole numbers from 0 to {classes.size - 1}, got "
                f"{n_names} names and {codes.dtype}{example}; rows without a label "
                f"belong in the pool, and labels as they are need no classes "
                f"({ROWS_FROM_0})."
            )
        y = np.asarray(classes[codes])
    elif y is not None and y.ndim == 1 and y.dtype.kind == "f":
        y = _typed_labels(pd.Series(y, name=name))
    names = next((arrays[k] for k in ("feature_names", "columns") if k in arrays), None)
    columns = None if names is None else tuple(map(str, _decode(names)))
    return Table(np.asarray(arrays["X"]), y, columns)


def _decode(values: Any) -> NDArray[Any]:
    """Return an array; bytes, which numpy has for texts of HDF5 and C, become texts."""
    array = np.asarray(values)
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _as_integers(y: Floats) -> NDArray[Any]:
    """Return integral labels as integers; svmlight files have only floats."""
    with np.errstate(invalid="ignore"):  # NaN has no integer
        whole = y.astype(np.int64)
    return whole if (whole == y).all() else y
