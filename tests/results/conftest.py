"""A small cube for the tests of the room."""

from types import SimpleNamespace

import numpy as np
import pytest

from dsel.results.assumptions import Assumption, full_list
from dsel.results.cube import grid_axes, make_cube, with_criteria


def terms(start=0.0):
    """Return what a criterion says: estimates counting up from `start`."""
    estimate = np.arange(6) + start
    half = estimate / 2
    return SimpleNamespace(value=estimate, label_term=half, disagreement_term=half)


@pytest.fixture
def axes():
    return grid_axes({"kernel": ["rbf", "linear"], "C": [1, 10, 100]})


@pytest.fixture
def cube(axes, rng):
    errors = rng.integers(0, 80, (6, 5))
    errors[3, 2] = -1
    values = {
        "fold_errors": errors, "fold_rows": np.full(5, 20),
        "fold_answers": np.full((6, 5), 80), "train_rows": np.full(5, 80),
        "status": np.array([0, 0, 1, 2, 3, 0]),
        "message": ["", "", "", "it raised", "", ""],
        "fit_seconds": rng.random((6, 5)), "n_labeled": 100, "n_unlabeled": 1000,
        "n_classes": 2, "equal_rows": 3, "outer_candidate": np.arange(5),
        "outer_errors": np.arange(5),
        "outer_disagreements": np.array([1, 2, 3, 4, -1]),
    }  # fmt: skip
    made = make_cube(
        axes, {"fold": 5}, values,
        assumptions=full_list([Assumption("A4", "declared", "half of the pool")]),
        attributes={"seeds": {"folds": 3}, "is_pruned": True, "client": None},
    )  # fmt: skip
    told = {"cv_error": terms(1.0), "nested": terms()}
    return with_criteria(made, told, candidate_deltas={"nested": 0.01}, delta=0.05)
