"""``dsel monitor``: test on the rows of a new table whether promises still hold."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from dsel.cli.commands.monitor_command import MonitorOptions
from dsel.cli.exit_status import ExitStatus
from dsel.cli.named_models import import_from_here
from dsel.cli.new_run import offer_new_run
from dsel.cli.running import (
    columns_in,
    next_rows,
    offer_changed_table,
    open_client,
    print_json,
    print_notes,
    print_rows,
)
from dsel.data.schema import TableSchema
from dsel.data.table_files import NPY, NPZ, SVMLIGHT
from dsel.data.tables import read_table
from dsel.results.run_tables import load_run_tables, load_schema
from dsel.runtime.progress import row_progress
from dsel.search.outcomes.monitor import monitor_table, open_new_rows
from dsel.search.outcomes.new_labels import NewLabels, check_new_labels
from dsel.search.outcomes.promises import Promises, open_promises
from dsel.search.outcomes.table_rows import check_values


def run(options: MonitorOptions) -> None:
    """Test whether the promises of RESULTS still hold on the rows of NEXT_MONTH."""
    promises, notes, source, labels = _open(options)
    text, output = options.text.arguments, options.output
    progress = row_progress(output.shows_progress, "Testing new rows")
    renamed = offer_changed_table(options.next_month, text)
    again, client_of = offer_new_run(options.results), open_client(options.cluster)
    with again, renamed, client_of as client, progress as shown:
        report = monitor_table(
            promises,
            source,
            labels,
            level=options.level,
            client=client,
            on_progress=shown,
            **text,
        )
    print_notes(notes)
    if output.as_json:
        print_json(
            "monitor",
            refuted=[test.name for test in report.refuted],
            report=report,
            results=options.results,
        )
    else:
        steps = []
        if report.is_refuted:
            which = "label some of these rows, and run dsel select on them alone"
            if labels.are_there:
                which = "run dsel select on the labeled rows of this table alone"
            if report.labels_refute_nothing:
                which = (
                    "find out what changed; the labels of these rows refute no bound. "
                    "For a bound that is about them run dsel select on their labeled "
                    "rows alone"
                )
            steps = [
                f"{which}: together with the old rows they are no random sample of one "
                f"population"
            ]
            certificates = promises.choice.certificates.values()
            if not any(certificate.certified for certificate in certificates):
                # A key of groups, for example, differs in any new rows.
                steps.insert(
                    0,
                    f"read why the bounds of this run are no guarantee, and which "
                    f"options may mend it: dsel report {shlex.quote(options.results)}",
                )
        rows = report.shown_rows()
        print_rows(rows[:1] if output.quiet else [*rows, *next_rows(*steps)])
    if not report.n_tested:
        # A cron job that reads exit statuses must not mistake an untested promise for a
        # kept one.
        are_known = report.n_duplicates == report.n_rows
        reasons = "; ".join(dict.fromkeys(test.reason for test in report.tests))
        # An option helps only where the reason of a test names it: labels, for example,
        # test nothing where no limit was certified.
        ways = {
            "rows that were not labeled": are_known,
            "--labeled for the labeled table": "--labeled" in reasons,
            f"--target, if {options.next_month} has labels": "--target" in reasons
            and not are_known,
            "--groups for rows in groups": "--groups" in reasons,
        }
        way = " or ".join(text for text, applies in ways.items() if applies)
        # Otherwise the report above has shown the reasons.
        why = f" ({reasons})" if output.quiet and not output.as_json else ""
        raise click.ClickException(
            f"no promise was tested{why}{way and f'; pass {way}'}."
        )
    status = ExitStatus.REFUTED if report.is_refuted else ExitStatus.DONE
    click.get_current_context().exit(status)


def check(options: MonitorOptions) -> None:
    """Raise what stops the command before it tests a row."""
    promises, _, source, labels = _open(options)
    text = options.text.arguments
    with offer_new_run(options.results), offer_changed_table(options.next_month, text):
        check_values(open_new_rows(promises, source, labels, **text))


def _open(
    options: MonitorOptions,
) -> tuple[Promises, Sequence[str], Any, NewLabels]:
    """Return the promises of a run with notes, and the new rows with their labels."""
    import_from_here(options.trust)
    groups, target = options.groups, options.target
    tables = load_run_tables(options.results)
    if tables is not None and None in (groups, target):
        columns: tuple[str, ...] = ()
        with suppress(OSError, TypeError, ValueError):  # the error is reported below
            learned = load_schema(options.results)
            like = None if learned is None else TableSchema.from_json(learned)
            columns = columns_in(options.next_month, options.text.arguments, like) or ()
        groups = groups or (tables.groups if tables.groups in columns else None)
        target = target or (tables.target if tables.target in columns else None)
    promises, notes = open_promises(
        options.results,
        labeled=options.labeled,
        trusted=options.trust,
        groups=groups,
        **options.text.arguments,
    )
    input_format = promises.input_format.with_gap_words(options.gaps)
    promises = replace(promises, input_format=input_format)
    source, labels = _rows_and_labels(options.next_month, target)
    labels = replace(labels, groups=groups, groups_option="--groups")
    return promises, notes, source, labels


def _rows_and_labels(location: str, target: str | None) -> tuple[Any, NewLabels]:
    """Return a table, or its rows if its labels are an array, and its labels."""
    is_arrays = location.lower().endswith((*NPZ, *NPY, *SVMLIGHT))
    if target is None or not is_arrays or not os.path.exists(location):
        return location, NewLabels(target, option="--target")
    named = None if location.lower().endswith(SVMLIGHT) else target
    table = read_table(location, target=named)
    return table.X, NewLabels(y=check_new_labels(table.y))
