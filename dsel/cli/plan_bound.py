"""``dsel plan-bound``: what bound to expect, before a single label is used."""

import json
from typing import Any

import click
import xarray as xr

from dsel import names
from dsel.cli.options import numbers
from dsel.report.text import text_table
from dsel.results.rounding import confidence
from dsel.searches.expected_terms import GROWTH
from dsel.searches.plan_bound import plan_bound

REMARKS = {
    "transductive": "transductive: the error on the counted pool rows only",
    "holdout_bound": "holdout_bound: a model trained without the part held out",
    "best_fold_model": "best_fold_model: the best fold's own model, trained without it",
    "best_fold": "best_fold: for --criterion cv_error --certificate "
    "best_fold_of_leader",
    "nested": "nested: the model of all rows, for --certificate nested",
    "nested_fold_model": "nested_fold_model: what was chosen without the best fold",
    "nested_vote": "nested_vote: the vote of what was chosen without each fold",
    "select_then_certify": "select_then_certify: a fifth of the labels certifies",
}


@click.command
@click.argument("n_labeled", type=int)
@click.argument("n_unlabeled", type=int)
@click.option("--candidates", type=int, default=225, show_default=True)
@click.option("--delta", default=0.05, show_default=True, help="Chance of failure.")
@click.option(
    "--error", "expected_error", default=0.1, show_default=True, help="Error expected."
)
@click.option(
    "--disagreement",
    "expected_disagreement",
    default=0.02,
    show_default=True,
    help="How often full model and fold model of ten folds are expected to differ.",
)
@click.option(
    "--growth",
    "disagreement_growth",
    default=GROWTH,
    show_default=True,
    help="Power of its growth with the rows that a fold's model has not seen.",
)
@click.option(
    "--folds", default="2,3,5,10", show_default=True, help="Numbers of folds to try."
)
@click.option("--wanted", type=float, help="A bound: how many rows would it take?")
@click.option("--figure", type=click.Path(dir_okay=False), help="Draw it to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    n_labeled: int,
    n_unlabeled: int,
    candidates: int,
    folds: str,
    wanted: float | None,
    figure: str | None,
    as_json: bool,
    **expected: float,
) -> None:
    """Say what each certificate would give for N_LABELED and N_UNLABELED rows."""
    plan = plan_bound(
        n_labeled,
        n_unlabeled,
        candidates,
        n_folds=tuple(numbers(folds, int, "--folds")),
        wanted_bound=wanted,
        **expected,
    )
    if figure:
        _draw(plan, figure)
    if as_json:
        click.echo(json.dumps(facts_of(plan), allow_nan=False))
        return
    click.echo("\n".join(in_words(plan)))


def _draw(plan: xr.Dataset, path: str) -> None:
    from dsel.plots.bound_plan import plot_bound_plan

    figure = plot_bound_plan(plan).get_figure(root=True)
    assert figure is not None
    figure.savefig(path)


def facts_of(plan: xr.Dataset) -> dict[str, Any]:
    """Return the plan as plain values; null where there is no number."""
    table = {
        str(certificate): {
            str(k): _number(plan[names.BOUND].sel(certificate=certificate, n_folds=k))
            for k in plan[names.N_FOLDS].values
        }
        for certificate in plan[names.CERTIFICATE].values
    }
    facts = {
        "bound": table,
        "recommended": str(plan["recommended"].values),
        "recommended_n_folds": int(plan["recommended_n_folds"]),
        "recommended_certify_share": _number(plan["recommended_certify_share"]),
        "recommended_bound": _number(plan["recommended_bound"]),
        "delta": float(plan[names.DELTA]),
    }
    for needs in ("labels_needed", "pool_rows_needed"):
        if needs in plan:
            facts[needs] = {
                str(row[names.CERTIFICATE].values): row.values.tolist()
                for row in plan[needs]
            }
    return facts


def _number(value: xr.DataArray) -> float | None:
    number = float(value)
    return number if number == number else None  # NaN is not itself


def in_words(plan: xr.Dataset) -> list[str]:
    """Return the table and the recommendation as lines."""
    chance = confidence(float(plan[names.DELTA]))
    lines = [
        f"Bound on the error with probability {chance}, on average, for "
        f"{int(plan[names.N_LABELED]):,} labeled rows,",
        f"{int(plan[names.N_UNLABELED]):,} pool rows and "
        f"{int(plan[names.N_CANDIDATES]):,} candidates, if the error is "
        f"{float(plan['expected_error']):g} and models differ on "
        f"{float(plan['expected_disagreement']):g} in ten folds, more in fewer:",
        "",
        *_table(plan, names.BOUND, "folds", _as_bound),
        "",
        *_recommendation(plan),
    ]
    for needs, title in (
        ("labels_needed", "labeled rows"),
        ("pool_rows_needed", "pool rows"),
    ):
        if needs in plan:
            wanted = float(plan["wanted_bound"])
            lines += ["", f"For a bound of {wanted:g}, {title} needed:", ""]
            lines += _table(plan, needs, "folds", _as_rows)
    return [*lines, "", *(f"  {remark}" for remark in REMARKS.values())]


def _table(plan: xr.Dataset, variable: str, title: str, show: Any) -> list[str]:
    head = (title, *map(str, plan[names.N_FOLDS].values))
    rows = (
        (str(row[names.CERTIFICATE].values), *map(show, row.values))
        for row in plan[variable].transpose(names.CERTIFICATE, names.N_FOLDS)
    )
    return list(text_table([head, *rows], numbers=range(1, len(head))))


def _as_bound(value: float) -> str:
    return "-" if value != value else f"{min(1.0, value):.3f}"  # an average, no limit


def _as_rows(value: int) -> str:
    return "never" if value < 0 else f"{value:,}"


def _recommendation(plan: xr.Dataset) -> list[str]:
    folds = int(plan["recommended_n_folds"])
    how = (
        f"with {folds} folds"
        if folds
        else f"with {100 * float(plan['recommended_certify_share']):.0f} % of the "
        f"labels held out"
    )
    bound = min(1.0, float(plan["recommended_bound"]))
    lines = [f"Recommended: {plan['recommended'].values!s} {how}, about {bound:.3f}."]
    if bound > 2 * float(plan["expected_error"]):
        lines.append(
            "This is loose: with so few labels every bound that holds is. More labels "
            "bring it down; --wanted says how many."
        )
    return lines
