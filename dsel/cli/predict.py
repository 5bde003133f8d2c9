"""``dsel predict``: apply the stored model of a search to a table."""

import shlex
from dataclasses import asdict

import click

from dsel.checks import listing
from dsel.cli.commands.predict import PredictOptions
from dsel.cli.exit_status import ExitStatus
from dsel.cli.models import import_from_here
from dsel.cli.printing import say
from dsel.cli.running import names_in, open_client, print_facts, print_json, print_notes
from dsel.data.table_request import is_name_of_identifier
from dsel.results.predictions import ROW
from dsel.runtime.progress import row_progress
from dsel.search.outcomes.deployed_model import open_deployed_model
from dsel.search.outcomes.predict_table import ENDS, PredictedTable, predict_table


def run(options: PredictOptions) -> None:
    """Predict every row of NEW with the model in RESULTS."""
    import_from_here(options.trust)
    deployed = open_deployed_model(
        options.results, deploy=options.deploy, trusted=options.trust
    )
    output, out = options.output, options.out
    progress = row_progress(output.shows_progress, "Predicting")
    try:
        with open_client(options.cluster) as client, progress as on_progress:
            made = predict_table(
                deployed,
                options.new,
                out,
                id=None if options.ids is None else names_in(options.ids),
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
            file=out,
            n_rows=made.n_rows,
            columns=made.columns,
            unused=made.unused,
            unknown_values=[asdict(each) for each in made.unknown],
            separator=made.dialect.separator,
            decimal=made.dialect.decimal,
            bound=None if made.certificate is None else made.certificate.bound,
            certified=made.is_certified,
            certificate=made.certificate,
            note_on_bound=made.note_on_bound or None,
        )
    else:
        schema = deployed.input_format.table_schema
        target = None if schema is None else schema.target
        lines = bound_lines(made) if output.quiet else all_lines(made, out, target)
        print_facts(("", line) for line in lines)
    if made.says_nothing:
        # A script that reads statuses must not take the bound for one of these rows.
        click.get_current_context().exit(ExitStatus.REFUTED)


def bound_lines(made: PredictedTable) -> list[str]:
    """Return the bound; before it, where it is so, that it is not about these rows."""
    unknown = "No error bound: the model was stored by `save_model`, not by a search"
    certificate, note = made.certificate, made.note_on_bound
    line = unknown if certificate is None else certificate.headline()
    return [f"{note}.", line] if note else [line]


def all_lines(made: PredictedTable, out: str, target: str | None) -> list[str]:
    """Return all that is printed: the bound, unused columns, and what the file has."""
    lines = bound_lines(made)
    if made.unused:
        unused = [f"{n} (the target)" if n == target else n for n in made.unused]
        lines.append(f"Not used of NEW: {listing(unused, 10)}")
    columns = listing([name or "names of rows" for name in made.columns], 10)
    form = f" ({made.dialect.words})" if made.dialect.words else ""
    lines.append(f"Wrote {made.n_rows:,} rows to {out}{form}: {columns}")
    if {*ENDS} <= {*made.columns}:
        lines.append("lower and upper are the prediction less and plus the bound above")
    if made.columns[0] == ROW:
        key = next(filter(is_name_of_identifier, made.unused), "COLUMN")
        lines.append(
            f"Its column {ROW} is the number of the row in NEW, from 0; to join by a "
            f"key of NEW instead, write --id {shlex.quote(key)}"
        )
    return lines
