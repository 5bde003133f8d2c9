"""``dsel plan-bound``: the bounds to expect, before any label is used."""

import shlex
from collections.abc import Mapping
from typing import Any

import click
import xarray as xr

from dsel import names
from dsel.cli.commands.plan_bound_command import ASSUMED_ERROR
from dsel.cli.named_models import count_default_candidates
from dsel.cli.options import OutputOptions
from dsel.cli.running import SELECT, next_rows, numbers_in, print_json, print_rows
from dsel.cli.stops import with_options
from dsel.results.renderings import render_lines
from dsel.search.planning.plan_bound import NEVER, BoundPlan, plan_bound


def check(
    n_labeled: int,
    n_unlabeled: int,
    candidates: int | None,
    folds: str,
    queries: int,
    **assumed: Any,
) -> BoundPlan:
    """Return the expected bounds; raise where an option is wrong."""
    is_regression = assumed["error_quantile"] is not None
    if assumed["error"] is None and not is_regression:
        assumed["error"] = ASSUMED_ERROR
    if candidates is None:
        candidates = count_default_candidates(is_regression=is_regression)
    assumed.pop("output", None)
    return plan_bound(
        n_labeled,
        n_unlabeled,
        n_candidates=candidates,
        cv=numbers_in(folds, int, "--folds"),
        n_queries=queries,
        **assumed,
    )


def run(output: OutputOptions, **options: Any) -> None:
    """Print the expected bound of each certificate for these numbers of rows."""
    plan = check(**options)
    if options["error_quantile"] is None:
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
        print_rows(plan.shown_rows())
        steps = *_reachable_command(plan, options), SELECT.format("UNLABELED")
        print_rows(next_rows(*steps))


def _reachable_command(
    plan: xr.Dataset, assumed: Mapping[str, float | None]
) -> list[str]:
    """Return the command with an error for which the wanted bound can be reached.

    It is [] where the bound can be reached already, or for no error.
    """
    wanted, disagreement = assumed["wanted"], assumed["disagreement"]
    needed = plan.get("labels_needed")
    if wanted is None or needed is None or (needed != NEVER).any():
        return []
    # By default the disagreement is a third of the error, or somewhat more.
    error = (wanted - (disagreement or 0.0)) / 2
    if error <= 0:
        return []
    words = click.get_current_context().obj
    return [
        shlex.join(["dsel", *with_options(words, [("--error", f"{error:.2g}")])])
        + " for a model whose error is so small that this bound can be reached"
    ]
