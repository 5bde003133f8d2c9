"""``dsel audit``: how often certificates fail where the truth is known."""

import click

from dsel import names
from dsel.auditing.audit import audit, is_sound
from dsel.cli.running import numbers
from dsel.results.texts import wrapped


@click.command
@click.argument("settings", nargs=-1)
@click.option("--delta", default="0.5,0.2,0.05", show_default=True, help="One or more.")
@click.option("--draws", default=500, show_default=True, help="Of each setting.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, help="Processes, 1 by default."
)
def command(
    settings: tuple[str, ...], delta: str, draws: int, seed: int, jobs: int
) -> None:
    """Search where the truth is known, and count how often certificates fail.

    SETTINGS are names from the printed table; without any, all are audited, which
    takes an hour or more at 500 draws. Ends with 1 where a certificate fails too often.
    """
    report = audit(
        settings or None, delta=numbers(delta, float, "--delta"), n_draws=draws,
        random_state=seed, n_jobs=jobs,
    )  # fmt: skip
    held = is_sound(report)
    verdict = (
        "Every certificate held"
        if held
        else "A certificate FAILED too often, or a control was not caught,"
    )
    n_draws = int(report["n_draws"])
    click.echo(wrapped(f"{verdict} in {n_draws:,} draws of each setting."))
    columns = ["certified", "failures", "p_value"]
    table = report[columns].to_dataframe(dim_order=["setting", names.DELTA])[columns]
    text = table.to_string(sparsify=False, float_format=lambda value: f"{value:.2g}")
    click.echo(f"\n{text}")
    click.get_current_context().exit(0 if held else 1)
