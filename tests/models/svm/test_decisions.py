import numpy as np
import pytest

from dsel.kernels.rbf import Rbf
from dsel.models.svm.decisions import DecisionWeights, Machines, class_products

N_ROWS, N_MODELS = 60, 2
STARTS = np.arange(4) * 200


@pytest.fixture
def machines(rng):
    """Three classes of 200 rows each, of which few speak in any decision."""
    coefs = rng.normal(size=(600, 2, N_MODELS)) * 10.0 ** rng.integers(
        0, 4, (600, 1, 1)
    )
    coefs[rng.random(coefs.shape) < 0.8] = 0.0
    none = np.zeros((3, N_MODELS))
    return Machines(
        0, -1, Rbf(1.0), (0, 1), np.arange(N_MODELS), np.arange(3), np.arange(600),
        np.arange(4) * 200, coefs, rng.normal(size=(3, N_MODELS)),
        none.astype(int), none[0].astype(bool), np.ones(3),
    )  # fmt: skip


def decisions_of(duals, values):
    products = class_products(duals, values)
    return np.stack(
        [
            products[i, :, j - 1] + products[j, :, i] + duals.machines.offsets[p]
            for p, (i, j) in enumerate(duals.machines.pairs)
        ]
    ).astype(float)


def exact_decisions_of(machines, values):
    coefs, values = machines.coefs.astype(np.longdouble), values.astype(np.longdouble)
    rows = [slice(200 * code, 200 * code + 200) for code in range(3)]
    return np.stack(
        [
            values[:, rows[i]] @ coefs[rows[i], j - 1]
            + values[:, rows[j]] @ coefs[rows[j], i]
            + machines.offsets[p]
            for p, (i, j) in enumerate(machines.pairs)
        ]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits__bound_the_error_and_are_not_idle(machines, rng, dtype):
    values = np.exp(-rng.exponential(3.0, (N_ROWS, 600)))
    duals = DecisionWeights.from_machines(machines, np.arange(600), STARTS)
    duals = duals.in_float32 if dtype == np.float32 else duals
    gap = decisions_of(duals, values.astype(dtype))
    gap = gap - exact_decisions_of(machines, values)
    limits = duals.limits(np.ones(N_ROWS), np.zeros(N_ROWS))
    assert (np.abs(gap) <= limits).all()
    # A bound by the number of columns would be five times as large.
    unit = np.finfo(dtype).eps * (1.0 if dtype == np.float32 else 8.0)
    assert (limits < unit * 100 * duals.sums[:, np.newaxis]).all()


def test_limits__know_the_error_of_the_kernel_values(machines, rng):
    values = rng.random((N_ROWS, 600))
    off = 1e-6 * rng.random(N_ROWS)
    duals = DecisionWeights.from_machines(machines, np.arange(600), STARTS)
    moved = values + off[:, np.newaxis] * rng.choice([-1.0, 1.0], values.shape)
    gap = decisions_of(duals, moved) - decisions_of(duals, values)
    assert (np.abs(gap) <= duals.limits(np.ones(N_ROWS), off)).all()
