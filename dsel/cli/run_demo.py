"""``dsel demo``: a search on scikit-learn's images of digits."""

from typing import Any, Final

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from dsel.cli.options import ClusterOptions, RunOutput
from dsel.cli.running import run_plan
from dsel.search.planning.plan_search import plan_search

N_LABELED: Final = 500
GRID: Final = {
    "C": [2.0**power for power in range(-2, 11, 3)],
    "gamma": [2.0**power for power in range(-16, -3, 3)],
}


def run(
    seed: int, delta: float, cluster: ClusterOptions, output: RunOutput, out: str | None
) -> None:
    """Select an SVM for scikit-learn's digits, and bound its error."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    labeled, unlabeled = order[:N_LABELED], order[N_LABELED:]

    def observe_error(outcome: Any) -> tuple[str, str]:
        wrong = float(np.mean(outcome.model.predict(X[unlabeled]) != y[unlabeled]))
        return "", (
            f"Observed error on the pool: {100 * wrong:.1f}%, by its true labels, "
            f"which were used for nothing else"
        )

    plan = plan_search(
        SVC(),
        GRID,
        X[labeled],
        y[labeled],
        X[unlabeled],
        delta=delta,
        random_state=seed,
    )
    run_plan(plan, after=observe_error, cluster=cluster, output=output, out=out)
