"""``dsel demo``: the main job on scikit-learn's digits."""

from typing import Any

import click
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from dsel.cli.running import run_options, run_plan
from dsel.search.plan import plan_search

N_LABELED = 1000
GRID = {
    "C": [2.0**power for power in range(-2, 11, 3)],
    "gamma": [2.0**power for power in range(-16, -3, 3)],
}


@click.command
@click.option("--delta", default=0.05, show_default=True, help="Chance of failure.")
@run_options
def command(delta: float, seed: int, **options: Any) -> None:
    """Select an SVM for scikit-learn's digits, and say what is guaranteed.

    1,000 of the 1,797 images keep their labels, the others are the unlabeled pool;
    their labels are used for nothing but the line that begins with Observed.
    """
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    labeled, others = order[:N_LABELED], order[N_LABELED:]

    def observed(outcome: Any) -> str:
        wrong = float(np.mean(outcome.model.predict(X[others]) != y[others]))
        return (
            f"Observed {100 * wrong:.1f}% on the pool's true labels, which nothing "
            f"above has seen"
        )

    plan = plan_search(
        SVC(), GRID, X[labeled], y[labeled], X[others], delta=delta, random_state=seed
    )
    run_plan(plan, after=observed, **options)
