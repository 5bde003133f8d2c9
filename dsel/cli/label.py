"""``dsel label``: what the labels of queried rows prove."""

import click

from dsel.cli.running import text_options
from dsel.results.query_files import keep_answer, read_comparison, read_labels


@click.command
@click.argument("comparison")
@click.argument("labels")
@click.option(
    "--target", help="Column of the labels; by default that of `dsel compare --target`."
)
@text_options
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
def command(
    comparison: str,
    labels: str,
    target: str | None,
    sep: str | None,
    encoding: str | None,
    quiet: bool,
) -> None:
    """Say which of two models is better, from LABELS of the rows of COMPARISON.

    COMPARISON is the folder that --out of `dsel compare` named, LABELS its file of rows
    with labels, or a copy of it in any order. Rows are found by their `pool_row`. Rows
    that are missing, or have no label, count against whatever is proved. The answer is
    kept in the folder, and is final.
    """
    question, column = read_comparison(comparison)
    given = read_labels(
        labels, question, target=target or column, separator=sep, encoding=encoding
    )
    answer = keep_answer(comparison, question.certify_with_labels(given))
    click.echo(answer.headline() if quiet else str(answer))
