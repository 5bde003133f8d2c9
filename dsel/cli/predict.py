"""``dsel predict``: apply the stored model of a search to a table."""

import shlex
from dataclasses import asdict

import click

from dsel.checks import listing
from dsel.cli.exit_status import ExitStatus
from dsel.cli.models import import_from_here
from dsel.cli.options import ClusterOptions, OutputOptions, TextOptions
from dsel.cli.printing import say
from dsel.cli.running import names_in, notes, open_client, print_json
from dsel.data.table_request import is_name_of_identifier
from dsel.results.predictions import ROW
from dsel.runtime.progress import row_progress
from dsel.search.outcomes.deployed_model import open_deployed_model
from dsel.search.outcomes.predict_table import predict_table


def run(
    results: str,
    new: str,
    out: str,
    deploy: str | None,
    ids: str | None,
    trust: tuple[str, ...],
    text: TextOptions,
    cluster: ClusterOptions,
    output: OutputOptions,
) -> None:
    """Predict every row of NEW with the model in RESULTS."""
    import_from_here(trust)
    id = None if ids is None else names_in(ids)
    deployed = open_deployed_model(results, deploy=deploy, trusted=trust)
    progress = row_progress(output.shows_progress, "Predicting")
    try:
        with open_client(cluster) as client, progress as report:
            made = predict_table(
                deployed,
                new,
                out,
                id=id,
                client=client,
                on_progress=report,
                **text.arguments,
            )
    except KeyboardInterrupt:  # unlike a search it does not continue
        say(f"Interrupted. Nothing is at {out}.", err=True)
        click.get_current_context().exit(ExitStatus.INTERRUPTED)
    notes(made.notes)
    certificate = deployed.certificate
    is_certified = certificate is not None and certificate.certified
    limit = made.note_on_bound if is_certified else ""
    if output.as_json:
        bound = None if certificate is None else certificate.bound
        print_json(
            "predict",
            file=out,
            n_rows=made.n_rows,
            columns=made.columns,
            unused=made.unused,
            unknown_values=[asdict(each) for each in made.unknown],
            separator=made.dialect.separator,
            decimal=made.dialect.decimal,
            bound=bound,
            certified=is_certified,
            certificate=certificate,
            note_on_bound=limit or None,
        )
        return
    unknown = "No error bound: the model was stored by `save_model`, not by a search"
    say(unknown if certificate is None else certificate.headline())
    if limit:
        say(f"{limit}.")
    if output.quiet:
        return
    if made.unused:
        schema = deployed.input_format.table_schema
        target = None if schema is None else schema.target
        unused = [f"{n} (the target)" if n == target else n for n in made.unused]
        say(f"Not used of NEW: {listing(unused, 10)}")
    columns = listing([name or "names of rows" for name in made.columns], 10)
    form = made.dialect.words
    where = f"{out} ({form})" if form else out
    say(f"Wrote {made.n_rows:,} rows to {where}: {columns}")
    if made.columns[0] == ROW:
        key = next(filter(is_name_of_identifier, made.unused), "COLUMN")
        say(
            f"Its column {ROW} is the number of the row in NEW, from 0; to join by a "
            f"key of NEW instead, write --id {shlex.quote(key)}"
        )
