"""``dsel audit``: how often certificates fail where the truth is known."""

import json
from typing import Any

import click
import xarray as xr

from dsel import names
from dsel.cli.models import ESTIMATORS, SCALERS, build
from dsel.cli.options import cluster_options, connected
from dsel.cli.tables import labeled_table
from dsel.searches.auditing.audit import audit


@click.command
@click.argument("labeled", type=click.Path(exists=True))
@click.option("--target", help="Column of the labels.")
@click.option("--model", type=click.Choice(sorted(ESTIMATORS)), default="logistic")
@click.option("--scale", type=click.Choice(sorted(SCALERS)), help="Scale features.")
@click.option(
    "--grid",
    multiple=True,
    default=("C=1",),
    show_default=True,
    help="Values of a parameter, as for `dsel select`; every draw fits all of them.",
)
@click.option("--rows", default=100, show_default=True, help="Labeled rows of a draw.")
@click.option("--pool-rows", default=500, show_default=True, help="Its pool rows.")
@click.option("--cv", default=5, show_default=True, help="Random folds.")
@click.option("--delta", default="0.1,0.3,0.5", show_default=True, help="One or more.")
@click.option("--draws", default=2000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@cluster_options
def command(labeled: str, **options: Any) -> None:
    """Replay a search where the truth is known, and count how often bounds fail.

    LABELED is a CSV, Parquet, npz, svmlight or zarr table; its rows are the population.
    """
    table = labeled_table(labeled, options["target"])
    estimator, grid = build(options["model"], options["scale"], options["grid"])
    with connected(options) as client:
        report = audit(
            estimator,
            grid,
            table.X,
            table.y,
            n_labeled=options["rows"],
            n_unlabeled=options["pool_rows"],
            cv=options["cv"],
            delta=_numbers(options["delta"]),
            n_draws=options["draws"],
            random_state=options["seed"],
            client=client,
        )
    if options["as_json"]:
        click.echo(json.dumps(report.to_dict(encoding=False)))
        return
    click.echo("\n".join(in_words(report)))


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as 0.1,0.5.", param_hint="--delta"
        ) from None


def in_words(report: xr.Dataset) -> list[str]:
    """Return the verdict and the tables as lines, what is wrong first."""
    lines = [*_verdict(report), ""]
    if text := str(report["refused"].values):
        lines = [f"dsel certifies no such search: {text}.", "", *lines]
    for population in report["population"].values:
        part = report.sel(population=population)
        error = float(part["mean_error"])
        power = "" if bool(part["has_power"]) else "; so easy or hard, it shows little"
        lines += [f"Population: {population} (mean error {error:.3f}{power})", ""]
        lines += [*_table(part), ""]
    lines.append("Broken bounds, which an audit must catch (at delta = 0.1):")
    for control in report["control"].values:
        part = report.sel(control=control)
        caught = "caught" if bool(part["control_caught"]) else "NOT CAUGHT"
        rate = float(part["control_failure_rate"])
        lines.append(f"  {control!s:<24}{rate:>8.3f}  {caught}")
    return lines


def _verdict(report: xr.Dataset) -> list[str]:
    draws = int(report["n_draws"])
    if bool(report["holds"].all()):
        return [f"Every certificate held in {draws:,} draws from each population."]
    broken = report[names.CERTIFICATE].values[
        ~report["holds"].all(["population", names.DELTA]).values
    ]
    return [
        f"FAILED more often than delta allows, in {draws:,} draws: {', '.join(broken)}."
    ]


def _table(part: xr.Dataset) -> list[str]:
    deltas = "".join(f"{f'delta {d:g}':>22}" for d in part[names.DELTA].values)
    lines = [f"  {'failed (slack)':<24}{deltas}"]
    for certificate in part[names.CERTIFICATE].values:
        row = part.sel({names.CERTIFICATE: certificate})
        cells = "".join(
            f"{f'{rate:.3f} ({slack:.3f})' + ('' if holds else ' !'):>22}"
            for rate, slack, holds in zip(
                row["failure_rate"].values,
                row["slack"].values,
                row["holds"].values,
                strict=True,
            )
        )
        lines.append(f"  {certificate!s:<24}{cells}")
    return lines
