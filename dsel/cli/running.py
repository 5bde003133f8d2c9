"""Options that commands share, and functions that run a plan and print its outcome."""

import csv
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce, wraps
from importlib.metadata import version
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from dsel.checks import did_you_mean, nearest_file
from dsel.cli.printing import say
from dsel.results.choice import Choice
from dsel.results.inputs import RunInputs, save_inputs
from dsel.results.renderings import Renderable, render_lines
from dsel.results.run_store import save_schema
from dsel.rounded_texts import terminal_width, wrap_line
from dsel.search.running.keep_models import trusted_types

if TYPE_CHECKING:
    from distributed import Client

    from dsel.data.schema import TableSchema
    from dsel.search.outcomes.outcome import Outcome
    from dsel.search.planning.plan import Plan

Command = Callable[..., Any]
VERSION: Final = 1
"""Version of the output of `print_json`; raised whenever a reader could misread it."""
MOST_NOTES: Final = 12
"""Largest number of notes of one kind that are printed."""


class NameOf(click.Choice[str]):
    """One of some names; a misspelled one gets a suggestion."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error of click with the name that was probably meant."""
        value = message.partition("' is not one of")[0].removeprefix("'")
        end = did_you_mean(value, self.choices)
        super().fail(message.removesuffix(".") + end, param, ctx)


class ExistingFile(click.Path):
    """A path that exists; a misspelled one gets the name of a file beside it."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error of click with the file that was probably meant."""
        value = message.partition("' does not exist")[0].rpartition("'")[2]
        end = nearest_file(value)
        super().fail(message.removesuffix(".") + end, param, ctx)


def join_options(
    *options: Callable[[Command], Command],
) -> Callable[[Command], Command]:
    """Return a decorator that adds options, the last one first in the help."""
    return lambda command: reduce(lambda made, add: add(made), options, command)


@dataclass(frozen=True)
class ClusterOptions:
    """Where tasks run."""

    scheduler: str | None
    workers: int | None


@dataclass(frozen=True)
class TextOptions:
    """How text files are read."""

    sep: str | None
    encoding: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """As the readers of tables take them."""
        return {"separator": self.sep, "encoding": self.encoding}


@dataclass(frozen=True)
class OutputOptions:
    """How much is printed, and in which form."""

    quiet: bool
    as_json: bool

    @property
    def shows_progress(self) -> bool | None:
        """As `row_progress` takes it: None where a terminal decides."""
        return False if self.quiet else None


def packing(
    name: str, kind: type[Any], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Return a decorator that adds options, and passes them as one record.

    A command with ten options of its own would need as many parameters again for those
    that all commands share.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**values: Any) -> Any:
            packed = {each.name: values.pop(each.name) for each in fields(kind)}
            return command(**values, **{name: kind(**packed)})

        return join_options(*options)(call)

    return decorate


cluster_options = packing(
    "cluster",
    ClusterOptions,
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Number of local worker processes to start.",
    ),
    click.option(
        "--scheduler",
        help="Address or file of a running Dask scheduler, or a YAML file that "
        "describes a cluster; by default the run uses threads of this machine.",
    ),
)
"""Adds the options for the workers of tasks."""

text_options = packing(
    "text",
    TextOptions,
    click.option(
        "--encoding",
        help="Encoding of text files, such as latin-1; UTF-8 by default.",
    ),
    click.option(
        "--sep",
        help="Separator of text files, where the header does not show it.",
    ),
)
"""Adds the options for reading text files."""

trust_option = click.option(
    "--trust",
    multiple=True,
    help="Full name of a type of your own that a model holds, such as mine.Encoder. "
    "May be given several times.",
)
"""Adds the option for types that may be built when a model is opened."""

draw_options = join_options(
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of all random draws.",
    ),
    click.option(
        "--delta",
        default=0.05,
        show_default=True,
        help="Probability that the bound fails: 0.05 is 95% confidence.",
    ),
)
"""Adds the seed of random draws and the delta of bounds."""

json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object, and nothing else, on standard output.",
)
output_options = packing(
    "output",
    OutputOptions,
    click.option("--quiet", is_flag=True, help="Print the result only."),
    json_option,
)
"""Adds the options for the amount and the form of the output."""

run_options = join_options(
    output_options,
    draw_options,
    cluster_options,
    click.option(
        "--out",
        help="Folder or URL for the results; an interrupted command continues there.",
    ),
)
"""Adds the options of every search."""


def print_json(kind: str, **content: Any) -> None:
    """Print one JSON object with its kind and version; records are as in `to_json`.

    Numbers that are not finite become null, since JSON cannot write them.
    """
    head = {"kind": f"dsel {kind}", "version": VERSION, "dsel": version("dsel")}
    record = {**head, **{name: _plain(each) for name, each in content.items()}}
    click.echo(json.dumps(record, ensure_ascii=False))


def _plain(value: object) -> Any:
    if isinstance(value, Renderable):
        value = json.loads(value.to_json())
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | int | float | NoneType) else str(value)


def choice_content(choice: Choice) -> dict[str, Any]:
    """Return the content of a choice for `print_json`: bounds in short, then all."""
    bounds = {
        name: {
            "bound": each.bound,
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


def notes(lines: Iterable[str]) -> None:
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
    output: OutputOptions,
    out: str | None,
    facts: Iterable[tuple[str, str]] = (),
    schema: "TableSchema | None" = None,
    inputs: RunInputs | None = None,
    after: "Callable[[Outcome], str]" = lambda outcome: "",
) -> None:
    """Run a plan on the workers of the options, with progress in a terminal.

    Prints the plan and further facts before the run. Afterwards it prints the choice
    with the line that `after` returns, the origin of its numbers, and the assumptions.
    Schema and names of the tables are stored with the results.
    """
    is_short = output.quiet or output.as_json
    if out is not None:
        from dsel.search.running.execute import check_out  # takes a while to import

        check_out(plan, out)  # refused in one line, without the plan above it
    with open_client(cluster) as client:
        if not is_short:
            lines = [f"  {name:<14} {text}" for name, text in facts]
            if out is not None:
                lines.append(f"  {'results':<14} {out}")
            click.echo("\n".join([str(plan), *(wrap_line(line, 17) for line in lines)]))
            click.echo()
        outcome = plan.run(client, out=out, verbose=output.shows_progress)
        outcome.models  # noqa: B018  # a stored run may fit them again, on the workers
    if out is not None and schema is not None:
        save_schema(out, schema.to_json())
    if out is not None and inputs is not None:
        save_inputs(out, inputs)
    choice, line = outcome.choice, after(outcome)
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
        notes([f"to open the models, dsel predict and others need {options}"])
    has_report = choice.reports or choice.tolerances
    reports = [f"\n{choice.report()}"] if has_report else []
    if choice.reports_by_value:
        reports.append(f"\n{choice.report_by_value()}")
    shown = render_lines([("", line)], terminal_width())
    click.echo("\n".join(filter(None, [str(choice), shown, *reports])))
    if output.quiet:
        return
    # Caveats, and the reasons of a vacuous bound, were printed with the choice.
    assumed = [("Assumes", each.text) for each in choice.certificate.assumptions]
    click.echo()
    for text in render_lines([*choice.origins(), *assumed]).splitlines():
        click.echo(wrap_line(text, 9))


def numbers(text: str, kind: Callable[[str], Any], option: str) -> list[Any]:
    """Return the numbers that an option lists, separated by commas."""
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        example = "2,5,10" if kind is int else "0.1,0.5"
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as {example}.", param_hint=option
        ) from None
