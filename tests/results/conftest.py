"""A small cube for the tests of the room."""

from types import SimpleNamespace

import numpy as np
import pytest

from dsel.results import Assumption, add_criterion, fold_axes, grid_axes, make_cube


@pytest.fixture
def judgement():
    """Make what a criterion says: estimates counting up from `start`."""

    def make(start=0.0):
        estimate = np.arange(6) + start
        return SimpleNamespace(
            estimate=estimate, label_term=estimate / 2, disagreement_term=estimate / 2
        )

    return make


@pytest.fixture
def bare_cube(rng):
    axes = grid_axes({"kernel": ["rbf", "linear"], "C": [1, 10, 100]})
    values = {
        "fold_errors": rng.integers(0, 20, (6, 5)),
        "fold_rows": np.full(5, 20),
        "train_rows": np.full(5, 80),
        "full_train_errors": np.arange(6),
        "status": np.array([0, 0, 1, 2, 3, 0]),
        "message": ["", "", "", "it raised", "", ""],
        "fit_seconds": rng.random((6, 5)),
        "n_labeled": 100,
        "n_unlabeled": 1000,
        "n_classes": 2,
    }
    ledger = [Assumption("A2", "checked", "random folds")]
    attributes = {"seeds": {"folds": 3}, "is_pruned": True, "client": None}
    return make_cube(
        axes, fold_axes(5), values, assumptions=ledger, attributes=attributes
    )


@pytest.fixture
def cube(bare_cube, judgement):
    return add_criterion(
        bare_cube, "cv_bound", judgement(), delta_shares=np.full(6, 0.01 / 6),
        delta=0.01, label_share=0.5,
    )  # fmt: skip
