"""Options of ``dsel monitor``: test promises on the rows of a new table."""

from dataclasses import dataclass

import click

from dsel.cli.option_types import LEVEL
from dsel.cli.options import (
    ClusterOptions,
    ExistingPath,
    OutputOptions,
    ResultsFolder,
    TextOptions,
    gap_option,
    model_options,
    run_from,
)
from dsel.option_values import MONITOR_LEVEL


@dataclass(frozen=True)
class MonitorOptions:
    """Values of all options and arguments."""

    results: str
    next_month: str
    labeled: str | None
    target: str | None
    groups: str | None
    level: float
    trust: tuple[str, ...]
    text: TextOptions
    gaps: tuple[str, ...]
    cluster: ClusterOptions
    output: OutputOptions


@click.command
@click.argument("results", type=ResultsFolder())
@click.argument("next_month", type=ExistingPath())
@click.option(
    "--labeled",
    type=ExistingPath(),
    help="Table of the labeled rows; by default the one of `dsel select`.",
)
@click.option(
    "--target",
    help="Column of NEXT_MONTH with labels: then errors are tested against the bounds, "
    "too. Empty cells are rows without a label. By default the target of `dsel "
    "select`, if NEXT_MONTH has this column.",
)
@click.option(
    "--groups",
    help="Of results of `dsel select --groups`: the column of both tables with the key "
    "of each row's group. Then one row of each new group is tested. By default the "
    "column of `dsel select`, if NEXT_MONTH has it.",
)
@click.option(
    "--level",
    type=LEVEL,
    default=MONITOR_LEVEL,
    show_default=True,
    help="Probability that a test refutes a promise that holds.",
)
@gap_option
@model_options
@run_from("dsel.cli.run_monitor", record=MonitorOptions)
def command() -> None:
    """Test whether the promises of RESULTS still hold on the rows of NEXT_MONTH.

    RESULTS is the folder or URL of --out of `dsel select`. NEXT_MONTH is a table of any
    size that `dsel predict` reads. Three tests compare its rows with the labeled ones,
    the disagreement of both models with its limit and, where NEXT_MONTH has labels,
    their errors with the bounds. The exit status is 3 if a promise is refuted. A
    promise that is not refuted is not proved.
    """
