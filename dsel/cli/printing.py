"""How commands print a statement."""

import sys
from typing import Final

import click

from dsel.rounded_texts import terminal_width, wrap_line

NAMES: Final = {
    "`param_grid[0]`": "--model",
    "`param_grid`": "--grid",
    "`estimator`": "--model",
    "`path`": "the table",
    "search regressors": "write --task regression",
    "pass a regressor, such as Ridge()": "write --task regression",
    "n_queries=": "--queries ",
    "`n_queries`": "--queries",
    "an `out` of its own": "an --out of its own",
    "`source`": "the table",
    "(of `id`)": "(of --id)",
    "deploy='one_fold'": "--deploy one_fold",
    "deploy='all_rows'": "--deploy all_rows",
    "baseline='largest class'": "--baseline",
    "report=True": "--loss report",
    "random_state=": "--seed ",
    "`groups`": "--groups",
    "and certified_report() hold": "and the report hold",
    "and report_by_value() hold": "and the limits by value hold",
    "'model__regressor__": "'",
    "'model__": "'",
}
"""Names of arguments that commands fill in, and what their users wrote."""


def say(text: str, *, indent: int = 2, err: bool = False) -> None:
    """Print a statement, wrapped at words where a terminal shows it.

    A file or a pipe gets one line, which tools can search.
    """
    if (sys.stderr if err else sys.stdout).isatty():
        text = wrap_line(text, indent, terminal_width(sys.stderr if err else None))
    click.echo(text, err=err)
