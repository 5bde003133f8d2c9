"""``dsel monitor``: test on the rows of a new table whether promises still hold."""

import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from dsel.cli.exit_status import ExitStatus
from dsel.cli.models import import_from_here
from dsel.cli.options import ClusterOptions, OutputOptions, TextOptions
from dsel.cli.running import open_client, print_facts, print_json, print_notes
from dsel.data.open import open_pool
from dsel.data.table_files import NPY, NPZ, SVMLIGHT
from dsel.data.tables import read_table
from dsel.data.text_tables import is_text, text_source
from dsel.results.run_tables import load_run_tables
from dsel.runtime.progress import row_progress
from dsel.search.outcomes.monitor import monitor_table
from dsel.search.outcomes.new_labels import NewLabels, check_new_labels
from dsel.search.outcomes.promises import open_promises


def run(
    results: str,
    next_month: str,
    labeled: str | None,
    target: str | None,
    groups: str | None,
    level: float,
    trust: tuple[str, ...],
    text: TextOptions,
    cluster: ClusterOptions,
    output: OutputOptions,
) -> None:
    """Test whether the promises of RESULTS still hold on the rows of NEXT_MONTH."""
    import_from_here(trust)
    if groups is None:
        groups = _groups_of_run(results, next_month, text)
    promises, notes = open_promises(
        results, labeled=labeled, trusted=trust, groups=groups, **text.arguments
    )
    source, labels = _rows_and_labels(next_month, target)
    labels = replace(labels, groups=groups, groups_option="--groups")
    progress = row_progress(output.shows_progress, "Testing new rows")
    with open_client(cluster) as client, progress as shown:
        report = monitor_table(
            promises,
            source,
            labels,
            level=level,
            client=client,
            on_progress=shown,
            **text.arguments,
        )
    print_notes(notes)
    if output.as_json:
        print_json(
            "monitor", refuted=[test.name for test in report.refuted], report=report
        )
    else:
        print_facts(report.facts()[: 1 if output.quiet else None])
    if not report.n_tested:
        # A cron job that reads statuses must not take silence for a kept promise.
        are_known = report.n_duplicates == report.n_rows
        ways = {
            "rows that were not labeled": are_known,
            "--labeled for the labeled table": promises.labeled is None,
            "--target for labels in NEXT_MONTH": target is None and not are_known,
            "--groups for rows in groups": promises.are_in_groups and groups is None,
        }
        way = " or ".join(text for text, applies in ways.items() if applies)
        reasons = ""
        if output.quiet and not output.as_json:  # the report above has them otherwise
            why = dict.fromkeys(test.reason for test in report.tests)
            reasons = f" ({'; '.join(why)})"
        raise click.ClickException(
            f"no promise was tested{reasons}{way and f'; pass {way}'}."
        )
    status = ExitStatus.REFUTED if report.is_refuted else ExitStatus.DONE
    click.get_current_context().exit(status)


def _groups_of_run(results: str, new: str, text: TextOptions) -> str | None:
    """Return the column of groups of a run, if the new table has it, too."""
    tables = load_run_tables(results)
    if tables is None or tables.groups is None:
        return None
    with suppress(OSError, TypeError, ValueError):  # the table may be unreadable
        if "://" not in new and is_text(new):
            columns = text_source(new, **text.arguments).names
        else:
            columns = open_pool(new).columns or ()
        return tables.groups if tables.groups in columns else None
    return None


def _rows_and_labels(location: str, target: str | None) -> tuple[Any, NewLabels]:
    """Return a table, or its rows if its labels are an array, and its labels."""
    is_arrays = location.lower().endswith((*NPZ, *NPY, *SVMLIGHT))
    if target is None or not is_arrays or not os.path.exists(location):
        return location, NewLabels(target, option="--target")
    named = None if location.lower().endswith(SVMLIGHT) else target
    table = read_table(location, target=named)
    return table.X, NewLabels(y=check_new_labels(table.y))
