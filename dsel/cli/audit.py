"""``dsel audit``: count failures of certificates on data whose truth is known."""

import click

from dsel import names
from dsel.auditing.audit import audit, is_sound
from dsel.cli.exit_status import ExitStatus
from dsel.cli.running import numbers
from dsel.rounded_texts import wrap_line


@click.command
@click.argument("settings", nargs=-1)
@click.option(
    "--delta",
    default="0.5,0.2,0.05",
    show_default=True,
    help="One or more, separated by commas.",
)
@click.option("--draws", default=500, show_default=True, help="Draws of each setting.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the draws.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    help="Number of processes; 1 by default.",
)
def command(
    settings: tuple[str, ...], delta: str, draws: int, seed: int, jobs: int
) -> None:
    """Run searches on simulated data and count how often their bounds fail.

    SETTINGS are names from the printed table; by default all are audited, which takes
    an hour or more at 500 draws. The exit status is 3 if a bound fails too often.
    """
    report = audit(
        settings or None,
        delta=numbers(delta, float, "--delta"),
        n_draws=draws,
        random_state=seed,
        n_jobs=jobs,
    )
    held = is_sound(report)
    verdict = (
        "Every certificate held"
        if held
        else "A certificate FAILED too often, or a control was not caught,"
    )
    n_draws = int(report["n_draws"])
    click.echo(wrap_line(f"{verdict} in {n_draws:,} draws of each setting."))
    columns = ["certified", "failures", "p_value"]
    table = report[columns].to_dataframe(dim_order=["setting", names.DELTA])[columns]
    text = table.to_string(sparsify=False, float_format=lambda value: f"{value:.2g}")
    click.echo(f"\n{text}")
    click.get_current_context().exit(ExitStatus.DONE if held else ExitStatus.REFUTED)
