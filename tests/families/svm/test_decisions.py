"""Bounds of what rounding does to decisions hold, and are not idle."""

import numpy as np
import pytest
from numba import njit
from sklearn.svm import SVC

from dsel.families.svm.decisions import arrange_duals, cell_decisions
from dsel.families.svm.lanes import LANES, ROWS, add_products
from dsel.families.svm.machines import Machines, rows_by_class
from dsel.families.svm.packed_svms import SharedSupport
from dsel.kernels.functions import Rbf
from dsel.kernels.reference_rows import DISTANCES, reference_rows

N_ROWS, N_MODELS = 60, 2
PAIRS = [(0, 1), (0, 2), (1, 2)]
CODES = np.repeat(np.arange(3), 200)


def machines_of(coefs, offsets, kernel):
    """Machines whose support vectors are all rows, in equal parts of the classes."""
    n_rows, n_others, n_models = coefs.shape
    return Machines(
        0, "", kernel, tuple(range(n_models)), np.arange(n_models),
        np.arange(n_others + 1), np.arange(n_rows),
        np.linspace(0, n_rows, n_others + 2).astype(int), coefs, offsets,
        np.zeros(offsets.shape, int), np.zeros(n_models, bool), np.ones(n_others + 1),
    )  # fmt: skip


@pytest.fixture
def machines(rng):
    """Three classes of 200 rows each, of which few speak in any decision."""
    coefs = rng.normal(size=(600, 2, N_MODELS))
    coefs *= 10.0 ** rng.integers(0, 4, (600, 1, 1))
    coefs[rng.random(coefs.shape) < 0.8] = 0.0
    return machines_of(coefs, rng.normal(size=(3, N_MODELS)), Rbf(1.0))


def labeled_of(rows, y):
    numbers = np.arange(len(rows))
    return rows_by_class(y, y.max() + 1, numbers, rows, origin="", steps=())


@pytest.fixture
def duals(machines):
    return arrange_duals(machines, labeled_of(np.zeros((600, 1)), CODES), SVC())


def blocks_of(rows, y, machines, seen):
    """Yield the kernel blocks of some rows, and the machines of each."""
    labeled = labeled_of(rows, y)
    by_kernel = {
        each.kernel: [arrange_duals(each, labeled, SVC())] for each in machines
    }
    reference = {DISTANCES: reference_rows(labeled.rows, DISTANCES)}
    for block in SharedSupport(labeled, by_kernel, reference, ()).kernels(seen):
        yield block, by_kernel[block.kernel][0]


def exact_decisions_of(machines, values):
    coefs = machines.coefs.astype(np.longdouble).reshape(3, 200, 2, N_MODELS)
    terms = np.einsum("ris,isqm->iqrm", values.reshape(-1, 3, 200), coefs)
    decisions = [terms[i, j - 1] + terms[j, i] for i, j in PAIRS]
    return np.stack(decisions) + machines.offsets[:, np.newaxis]


def sizes_of(machines):
    """Sums of absolute coefficients of each pair of classes."""
    sums = np.abs(machines.coefs).reshape(3, 200, 2, N_MODELS).sum(axis=1)
    return np.stack([sums[i, j - 1] + sums[j, i] for i, j in PAIRS])[:, np.newaxis]


@njit
def sums_of(values, columns, weights, starts):
    """Terms of each class for each other one, as votes sum them."""
    found = np.zeros((len(values), len(starts) - 1, LANES), values.dtype)
    out = np.zeros(ROWS * LANES, values.dtype)
    for r in range(len(values)):
        rows = np.full(ROWS, r)
        for k in range(len(starts) - 1):
            add_products(values, rows, columns, starts[k], starts[k + 1], weights, out)
            found[r, k] = out[:LANES]
    return found


def in_float64(duals, values):
    """Decisions of all rows and models, and the bounds of what adding them changes."""
    rows, models = (each.ravel() for each in np.indices((len(values), N_MODELS)))
    decisions, changed = cell_decisions(duals, values, rows, models)
    return [each.reshape(3, -1, N_MODELS) for each in (decisions, changed)]


