"""Options of ``dsel label``: compute bounds from the labels of queried rows."""

from dataclasses import dataclass

import click

from dsel.cli.options import (
    ExistingPath,
    OutputOptions,
    ResultsFolder,
    TextOptions,
    gap_option,
    output_options,
    run_from,
    text_options,
)


@dataclass(frozen=True)
class LabelOptions:
    """Values of all options and arguments."""

    place: str
    labels: str | None
    target: str | None
    partial: bool
    allow_unknown: bool
    corrected: bool
    gaps: tuple[str, ...]
    text: TextOptions
    output: OutputOptions


@click.command
@click.argument("place", type=ResultsFolder(or_comparison=True))
@click.argument("labels", type=ExistingPath(), required=False)
@click.option(
    "--target",
    help="Column of the labels; by default that of `dsel select` or `dsel compare`.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Accept rows without a label: each counts against what is to be proved.",
)
@click.option(
    "--allow-unknown",
    is_flag=True,
    help="Accept labels that are no class: each counts against what is to be proved.",
)
@click.option(
    "--corrected",
    is_flag=True,
    help="These labels take the place of wrong ones that were stored, such as those of "
    "other rows: no result decided which labels are right.",
)
@gap_option
@text_options
@output_options
@run_from("dsel.cli.run_label", record=LabelOptions)
def command() -> None:
    """Read LABELS of the queried rows at PLACE, and print what they prove.

    PLACE is the --out of `dsel select --queries`: then the labels make the bound of the
    model trained on all labels smaller. Or it is the --out of `dsel compare`: then they
    show which of two models is better. LABELS is a copy of its query_rows.csv with
    labels, in any order; by default that file itself. Rows are found by their
    `pool_row`. The result is stored, and is final: therefore a file in which labels are
    missing or are no class is refused, unless --partial or --allow-unknown say that it
    is finished. Other labels are refused, unless --corrected says that the first ones
    were wrong.
    """
