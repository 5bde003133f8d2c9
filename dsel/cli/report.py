"""``dsel report``: a page about a finished run."""

import json
from typing import Any

import click


@click.command()
@click.argument("results")
@click.option(
    "--out", default="report.html", show_default=True, help="File of the page."
)
@click.option("--criterion", help="What ranks; by default that of the run.")
@click.option("--certificate", help="What is reported; by default the criterion.")
@click.option("--delta", type=float, help="Chance of failure; by default the run's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(results: str, out: str, as_json: bool, **options: Any) -> None:
    """Write a page about the run at RESULTS, a directory or URL that --out named.

    The page needs no net to read. Nothing is fitted.
    """
    from dsel.report import write_report
    from dsel.results import open_results

    page = write_report(open_results(results), out, **options)
    if as_json:
        click.echo(json.dumps({"report": str(page), "results": results}))
    else:
        click.echo(f"Wrote {page}")
