"""Conversion of a pool to the column kinds of the labeled table, with checks before it.

Text in the pool becomes numbers, truth values or times where the labeled table has
them. All wrong columns are reported at once, before anything is fitted.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from dask.base import tokenize
from pyarrow import parquet

from dsel.arrays import Features, Integers
from dsel.checks import MOST_COLUMNS_NAMED
from dsel.data.frame_columns import (
    NOTHING,
    NUMBER,
    TEXT,
    TRUTH,
    columns_of,
    has_texts,
    texts_of,
)
from dsel.data.frames import FrameSchema, native
from dsel.data.labeled import ROWS_AT_ONCE, has_values
from dsel.data.open import open_pool
from dsel.data.pool import Pool
from dsel.data.schema import (
    DATES,
    ColumnSchema,
    TableSchema,
    convert_frame,
    find_wrong_values,
    gap_numbers,
    refuse_wrong_values,
    remove_gap_words,
)
from dsel.data.table_files import PARQUET
from dsel.data.text_columns.conversion import WrongValue
from dsel.data.text_columns.kinds import Kind
from dsel.data.text_columns.numbers import LARGEST_EXACT
from dsel.data.text_columns.text_reasons import TextReason
from dsel.data.unknown_values import (
    UnknownValues,
    find_unknown_values,
    known_values_for_pool,
    merge_unknown_values,
)
from dsel.data.write import PLAIN_WHOLE, TEXT_POOL
from dsel.errors import UndecidedError
from dsel.option_values import join_names

if TYPE_CHECKING:
    from distributed import Client


_EMPTY: Mapping[Kind, str] = {
    Kind.WHOLE: "float64",
    Kind.NUMBERS: "float64",
    Kind.TRUTH: "bool",
    Kind.DATES: DATES,
    Kind.TIMES: DATES,
    Kind.ZONED_TIMES: "datetime64[us, UTC]",
}
"""Types of the columns that texts are converted to."""


def open_pool_like(
    location: str,
    schema: TableSchema,
    *,
    why_texts: Mapping[str, TextReason] = MappingProxyType({}),
    client: "Client | None" = None,
) -> tuple[Pool, Pool, tuple[str, ...], Mapping[str, UnknownValues]]:
    """Open a pool with the column kinds of a labeled table.

    Returns this pool, the pool as it is stored, with all columns, caveats, and values
    that no labeled row has. Columns of texts, times and keys are read once, to check
    every value. TypeError
    where a column holds what cannot be converted, such as lists; ValueError for all
    columns at once that are missing, or hold a value of another kind. `why_texts` has
    the reasons why columns of the labeled table are text.
    """
    stored = pool = open_pool(location)
    columns = pool.columns or ()
    caveats: tuple[str, ...] = ()
    if schema.target in columns:
        caveats = (
            f"column {schema.target!r} of the pool, the target of the labeled table, "
            f"is left out",
        )
    if not columns or not schema.columns:
        return pool, stored, caveats, {}
    schema.check_columns(columns, pool.where)
    pool = pool.with_columns(schema.names)
    if pool.frames is None:
        schema.refuse_plain_numbers(schema.names, pool.where)
        numbers = gap_numbers(schema.extra_gap_words)
        pool = _without_numbers(pool, numbers)
        return pool, stored, caveats, _find_unknown(pool, schema, client)
    _refuse_numbers(pool, schema, why_texts)
    converted = convert_pool(pool, schema, location)
    _check_texts(pool, schema, client)
    if not (known := known_values_for_pool(schema)):
        return converted, stored, caveats, {}
    read = tuple(column for column in schema.columns if column.name in known)
    pool = pool.with_columns([*known], block_rows=ROWS_AT_ONCE)
    like = replace(schema, columns=read)
    if pool.frames is not None:  # otherwise keys are all that is read
        pool = convert_pool(pool, like, location)
    return converted, stored, caveats, _find_unknown(pool, like, client)


def _find_unknown(
    pool: Pool, schema: TableSchema, client: "Client | None"
) -> Mapping[str, UnknownValues]:
    """Return the values of a pool that no labeled row has, of the columns it reads."""
    if not (known := known_values_for_pool(schema)):
        return {}
    names = [*known]
    pool = pool.with_columns(names, block_rows=ROWS_AT_ONCE)

    def find(X: Features, row_numbers: Integers) -> dict[str, UnknownValues]:
        rows = native(X)
        if not isinstance(rows, pd.DataFrame):
            rows = pd.DataFrame(rows, columns=names)
        return find_unknown_values(rows, known)

    unknown: dict[str, UnknownValues] = pool.reduce(
        find, merge_unknown_values, client=client, allow_nan=True
    )
    return unknown


def convert_pool(
    pool: Pool, schema: TableSchema, location: str, *, where: str = "the pool"
) -> Pool:
    """Return a pool of data frames with the column kinds of a labeled table.

    Its first columns are those of the schema. Blocks are converted when they are read;
    a value that is not of its kind raises ValueError then.
    """
    written = _text_columns(location)
    missing = _check_kinds(pool, schema, written, where)
    assert pool.frames is not None
    converted = (*_columns_to_convert(schema, pool), *missing)
    changes = {c.name: _EMPTY[c.kind] for c in converted if c.kind is not Kind.TEXT}
    back = [
        column.name
        for column, stored in zip(schema.columns, pool.frames.columns, strict=False)
        if column.kind is Kind.TEXT
        and stored.kind in (NUMBER, "date", "time")
        and column.name in written
    ] + [column.name for column in missing if column.kind is Kind.TEXT]
    changes |= dict.fromkeys(back, "str")
    # Blocks get zoned times in UTC, and dates as times, as labeled rows have them.
    for like, stored in zip(schema.columns, pool.frames.columns, strict=False):
        is_date = stored.kind == "date" and like.kind in (Kind.DATES, Kind.TIMES)
        if like.kind is Kind.ZONED_TIMES or is_date:
            changes[like.name] = _EMPTY[like.kind]
    is_text = any(column.kind is Kind.TEXT for column in schema.columns)
    numbers = gap_numbers(schema.extra_gap_words)
    if numbers:
        are_whole = (c for c in pool.frames.columns if c.dtype.startswith(("int", "u")))
        # Columns that become text, or times, do so all the same.
        changes = dict.fromkeys((c.name for c in are_whole), "float64") | changes
    has_gaps = bool(schema.extra_gap_words) and any(
        has_texts(column.kind) or (numbers and column.kind == NUMBER)
        for column in pool.frames.columns
    )
    if not (changes or has_gaps) and (schema.is_typed or not is_text):
        return pool
    # pandas casts no times to numbers, though there are none.
    objects = dict.fromkeys((column.name for column in missing), object)
    empty = pool.frames.empty.astype(objects).astype(changes)
    known = {column.name: column for column in columns_of(empty)}
    columns = []
    for column in pool.frames.columns:
        if column.name in changes:
            kind = TEXT if column.name in back else known[column.name].kind
            column = replace(column, kind=kind)
            if column.name in objects:
                columns.append(replace(column, dtype=known[column.name].dtype))
                continue
        is_number = column.dtype == "float64"
        columns.append(replace(column, kind=NUMBER) if is_number else column)
    frames, fingerprint = FrameSchema(empty, tuple(columns)), pool.origin.fingerprint
    return replace(
        pool,
        blocks=pool.blocks.map(partial(_block_like, schema, written, where)),
        stored_schema=replace(pool.stored_schema, frames=frames, dtype=frames.dtype),
        # `read_columns` would open columns of the file, without the conversion.
        origin=replace(
            pool.origin,
            fingerprint=fingerprint
            and f"{fingerprint}-{tokenize(schema.to_json(), written)}",
            read_columns=None,
        ),
    )


def _without_numbers(pool: Pool, numbers: Sequence[float]) -> Pool:
    """Return a pool of plain numbers in which some of them are missing values."""
    if not numbers:
        return pool
    fingerprint = pool.origin.fingerprint
    return replace(
        pool,
        blocks=pool.blocks.map(partial(_mask_numbers, numbers)),
        stored_schema=replace(pool.stored_schema, dtype=np.dtype(np.float64)),
        origin=replace(
            pool.origin,
            fingerprint=fingerprint and f"{fingerprint}-{tokenize(numbers)}",
            read_columns=None,
        ),
    )


def _mask_numbers(numbers: Sequence[float], first: int, rows: Features) -> Features:
    """Return the rows of a block with NaN in the place of some numbers."""
    floats = np.asarray(rows, dtype=np.float64)
    return np.where(np.isin(floats, numbers), np.nan, floats)


def _refuse_numbers(
    pool: Pool, schema: TableSchema, why_texts: Mapping[str, TextReason]
) -> None:
    """Raise where a pool has numbers, and only some words in the labeled table none."""
    assert pool.frames is not None
    reasons = {
        column.name: reason
        for column, stored in zip(schema.columns, pool.frames.columns, strict=False)
        if column.kind is Kind.TEXT
        and stored.kind == NUMBER
        and (reason := why_texts.get(column.name))
        and reason.options
    }
    if reasons:
        shown = ". ".join(
            f"{reason.text}; it holds numbers in the pool"
            for reason in reasons.values()
        )
        options = dict.fromkeys(
            option for reason in reasons.values() for option in reason.options
        )
        raise UndecidedError(
            f"{shown}.", [*options], [("--drop", join_names([*reasons]))]
        )


class _Written(NamedTuple):
    """How a column of a text file was written."""

    kind: Kind
    is_plain_whole: bool
    """Whether whole numbers have no point."""

    def texts(self, values: pd.Series) -> pd.Series:
        """Return numbers or dates as they were written."""
        known = values.notna()
        texts = pd.Series([None] * len(values), index=values.index, dtype=object)
        if self.kind is Kind.DATES:
            texts[known] = values[known].dt.strftime("%Y-%m-%d")
            return texts
        is_whole = known & (self.kind is Kind.WHOLE)
        if self.is_plain_whole:
            # Larger ones were written with an exponent; otherwise they would be text.
            is_whole |= known & (values % 1 == 0) & (values.abs() <= LARGEST_EXACT)
        texts[known] = values[known].map(repr)
        texts[is_whole] = values[is_whole].astype("int64").astype(str)
        return texts


def _text_columns(location: str) -> dict[str, _Written]:
    """Return how the columns of a pool were written in a text file.

    In such a pool every number and date can be written back as it was, so that it can
    become text again.
    """
    if not location.lower().endswith(PARQUET) or not os.path.isfile(location):
        return {}
    stored = parquet.read_schema(location)
    text = (stored.metadata or {}).get(TEXT_POOL)
    if text is None:
        return {}
    plain = {column.name for column in stored if column.metadata == PLAIN_WHOLE}
    return {
        column.name: _Written(column.kind, column.name in plain)
        for column in TableSchema.from_json(text.decode()).columns
    }


def _check_kinds(
    pool: Pool, schema: TableSchema, written: Mapping[str, _Written], where: str
) -> list[ColumnSchema]:
    """Raise where the type of a column shows that it cannot be converted.

    Return the columns whose type is another one because they have no value at all.
    """
    assert pool.frames is not None
    are_numbers = (c.name for c in pool.frames.columns if c.is_number)
    schema.refuse_plain_numbers(are_numbers, where)
    wrong, names, missing = [], [], list[ColumnSchema]()
    for column, stored in zip(schema.columns, pool.frames.columns, strict=False):
        kind, known, end = stored.kind, column.kind, ""
        has_zone = kind.startswith("time in zone")
        if known.is_time and stored.is_time:
            if has_zone != (known is Kind.ZONED_TIMES):
                if not has_values(pool, column.name):
                    missing.append(column)
                    continue
                labeled_table, other = "the labeled table", where
                zoned, local = (
                    (other, labeled_table) if has_zone else (labeled_table, other)
                )
                wrong.append(
                    f"the times of column {column.name!r} have a zone in {zoned} and "
                    f"no zone in {local}"
                )
            continue
        is_right = kind == NOTHING or known in (Kind.OTHER, Kind.GAPS)
        if known is Kind.TEXT:
            is_right |= kind == TEXT or column.name in written
            if kind == NUMBER:
                end = "; build the pool from its text file, `dsel pool build --like`"
                end += " the labeled table"
        else:
            is_right |= has_texts(kind) or (known is Kind.TRUTH and kind == TRUTH)
            is_right |= known.is_number and kind in (NUMBER, TRUTH)
        if not is_right and not has_values(pool, column.name):
            missing.append(column)
        elif not is_right:
            names.append(column.name)
            wrong.append(
                f"column {column.name!r} holds {column.noun} in the labeled table and "
                f"{f'{kind}s' if kind in (NUMBER, TRUTH) else kind} in {where}{end}"
            )
    if wrong:
        raise UndecidedError(
            f"{'. '.join(wrong[:MOST_COLUMNS_NAMED])}. Write both in one way.",
            # Times that differ by a zone are corrected in a table, by hours: no command
            # leaves them out.
            [("--drop", join_names(names))] if names else [],
        )
    return missing


def _columns_to_convert(schema: TableSchema, pool: Pool) -> list[ColumnSchema]:
    """Return the text columns of the pool that are converted to another kind."""
    assert pool.frames is not None
    any_kind = (Kind.TEXT, Kind.OTHER, Kind.GAPS)
    pairs = zip(schema.columns, pool.frames.columns, strict=False)
    return [
        column
        for column, stored in pairs
        if has_texts(stored.kind) and column.kind not in any_kind
    ]


def _check_texts(pool: Pool, schema: TableSchema, client: "Client | None") -> None:
    """Read the texts that will be converted; raise one error for all wrong columns."""
    columns = _columns_to_convert(schema, pool)
    if not columns:
        return
    # The original pool is read: in the converted one wrong values raise one by one.
    names = [column.name for column in columns]
    texts = pool.with_columns(names, block_rows=ROWS_AT_ONCE)

    def find(
        X: Features, row_numbers: Integers
    ) -> dict[str, tuple[ColumnSchema, WrongValue]]:
        rows = remove_gap_words(native(X), names, schema.extra_gap_words)
        return find_wrong_values(
            columns, lambda name: texts_of(rows[name]), row_numbers
        )

    # Blocks are combined in order, and the first value of each column stays.
    wrong = texts.reduce(find, lambda a, b: {**b, **a}, client=client, allow_nan=True)
    known = [wrong[column.name] for column in columns if column.name in wrong]
    refuse_wrong_values(known, "the pool", 0)


def _block_like(
    schema: TableSchema,
    written: Mapping[str, _Written],
    where: str,
    first: int,
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """Return the rows of a block with the column kinds of the labeled table."""
    texts = {
        column.name: written[column.name].texts(rows[column.name])
        for column in schema.columns
        if column.kind is Kind.TEXT
        and column.name in written
        and rows[column.name].dtype.kind in "iufM"
    }
    return convert_frame(
        rows.assign(**texts) if texts else rows, schema, first_row=first, where=where
    )
