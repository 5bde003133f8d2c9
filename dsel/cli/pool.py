"""``dsel pool``: write a pool of unlabeled rows, or describe one."""

import os
from dataclasses import replace
from typing import Any

import click

from dsel.checks import describe_unused_columns, listing
from dsel.cli.options import ClusterOptions, TextOptions
from dsel.cli.printing import say
from dsel.cli.running import names_in, open_client, print_notes
from dsel.data.like import open_pool_like
from dsel.data.open import open_pool
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.data.unknown_values import describe_alike
from dsel.data.write import pool_notes, write_pool
from dsel.results.place import HEAD
from dsel.results.run_tables import load_schema
from dsel.runtime.progress import row_progress


def build(
    source: str,
    path: str,
    cluster: ClusterOptions,
    quiet: bool,
    like: str | None,
    drop: str | None,
    text: TextOptions,
    day_first: bool | None,
    number: tuple[str, ...],
    texts: tuple[str, ...],
    target: str | None,
    dtype: str | None,
    chunk_rows: int | None,
) -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk."""
    opened: Any = source
    if (day_first is not None or number or texts) and like is None:
        raise click.UsageError(
            "--dayfirst, --monthfirst, --number and --text are about the labeled table "
            "of --like; name it, or leave them out: what cannot be written back as it "
            "was stays text, and `dsel select` reads it."
        )
    schema: TableSchema | None = None
    if os.path.exists(source) and is_text(source):
        if like is not None:
            schema, lines = _schema_of(like, target, text, day_first, number, texts)
            print_notes(lines)
            target = None
        opened = text_source(source, **text.arguments, like=schema, drop=names_in(drop))
        if schema is not None and schema.target in opened.names:
            print_notes([f"column {schema.target!r}, the target, is left out"])
        print_notes(opened.notes)
        if schema is not None:
            known = {*schema.used_names, *schema.dropped, *names_in(drop)}
            unused = describe_unused_columns(opened.names, known)
            print_notes([f"left out: {unused}"] * bool(unused))
    elif like is not None or drop is not None:
        raise click.UsageError(
            f"--like and --drop are for text files, and {source!r} keeps the types "
            f"that it has; `dsel select` takes it as --pool as it is."
        )
    progress = row_progress(False if quiet else None, "Building the pool")
    with open_client(cluster) as client, progress as shown:
        write_pool(
            opened,
            path,
            target=target,
            dtype=dtype,
            chunk_rows=chunk_rows,
            client=client,
            on_progress=shown,
        )
    print_notes(pool_notes(path))
    if schema is not None:
        _, _, caveats, unknown = open_pool_like(path, opened.like)
        print_notes([*caveats, *describe_alike(unknown)])
    if not quiet:
        info(path)


def _schema_of(
    like: str,
    target: str | None,
    text: TextOptions,
    day_first: bool | None,
    number: tuple[str, ...],
    texts: tuple[str, ...],
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
    table = read_table(
        like, **text.arguments, day_first=day_first, number=number, text=texts
    )
    if table.schema is None:
        raise ValueError(f"--like {like!r} has no names of columns.")
    schema = table.schema
    if target is not None:
        columns = tuple(each for each in schema.columns if each.name != target)
        schema = replace(schema, columns=columns, target=target)
    return schema, [table.why_texts[n] for n in schema.names if n in table.why_texts]


def info(path: str) -> None:
    """Describe the pool at PATH, without reading its rows."""
    pool = open_pool(path)
    click.echo(f"{path}: {pool}")
    columns = list(pool.columns or ())
    if columns:
        say(f"columns: {listing(columns, 10)}", indent=9)
    click.echo(f"fingerprint: {pool.token}")
