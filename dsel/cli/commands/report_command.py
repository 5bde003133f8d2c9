"""Options of ``dsel report``: write a page about a finished run."""

import click

from dsel.cli.options import ResultsFolder, output_options, run_from


@click.command
@click.argument("results", type=ResultsFolder(or_comparison=True))
@click.option(
    "--out",
    help="File of the page; by default report.html in RESULTS, or here if that is a "
    "URL. A page of an earlier `dsel report` is replaced, any other file is kept.",
)
@output_options
@run_from("dsel.cli.run_report")
def command() -> None:
    """Write a page about the run or the comparison in RESULTS.

    RESULTS is the folder or URL of `dsel select --out` or `dsel compare --out`. The
    page needs no network to read. Nothing is fitted.
    """
