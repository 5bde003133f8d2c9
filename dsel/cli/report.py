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


def run(results: str, out: str | None, output: OutputOptions) -> None:
    """Write a page about the run in RESULTS, the folder or URL of its --out."""
    cube, place = open_results(results), Place(results, name="place")
    choice = read_labeled_choice(place)
    if choice is not None:  # what `dsel label` has proved since
        cube = cube.assign_attrs({CHOICE: choice.to_json()})
    if out is None:
        here = results if "://" not in results else place.folder or ""
        out = os.path.join(here, "report.html")
    with naming({"`path`": "`--out`"}):
        page = write_report(cube, out, inputs=load_inputs(results))
    if output.as_json:
        print_json("report", page=page, **choice_content(select(cube)))
        return
    if output.quiet:
        click.echo(page)  # in one line, however long
        return
    say(f"Wrote {page}")
