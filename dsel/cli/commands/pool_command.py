"""Options of ``dsel pool``: write a pool of unlabeled rows, or describe one."""

from collections.abc import Sequence

import click

from dsel.checks import nearest_name
from dsel.cli.group import SuggestingGroup
from dsel.cli.option_types import ListOption
from dsel.cli.options import (
    ExistingPath,
    cluster_options,
    day_first_option,
    gap_option,
    number_option,
    run_from,
    text_column_option,
    text_options,
)


class PoolGroup(SuggestingGroup):
    """Group of commands on pools, which may be forgotten before a path."""

    def suggest(self, ctx: click.Context, args: Sequence[str]) -> str:
        """Return the command that is spelled alike, or that takes as many paths."""
        if nearest_name(args[0], self.commands) is not None:
            return super().suggest(ctx, args)
        n_paths = sum(not word.startswith("-") for word in args)
        forgotten = "build" if n_paths > 1 else "info"
        return f"; did you mean {f'{forgotten} {args[0]}'!r}?"


@click.group(name="pool", cls=PoolGroup)
def command() -> None:
    """Write pools of unlabeled rows, or describe them."""


@command.command()
@click.argument("source", type=ExistingPath())
@click.argument("path")
@click.option("--target", help="Column of labels; it is left out of the pool.")
@click.option(
    "--like",
    type=ExistingPath(),
    help="Labeled table, or results of `dsel select`: a text file is converted by its "
    "kinds of columns.",
)
@click.option(
    "--drop",
    cls=ListOption,
    help="Columns of a text file to leave out, such as name,note.",
)
@text_options
@day_first_option
@number_option
@text_column_option
@gap_option
@click.option("--dtype", help="Type of the numbers, such as float32.")
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows of a chunk.")
@cluster_options
@click.option("--quiet", is_flag=True, help="Print nothing.")
@run_from("dsel.cli.run_pool", "build")
def build() -> None:
    """Convert SOURCE to a zarr pool at PATH, chunk by chunk.

    SOURCE is a text table such as CSV, or a folder of them, a Parquet, Feather, JSON
    lines, npz or npy file, or a zarr array; PATH may be a URL. If the command is
    interrupted, run it again: it starts from the beginning. A text file with columns of
    text needs a PATH that ends in .parquet, to which Feather and JSON lines may go with
    their types. Text files are read twice, by this process;
    other files are converted by tasks, on local threads unless --scheduler or --workers
    is given.
    """


@command.command()
@click.argument("path", type=ExistingPath())
@run_from("dsel.cli.run_pool", "info")
def info() -> None:
    """Describe the pool at PATH, without reading its rows."""
