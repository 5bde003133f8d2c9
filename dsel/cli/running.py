"""Functions that commands share: they run a plan and print its outcome."""

import json
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from math import isfinite
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Final

import click

from dsel.cards import ShownRow
from dsel.checks import listing
from dsel.cli.encoders import COLUMNS
from dsel.cli.exit_status import ExitStatus
from dsel.cli.options import (
    ClusterOptions,
    OutputOptions,
    RunOutput,
    shell_names,
    split_options,
)
from dsel.cli.printing import say
from dsel.cli.stops import (
    Commands,
    is_same_path,
    new_place,
    print_commands,
    python_line,
    with_options,
    without_option,
)
from dsel.data.columns import MissingColumnsError
from dsel.data.encoding import LEFT_OUT
from dsel.data.open import open_pool
from dsel.data.table_files import FEATHER, JSON_LINES, PARQUET
from dsel.data.tables import rewrite_file
from dsel.data.text_tables import is_text, text_source
from dsel.errors import (
    Correction,
    NewFile,
    ShellOptions,
    StoreMismatchError,
    UndecidedError,
    Way,
    reword,
    ways_of,
    with_ways,
)
from dsel.option_values import ALL_ROWS, ONE_FOLD, join_names, names_in
from dsel.results.assumptions import assumption_rows
from dsel.results.caveats import MAY_RUN_AGAIN
from dsel.results.certificate import Certificate
from dsel.results.certificate_texts import ORIGIN
from dsel.results.choice import Choice
from dsel.results.choice_texts import (
    COMPARED,
    NEXT,
    assumption_to_check,
    note_on_delta,
    origins,
    plan_question,
    unit_to_plan,
)
from dsel.results.place import Place, read_outcome
from dsel.results.plan_calls import call_of_choice
from dsel.results.renderings import Renderable, render_lines, reword_rows
from dsel.results.run_tables import (
    RunTables,
    load_run_tables,
    save_run_tables,
    save_schema,
)
from dsel.rounded_texts import count_of, terminal_width
from dsel.runtime.clients import count_threads
from dsel.search.design.certificate_methods import is_nested
from dsel.search.planning.plan_bound import NEVER, plan_bound
from dsel.search.planning.plan_text import plan_lines, plan_rows
from dsel.search.planning.possible_bounds import plan_bound_call
from dsel.search.running.execute import check_out, trusted_types

if TYPE_CHECKING:
    from distributed import Client

    from dsel.data.schema import TableSchema
    from dsel.search.outcomes.outcome import Outcome
    from dsel.search.planning.plan import Plan

IN_SHORT: Final = ("model", COLUMNS, LEFT_OUT, "no feature", "not used")
"""Names of rows about the tables that a plan in short has, too."""
VERSION: Final = 1
"""Version of the output of `print_json`; raised whenever a reader could misread it."""
BACKGROUND: Final = ("Assumes", ORIGIN, "Folds", COMPARED)
"""Names of rows that a terminal dims."""
SELECT: Final = "dsel select LABELED --target COLUMN --pool {} --out FOLDER"
"""The command to write next, with its pool."""
WITHOUT_IDS: Final = (
    "the command below, in which {} is no feature: new rows have other identifiers "
    f"than labeled ones. If that is so, {MAY_RUN_AGAIN}"
)
"""The next step where an identifier distinguishes labeled rows from pool rows."""
OF_GROUPS: Final = (
    "one of the commands below: the first one if rows of one {} belong together, as "
    "visits of one person do, else the second one. If one of both is so, "
    f"{MAY_RUN_AGAIN}"
)
"""The next step where that is a column whose values several rows share."""
LOST_GROUPS: Final = (
    "the same command with --groups and the column that says which rows belong "
    "together; if LABELED has lost it, join it again. The bound is then about rows of "
    f"new groups. If rows belong together, {MAY_RUN_AGAIN}"
)
"""The next step where labeled rows seem to come in groups."""
UNSEEN_GROUPS: Final = (
    "the same command with --groups COLUMN, if several rows are about one person, "
    f"machine or day (without a pool no test sees it); {MAY_RUN_AGAIN}"
)
"""The next step without a pool, which would show that rows come in groups."""
A1_UNKNOWN: Final = (
    "several rows share each value of column {!r}: if they belong together, as visits "
    "of one person do, A1 is violated (independent draws) and the bound is void. This "
    "command has a bound about new ones, without a pool"
)
"""The note on a feature that may be the key of groups."""
AFTER_SHIFT: Final = (
    "label a random sample of the pool, some 300 rows, and run dsel select on these "
    "alone, with the others as --pool: that bound is about them",
    "the same command with --groups, if several rows of one customer are labeled; "
    f"{MAY_RUN_AGAIN}",
    "without --pool the first bound is about rows like those of LABELED; more in the "
    "documentation, docs/using/not_independent.md, Shift",
)
"""The next step where the pool is of another population."""
NOT_CERTIFIED: Final = "NOT CERTIFIED"
"""Name of the first row of a plan whose pool violates an assumption."""
BELOW_REPORTS: Final = ("Caveat", "Assumes", ORIGIN, "Folds", NEXT)
"""Names of rows that stand below the reports."""
MOST_NOTES: Final = 12
"""Largest number of notes of one kind that are printed."""


