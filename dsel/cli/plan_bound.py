"""``dsel plan-bound``: the bounds to expect, before any label is used."""

from typing import Any

import click

from dsel import names
from dsel.cli.commands.plan_bound import ASSUMED_ERROR
from dsel.cli.models import count_default_candidates
from dsel.cli.options import OutputOptions
from dsel.cli.running import numbers_in, print_facts, print_json
from dsel.results.renderings import render_lines
from dsel.search.planning.plan_bound import plan_bound


def run(
    n_labeled: int,
    n_unlabeled: int,
    candidates: int | None,
    folds: str,
    output: OutputOptions,
    **assumed: Any,
) -> None:
    """Print the expected bound of each certificate for these numbers of rows."""
    is_regression = assumed["error_quantile"] is not None
    if assumed["error"] is None and not is_regression:
        assumed["error"] = ASSUMED_ERROR
    if candidates is None:
        candidates = count_default_candidates(is_regression=is_regression)
    plan = plan_bound(
        n_labeled,
        n_unlabeled,
        n_candidates=candidates,
        cv=numbers_in(folds, int, "--folds"),
        **assumed,
    )
    if not is_regression:
        plan = plan.dropna(names.CERTIFICATE, how="all", subset=[names.BOUND])
    if output.as_json:
        sizes = plan.data_vars.items()
        numbers_of_all = {str(n): v.item() for n, v in sizes if not v.dims}
        rows = plan.drop_vars(numbers_of_all).to_dataframe().reset_index()
        # No number of rows is enough where the Dataset has -1.
        table = [
            {name: None if value == -1 else value for name, value in row.items()}
            for row in rows.to_dict("records")
        ]
        remarks = plan.attrs["remarks"]
        print_json("plan-bound", **numbers_of_all, table=table, remarks=remarks)
        return
    if output.quiet:
        click.echo("\n\n".join(render_lines(rows) for _, rows in plan.tables()))
    else:
        print_facts(plan.facts())
