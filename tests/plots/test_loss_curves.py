"""The curves of a least-squares search."""

import numpy as np
import pytest
from dsel.plots.loss_curves import loss_curves_data, plot_loss_curves

from dsel.least_squares import LeastSquaresSearch


@pytest.fixture
def cube(rng):
    X = rng.uniform(-2, 2, (30, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    search = LeastSquaresSearch([0.3, 1.0], [10.0, 1e-3, 1e-1], cv=5, random_state=0)
    return search.fit(X, y).results_


def test_loss_curves_data__shows_the_chosen_width_in_order(cube):
    data = loss_curves_data(cube)
    assert data.regularizations.tolist() == [1e-3, 1e-1, 10.0]
    assert list(data.estimates) == ["loo", "gcv", "holdout", "kfold"]
    expected = cube["estimate"].sel(criterion="loo", width=data.width)
    ordered = expected.sortby("regularization").values
    np.testing.assert_array_equal(data.estimates["loo"], ordered)
    assert data.estimates["loo"].min() == float(expected.min())


def test_plot_loss_curves__draws_every_estimate(cube):
    pytest.importorskip("matplotlib").use("agg")
    axes = plot_loss_curves(cube, criterion="gcv")
    assert [line.get_label() for line in axes.lines[:4]] == [
        "loo", "gcv", "holdout", "kfold",
    ]  # fmt: skip
    assert "by gcv" in axes.get_title("left")
    assert "bound" not in axes.get_title("left")
