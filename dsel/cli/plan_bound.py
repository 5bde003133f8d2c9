"""``dsel plan-bound``: the bounds to expect, before any label is used."""

from collections.abc import Callable
from typing import Any

import click

from dsel import names
from dsel.cli.commands.plan_bound import ASSUMED_ERROR
from dsel.cli.models import count_default_candidates
from dsel.cli.options import OutputOptions
from dsel.cli.printing import say
from dsel.cli.running import numbers_in, print_json
from dsel.rounded_texts import confidence
from dsel.search.planning.plan_bound import name_row, plan_bound, table_rows


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
    if is_regression:
        _show_tolerances(plan, assumed["error_quantile"], n_unlabeled, output.quiet)
        return
    what = "error" if assumed["class_share"] is None else "misses of the class"
    head = (
        f"Bound on the {what} ({confidence(float(plan[names.DELTA]))}% confidence), on "
        f"average, for {n_labeled:,} labeled rows, {n_unlabeled:,} pool rows and "
        f"{candidates:,} candidates, if it is {100 * assumed['error']:g}%:"
    )
    bounds = _table(
        plan[names.BOUND], lambda n: "-" if n != n else f"{100 * min(1.0, n):.1f}%"
    )
    if output.quiet:
        click.echo(bounds)
    else:
        say(head)
        click.echo(f"\n{bounds}\n")
        for remark in plan.attrs["remarks"]:
            say(remark)
    wanted, titles = assumed["wanted"], {"labels": "labeled", "pool_rows": "pool"}
    for kind, title in titles.items():
        needed = plan.get(f"{kind}_needed")
        if needed is not None and (needed >= 0).any():
            click.echo(f"\nFor a bound of {100 * wanted:g}%, {title} rows needed:\n")
            click.echo(_table(needed, lambda n: "never" if n < 0 else f"{n:,}"))
        elif needed is not None and wanted > assumed["error"]:
            click.echo(
                f"\nNo number of {title} rows gives a bound of {100 * wanted:g}%."
            )
    if not output.quiet:
        _explain_rows(plan)


def _show_tolerances(plan: Any, share: float, n_unlabeled: int, is_quiet: bool) -> None:
    """Print the rows that a finite tolerance needs, and its quantile of residuals."""
    level, n = confidence(float(plan[names.DELTA])), int(plan[names.N_LABELED])
    head = (
        f"Labeled rows from which on there is a finite bound of how far "
        f"{100 * share:.6g}% of predictions are off ({level}% confidence), with "
        f"{int(plan[names.N_CANDIDATES]):,} candidates and {n_unlabeled:,} pool rows:"
    )
    needed = _table(plan["labels_needed"], lambda n: f"{n:,}")
    if is_quiet:
        click.echo(needed)
        return
    say(head)
    click.echo(f"\n{needed}\n")
    for remark in plan.attrs["remarks"]:
        say(f"{remark} With {n:,} labeled rows:")
    quantiles = _table(
        plan["residual_quantile"], lambda q: "none" if q != q else f"{100 * q:.1f}%"
    )
    click.echo(f"\n{quantiles}")
    _explain_rows(plan)


def _explain_rows(plan: Any) -> None:
    """Print the meaning of each row of the table."""
    click.echo()
    rows = table_rows()
    for certificate in plan[names.CERTIFICATE].values.tolist():
        say(f"  {name_row(certificate):<22} {rows[certificate].text}", indent=25)


def _table(values: Any, show: Callable[[Any], str]) -> str:
    """Return a table as text: certificates in rows, numbers of folds in columns."""
    table = values.transpose(names.CERTIFICATE, names.N_FOLDS).to_pandas()
    table = table.rename(index=name_row)
    text: str = table.map(show).rename_axis(index=None, columns="folds").to_string()
    return text
