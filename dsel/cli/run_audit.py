"""``dsel audit``: count failures of certificates on data whose truth is known."""

import click

from dsel import names
from dsel.auditing.audit import audit, is_sound
from dsel.cli.exit_status import ExitStatus
from dsel.cli.printing import say
from dsel.cli.running import numbers_in


def run(
    settings: tuple[str, ...], delta: str, draws: int, seed: int, jobs: int
) -> None:
    """Run searches on simulated data and count how often their bounds fail."""
    report = audit(
        settings or None,
        delta=numbers_in(delta, float, "--delta"),
        n_draws=draws,
        random_state=seed,
        n_jobs=jobs,
    )
    is_held = is_sound(report)
    verdict = (
        "Every certificate held"
        if is_held
        else "A certificate FAILED too often, or a control was not caught,"
    )
    n_draws = int(report["n_draws"])
    say(f"{verdict} in {n_draws:,} draws of each setting.")
    columns = ["certified", "failures", "p_value"]
    table = report[columns].to_dataframe(dim_order=["setting", names.DELTA])[columns]
    text = table.to_string(sparsify=False, float_format=lambda value: f"{value:.2g}")
    click.echo(f"\n{text}")
    click.get_current_context().exit(ExitStatus.DONE if is_held else ExitStatus.REFUTED)
