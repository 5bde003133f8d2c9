"""``dsel report``: a page about a finished run."""

import click


@click.command
@click.argument("place")
@click.option(
    "--out", default="report.html", show_default=True, help="File of the page."
)
def command(place: str, out: str) -> None:
    """Write a page about the run at PLACE, a folder or URL that --out named.

    The page needs no net to read. Nothing is fitted.
    """
    from dsel.report.page import write_report
    from dsel.results import open_results

    click.echo(f"Wrote {write_report(open_results(place), out)}")