def print_json(kind: str, **content: Any) -> None:
    """Print one JSON object with its kind and version; records are as in `to_json`.

    Numbers that are not finite become null, since JSON cannot write them.
    """
    head = {"kind": f"dsel {kind}", "version": VERSION, "dsel": version("dsel")}
    record = {**head, **{name: _json_value(item) for name, item in content.items()}}
    click.echo(json.dumps(record, ensure_ascii=False))


def _json_value(value: object) -> Any:
    """Return a value as JSON can hold it; numbers that are not finite become null."""
    if isinstance(value, Renderable):
        value = json.loads(value.to_json())
    if isinstance(value, Mapping):
        return {str(name): _json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | int | float | NoneType) else str(value)


def print_rows(shown_rows: Iterable[ShownRow], choice: Choice | None = None) -> None:
    """Print rows of texts in the shell's words, the first line without a name in bold.

    Rows of a `choice` may have its call that plans labels. Without a terminal, or where
    NO_COLOR is set, all lines are plain.
    """
    words = shell_names(click.get_current_context().command)
    if choice is not None:
        words |= words_of_plan_call(choice)
    shown_rows = reword_rows(shown_rows, words)
    head = next((row[1] for row in shown_rows if not row[0] and len(row) == 2), "")

    def style(row: ShownRow, lines: str) -> str:
        if os.environ.get("NO_COLOR"):
            return lines
        # The value is not False, which has a code of its own that ends bold text.
        bold, dim = row[1] == head or None, row[0] in BACKGROUND or None
        return click.style(lines, bold=bold, dim=dim)

    # If the output is a file or a pipe, click removes the codes.
    click.echo(render_lines(shown_rows, terminal_width(), style))


def next_rows(*steps: str) -> list[ShownRow]:
    """Return a row for each step that is useful next."""
    return [(NEXT, step) for step in steps]


def words_of_plan_call(choice: Choice) -> dict[str, str]:
    """Return the command that stands for `plan_call` of a choice, by this call.

    Where it is known how many labels are needed, the number comes first.
    """
    if (call := call_of_choice(choice)) is None:
        return {}
    words = {str(call): call.command}
    question = plan_question(choice)
    if not question or choice.deploy not in (ONE_FOLD, ALL_ROWS):
        return words
    plan = plan_bound(call.n_labeled, call.n_unlabeled, **call.arguments)  # type: ignore[arg-type]
    row = choice.deploy if is_nested(choice.certificate) else choice.certificate.method
    needed = int(plan["labels_needed"].sel(certificate=row).item())
    if needed == NEVER:
        return words
    answer = (
        f"about {needed:,} {unit_to_plan(choice)} give a bound of {call.wanted_text} "
        f"on average: {call.command}{note_on_delta(choice)}"
    )
    return {question: answer, **words}


