"""``dsel pool``: write a pool of unlabeled rows, or describe one."""

from typing import Any

import click

from dsel.checks import listed
from dsel.cli.running import cluster_options, connected
from dsel.data.open import open_pool
from dsel.data.write import write_pool
from dsel.results.texts import wrapped
from dsel.runtime.progress import row_progress


@click.group(name="pool")
def command() -> None:
    """Write pools of unlabeled rows, or describe them."""


@command.command()
@click.argument("source")
@click.argument("path")
@click.option("--target", help="Column of labels, which is left out.")
@click.option("--dtype", help="Type of the numbers, such as float32.")
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows of a chunk.")
@cluster_options
@click.option("--quiet", is_flag=True, help="Print nothing.")
def build(
    source: str,
    path: str,
    scheduler: str | None,
    workers: int | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk.

    SOURCE is a CSV, TSV, Parquet, npz or npy file, or a zarr array; PATH may be a URL.
    Stopped anywhere, the same command starts anew. A CSV or TSV file with columns of
    text goes to a PATH that ends in .parquet. CSV files are read here, in order; what
    else there is is written by tasks, on local threads unless --scheduler or --workers
    say otherwise.
    """
    progress = row_progress(False if quiet else None)
    with connected(scheduler, workers) as client, progress as shown:
        write_pool(source, path, client=client, on_progress=shown, **options)
    if not quiet:
        click.get_current_context().invoke(info, path=path)


@command.command()
@click.argument("path")
def info(path: str) -> None:
    """Say what the pool at PATH holds, without reading its rows."""
    pool = open_pool(path)
    click.echo(f"{path}: {pool!r}")
    columns = list(pool.columns or ())
    if columns:
        click.echo(wrapped(f"columns: {listed(columns, 10)}", 9))
    click.echo(f"fingerprint: {pool.token}")
