"""Time of the default search beside `GridSearchCV(cv=5)`, learner by learner.

    python -m tests.benchmarks.bench_learners [--rows 1000] [--repeats 3]

Both sides get the same candidates, labeled rows and number of jobs, one after the
other in one process, and processes of either have begun before anything is timed. The
default search makes about 1.6 times the fits, each on three quarters of the rows, and
has no pool here: a pass over one is what `bench_pool_pass` times. Figures are medians;
processor time is that of this process and of all that it has started.
"""

import argparse

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import dsel
from tests.benchmarks.measuring import in_turn

JOBS = 2
LEARNERS = {
    "kernel SVM": (SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.003, 0.01, 0.03]}),
    "logistic": (
        LogisticRegression(max_iter=2000),
        {"C": np.logspace(-3, 3, 9).tolist()},
    ),
    "k-NN": (
        KNeighborsClassifier(),
        {"n_neighbors": [1, 3, 5, 7, 9, 11, 15, 21, 31]},
    ),
    "forest": (
        RandomForestClassifier(100, random_state=0),
        {"max_features": [2, 5, 10], "min_samples_leaf": [1, 3, 10]},
    ),
    "boosted trees": (
        GradientBoostingClassifier(random_state=0),
        {"max_depth": [1, 2, 3], "n_estimators": [30, 60, 100]},
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=LEARNERS)
    given = parser.parse_args()
    X, y = make_classification(
        given.rows, 20, n_informative=8, flip_y=0.1, random_state=0
    )
    print(f"{given.rows} rows, 9 candidates, medians of {given.repeats}; wall / CPU s")
    print("learner        GridSearchCV      one job         two jobs     gain  ratio")
    for name in given.learners:
        estimator, grid = LEARNERS[name]

        def search(n_jobs, estimator=estimator, grid=grid):
            made = dsel.SemiSupervisedSearchCV(
                estimator, grid, random_state=0, n_jobs=n_jobs
            )
            return made.fit(X, y)

        def rival(estimator=estimator, grid=grid):
            return GridSearchCV(estimator, grid, cv=5, n_jobs=JOBS).fit(X, y)

        runs = {"grid": rival, "one": lambda: search(1), "two": lambda: search(JOBS)}
        rival(), search(JOBS)  # whatever is started, compiled or imported
        sides = {key: lambda _, run=run: run() for key, run in runs.items()}
        found = in_turn(sides, given.repeats)
        medians = {key: np.median(each, axis=0) for key, each in found.items()}
        wall = {key: each[1] for key, each in medians.items()}
        print(
            f"{name:<14}"
            + "".join(f"{each[1]:7.2f} /{each[0]:6.2f} " for each in medians.values())
            + f"{wall['one'] / wall['two']:6.2f} {wall['two'] / wall['grid']:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
