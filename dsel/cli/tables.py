"""Labeled tables that commands are given."""

import click

from dsel.data.streams import CSV, PARQUET
from dsel.data.tables import Table, read_table


def labeled_table(path: str, target: str | None) -> Table:
    """Read LABELED, or say that --target must name its labels.

    Raises
    ------
    click.UsageError
        Where it holds no labels, or any of its columns could be theirs.
    """
    if target is None and path.lower().endswith((*CSV, *PARQUET)):
        raise click.UsageError(
            f"any column of {path!r} may hold the labels; name it by --target."
        )
    table = read_table(path, target=target)
    if table.y is None:
        raise click.UsageError(
            f"LABELED {path!r} holds no labels; name their array by --target."
        )
    return table
