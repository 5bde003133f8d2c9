"""``dsel report``: write a page about a finished run."""

import os
from typing import Any

import click

from dsel.cli.commands.select_command import command as select_command
from dsel.cli.options import OutputOptions, shell_names
from dsel.cli.printing import say
from dsel.cli.running import choice_content, print_json, words_of_plan_call
from dsel.errors import rename_in_errors
from dsel.names import CHOICE
from dsel.report.page import write_report
from dsel.results import open_results
from dsel.results.choice import Choice
from dsel.results.comparison import ModelComparison
from dsel.results.place import Place
from dsel.results.query_files import is_comparison, read_comparison, read_labeled_result
from dsel.results.run_tables import load_run_tables
from dsel.search.running.select import select


def run(results: str, out: str | None, output: OutputOptions) -> None:
    """Write a page about the run or the comparison in RESULTS."""
    place = Place(results, name="place")
    tables = None
    shown: Any
    if is_comparison(results):
        shown = (
            read_labeled_result(place, ModelComparison) or read_comparison(results)[0]
        )
    else:
        shown = open_results(results)
        tables = load_run_tables(results)
        choice = read_labeled_result(place, Choice)
        if choice is not None:  # the bound that `dsel label` has proved since
            shown = shown.assign_attrs({CHOICE: choice.to_json()})
    if out is None:
        here = results if "://" not in results else place.folder or ""
        out = os.path.join(here, "report.html")
    with rename_in_errors({"`path`": "`--out`"}):
        # Results of Python are read by people who write Python.
        is_python = tables is None and not isinstance(shown, ModelComparison)
        names = {} if is_python else shell_names(select_command)
        if not (is_python or isinstance(shown, ModelComparison)):
            names |= words_of_plan_call(choice or select(shown))
        page = write_report(shown, out, tables=tables, names_of_options=names)
    if output.as_json:
        content = {"comparison": shown}
        if not isinstance(shown, ModelComparison):
            content = choice_content(select(shown))
        print_json("report", page=page, **content, results=results)
        return
    if output.quiet:
        click.echo(page)  # in one line, however long
        return
    say(f"Wrote {page}")