def print_choice(
    choice: Choice,
    output: OutputOptions,
    *,
    lines: Iterable[str] = (),
    steps: Iterable[str] = (),
    further: Iterable[ShownRow] = (),
) -> None:
    """Print a choice: bounds, reports, what limits the statement, and what to do next.

    `lines` follow the bounds, `steps` are commands to run, and `further` rows
    stand in place of the assumption that a choice shows, and only with them the bound
    is told in numbers of rows. With ``--quiet`` there are no steps, no assumptions.
    """
    rows, assumption = choice.shown_rows(), assumption_to_check(choice)
    bound = ("", choice.certificate.headline())
    meaning = ("", choice.certificate.in_numbers_of_rows().removesuffix("."))
    further = list(further)
    if meaning[1] and bound in rows and further:
        rows.insert(rows.index(bound) + 1, meaning)
    ends = (k for k, (name, _) in enumerate(rows) if name in BELOW_REPORTS)
    begin = next(ends, len(rows))
    print_rows([*rows[:begin], *(("", line) for line in lines)], choice)
    reports: list[Renderable] = []
    if choice.by_model("report") or choice.by_model("tolerances"):
        reports.append(choice.report())
    if choice.by_model("report_by_value"):
        reports.append(choice.report_by_value())
    for report in reports:
        click.echo()
        print_rows(report.shown_rows())
    if reports:
        click.echo()
    shown = [row for row in rows[begin:] if row not in assumption]
    advice = [row for row in shown if row[0] == NEXT]
    shown = shown[: len(shown) - len(advice)]
    if not output.quiet:
        shown += [*(further or assumption), *next_rows(*steps), *advice]
    if shown:
        print_rows(shown, choice)


def bounds_content(certificates: Mapping[str, Certificate]) -> dict[str, Any]:
    """Return the bounds of models in short, for `print_json`."""
    return {
        name: {
            "bound": certificate.bound,
            "number": certificate.number,
            "certified": certificate.certified,
            "delta": certificate.delta,
            "reasons": certificate.reasons,
            "caveats": [
                {"effect": caveat.effect.name, "text": caveat.text}
                for caveat in certificate.all_caveats
            ],
            "line": certificate.headline(),
        }
        for name, certificate in certificates.items()
    }


def choice_content(choice: Choice) -> dict[str, Any]:
    """Return the content of a choice for `print_json`: bounds in short, then all."""
    bounds = bounds_content(choice.certificates)
    compared = {
        name: {
            "upper": certificate.upper,
            "is_better": certificate.is_better,
            "certified": certificate.certified,
            "line": certificate.headline(),
        }
        for name, certificate in choice.by_model("baseline").items()
    }
    return {
        "params": choice.params,
        "deploy": choice.deploy,
        "bounds": bounds,
        **({"baseline": compared} if compared else {}),
        "choice": choice,
    }


def format_names_columns(location: str) -> bool:
    """Return whether a table is of a format in which every column has a name."""
    endings = (*PARQUET, *FEATHER, *JSON_LINES)
    return is_text(location) or location.lower().endswith(endings)


def columns_in(
    location: str, text: Mapping[str, Any], like: "TableSchema | None" = None
) -> tuple[str, ...] | None:
    """Return the names of the columns of a table or a pool; None where it has none."""
    if "://" not in location and is_text(location):
        return text_source(location, **text, like=like).names
    return open_pool(location).columns


@contextmanager
def offer_changed_table(location: str, text: Mapping[str, Any]) -> Iterator[None]:
    """Add to an error about a table a way that writes the table in the expected form.

    The columns get the names of the labeled table. Words among numbers become empty
    cells if the command has no option --gap.
    """
    try:
        yield
    except MissingColumnsError as error:
        file = None
        new_names = error.renamed | error.similar
        if new_names and os.path.isfile(location):
            change = f"t = t.rename(columns={new_names})"
            file = rewrite_file(location, "_renamed", change, **text)
        if file is None:
            raise
        names = (f"{new!r} is {old!r} there" for old, new in new_names.items())
        shown = listing([*names], 8)
        if not error.similar:
            raise UndecidedError(
                f"{error} Write names in one way: {shown}.", file
            ) from error
        error.args = (
            f"{error} Rename a column only if it is the same measurement in the same "
            f"unit: {shown}.",
        )
        raise error.with_way(file)  # noqa: B904
    except ValueError as error:
        options = click.get_current_context().command.params
        takes_gaps = any("--gap" in option.opts for option in options)
        file = None if takes_gaps else _without_words(location, ways_of(error), text)
        if file is not None:
            with_ways(error, file)
        raise


