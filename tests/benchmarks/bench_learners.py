"""Time of the default search beside `GridSearchCV(cv=5)`, learner by learner.

    python -m tests.benchmarks.bench_learners [--rows 1000] [--repeat 3]

Both sides get the same candidates, labeled rows and number of jobs, one after the
other in one process, and processes of either have begun before anything is timed. The
default search makes about 1.6 times the fits, each on three quarters of the rows, and
has no pool here: a pass over one is what `bench_scale` times. Figures are medians;
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
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    X, y = make_classification(
        given.rows, 20, n_informative=8, flip_y=0.1, random_state=0
    )
    print(f"{given.rows} rows, 9 candidates, medians of {given.repeat}; wall / CPU s")
    print("learner        GridSearchCV      one job         two jobs     gain  ratio")
    for name, learner in LEARNERS.items():
        searches = {
            "grid": GridSearchCV(*learner, cv=5, n_jobs=JOBS),
            "one": dsel.SemiSupervisedSearchCV(*learner, random_state=0, n_jobs=1),
            "two": dsel.SemiSupervisedSearchCV(*learner, random_state=0, n_jobs=JOBS),
        }
        sides = {key: lambda _, s=each: s.fit(X, y) for key, each in searches.items()}
        sides["grid"](0), sides["two"](0)  # whatever is started, compiled or imported
        found = in_turn(sides, given.repeat)
        cpu, wall = zip(*(np.median(found[key], axis=0) for key in sides), strict=True)
        seconds = (f"{w:7.2f} /{c:6.2f} " for w, c in zip(wall, cpu, strict=True))
        print(f"{name:<14}{''.join(seconds)}{wall[1] / wall[2]:6.2f} "
              f"{wall[2] / wall[0]:6.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
