"""``dsel select``: choose a model from files."""

from typing import Any

import click
import numpy as np
from scipy import sparse

from dsel.cli.models import ESTIMATORS, SCALERS, build
from dsel.cli.options import (
    cluster_options,
    connected,
    is_verbose,
    output_options,
    storage_options,
    store_arguments,
    store_options,
)
from dsel.cli.show import show
from dsel.data.open import open_pool
from dsel.data.parquet import has_parquet
from dsel.data.tables import CSV, PARQUET, Table, read_table
from dsel.searches import PoolReading, execute, plan_search
from dsel.searches.certify import search_and_certify
from dsel.searches.plan import OPTIONS


@click.command
@click.argument("labeled", type=click.Path(exists=True))
@click.option(
    "--pool",
    help="Unlabeled rows: a zarr pool, an .npy file, a Parquet file or a folder of "
    "them, or a URL of one. `dsel pool build` makes a zarr pool of a table of numbers.",
)
@click.option(
    "--match-columns",
    is_flag=True,
    help="Of a Parquet pool read the columns that LABELED has, in its order, and no "
    "others, such as numbers of rows.",
)
@click.option(
    "--target",
    help="Column of the labels, such as label; npz and zarr have theirs in y.",
)
@click.option(
    "--split",
    is_flag=True,
    help="Take the file's own division: rows with split 0 are labeled, the others are "
    "the pool, and their labels are used only to print the observed error.",
)
@click.option(
    "--model",
    default="svm",
    show_default=True,
    help=f"One of {', '.join(sorted(ESTIMATORS))}; or MODULE:OBJECT, an estimator or a "
    "function that makes one, such as a pipeline that encodes columns of text.",
)
@click.option("--scale", type=click.Choice(sorted(SCALERS)), help="Scale features.")
@click.option(
    "--grid",
    multiple=True,
    help="Values of a parameter: C=0.1,1,10 or C=2^-2..2^12:4 (start..stop:factor). "
    "May be given several times.",
)
@click.option("--criterion", help="What ranks: cv_bound, cv_error, holdout_bound, ...")
@click.option(
    "--certificate",
    help="What is reported: by default the criterion, or auto with a pool: what is "
    "expected to be smallest; nested, nested_fold_model, nested_vote search without "
    "each fold.",
)
@click.option("--delta", default=0.05, show_default=True, help="Chance of failure.")
@click.option(
    "--label-share",
    type=float,
    default=None,
    help="Part of --delta for labeled rows: by default 0.5, more if auto or nested.",
)
@click.option(
    "--reserve",
    default=0.0,
    show_default=True,
    help="Chance of failure beside --delta, for what later runs with this --out add.",
)
@click.option(
    "--cv", type=int, default=None, help="Random folds: by default 10; 3 to 5 if auto."
)
@click.option(
    "--certify-rows",
    type=float,
    help="Part of the labeled rows, such as 0.2, that is split off and certifies the "
    "winner: the tightest number where labels are few and candidates many.",
)
@click.option(
    "--duplicates",
    type=click.Choice(["refuse", "exclude", "keep"]),
    default="refuse",
    show_default=True,
    help="What pool rows equal to labeled rows are.",
)
@click.option(
    "--max-unlabeled", type=int, help="Use about that many pool rows at most."
)
@click.option(
    "--stop-within",
    type=float,
    help="Read the pool only until the bound is that near to what all would give.",
)
@click.option(
    "--stages",
    "n_stages",
    default=10,
    show_default=True,
    help="Times at which reading may stop; 0 lets it stop anywhere, for larger bounds.",
)
@click.option(
    "--pool-is-shuffled",
    is_flag=True,
    help="The pool's rows stand in random order: read its first rows only.",
)
@click.option("--exhaustive", is_flag=True, help="Fit and score every candidate.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@store_options
@cluster_options
@output_options
def command(labeled: str, **options: Any) -> None:
    """Choose a model from labeled rows and a pool, with an error bound.

    LABELED is a CSV, Parquet, npz, svmlight or zarr table.
    """
    table = _labeled_table(labeled, options["target"])
    X, y, pool, hidden = _divide(table, options)
    if sparse.issparse(X):
        _check_sparse(X, pool, options)
    estimator, grid = build(options["model"], options["scale"], options["grid"])
    rows = estimator, grid, X, y, pool
    given = _given(options)
    certify_rows = options["certify_rows"]
    if options["dry_run"]:
        # What certifies later is known only when its part has been split off.
        later = {} if certify_rows is None else {"pool": None, "certificate": None}
        click.echo(
            plan_search(estimator, grid, X, y, **{"pool": pool, **given, **later})
        )
        return
    # What is wrong with the options is said before any worker starts.
    running = store_arguments(options)
    plan = plan_search(*rows, **given) if certify_rows is None else None
    n_unlabeled = 0 if pool is None else open_pool(pool).n_rows
    running["verbose"] = is_verbose(options)
    with connected(options) as client:
        if plan is not None:
            outcome = execute(plan, client, with_model=True, **running)
        else:
            plan, outcome, _ = search_and_certify(
                *rows,
                certify_rows=certify_rows,
                running=running,
                client=client,
                **given,
            )
    show(
        plan, outcome, n_labeled=len(y), n_unlabeled=n_unlabeled,
        as_json=options["as_json"], out=options["out"], hidden=hidden,
    )  # fmt: skip


def _check_sparse(X: Any, pool: Any, options: dict[str, Any]) -> None:
    """Raise where rows of a svmlight file cannot be scaled, or are not the pool's."""
    if options["scale"]:
        raise click.UsageError(
            "--scale would fill sparse rows with numbers; leave it out, or name a "
            "pipeline with MaxAbsScaler by --model MODULE:OBJECT."
        )
    found = X.shape[1] if pool is None else open_pool(pool).n_columns
    if found != X.shape[1]:
        raise click.UsageError(
            f"LABELED has {X.shape[1]} columns and the pool {found}: svmlight files do "
            "not say how many there are, nor whether they count from 0. Read both by "
            "one call of sklearn.datasets.load_svmlight_files, and search in Python."
        )


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


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as `plan_search` takes them."""
    if options["reserve"] and options["certify_rows"] is not None:
        raise click.UsageError(
            "--reserve is for what later runs add to a search; --certify-rows "
            "certifies one model only, leave out one of the two."
        )
    return {
        **{name: options[name] for name in OPTIONS if name in options},
        "prune": not options["exhaustive"],
        "reading": PoolReading(
            max_rows=options["max_unlabeled"],
            stop_within=options["stop_within"],
            n_stages=options["n_stages"],
            is_shuffled=options["pool_is_shuffled"],
        ),
    }


def _divide(table: Table, options: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return labeled rows, their labels, the pool, and what checks the choice."""
    assert table.y is not None, "_labeled_table refuses others"
    if not options["split"]:
        return _framed(table, table.X), table.y, _pool(table, options), None
    if options["pool"] or table.split is None:
        raise click.UsageError(
            "--split needs a file with an array `split`, and no --pool beside it."
        )
    first, others = _parts(table.split, table.X.shape[0])
    rows = table.X[others]
    X = _framed(table, table.X[first])
    return X, table.y[first], _framed(table, rows), (rows, table.y[others])


def _parts(split: Any, n_rows: int) -> tuple[Any, Any]:
    """Return the rows with split 0, and all others."""
    if split.shape != (n_rows,):
        raise click.UsageError(
            f"--split needs an array `split` of one number for each of the {n_rows} "
            f"rows, found shape {split.shape}."
        )
    parts = np.flatnonzero(split == 0), np.flatnonzero(split != 0)
    if not all(map(len, parts)):
        raise click.UsageError(
            "--split needs rows with split 0, which are labeled, and others, which are "
            f"the pool; found {len(parts[0])} and {len(parts[1])}."
        )
    return parts


def _pool(table: Table, options: dict[str, Any]) -> Any:
    where, reach = options["pool"], storage_options(options)
    if options["match_columns"]:
        if where is None or not has_parquet(where, reach or {}):
            raise click.UsageError(
                "--match-columns needs a --pool of Parquet files: of others dsel reads "
                "all columns."
            )
        return open_pool(where, columns=table.columns, storage_options=reach)
    at_url = where is not None and "://" in where
    return open_pool(where, storage_options=reach) if at_url else where


def _framed(table: Table, rows: Any) -> Any:
    """Give arrays their column names, so that the pool's are compared."""
    if table.columns is None or not isinstance(rows, np.ndarray):
        return rows
    from pandas import DataFrame

    return DataFrame(rows, columns=list(table.columns))
