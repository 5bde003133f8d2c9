"""``dsel pool``: write a pool of unlabeled rows, or describe one."""

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dsel.data.pool import Pool


@click.group(name="pool")
def command() -> None:
    """Write pools of unlabeled rows, or describe them."""


@command.command()
@click.argument("source")
@click.argument("path")
@click.option("--target", help="Column of labels, which is left out.")
@click.option("--dtype", help="Type of the numbers, such as float32.")
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows of a chunk.")
@click.option("--scheduler", help="Address or file of a scheduler to write on.")
@click.option("--workers", type=click.IntRange(min=1), help="Local worker processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def build(
    source: str,
    path: str,
    scheduler: str | None,
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk.

    SOURCE is a CSV, TSV, Parquet, npz or npy file, or a zarr array; PATH may be a URL.
    Stopped anywhere, the same command starts anew. A CSV or TSV file with columns of
    text goes to a PATH that ends in .parquet. CSV files are read here, in order; what
    else there is is written by tasks, on local threads unless --scheduler or --workers
    say otherwise.
    """
    from dsel.data.write import write_pool
    from dsel.runtime.progress import row_progress

    with ExitStack() as stack:
        if scheduler or workers:
            stack.enter_context(_client(scheduler, workers))
        on_progress = stack.enter_context(row_progress(not as_json))
        pool = write_pool(source, path, **options, on_progress=on_progress)
    _show(path, pool, as_json)


@command.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def info(path: str, as_json: bool) -> None:
    """Say what the pool at PATH holds, without reading its rows."""
    from dsel.data.open import open_pool

    _show(path, open_pool(path), as_json)


def _client(scheduler: str | None, workers: int | None) -> Any:
    from dsel.cluster import Local, choose_config, connect

    return connect(choose_config(scheduler, workers=workers) or Local())


def _show(path: str, pool: "Pool", as_json: bool) -> None:
    facts = _facts(path, pool)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    names = facts["column_names"]
    click.echo(f"{path}: {pool!r}")
    if names:
        more = "" if len(names) <= 10 else f" and {len(names) - 10} more"
        click.echo(f"columns: {', '.join(names[:10])}{more}")
    click.echo(f"fingerprint: {pool.token}")


def _facts(path: str, pool: "Pool") -> dict[str, Any]:
    return {
        "path": path,
        "rows": pool.n_rows,
        "columns": pool.n_columns,
        "column_names": None if pool.columns is None else list(pool.columns),
        "dtype": str(pool.dtype),
        "sparse": pool.is_sparse,
        "chunks": len(pool.boundaries) - 1,
        "bytes": pool.nbytes,
        "fingerprint": pool.token,
    }
