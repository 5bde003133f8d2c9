"""``dsel report``: a page about a finished run."""

import json

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
def command(
    results: str,
    out: str,
    criterion: str | None,
    certificate: str | None,
    delta: float | None,
    as_json: bool,
) -> None:
    """Write a page about the run at RESULTS, a directory or URL that --out named.

    The page needs no net to read. Nothing is fitted.
    """
    from dsel.report import write_report
    from dsel.results import open_results

    cube = open_results(results)
    page = write_report(
        cube, out, criterion=criterion, certificate=certificate, delta=delta
    )
    if as_json:
        click.echo(json.dumps({"report": str(page), "results": results}))
    else:
        click.echo(f"Wrote {page}")
