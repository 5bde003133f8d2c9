"""``dsel pool``: write a pool of unlabeled rows, or describe one."""

import os
from dataclasses import replace
from typing import Any

import click

from dsel.checks import listing
from dsel.cli.running import (
    ClusterOptions,
    TextOptions,
    cluster_options,
    names_in,
    notes,
    open_client,
    text_options,
)
from dsel.data.open import open_pool
from dsel.data.schema import TableSchema
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.data.write import write_pool
from dsel.results.place import HEAD
from dsel.results.run_store import load_schema
from dsel.rounded_texts import wrap_line
from dsel.runtime.progress import row_progress


@click.group(name="pool")
def command() -> None:
    """Write pools of unlabeled rows, or describe them."""


@command.command()
@click.argument("source")
@click.argument("path")
@click.option("--target", help="Column of labels; it is left out of the pool.")
@click.option(
    "--like",
    help="Labeled table, or results of `dsel select`: a text file is converted by its "
    "kinds of columns.",
)
@click.option("--drop", help="Columns of a text file to leave out, such as name,note.")
@text_options
@click.option("--dtype", help="Type of the numbers, such as float32.")
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows of a chunk.")
@cluster_options
@click.option("--quiet", is_flag=True, help="Print nothing.")
def build(
    source: str,
    path: str,
    cluster: ClusterOptions,
    quiet: bool,
    like: str | None,
    drop: str | None,
    text: TextOptions,
    target: str | None,
    **options: Any,
) -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk.

    SOURCE is a text table such as CSV, or a folder of them, a Parquet, Feather, JSON
    lines, npz or npy file, or a zarr array; PATH may be a URL. If the command is
    interrupted, run it again: it starts from the beginning. A text file with columns of
    text needs a PATH that ends in .parquet, to which Feather and JSON lines may go with
    their types. Text files are read twice, by this process;
    other files are converted by tasks, on local threads unless --scheduler or --workers
    is given.
    """
    opened: Any = source
    if os.path.exists(source) and is_text(source):
        schema = None
        if like is not None:
            schema, target = _schema_of(like, target, text), None
        opened = text_source(source, **text.arguments, like=schema, drop=names_in(drop))
        if schema is not None and schema.target in opened.names:
            notes([f"column {schema.target!r}, the target, is left out"])
        notes(opened.notes)
    elif like is not None or drop is not None:
        raise click.UsageError(
            f"--like and --drop are for text files, and {source!r} keeps the types "
            f"that it has; `dsel select` takes it as --pool as it is."
        )
    progress = row_progress(False if quiet else None, "Building the pool")
    with open_client(cluster) as client, progress as shown:
        write_pool(
            opened, path, target=target, client=client, on_progress=shown, **options
        )
    if not quiet:
        click.get_current_context().invoke(info, path=path)


def _schema_of(like: str, target: str | None, text: TextOptions) -> TableSchema:
    """Return the schema of a labeled table, or of the one whose results are stored."""
    if os.path.isdir(like) and os.path.exists(os.path.join(like, HEAD)):
        stored = load_schema(like)
        if stored is None:
            raise ValueError(
                f"--like {like!r} holds results without the kinds of a table; name the "
                f"labeled table."
            )
        return TableSchema.from_json(stored)
    table = read_table(like, **text.arguments)
    if table.schema is None:
        raise ValueError(f"--like {like!r} has no names of columns.")
    schema = table.schema
    if target is not None:
        columns = tuple(each for each in schema.columns if each.name != target)
        schema = replace(schema, columns=columns, target=target)
    return schema


@command.command()
@click.argument("path")
def info(path: str) -> None:
    """Describe the pool at PATH, without reading its rows."""
    pool = open_pool(path)
    click.echo(f"{path}: {pool!r}")
    columns = list(pool.columns or ())
    if columns:
        click.echo(wrap_line(f"columns: {listing(columns, 10)}", 9))
    click.echo(f"fingerprint: {pool.token}")
