"""``dsel demo``: the main job on scikit-learn's digits."""

from typing import Any

import click
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from dsel.cli.options import (
    cluster_options,
    connected,
    is_verbose,
    output_options,
    store_arguments,
    store_options,
)
from dsel.cli.show import show
from dsel.searches import execute, plan_search

N_LABELED = 1000
GRID = {
    "C": [2.0**power for power in range(-2, 11, 3)],
    "gamma": [2.0**power for power in range(-16, -3, 3)],
}


@click.command
@click.option("--delta", default=0.05, show_default=True, help="Chance of failure.")
@click.option("--seed", type=int, default=0, show_default=True)
@store_options
@cluster_options
@output_options
def command(delta: float, seed: int, **options: Any) -> None:
    """Select an SVM for scikit-learn's digits, and say what is guaranteed.

    1,000 of the 1,797 images keep their labels, the others are the unlabeled pool;
    their labels are used for nothing but the last line.
    """
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    labeled, others = order[:N_LABELED], order[N_LABELED:]
    plan = plan_search(
        SVC(), GRID, X[labeled], y[labeled], X[others], delta=delta, duplicates="keep",
        random_state=seed,
    )  # fmt: skip
    if not options["as_json"]:
        click.echo(f"{plan}\n")
    running = store_arguments(options)  # refused before any worker starts
    with connected(options) as client:
        outcome = execute(
            plan, client, **running, verbose=is_verbose(options), with_model=True
        )
    show(
        plan, outcome, n_labeled=len(labeled), n_unlabeled=len(others),
        as_json=options["as_json"], out=options["out"],
        hidden=(X[others], y[others]),
    )  # fmt: skip
