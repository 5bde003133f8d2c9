"""``dsel report``: write a page about a finished run."""

import os

import click

from dsel.cli.options import OutputOptions
from dsel.cli.printing import say
from dsel.cli.running import choice_content, print_json
from dsel.errors import naming
from dsel.report.page import write_report
from dsel.results import open_results
from dsel.results.certificate import CHOICE
from dsel.results.inputs import load_inputs
from dsel.results.place import Place
from dsel.results.query_files import read_labeled_choice
from dsel.search.running.select import select


def run(place: str, out: str | None, output: OutputOptions) -> None:
    """Write a page about the run at PLACE, the folder or URL of its --out."""
    results = open_results(place)
    labeled = read_labeled_choice(Place(place, name="place"))
    if labeled is not None:  # what `dsel label` has proved since
        results = results.assign_attrs({CHOICE: labeled.to_json()})
    if out is None:
        folder = Place(place).folder
        here = "" if folder is None else folder if "://" in place else place
        out = os.path.join(here, "report.html")
    with naming({"`path`": "`--out`"}):
        page = write_report(results, out, inputs=load_inputs(place))
    if output.as_json:
        print_json("report", page=page, **choice_content(select(results)))
        return
    if output.quiet:
        click.echo(page)  # in one line, however long
        return
    say(f"Wrote {page}")
