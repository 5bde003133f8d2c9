"""``dsel select``: choose a model from files."""

from collections.abc import Sequence
from typing import Any, Final

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dsel import losses
from dsel.cli.encoders import with_types_of
from dsel.cli.models import MODELS, build, show_failure
from dsel.cli.running import run_options, run_plan
from dsel.data.labeled import check_labels
from dsel.data.open import open_pool
from dsel.data.tables import CSV, PARQUET, read_table
from dsel.errors import AllFitsFailedError
from dsel.results.certificate import ALL_ROWS, CERTIFICATES, ONE_FOLD
from dsel.search.plan import plan_search

FORMS: Final = (
    "error, recall:CLASS, precision:CLASS, balanced, or cost:TRUE>ANSWER=5,..."
)
REPORT: Final = "report"


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
@click.option(
    "--loss",
    multiple=True,
    help=f"What is certified in the place of errors: {FORMS}; and report, alone or "
    "beside one of them: recall and precision of every class, too.",
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
    loss: tuple[str, ...],
    certificate: str | None,
    deploy: str | None,
    cv: int | None,
    delta: float,
    seed: int,
    **options: Any,
) -> None:
    """Choose a model from labeled rows and a pool, with an error bound.

    LABELED is a CSV, Parquet, npz, svmlight or zarr table.
    """
    if target is None and labeled.lower().endswith((*CSV, *PARQUET)):
        raise click.UsageError(
            f"any column of {labeled!r} may hold the labels; name it by --target."
        )
    table = read_table(labeled, target=target)
    if table.y is None:
        raise click.UsageError(
            f"LABELED {labeled!r} holds no labels; name their array by --target."
        )
    X, rows = table.X, None
    if table.columns is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(table.columns))  # so that names are compared
    if pool is not None:
        rows = open_pool(pool)
        X = with_types_of(X, rows)
    estimator, values, facts = build(model, grid, X)
    plan = plan_search(
        estimator, values, X, table.y, rows, certificate=certificate, deploy=deploy,
        cv=cv, delta=delta, loss=parse_loss(loss, table.y), report=REPORT in loss,
        random_state=seed,
    )  # fmt: skip
    try:
        run_plan(plan, facts=facts, **options)
    except AllFitsFailedError:
        if ":" in model:
            show_failure(model, estimator, values, X, table.y)
        raise


def parse_loss(texts: Sequence[str], y: NDArray[Any]) -> Any:
    """Return what ``--loss`` means for labels `y`, beside the report."""
    named = [text for text in texts if text != REPORT] or ["error"]
    kind, _, rest = named[0].partition(":")
    if len(named) == 1 and not rest and kind in ("error", "balanced"):
        return losses.balanced() if kind == "balanced" else "error"
    if len(named) == 1 and rest and kind in ("recall", "precision"):
        return getattr(losses, kind)(_label(rest, y))
    if len(named) > 1 or not rest or kind != "cost":
        raise click.UsageError(
            f"--loss must be {FORMS}, and perhaps report beside it, got "
            f"{' and '.join(map(repr, named))}."
        )
    costs = {}
    for part in rest.split(","):
        pair, equals, value = part.rpartition("=")
        true, arrow, answer = pair.partition(">")
        try:
            cost = float(value)
        except ValueError:
            cost = np.nan
        if not (equals and arrow and np.isfinite(cost)):
            raise click.UsageError(
                f"--loss cost: needs parts such as fraud>ok=50 (true class, "
                f"answer, cost), got {part!r}."
            )
        costs[_label(true, y), _label(answer, y)] = cost
    return losses.cost(costs)


def _label(text: str, y: NDArray[Any]) -> Any:
    """Return the class that is written so."""
    classes = np.unique(check_labels(y)).tolist()
    for label in classes:
        if str(label) == text:
            return label
    shown = ", ".join(map(str, classes[:5])) + ", ..." * (len(classes) > 5)
    raise click.UsageError(f"--loss names {text!r}, which is no class ({shown}).")
