"""Functions that commands share: they run a plan and print its outcome."""

import csv
import json
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import click

from dsel.cards import Fact
from dsel.cli.exit_status import ExitStatus
from dsel.cli.options import ClusterOptions, RunOutput, shell_names
from dsel.cli.printing import say
from dsel.data.table_files import FEATHER, JSON_LINES, PARQUET
from dsel.data.text_tables import is_text
from dsel.errors import StoreMismatchError
from dsel.results.certificate import assumption_facts
from dsel.results.choice import COMPARED, Choice
from dsel.results.place import Place, read_outcome
from dsel.results.renderings import Renderable, render_lines, reword_facts
from dsel.results.run_tables import (
    RunTables,
    load_run_tables,
    save_run_tables,
    save_schema,
)
from dsel.rounded_texts import terminal_width
from dsel.search.planning.plan_text import plan_facts, plan_lines
from dsel.search.running.execute import trusted_types

if TYPE_CHECKING:
    from distributed import Client

    from dsel.data.schema import TableSchema
    from dsel.search.outcomes.outcome import Outcome
    from dsel.search.planning.plan import Plan

VERSION: Final = 1
"""Version of the output of `print_json`; raised whenever a reader could misread it."""
BACKGROUND: Final = ("Assumes", "By", "Folds", COMPARED, "Next")
"""Names of rows that a terminal dims."""
MOST_NOTES: Final = 12
"""Largest number of notes of one kind that are printed."""


def print_json(kind: str, **content: Any) -> None:
    """Print one JSON object with its kind and version; records are as in `to_json`.

    Numbers that are not finite become null, since JSON cannot write them.
    """
    head = {"kind": f"dsel {kind}", "version": VERSION, "dsel": version("dsel")}
    record = {**head, **{name: _json_value(each) for name, each in content.items()}}
    click.echo(json.dumps(record, ensure_ascii=False))


def _json_value(value: object) -> Any:
    """Return a value as JSON can hold it; numbers that are not finite become null."""
    if isinstance(value, Renderable):
        value = json.loads(value.to_json())
    if isinstance(value, Mapping):
        return {str(name): _json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | int | float | NoneType) else str(value)


def print_facts(facts: Iterable[Fact]) -> None:
    """Print rows of texts in the shell's words, the first line without a name in bold.

    Where the output is no terminal, or NO_COLOR is set, all lines are plain.
    """
    facts = reword_facts(facts, shell_names(click.get_current_context().command))
    head = next((fact[1] for fact in facts if not fact[0] and len(fact) == 2), "")

    def style(fact: Fact, lines: str) -> str:
        if os.environ.get("NO_COLOR"):
            return lines
        # Not False, which is a code of its own, and ends what is bold.
        bold, dim = fact[1] == head or None, fact[0] in BACKGROUND or None
        return click.style(lines, bold=bold, dim=dim)

    # Of a file or a pipe, click removes the codes.
    click.echo(render_lines(facts, terminal_width(), style))


def choice_facts(choice: Choice) -> list[Fact]:
    """Return what a command prints of a choice first: all but its assumption."""
    return [fact for fact in choice.facts() if fact not in choice.assumption()]


