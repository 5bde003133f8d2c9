"""Options of ``dsel compare``: compare two models on a pool, and draw rows to label."""

import click

from dsel.cli.options import (
    ExistingPath,
    ResultsFolder,
    draw_options,
    gap_option,
    model_options,
    run_from,
)


@click.command
@click.argument("old", type=ResultsFolder())
@click.argument("new", type=ResultsFolder())
@click.option(
    "--pool",
    type=ExistingPath(),
    help="Unlabeled rows that neither model was trained on: a table of any format, a "
    "folder of Parquet or text files, a zarr pool, or a URL of one. By default the "
    "pool of `dsel select`, if both models had the same one.",
)
@click.option(
    "--queries",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of rows to label, drawn where the models differ. With 0 only the pool "
    "is used.",
)
@click.option("--out", required=True, help="Folder for the comparison and its rows.")
@click.option(
    "--target",
    help="Name of the empty column for the labels; by default the target of both "
    "models, or label.",
)
@click.option(
    "--seen",
    type=ExistingPath(),
    help="Table of rows that one of the models was trained on; rows of the pool that "
    "equal one of them are not drawn. The labeled rows of `dsel select` are known.",
)
@gap_option
@draw_options
@model_options
@run_from("dsel.cli.run_compare")
def command() -> None:
    """Compare two classifiers, OLD and NEW, by where they differ on a pool.

    Both predict the classes of one target; models that predict numbers are refused.

    OLD and NEW are folders or URLs of --out of `dsel select`, or of models that
    `save_model` stored. The rows to label are written to the folder --out; fill in
    their last column, and `dsel label` prints which model is better.
    """
