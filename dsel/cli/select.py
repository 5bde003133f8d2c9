"""``dsel select``: choose a model from files."""

from typing import Any

import click
import numpy as np
import pandas as pd

from dsel.cli.encoders import with_types_of
from dsel.cli.losses import FORMS, parse_loss
from dsel.cli.models import MODELS, build
from dsel.cli.running import run_options, run_plan, show
from dsel.data.open import open_pool
from dsel.data.tables import CSV, PARQUET, Table, read_table
from dsel.results.certificate import ALL_ROWS, CERTIFICATES, ONE_FOLD
from dsel.search.plan import plan_search


@click.command
@click.argument("labeled", type=click.Path(exists=True))
@click.option(
    "--target",
    help="Column of the labels, such as label; npz and zarr have theirs in y.",
)
@click.option(
    "--pool",
    help="Unlabeled rows: a zarr pool, an .npy file, a Parquet file or a folder of "
    "them, or a URL of one. `dsel pool build` makes one of a table.",
)
@click.option(
    "--model",
    default="svm",
    show_default=True,
    help=f"{', '.join(MODELS)}, behind encoders that the table needs; or "
    "MODULE:OBJECT, an estimator or a function that makes one.",
)
@click.option(
    "--grid",
    multiple=True,
    help="Values of a parameter: C=0.1,1,10 or C=2^-2..2^12:4 (start..stop:factor). "
    "May be given several times.",
)
@click.option(
    "--certificate",
    type=click.Choice(CERTIFICATES),
    help="How the error is bounded; nested by default.",
)
@click.option(
    "--deploy",
    type=click.Choice([ONE_FOLD, ALL_ROWS]),
    help="Which model of a nested search; that of one_fold has the smaller bound.",
)
@click.option("--loss", help=f"What is certified in the place of errors: {FORMS}")
@click.option(
    "--report", is_flag=True, help="Certify recall and precision of every class, too."
)
@click.option("--cv", type=int, help="Random folds: 5 by default.")
@click.option("--delta", default=0.05, show_default=True, help="Chance of failure.")
@run_options
def command(
    labeled: str,
    target: str | None,
    pool: str | None,
    model: str,
    grid: tuple[str, ...],
    certificate: str | None,
    deploy: str | None,
    cv: int | None,
    delta: float,
    loss: str | None,
    report: bool,
    seed: int,
    **options: Any,
) -> None:
    """Choose a model from labeled rows and a pool, with an error bound.

    LABELED is a CSV, Parquet, npz, svmlight or zarr table.
    """
    table = _labeled_table(labeled, target)
    X = table.X
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))  # so that names are compared
    rows = None
    if pool is not None:
        rows = open_pool(pool)
        X = with_types_of(X, rows)
    estimator, values, facts = build(model, grid, X)
    plan = plan_search(
        estimator, values, X, table.y, rows, certificate=certificate, deploy=deploy,
        cv=cv, delta=delta, loss=parse_loss(loss, table.y), report=report,
        random_state=seed,
    )  # fmt: skip
    outcome = run_plan(plan, **options)
    show(plan, outcome, quiet=options["quiet"], out=options["out"], facts=facts)


def _labeled_table(path: str, target: str | None) -> Table:
    """Read LABELED, or say that --target must name its labels."""
    if target is None and path.lower().endswith((*CSV, *PARQUET)):
        raise click.UsageError(
            f"any column of {path!r} may hold the labels; name it by --target."
        )
    table = read_table(path, target=target)
    if table.y is None:
        raise click.UsageError(
            f"LABELED {path!r} holds no labels; name their array by --target."
        )
    return table