def _without_words(
    location: str, ways: Iterable[Way], text: Mapping[str, Any]
) -> NewFile | None:
    """Return a table without the words that a way of `dsel select` reads as gaps."""
    options = [
        option
        for way in ways
        if isinstance(way, list)
        for option in way
        if not isinstance(option, Correction)
    ]
    words = [value for option, value in options if option == "--gap"]
    columns = [v for option, v in options if option == "--drop" for v in names_in(v)]
    if not words or not os.path.isfile(location):
        return None
    empty = "''" if is_text(location) else "None"
    change = f"t[{columns}] = t[{columns}].replace({words}, {empty})"
    return rewrite_file(location, "_gaps", change, **text)


def leave_out_lacking_ids(
    schema: "TableSchema", location: str, text: Mapping[str, Any]
) -> "tuple[TableSchema, list[str]]":
    """Return a schema with the ids that a pool has, and a note on the other ones.

    If only the labeled rows have the ids, these show that labeled rows are different
    records, but nothing about the rows of the pool.
    """
    columns = columns_in(location, text, schema) or ()
    if "://" not in location and is_text(location):
        columns += text_source(location, **text, like=schema).row_number_names
    kept_schema = schema.with_ids_in(columns)
    lacking = [repr(name) for name in schema.ids if name not in kept_schema.ids]
    if not lacking or not columns:
        return schema, []
    what = "column" if len(lacking) == 1 else "columns"
    return kept_schema, [
        f"the pool has no {what} {listing(lacking, 8)} (--id), so that a row of it "
        f"counts as a labeled one where all of its values are equal"
    ]


def print_notes(lines: Iterable[str]) -> None:
    """Print notes on standard error, also with --quiet: numbers depend on them."""
    lines = list(lines)
    words = shell_names(click.get_current_context().command)
    for line in lines[:MOST_NOTES]:
        say(f"Note: {reword(line, words)}.", err=True)
    if len(lines) > MOST_NOTES:
        click.echo(
            f"Note: {len(lines) - MOST_NOTES} more columns such as these.", err=True
        )


def print_warning(line: str, ways: Iterable[ShellOptions]) -> None:
    """Print why a run will prove nothing, and the command of each way out."""
    say(f"{line}.", err=True)
    words = click.get_current_context().obj
    lines = [shlex.join(["dsel", *with_options(words, way)]) for way in ways]
    print_commands(Commands([], lines), words)


def print_file_command(files: Sequence[NewFile], reason: str) -> None:
    """Print the command that reads tables in other files, which it writes first."""
    words = split_options(click.get_current_context().obj)
    for file in files:
        words = [file.new if is_same_path(word, file.old) else word for word in words]
    say(f"{reason}:", err=True)
    lines = [*(python_line(file.code) for file in files), shlex.join(["dsel", *words])]
    click.echo(" && ".join(lines), err=True)


@contextmanager
def open_client(cluster: ClusterOptions) -> "Iterator[Client | None]":
    """Yield the client that options describe, or None for threads."""
    scheduler, workers = cluster.scheduler, cluster.workers
    if scheduler is None and workers is None:
        yield None
        return
    from dsel.cluster import connect

    # If the scheduler is lost, dsel's own line replaces what distributed logs.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with connect(scheduler, workers=workers) as client:
        yield client


def _rows_of_plan(
    plan: "Plan",
    shown_rows: Iterable[tuple[str, str]],
    client: "Client | None",
    *,
    in_short: bool,
) -> list[tuple[str, ...]]:
    """Return the names and texts of a plan, in the words of the shell."""
    planned = list(plan_rows(plan.search, plan.facts, in_short=in_short))
    planned += [row for row in shown_rows if not in_short or row[0] in IN_SHORT]
    if client is None:
        threads = count_of(count_threads(), "thread")
        planned = [
            (name, f"{text}, on {threads}" if name == "fits" else text)
            for name, text in planned
        ]
    words = shell_names(click.get_current_context().command)
    return reword_rows(planned, {**_words_of_bound_call(plan), **words})


