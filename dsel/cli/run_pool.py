"""``dsel pool``: write a pool of unlabeled rows, or describe one."""

import os
import shlex
from dataclasses import replace
from typing import Any

import click

from dsel.checks import describe_unused_columns, listing
from dsel.cli.options import ClusterOptions, TextOptions
from dsel.cli.printing import say
from dsel.cli.running import (
    SELECT,
    leave_out_lacking_ids,
    next_rows,
    offer_changed_table,
    open_client,
    print_notes,
    print_rows,
)
from dsel.data.like import open_pool_like
from dsel.data.open import open_pool
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.data.unknown_values import select_unexpected_values
from dsel.data.write import pool_notes, write_pool
from dsel.files import HEAD
from dsel.results.run_tables import load_schema
from dsel.runtime.progress import row_progress


def build(
    source: str,
    path: str,
    cluster: ClusterOptions,
    quiet: bool,
    target: str | None,
    dtype: str | None,
    chunk_rows: int | None,
    **reading: Any,
) -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk."""
    opened, schema, notes = _open_source(source, target, **reading)
    print_notes(notes)
    progress = row_progress(False if quiet else None, "Building the pool")
    with open_client(cluster) as client, progress as on_progress:
        write_pool(
            opened,
            path,
            target=target if schema is None else None,
            dtype=dtype,
            chunk_rows=chunk_rows,
            client=client,
            on_progress=on_progress,
        )
    print_notes(pool_notes(path))
    if schema is not None:
        pool, _, caveats, unknown = open_pool_like(path, opened.like)
        new_values = select_unexpected_values(unknown, pool.n_rows)
        print_notes([*caveats, *(new.line for new in new_values)])
    if not quiet:
        info(path)


def check_build(
    source: str,
    path: str,
    cluster: ClusterOptions,
    quiet: bool,
    target: str | None,
    dtype: str | None,
    chunk_rows: int | None,
    **reading: Any,
) -> None:
    """Raise what stops `build` before it converts a row."""
    _open_source(source, target, **reading)


def _open_source(
    source: str,
    target: str | None,
    *,
    like: str | None,
    drop: tuple[str, ...],
    text: TextOptions,
    day_first: bool | None,
    number: tuple[str, ...],
    texts: tuple[str, ...],
    gaps: tuple[str, ...],
) -> tuple[Any, TableSchema | None, list[str]]:
    """Return the opened source, the schema by which it is converted, and notes."""
    is_read_like = day_first is not None or number or texts or gaps
    if is_read_like and like is None:
        raise click.UsageError(
            "--dayfirst, --monthfirst, --number, --text and --gap are about the "
            "labeled table of --like; name it, or leave them out: what cannot be "
            "written back as it was stays text, and `dsel select` reads it."
        )
    if not (os.path.exists(source) and is_text(source)):
        if like is not None or drop:
            raise click.UsageError(
                f"--like and --drop are for text files, and {source!r} keeps the types "
                f"that it has; `dsel select` takes it as --pool as it is."
            )
        return source, None, []
    schema, notes = None, list[str]()
    if like is not None:
        arguments = {"day_first": day_first, "number": number, "text": texts}
        schema, notes = _schema_of(
            like, target, **text.arguments, **arguments, gaps=gaps
        )
        schema, more = leave_out_lacking_ids(schema, source, text.arguments)
        notes = [*notes, *more]
    opened = text_source(source, **text.arguments, like=schema, drop=drop)
    with offer_changed_table(source, text.arguments):
        opened.features(target if schema is None else None)  # raises for missing ones
    if schema is not None and schema.target in opened.names:
        notes.append(f"column {schema.target!r}, the target, is left out")
    notes += opened.notes
    if schema is not None:
        known = {*schema.used_names, *schema.dropped, *drop}
        unused = describe_unused_columns(opened.names, known)
        if unused:
            notes.append(f"left out: {unused}")
    return opened, schema, notes


def _schema_of(
    like: str, target: str | None, **arguments: Any
) -> tuple[TableSchema, list[str]]:
    """Return the schema of a labeled table, or of results, and why columns are text."""
    if os.path.isdir(like) and os.path.exists(os.path.join(like, HEAD)):
        stored = load_schema(like)
        if stored is None:
            raise ValueError(
                f"--like {like!r} holds results without the kinds of a table; name the "
                f"labeled table."
            )
        return TableSchema.from_json(stored), []
    table = read_table(like, **arguments)
    if table.schema is None:
        raise ValueError(f"--like {like!r} has no names of columns.")
    schema = table.schema
    if target is not None:
        columns = tuple(column for column in schema.columns if column.name != target)
        schema = replace(schema, columns=columns, target=target)
    reasons = map(table.why_texts.get, schema.names)
    return schema, [reason.text for reason in reasons if reason is not None]


def info(path: str) -> None:
    """Describe the pool at PATH, without reading its rows."""
    pool = open_pool(path)
    click.echo(f"{path}: {pool}")
    columns = list(pool.columns or ())
    if columns:
        say(f"columns: {listing(columns, 10)}", indent=9)
    click.echo(f"fingerprint: {pool.token}")
    print_rows(next_rows(SELECT.format(shlex.quote(path))))
