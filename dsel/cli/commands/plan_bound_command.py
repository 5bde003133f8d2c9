"""Options of ``dsel plan-bound``: the bounds to expect, before any label is used."""

from typing import Final

import click

from dsel.cli.option_types import FRACTION, ListOption, RowCount, as_text
from dsel.cli.options import delta_option, output_options, run_from

ASSUMED_ERROR: Final = 0.1
"""Default of the option --error."""


EXAMPLES: Final = """\b
Examples:
  dsel plan-bound 400 3000               # 400 labeled rows, 3,000 without a label
  dsel plan-bound 400 3000 --error 0.2   # a model that errs on 20% of the rows
  dsel plan-bound 400 --wanted 0.15      # how many labels a bound of 15% needs
"""


@click.command(epilog=EXAMPLES)
@click.argument("n_labeled", type=RowCount())
@click.argument("n_unlabeled", type=RowCount(), default=0)
@click.option(
    "--candidates",
    type=int,
    help="Number of candidates; by default those of `dsel select` without --grid.",
)
@delta_option
@click.option(
    "--error",
    type=FRACTION,
    help=f"Expected error of the model; {ASSUMED_ERROR:g} by default.",
)
@click.option(
    "--error-quantile",
    type=FRACTION,
    help="Of a regression: prints how many labeled rows it needs for a "
    "finite bound on how far this part of the predictions is off, such as 0.9.",
)
@click.option(
    "--disagreement",
    type=FRACTION,
    help="Expected part of the rows on which the model trained on all labels and that "
    "trained on 80% differ; by default a third of --error.",
)
@click.option(
    "--class-share",
    type=FRACTION,
    help="Bound the misses of a class that makes up this part of the rows; --error is "
    "then the expected part of its rows that is missed.",
)
@click.option(
    "--queries",
    type=int,
    default=0,
    help="Number of pool rows to label, as of `dsel select --queries`.",
)
@click.option(
    "--folds",
    cls=ListOption,
    callback=as_text,
    default=["2,3,5,10"],
    show_default="2,3,5,10",
    help="Numbers of folds, a column for each.",
)
@click.option(
    "--wanted",
    type=FRACTION,
    help="Also print how many rows a bound of this size needs.",
)
@output_options
@run_from("dsel.cli.run_plan_bound")
def command() -> None:
    """Print the expected bound of each certificate for these numbers of rows.

    N_LABELED is the number of labeled rows, N_UNLABELED that of pool rows. For rows in
    groups, such as several of each customer, N_LABELED is the number of groups.
    """