def in_float32(duals, values, peaks, errors, less_one=False):
    """Decisions as votes in float32 take them, and the bounds of their errors."""
    ((columns, weights, starts, bounds),) = (each[less_one] for each in duals.terms)
    models, n_others = duals.machines.n_models, duals.machines.coefs.shape[1]
    terms = sums_of(values, columns, weights, starts)[..., :models].astype(float)
    bounds = bounds.reshape(-1, 5, LANES)[..., :models]
    decisions, limits = [], []
    for (i, j), bound in zip(PAIRS[: len(bounds)], bounds, strict=True):
        both = terms[:, n_others * i + j - 1] + terms[:, n_others * j + i]
        decisions.append(both + bound[0])
        factors = (peaks[i], bound[1]), (peaks[j], bound[2]), (errors, bound[3])
        limits.append(sum(np.outer(*each) for each in factors) + bound[4])
    return np.stack(decisions), np.stack(limits)


def of_block(duals, block):
    return in_float32(duals, block.values, block.peaks, block.errors, block.less_one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits__bound_the_error_and_are_not_idle(machines, duals, rng, dtype):
    values = np.exp(-rng.exponential(3.0, (N_ROWS, 600)))
    ones, zeros = np.ones((3, N_ROWS)), np.zeros(N_ROWS)
    if dtype == np.float32:
        decisions, limits = in_float32(duals, values.astype(dtype), ones, zeros)
    else:
        decisions, limits = in_float64(duals, values)
    gap = decisions - exact_decisions_of(machines, values)
    assert (np.abs(gap) <= limits).all()
    # A bound by the number of columns would be five times as large.
    unit = np.finfo(dtype).eps * (0.5 if dtype == np.float32 else 8.0)
    assert (limits < unit * 100 * sizes_of(machines)).all()


# One support vector each, where the constants matter most. A bound of a quarter fails
# in the first three, or one that forgets the rounding of distances; so does a processor
# whose exponentials are much worse than 2.52 units. Less one, a seventh would fail.
# Each gamma is twice the one before, so exponents are doubled where they may be.
@pytest.mark.parametrize(
    ("near", "far", "other", "n_gammas", "idle"),
    [(0.0, 0.5, 50.0, 3, 0.3), (0.0, 3.0, 50.0, 3, 0.3), (2.0, 5.0, 50.0, 3, 0.3),
     (0.0, 0.42, 0.42, 3, 0.15), (0.0, 1e-3, 1e-3, 6, 0.15)],
)  # fmt: skip
def test_limits__hold_for_exponentials_and_are_not_idle(
    rng, near, far, other, n_gammas, idle
):
    seen, weights = rng.uniform(near, far, (300_000, 1)), np.array([[[0.7]], [[0.0]]])
    some = [
        machines_of(weights, np.zeros((1, 1)), Rbf(gamma))
        for gamma in 1.37 * 2.0 ** np.arange(n_gammas)
    ]
    worst = []
    rows = np.array([[0.0], [other]])
    for block, duals in blocks_of(rows, np.arange(2), some, seen):
        assert block.less_one == (other == far)
        found, limits = of_block(duals, block)
        squares = seen.T.astype(np.longdouble) ** 2
        exact = np.longdouble(0.7) * np.exp(
            -np.longdouble(block.kernel.gamma) * squares
        )
        worst.append((np.abs(found[0, :, 0] - exact[0]) / limits[0, :, 0]).max())
    assert max(worst) <= 1.0
    assert max(worst) > idle


def test_limits__are_small_where_all_kernel_values_are_near_one(machines, rng):
    rows = rng.uniform(0.0, 0.01, (600, 1))
    ((block, duals),) = blocks_of(rows, CODES, [machines], rows[:N_ROWS])
    decisions, limits = of_block(duals, block)
    exact, _ = in_float64(
        duals, block.kernel.values(block.reference.base_of(block.rows))
    )
    assert (np.abs(decisions - exact) <= limits).all()
    assert (limits < 0.01 * 2.0**-24 * sizes_of(machines)).all()
