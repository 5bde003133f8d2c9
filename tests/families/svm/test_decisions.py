import numpy as np
import pytest
from numba import njit

from dsel.families.svm.decisions import DecisionWeights, cell_decisions
from dsel.families.svm.lanes import LANES, ROWS, add_products
from dsel.families.svm.machines import Machines
from dsel.families.svm.predict import ScoringPlan, kernel_blocks
from dsel.families.svm.rows import rows_as_given
from dsel.kernels.functions import Rbf

N_ROWS, N_MODELS = 60, 2
PAIRS = [(0, 1), (0, 2), (1, 2)]
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


def exact_decisions_of(machines, values):
    coefs, values = machines.coefs.astype(np.longdouble), values.astype(np.longdouble)
    rows = [slice(200 * code, 200 * code + 200) for code in range(3)]
    return np.stack(
        [
            values[:, rows[i]] @ coefs[rows[i], j - 1]
            + values[:, rows[j]] @ coefs[rows[j], i]
            + machines.offsets[p]
            for p, (i, j) in enumerate(PAIRS)
        ]
    )


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


def decisions_of(duals, values, errors=0.0):
    """Decisions in float64 of all rows and models, and the bounds of their errors."""
    rows, models = (each.ravel() for each in np.indices((len(values), N_MODELS)))
    decisions, changed = cell_decisions(duals, values, rows, models)
    limits = duals.limits(changed, np.broadcast_to(errors, len(values))[rows], models)
    return [each.reshape(3, -1, N_MODELS) for each in (decisions, limits)]


def sizes_of(duals):
    """Sums of absolute coefficients of each pair, (n_pairs, 1, n_models)."""
    ((_, sums),) = duals.layouts
    return sums.of_pairs().sizes[:, np.newaxis]


def in_float32(duals, values, peaks, errors, *, less_one=False):
    """Decisions as votes in float32 take them, and the bounds of their errors."""
    layouts = duals.layouts_less_one if less_one else duals.layouts
    (((columns, weights, starts, bounds), sums),) = layouts
    models = slice(sums.sizes.shape[2])
    n_others = duals.machines.coefs.shape[1]
    terms = sums_of(values, columns, weights, starts)[..., models].astype(float)
    bounds = bounds.reshape(-1, 5, LANES)[..., models]
    decisions, limits = [], []
    pairs = PAIRS[: len(bounds)]
    for (i, j), bound in zip(pairs, bounds, strict=True):
        both = terms[:, n_others * i + j - 1] + terms[:, n_others * j + i]
        decisions.append(both + bound[0])
        limits.append(np.outer(peaks[i], bound[1]) + np.outer(peaks[j], bound[2])
                      + np.outer(errors, bound[3]) + bound[4])  # fmt: skip
    return np.stack(decisions), np.stack(limits)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits__bound_the_error_and_are_not_idle(machines, rng, dtype):
    values = np.exp(-rng.exponential(3.0, (N_ROWS, 600)))
    duals = DecisionWeights.from_machines(machines, np.arange(600), STARTS)
    ones, zeros = np.ones((3, N_ROWS)), np.zeros(N_ROWS)
    if dtype == np.float32:
        decisions, limits = in_float32(duals, values.astype(dtype), ones, zeros)
    else:
        decisions, limits = decisions_of(duals, values)
    gap = decisions - exact_decisions_of(machines, values)
    assert (np.abs(gap) <= limits).all()
    # A bound by the number of columns would be five times as large.
    unit = np.finfo(dtype).eps * (0.5 if dtype == np.float32 else 8.0)
    assert (limits < unit * 100 * sizes_of(duals)).all()


def ratios_of(seen, second_row, gammas):
    """Largest error of decisions of one support vector, at 0, over its limit by gamma.

    Also whether the kernels less 1 were taken.
    """
    weights = np.array([[[0.7]], [[0.0]]])
    rows = np.array([[0.0], [second_row]])
    labeled = rows_as_given(rows, np.arange(2), 2, "rbf")
    plan = ScoringPlan.of_machines(labeled, [
        Machines(
            0, -1, Rbf(gamma), (0,), np.arange(1), np.arange(2), np.arange(2),
            np.arange(3), weights, np.zeros((1, 1)), np.zeros((1, 1), int),
            np.zeros(1, bool), np.ones(2),
        )
        for gamma in gammas
    ])  # fmt: skip
    worst, less_one = [], []
    for block, gamma in zip(kernel_blocks(plan, seen), gammas, strict=True):
        ((_, (duals,)),) = [each for each in plan.by_kernel if each[0].gamma == gamma]
        less_one.append(block.less_one)
        found, limits = in_float32(
            duals, block.values, block.peaks, block.errors, less_one=block.less_one
        )
        exact = np.longdouble(0.7) * np.exp(
            -np.longdouble(gamma) * (seen.T.astype(np.longdouble) ** 2)
        )
        worst.append((np.abs(found[0, :, 0] - exact[0]) / limits[0, :, 0]).max())
    return worst, less_one


@pytest.mark.parametrize(("near", "far"), [(0.0, 0.5), (0.0, 3.0), (2.0, 5.0)])
def test_limits__hold_for_exponentials_and_are_not_idle(rng, near, far):
    """One support vector each, where the constants matter most.

    A bound of a quarter fails here, or one that forgets the rounding of distances; so
    does a processor whose exponentials are much worse than 2.52 units.
    """
    seen = rng.uniform(near, far, (300_000, 1))
    worst, less_one = ratios_of(seen, 50.0, 1.37 * 2.0 ** np.arange(3))
    assert not any(less_one)
    assert max(worst) <= 1.0
    assert worst[-1] > 0.3


@pytest.mark.parametrize("far", [0.42, 1e-3])
def test_limits__hold_for_kernels_less_one_and_are_not_idle(rng, far):
    """A bound of a seventh would fail."""
    seen = rng.uniform(0.0, far, (300_000, 1))
    worst, less_one = ratios_of(seen, far, 1.37 * 2.0 ** np.arange(3))
    assert all(less_one)
    assert max(worst) <= 1.0
    assert worst[-1] > 0.15


def test_limits__are_small_where_all_kernel_values_are_near_one(machines, rng):
    rows = rng.uniform(0.0, 0.01, (600, 1))
    labeled = rows_as_given(rows, np.arange(600) // 200, 3, "rbf")
    plan = ScoringPlan.of_machines(labeled, [machines])
    (block,) = kernel_blocks(plan, rows[:N_ROWS])
    ((_, (duals,)),) = plan.by_kernel
    decisions, limits = in_float32(
        duals, block.values, block.peaks, block.errors, less_one=block.less_one
    )
    exact, _ = decisions_of(duals, block.precise(np.arange(N_ROWS)))
    assert (np.abs(decisions - exact) <= limits).all()
    unit = 2.0**-24
    assert (limits < 0.01 * unit * sizes_of(duals)).all()


def test_limits__know_the_error_of_the_kernel_values(machines, rng):
    values = rng.random((N_ROWS, 600))
    off = 1e-6 * rng.random(N_ROWS)
    duals = DecisionWeights.from_machines(machines, np.arange(600), STARTS)
    moved = values + off[:, np.newaxis] * rng.choice([-1.0, 1.0], values.shape)
    decisions, limits = decisions_of(duals, moved, off)
    assert (np.abs(decisions - decisions_of(duals, values)[0]) <= limits).all()
