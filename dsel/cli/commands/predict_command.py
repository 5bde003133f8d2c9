"""Options of ``dsel predict``: apply the stored model of a search to a table."""

from dataclasses import dataclass

import click

from dsel.cli.option_types import ListOption, check_predictions_file
from dsel.cli.options import (
    ClusterOptions,
    ExistingPath,
    NameOf,
    OutputOptions,
    ResultsFolder,
    TextOptions,
    gap_option,
    model_options,
    run_from,
)
from dsel.option_values import ALL_ROWS, ONE_FOLD


@dataclass(frozen=True)
class PredictOptions:
    """Values of all options and arguments."""

    results: str
    new: str
    out: str
    deploy: str | None
    ids: tuple[str, ...]
    output: OutputOptions
    cluster: ClusterOptions
    text: TextOptions
    gaps: tuple[str, ...]
    trust: tuple[str, ...]


@click.command
@click.argument("results", type=ResultsFolder())
@click.argument("new", type=ExistingPath())
@click.option(
    "--out",
    required=True,
    callback=check_predictions_file,
    help="File to write, which ends in .parquet, .csv or .zarr.",
)
@click.option(
    "--deploy",
    type=NameOf([ONE_FOLD, ALL_ROWS]),
    help="Which model of a nested search; by default the one that was chosen then.",
)
@click.option(
    "--id",
    "ids",
    cls=ListOption,
    help="Columns of NEW that are carried into the file, in the place of row numbers; "
    "those of `dsel select --id` by default.",
)
@gap_option
@model_options
@run_from("dsel.cli.run_predict", record=PredictOptions)
def command() -> None:
    """Predict every row of NEW with the model in RESULTS.

    RESULTS is the folder or URL of --out of `dsel select`. NEW is a table of any format
    and size that `dsel select` reads; its columns are found by their names, and columns
    that the model does not use are left out. The file has labels, and probabilities if
    the model has them, in the order of NEW; CSV has the first 7 to 9 digits of
    probabilities, and other files all. A model that
    predicts numbers adds the columns `lower` and `upper`, the prediction less and plus
    the certified tolerance.
    """
