"""``dsel predict``: apply the stored model of a search to a table."""

import shlex
from typing import Any

import click

from dsel.cards import ShownRow
from dsel.checks import listing
from dsel.cli.commands.predict_command import PredictOptions
from dsel.cli.exit_status import ExitStatus
from dsel.cli.named_models import import_from_here
from dsel.cli.new_run import offer_new_run
from dsel.cli.printing import say
from dsel.cli.running import (
    bounds_content,
    next_rows,
    offer_changed_table,
    open_client,
    print_json,
    print_notes,
    print_rows,
)
from dsel.data.identifiers import is_name_of_identifier
from dsel.results.prediction_files import ROW
from dsel.runtime.progress import row_progress
from dsel.search.outcomes.deployed_model import Deployed, open_deployed_model
from dsel.search.outcomes.predict_table import PredictedTable, predict_table
from dsel.search.outcomes.table_rows import check_values, open_table


def run(options: PredictOptions) -> None:
    """Predict every row of NEW with the model in RESULTS."""
    import_from_here(options.trust)
    deployed = _open_deployed_model(options)
    output, out = options.output, options.out
    progress = row_progress(output.shows_progress, "Predicting")
    try:
        client_of = open_client(options.cluster)
        again = offer_new_run(options.results)
        renamed = offer_changed_table(options.new, options.text.arguments)
        with again, renamed, client_of as client, progress as on_progress:
            made = predict_table(
                deployed,
                options.new,
                out,
                id=[*options.ids] or None,
                client=client,
                on_progress=on_progress,
                **options.text.arguments,
            )
    except KeyboardInterrupt:  # unlike a search it does not continue
        say(f"Interrupted. Nothing is at {out}.", err=True)
        click.get_current_context().exit(ExitStatus.INTERRUPTED)
    print_notes(made.notes)
    if output.as_json:
        print_json(
            "predict",
            results=options.results,
            file=out,
            n_rows=made.n_rows,
            columns=made.columns,
            predicted=None if made.summary is None else made.summary.record,
            unused=made.unused,
            unknown_values=[each.record for each in made.unknown],
            separator=made.dialect.separator,
            decimal=made.dialect.decimal,
            **_content_of_bound(made),
            note_on_bound=made.note_on_bound or None,
        )
    else:
        schema = deployed.input_format.table_schema
        target = None if schema is None else schema.target
        rows: list[ShownRow] = [("", line) for line in bound_lines(made)]
        if not output.quiet:
            rows += made.summary_rows
            rows += [("", line) for line in lines_on_file(made, out, target)]
        print_rows(rows)
        # The bound is not about these rows: newer ones of their kind cannot test it.
        is_next = made.certificate is not None and not made.are_mostly_unlike
        if is_next and not output.quiet:
            place, new = map(shlex.quote, (options.results, options.new))
            why = "to test whether these rows are like the labeled ones"
            if made.certificate is not None and made.certificate.n_groups:
                why = "once some of these rows have labels"
            print_rows(next_rows(f"dsel monitor {place} {new}, {why}"))
    if made.says_nothing:
        # A script that reads exit statuses must not take the bound for one about these
        # rows.
        click.get_current_context().exit(ExitStatus.REFUTED)


def check(options: PredictOptions) -> None:
    """Raise what stops the command before it predicts a row."""
    deployed = _open_deployed_model(options)
    text = options.text.arguments
    with offer_new_run(options.results), offer_changed_table(options.new, text):
        table = open_table(
            deployed.input_format,
            options.new,
            options.ids or None,
            model=deployed.model,
            **text,
        )
        check_values(table)


def _open_deployed_model(options: PredictOptions) -> Deployed:
    """Return the model, which reads the words of ``--gap`` as missing values, too."""
    deployed = open_deployed_model(
        options.results, deploy=options.deploy, trusted=options.trust
    )
    return deployed.with_gap_words(options.gaps)


def _content_of_bound(made: PredictedTable) -> dict[str, Any]:
    """Return the bound of the applied model, for `print_json`, as other commands do."""
    bound = made.certificate
    bounds = {} if bound is None else bounds_content({bound.model_name: bound})
    return {
        "deploy": None if bound is None else bound.model_name,
        "bounds": bounds,
        "bound": None if bound is None else bound.bound,
        "certified": made.is_certified,
        "certificate": bound,
    }


def bound_lines(made: PredictedTable) -> list[str]:
    """Return the bound and, if it is not about many rows, a note before it."""
    note, line = made.note_on_bound, made.text_on_bound
    return [text for text in (note and f"{note}.", line) if text]


def lines_on_file(made: PredictedTable, out: str, target: str | None) -> list[str]:
    """Return which columns are unused, and what the file has."""
    lines = []
    if made.unused:
        unused = [f"{n} (the target)" if n == target else n for n in made.unused]
        lines.append(f"Not used of NEW: {listing(unused, 10)}")
    lines += made.texts_on_file(out, target)
    if made.columns[0] == ROW:
        key = next(filter(is_name_of_identifier, made.unused), "COLUMN")
        lines.append(
            f"Its column {ROW} is the number of the row in NEW, from 0; to join by a "
            f"key of NEW instead, write --id {shlex.quote(key)}"
        )
    return lines