def _print_plan(planned: Sequence[ShownRow], *, as_json: bool) -> None:
    """Print the rows of a plan that is not run."""
    if not as_json:
        click.echo(plan_lines(planned))
        say("Nothing was fitted; the same line without --plan makes the run.")
        return
    (_, title), *others = planned
    texts = {"search": title} | {name: text for name, text in others if name}
    caveats = [text for name, text in others if not name]
    print_json("plan", plan=texts, caveats=caveats)


def _words_of_bound_call(plan: "Plan") -> dict[str, str]:
    """Return the command that stands for the call of `plan_bound` in a plan."""
    call = plan_bound_call(plan.search)
    return {} if call is None else {str(call): call.command}


def run_plan(
    plan: "Plan",
    *,
    cluster: ClusterOptions,
    output: RunOutput,
    out: str | None,
    shown_rows: Iterable[tuple[str, str]] = (),
    schema: "TableSchema | None" = None,
    tables: RunTables | None = None,
    likely_keys: Mapping[str, str] = MappingProxyType({}),
    likely_owners: Sequence[str] = (),
    first_line: str = "",
    after: "Callable[[Outcome], tuple[str, str]]" = lambda outcome: ("", ""),
    only_plan: bool = False,
) -> None:
    """Run a plan on the workers of the options, with progress in a terminal.

    Prints the plan in short and further rows before the run. Afterwards it prints the
    choice with the row that `after` returns, which may be the next step. With
    ``--verbose`` it also prints the whole plan, the origin of the numbers, and all
    assumptions. Schema and names of the tables are stored with the results.
    `likely_keys` has the features that may be identifiers, for ``--id``, or keys of
    ``--groups``. A suggested command names those by which the pool differs, and before
    the run one names the first of `likely_owners`, which may be the groups. The
    `first_line` of the plan, if any, is what voids the bound. With `only_plan` nothing
    is run.
    """
    if out is not None:
        try:
            # An error is one line, without the plan above it.
            check_out(plan.search, plan.facts, out)
        except StoreMismatchError as error:
            there = _options_of_finished_run(out, tables)
            mismatch = StoreMismatchError(f"{error}{there}")
            raise with_ways(mismatch, [("--out", new_place(out))]) from error
        if read_outcome(Place(out)) is not None:
            print_notes(
                [f"{out} has this run already, and its result is read from there"]
            )
    if likely_owners:
        # Its bound is void if rows belong together: who knows it stops the run.
        owner = likely_owners[0]
        words = click.get_current_context().obj
        print_notes([A1_UNKNOWN.format(owner)])
        words = without_option(words, "--queries")  # of groups none are drawn
        command = with_options(words, [("--groups", owner)])
        print_commands(Commands([], [shlex.join(["dsel", *command])]), words)
    with open_client(cluster) as client:
        planned = _rows_of_plan(plan, shown_rows, client, in_short=not output.verbose)
        if first_line:
            planned.insert(1, (NOT_CERTIFIED, first_line))
        if only_plan:
            _print_plan(planned, as_json=output.as_json)
            return
        if not (output.quiet or output.as_json):
            # The plan is printed once, before the run: later a reader looks for the
            # result.
            click.secho(f"{plan_lines(planned)}\n", dim=True)
        outcome = plan.run(client, out=out, verbose=output.shows_progress)
        outcome.models  # noqa: B018  # a stored run may fit them again, on the workers
    if out is not None:
        print_note_on_labels(outcome, out)
    if out is not None and schema is not None:
        save_schema(out, schema.to_json())
    if out is not None and tables is not None:
        save_run_tables(out, tables)
    name, text = after(outcome)
    keys = [
        column
        for column in _find_shifted_columns(outcome) or ()
        if column in likely_keys
    ]
    owners = [column for column in keys if likely_keys[column] == "--groups"][:1]
    ids = [] if owners else keys
    steps = [text]
    if name != NEXT:
        steps = _next_steps(outcome, out, tables, ids, owners)
    print_outcome(outcome, text, output, out, steps=steps)
    if keys:
        words = click.get_current_context().obj
        place = [] if out is None else [("--out", new_place(out))]
        lines = [
            shlex.join(["dsel", *with_options(words, [change, *place])])
            for change in [
                *[("--groups", name) for name in owners],
                ("--id", join_names(keys)),
            ]
        ]
        print_commands(Commands([], lines), words)
    if name == NEXT and output.quiet and not output.as_json:
        print_rows(next_rows(text))  # no other line names the file to label
    certificates = outcome.choice.certificates.values()
    if certificates and all(c.says_nothing or not c.certified for c in certificates):
        # A script that reads exit statuses must not take a refuted assumption, or "at
        # most 100%", for a bound.
        click.get_current_context().exit(ExitStatus.REFUTED)