def choice_content(choice: Choice) -> dict[str, Any]:
    """Return the content of a choice for `print_json`: bounds in short, then all."""
    bounds = {
        name: {
            "bound": each.bound,
            "number": each.number,
            "certified": each.certified,
            "delta": each.delta,
            "reasons": each.reasons,
            "caveats": [
                {"effect": caveat.effect.name, "text": caveat.text}
                for caveat in each.all_caveats
            ],
            "line": each.headline(),
        }
        for name, each in choice.certificates.items()
    }
    compared = {
        name: {
            "upper": each.upper,
            "is_better": each.is_better,
            "certified": each.certified,
            "line": each.headline(),
        }
        for name, each in choice.baselines.items()
    }
    return {
        "params": choice.params,
        "deploy": choice.deploy,
        "bounds": bounds,
        **({"baseline": compared} if compared else {}),
        "choice": choice,
    }


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names of columns in an option; a name with a comma has quotes."""
    if text is None:
        return ()
    return tuple(name.strip() for name in next(csv.reader([text])) if name.strip())


def format_names_columns(location: str) -> bool:
    """Return whether a table is of a format in which every column has a name."""
    endings = (*PARQUET, *FEATHER, *JSON_LINES)
    return is_text(location) or location.lower().endswith(endings)


def print_notes(lines: Iterable[str]) -> None:
    """Print notes on standard error, also with --quiet: numbers depend on them."""
    lines = list(lines)
    for line in lines[:MOST_NOTES]:
        say(f"Note: {line}.", err=True)
    if len(lines) > MOST_NOTES:
        click.echo(
            f"Note: {len(lines) - MOST_NOTES} more columns such as these.", err=True
        )


@contextmanager
def open_client(cluster: ClusterOptions) -> "Iterator[Client | None]":
    """Yield the client that options describe, or None for threads."""
    scheduler, workers = cluster.scheduler, cluster.workers
    if scheduler is None and workers is None:
        yield None
        return
    from dsel.cluster import connect

    if scheduler is not None and workers is not None:
        raise click.UsageError(
            "--scheduler brings its own workers; leave --workers out."
        )
    # If the scheduler is lost, dsel's own line replaces what distributed logs.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with connect(scheduler, workers=workers) as client:
        yield client


def run_plan(
    plan: "Plan",
    *,
    cluster: ClusterOptions,
    output: RunOutput,
    out: str | None,
    facts: Iterable[tuple[str, str]] = (),
    schema: "TableSchema | None" = None,
    tables: RunTables | None = None,
    after: "Callable[[Outcome], str]" = lambda outcome: "",
) -> None:
    """Run a plan on the workers of the options, with progress in a terminal.

    Prints the plan in short and further facts before the run. Afterwards it prints the
    choice with the line that `after` returns. With ``--verbose`` also the whole plan,
    the origin of the numbers, and all assumptions. Schema and names of the tables are
    stored with the results.
    """
    if out is not None:
        from dsel.search.running.execute import check_out  # takes a while to import

        try:
            check_out(plan, out)  # refused in one line, without the plan above it
        except StoreMismatchError as error:
            there = _options_there(out, tables)
            raise StoreMismatchError(f"{error}{there}") from error
        if read_outcome(Place(out)) is not None:
            print_notes(
                [f"{out} has this run already, and its result is read from there"]
            )
    with open_client(cluster) as client:
        if not (output.quiet or output.as_json):
            planned = plan_facts(plan, in_short=not output.verbose)
            # It is read once: what the run proves is what a reader looks for later.
            click.secho(f"{plan_lines([*planned, *facts])}\n", dim=True)
        outcome = plan.run(client, out=out, verbose=output.shows_progress)
        outcome.models  # noqa: B018  # a stored run may fit them again, on the workers
    if out is not None and schema is not None:
        save_schema(out, schema.to_json())
    if out is not None and tables is not None:
        save_run_tables(out, tables)
    print_outcome(outcome, after(outcome), output, out)
    certificates = outcome.choice.certificates.values()
    if certificates and all(c.says_nothing or not c.certified for c in certificates):
        # A script that reads statuses must not take a refuted assumption, or "at most
        # 100%", for a bound.
        click.get_current_context().exit(ExitStatus.REFUTED)


def print_outcome(
    outcome: "Outcome", line: str, output: RunOutput, out: str | None
) -> None:
    """Print the choice of a run with a further line, its reports, and what is next."""
    choice = outcome.choice
    untrusted = [] if out is None else trusted_types(outcome.models.values())
    if output.as_json:
        print_json(
            "select",
            **choice_content(choice),
            results=out,
            trust=untrusted,
            after=line or None,
        )
        return
    if untrusted:
        options = " ".join(f"--trust {name}" for name in untrusted)
        print_notes([f"to open the models, dsel predict and others need {options}"])
    print_facts([*choice_facts(choice), *[("", line)] * bool(line)])
    reports: list[Renderable] = []
    if choice.reports or choice.tolerances:
        reports.append(choice.report())
    if choice.reports_by_value:
        reports.append(choice.report_by_value())
    for report in reports:
        click.echo()
        print_facts(report.facts())
    if output.quiet:
        return
    lines = choice.assumption()
    if output.verbose:
        click.echo()
        assumed = choice.certificate.assumptions
        lines = [*choice.origins(), *assumption_facts(assumed)]
    if out is not None:
        place = shlex.quote(out)
        ways = f"dsel predict {place} NEW --out FILE, or dsel report {place}"
        lines.append(("Next", ways))
    if lines:
        print_facts(lines)


def _options_there(out: str, tables: RunTables | None) -> str:
    """Return a sentence with the options of a finished run that differ, or ""."""
    if tables is None or (before := load_run_tables(out)) is None:
        return ""
    names = {
        "labeled": "",
        "target": "--target ",
        "pool": "--pool ",
        "model": "--model ",
    }
    values = {name: getattr(before, name) for name in names}
    texts = [
        f"{names[name]}{shlex.quote(str(value))}"
        if value
        else f"no {names[name].strip()}"
        for name, value in values.items()
        if value != getattr(tables, name)
    ]
    return f" It was run with {', '.join(texts)}." if texts else ""


def numbers_in(text: str, kind: Callable[[str], Any], option: str) -> list[Any]:
    """Return the numbers that an option lists, separated by commas."""
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        example = "2,5,10" if kind is int else "0.1,0.5"
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as {example}.", param_hint=option
        ) from None
