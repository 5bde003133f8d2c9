"""``dsel report``: a page about a finished run."""

import click

from dsel.cli.running import choice_content, json_option, print_json


@click.command
@click.argument("place")
@click.option(
    "--out", default="report.html", show_default=True, help="File of the page."
)
@json_option
def command(place: str, out: str, as_json: bool) -> None:
    """Write a page about the run at PLACE, a folder or URL that --out named.

    The page needs no net to read. Nothing is fitted.
    """
    from dsel.report.page import write_report
    from dsel.results import open_results
    from dsel.results.inputs import load_inputs
    from dsel.search.running.select import select

    results = open_results(place)
    page = write_report(results, out, inputs=load_inputs(place))
    if as_json:
        print_json("report", page=page, **choice_content(select(results)))
        return
    click.echo(f"Wrote {page}")