def print_note_on_labels(outcome: "Outcome", out: str) -> None:
    """Print that bounds are with the labels that `dsel label` has stored, if any."""
    queries = outcome.choice.queries
    if queries is not None and queries.labels is not None:
        n_rows = count_of(len(queries.rows), "queried row")
        print_notes([f"the numbers below are with the labels of {n_rows} in {out}"])


def _next_steps(
    outcome: "Outcome",
    out: str | None,
    tables: RunTables | None,
    ids: Sequence[str],
    owners: Sequence[str],
) -> list[str]:
    """Return which commands are useful after a run that waits for no labels.

    `ids` are the identifiers by which the pool differs from the labeled rows, `owners`
    columns of which several rows share a value.
    """
    place = shlex.quote(out or "")
    if tables is None and out is None:  # the demo
        return [SELECT.format("UNLABELED")]
    if owners:
        return [OF_GROUPS.format(*owners)]
    if ids:
        return [WITHOUT_IDS.format(listing([*map(repr, ids)], 8))]
    assumptions = outcome.choice.certificate.assumptions
    if any(assumption.has_lost_groups for assumption in assumptions):
        return [LOST_GROUPS]
    if (
        tables is not None
        and tables.pool
        and _find_shifted_columns(outcome) is not None
    ):
        # A command here would lead to a bound about other rows, so none is printed.
        names = _find_shifted_columns(outcome) or ()
        option = f"--drop {shlex.quote(join_names(names))}"
        what = "this is only a row number or a date of entry"
        if len(names) > 1:
            what = "these are only row numbers or dates of entry"
        drop = f"the same command with {option}, if {what}; {MAY_RUN_AGAIN}"
        sample, groups, alone = AFTER_SHIFT
        shared = next(a.shared_column for a in assumptions if a.shifted_by is not None)
        if shared:
            groups = (
                f"the same command with --groups {shlex.quote(shared)}, if rows of one "
                f"{shared} belong together; {MAY_RUN_AGAIN}"
            )
            return [groups, *[drop] * bool(names), sample, alone]
        return [*[drop] * bool(names), sample, groups, alone]
    if out is None:
        return ["the same command with --out FOLDER keeps the model for dsel predict"]
    steps = [f"dsel predict {place} NEW --out FILE", f"dsel report {place}"]
    bound = outcome.choice.certificate
    return [*steps, *[UNSEEN_GROUPS] * (not (bound.n_unlabeled or bound.n_groups))]


def _find_shifted_columns(outcome: "Outcome") -> tuple[str, ...] | None:
    """Return the columns that show another population in the pool; None if none do."""
    assumptions = outcome.choice.certificate.assumptions
    shifts = (assumption.shifted_by for assumption in assumptions)
    return next((columns for columns in shifts if columns is not None), None)


def print_outcome(
    outcome: "Outcome",
    after: str,
    output: RunOutput,
    out: str | None,
    *,
    steps: Sequence[str],
) -> None:
    """Print the choice of a run, its reports, and the next steps.

    `after` is a further line unless it is one of the next `steps`.
    """
    choice = outcome.choice
    untrusted = [] if out is None else trusted_types(outcome.models.values())
    if output.as_json:
        print_json(
            "select",
            **choice_content(choice),
            results=out,
            seed=outcome.seed,
            trust=untrusted,
            after=after or None,
        )
        return
    if untrusted:
        options = " ".join(f"--trust {name}" for name in untrusted)
        print_notes([f"to open the models, dsel predict and others need {options}"])
    further: list[ShownRow] = []
    if output.verbose:
        further = [*origins(choice), *assumption_rows(choice.assumptions)]
    lines = [after] * (bool(after) and after not in steps)
    print_choice(choice, output, lines=lines, steps=steps, further=further)


def _options_of_finished_run(out: str, tables: RunTables | None) -> str:
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
