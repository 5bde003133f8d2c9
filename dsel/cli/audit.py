"""``dsel audit``: how often certificates fail where the truth is known."""

import json
from typing import Any

import click
import xarray as xr

from dsel import names
from dsel.cli.options import numbers
from dsel.report.text import text_table
from dsel.searches.auditing.audit import audit, is_sound, verdicts


@click.command
@click.argument("settings", nargs=-1)
@click.option("--delta", default="0.5,0.2,0.05", show_default=True, help="One or more.")
@click.option("--draws", default=500, show_default=True, help="Of each setting.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(settings: tuple[str, ...], **options: Any) -> None:
    """Search where the truth is known, and count how often certificates fail.

    SETTINGS are names from the printed table; without any, all are audited, which
    takes an hour or more at 500 draws. Ends with 1 where a certificate fails too often.
    """
    report = audit(
        settings or None,
        delta=numbers(options["delta"], float, "--delta"),
        n_draws=options["draws"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )
    if options["as_json"]:
        click.echo(json.dumps(report.to_dict(encoding=False)))
    else:
        click.echo("\n".join(in_words(report)))
    if not is_sound(report):
        raise SystemExit(1)


def in_words(report: xr.Dataset) -> list[str]:
    """Return the verdict and the table as lines."""
    draws = int(report["n_draws"])
    verdict = (
        "Every certificate held"
        if is_sound(report)
        else "A certificate FAILED too often, or a control was not caught,"
    )
    rows = [("setting", "delta", "draws", "certified", "failures", "p", "verdict")]
    for setting, word in zip(report["setting"].values, verdicts(report), strict=True):
        row = report.sel(setting=setting)
        for delta in report[names.DELTA].values:
            cell = row.sel({names.DELTA: delta})
            counts = (f"{int(cell[name])}" for name in ("certified", "failures"))
            p_value = f"{float(cell['p_value']):.2g}"
            rows.append(
                (str(setting), f"{delta:g}", str(draws), *counts, p_value, word)
            )
    table = text_table(rows, numbers=range(1, 6))
    return [f"{verdict} in {draws:,} draws of each setting.", "", *table]
