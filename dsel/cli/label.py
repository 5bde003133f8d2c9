"""``dsel label``: compute bounds from the labels of queried rows."""

import click

from dsel.cli.running import (
    OutputOptions,
    TextOptions,
    choice_content,
    output_options,
    print_json,
    text_options,
)
from dsel.results.certificate import NO_QUERIES
from dsel.results.query_files import (
    is_comparison,
    keep_answer,
    keep_choice,
    known_labels,
    read_choice,
    read_comparison,
    read_labels,
)


@click.command
@click.argument("place")
@click.argument("labels")
@click.option(
    "--target",
    help="Column of the labels; by default that of `dsel select` or `dsel compare`.",
)
@text_options
@output_options
def command(
    place: str,
    labels: str,
    target: str | None,
    text: TextOptions,
    output: OutputOptions,
) -> None:
    """Read LABELS of the queried rows at PLACE, and print what they prove.

    PLACE is the --out of `dsel select --queries`: then the labels make the bound of the
    model trained on all labels smaller. Or it is the --out of `dsel compare`: then they
    show which of two models is better. LABELS is its file of rows with labels, or a
    copy of it in any order. Rows are found by their `pool_row`. Rows that are missing,
    or have no label, count against what is to be proved. The result is stored, and is
    final.
    """
    if is_comparison(place):
        question, column = read_comparison(place)
        if not question.rows:
            question.query_rows()  # raises with the reason
        known = known_labels(question)
        row_labels = read_labels(
            labels, question.rows, known, target=target or column, **text.arguments
        )
        answer = keep_answer(place, question.certify_with_labels(row_labels))
        if output.as_json:
            print_json("label", comparison=answer)
            return
        click.echo(answer.headline() if output.quiet else str(answer))
        return
    choice, column = read_choice(place)
    if choice.queries is None:
        raise ValueError(NO_QUERIES)
    if not choice.queries.rows:
        raise ValueError(choice.queries.why_no_rows)
    row_labels = read_labels(
        labels,
        choice.queries.rows,
        choice.queries.classes,
        target=target or column,
        **text.arguments,
    )
    labeled = keep_choice(place, choice.certify_with_labels(row_labels))
    if output.as_json:
        print_json("label", **choice_content(labeled))
        return
    certificate = labeled.certificates["all_rows"]
    click.echo(certificate.headline() if output.quiet else str(labeled))
