"""Options of ``dsel audit``: count how often certificates fail."""

import click

from dsel.cli.options import run_from, seed_option


@click.command
@click.argument("settings", nargs=-1)
@click.option(
    "--delta",
    default="0.5,0.2,0.05",
    show_default=True,
    help="One or more, separated by commas.",
)
@click.option("--draws", default=500, show_default=True, help="Draws of each setting.")
@seed_option
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    help="Number of processes; 1 by default.",
)
@run_from("dsel.cli.run_audit")
def command() -> None:
    """Run searches on simulated data and count how often their bounds fail.

    SETTINGS are names from the printed table; by default all are audited, which takes
    an hour or more at 500 draws. The exit status is 3 if a bound fails too often.
    """
