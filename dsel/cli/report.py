"""``dsel report``: write a page about a finished run."""

import os

import click

from dsel.cli.printing import say
from dsel.cli.running import choice_content, json_option, print_json


@click.command
@click.argument("place")
@click.option(
    "--out",
    help="File of the page; by default report.html in PLACE, or here if PLACE is a "
    "URL. A page of an earlier `dsel report` is replaced, any other file is kept.",
)
@click.option("--quiet", is_flag=True, help="Print the path of the page only.")
@json_option
def command(place: str, out: str | None, quiet: bool, as_json: bool) -> None:
    """Write a page about the run at PLACE, the folder or URL of its --out.

    The page needs no network to read. Nothing is fitted.
    """
    from dsel.report.page import write_report
    from dsel.results import open_results
    from dsel.results.certificate import CHOICE
    from dsel.results.inputs import load_inputs
    from dsel.results.place import Place
    from dsel.results.query_files import read_labeled_choice
    from dsel.search.running.select import select

    results = open_results(place)
    labeled = read_labeled_choice(Place(place, name="place"))
    if labeled is not None:  # what `dsel label` has proved since
        results = results.assign_attrs({CHOICE: labeled.to_json()})
    if out is None:
        folder = Place(place).folder
        here = "" if folder is None else folder if "://" in place else place
        out = os.path.join(here, "report.html")
    page = write_report(results, out, inputs=load_inputs(place))
    if as_json:
        print_json("report", page=page, **choice_content(select(results)))
        return
    if quiet:
        click.echo(page)  # in one line, however long
        return
    say(f"Wrote {page}")
