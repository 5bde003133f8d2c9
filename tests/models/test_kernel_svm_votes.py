import numpy as np
import pytest

from dsel.kernels.rbf import Rbf
from dsel.models.kernel_svm_machines import Machines
from dsel.models.kernel_svm_votes import class_products, lay_out

N_ROWS, N_MODELS = 60, 2


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


def decisions_of(voter, values):
    products = class_products(voter, values).astype(float)
    return np.stack(
        [
            products[i, :, j - 1] + products[j, :, i] + voter.machines.offsets[p]
            for p, (i, j) in enumerate(voter.machines.pairs)
        ]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits__bound_the_error_and_are_not_idle(machines, rng, dtype):
    values = np.exp(-rng.exponential(3.0, (N_ROWS, 600)))
    voter = lay_out(machines, np.arange(600), np.arange(4) * 200, dtype)
    exact = lay_out(machines, np.arange(600), np.arange(4) * 200, np.longdouble)
    gap = decisions_of(voter, values.astype(dtype)) - decisions_of(exact, values)
    limits = voter.limits(np.ones(N_ROWS), np.zeros(N_ROWS))
    assert (np.abs(gap) <= limits).all()
    # A bound by the number of columns would be five times as large.
    unit = np.finfo(dtype).eps * (1.0 if dtype == np.float32 else 8.0)
    assert (limits < unit * 100 * voter.sums[:, np.newaxis]).all()


def test_limits__know_the_error_of_the_kernel_values(machines, rng):
    values = rng.random((N_ROWS, 600))
    off = 1e-6 * rng.random(N_ROWS)
    voter = lay_out(machines, np.arange(600), np.arange(4) * 200)
    moved = values + off[:, np.newaxis] * rng.choice([-1.0, 1.0], values.shape)
    gap = decisions_of(voter, moved) - decisions_of(voter, values)
    assert (np.abs(gap) <= voter.limits(np.ones(N_ROWS), off)).all()
