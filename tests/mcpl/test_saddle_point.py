"""The saddle point: against the definition, and its certificate."""

import itertools

import numpy as np
import pytest

from dsel.data import open_pool
from dsel.errors import GuaranteeWarning
from dsel.mcpl import SemiSupervisedLDA
from dsel.mcpl.gaussian import fit_labeled_rows, moments_of
from dsel.mcpl.saddle_point import lda_contrast
from tests.mcpl import definition


def fit(X, y, U, *, tol=1e-11, max_passes=500, start_rows=0):
    model = SemiSupervisedLDA(tol=tol, max_passes=max_passes, start_rows=start_rows)
    return model.fit(X, y, U)


def make_rows(rng, *, n=14, m=9, d=2, n_classes=2):
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * y[:, None]
    U = rng.normal(size=(m, d)) + 1.5 * rng.integers(0, n_classes, (m, 1)) + 0.3
    return X, y, U


def theta_of(model):
    return model.priors_, model.means_, model.covariance_


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [1, 5, 9])
def test_fit__saddle_value_is_that_of_a_generic_solver(rng, n_classes, n_rows):
    X, y, U = make_rows(rng, n=21, m=n_rows, n_classes=n_classes)
    found = fit(X, y, U)
    value = definition.saddle_value(X, y, U) / (len(X) + len(U))
    assert found.solver_status_ == "converged"
    assert found.contrast_lower_ <= value + 1e-8
    assert found.contrast_lower_ + found.duality_gap_ == pytest.approx(value, abs=1e-8)


def test_fit__certificate_holds_for_every_labeling(rng):
    X, y, U = make_rows(rng, m=8)
    found = fit(X, y, U)
    everything = np.vstack([X, U])
    supervised = definition.weighted_fit(X, np.eye(2)[y])
    contrasts = [
        definition.contrast(
            theta_of(found), supervised, everything, np.eye(2)[[*y, *labels]]
        )
        for labels in itertools.product([0, 1], repeat=len(U))
    ]
    lower = found.contrast_lower_ * len(everything)
    assert found.contrast_lower_ > 0.0
    # The pessimistic soft labels mix hard ones, so one of these attains the limit.
    assert min(contrasts) == pytest.approx(lower, abs=1e-9)


def test_fit__certificate_holds_before_the_optimum(rng):
    X, y, U = make_rows(rng, n=40, m=300, d=4)
    with pytest.warns(GuaranteeWarning, match="duality gap"):
        found = fit(X, y, U, max_passes=2)
    assert found.solver_status_ == "out of passes"
    everything = np.vstack([X, U])
    gains = definition.log_joint(theta_of(found), everything)
    gains -= definition.log_joint(definition.weighted_fit(X, np.eye(2)[y]), everything)
    worst = gains[: len(X)][np.arange(len(X)), y].sum() + gains[len(X) :].min(1).sum()
    assert worst / len(everything) >= found.contrast_lower_ - 1e-12
    assert found.contrast_lower_ >= 0.0


@pytest.mark.filterwarnings("ignore::dsel.errors.GuaranteeWarning")
@pytest.mark.parametrize("seed", [1, 3, 6, 8])
def test_fit__proves_no_gap_below_its_rounding(seed):
    # At the optimum the computed gain is rounding, of either sign: no gap of 0.
    rng = np.random.default_rng(seed)
    for sizes in ({}, {"n": 40, "m": 300, "d": 4}):
        found = fit(*make_rows(rng, **sizes), tol=1e-300, max_passes=200)
        assert found.duality_gap_ > 1e-18
        assert found.solver_status_ != "converged"


def test_fit__is_affine_invariant(rng):
    X, y, U = make_rows(rng, n=30, m=200, d=3, n_classes=3)
    A, shift = rng.normal(size=(3, 3)) * [[1.0], [100.0], [1e-3]], [9, -5, 0.2]
    plain, moved = fit(X, y, U), fit(X @ A.T + shift, y, U @ A.T + shift)
    assert moved.contrast_lower_ == pytest.approx(plain.contrast_lower_, abs=1e-9)
    expected = plain.means_ @ A.T + shift
    np.testing.assert_allclose(moved.means_, expected, rtol=1e-6)


def test_fit__a_subsample_to_start_from_changes_nothing(rng):
    X, y, U = make_rows(rng, n=60, m=3000, d=3, n_classes=3)
    cold, warm = (fit(X, y, U, start_rows=rows) for rows in (0, 300))
    assert warm.contrast_lower_ == pytest.approx(cold.contrast_lower_, abs=2e-10)
    assert warm.solver_status_ == cold.solver_status_ == "converged"
    assert warm.n_passes_ < cold.n_passes_
    np.testing.assert_allclose(warm.means_, cold.means_, atol=1e-4)


def test_fit__a_subsample_may_meet_no_row_of_a_filtered_pool(rng):
    X, y, U = make_rows(rng, n=60, m=900)
    pool = open_pool(U).excluding([0, 898])  # every 898th row is none of these
    found, expected = fit(X, y, pool, start_rows=1), fit(X, y, pool)
    np.testing.assert_array_equal(found.means_, expected.means_)


def test_fit__settles_with_more_vertices_than_dimensions(rng):
    # Then the weights are not unique, and a step among them would be mere noise.
    X, y, U = make_rows(rng, n=60, m=193, d=1)
    assert fit(X, y, U).solver_status_ == "converged"


def test_fit__nearly_singular_classes_are_certified(rng):
    X, y, U = make_rows(rng, n=60, m=500, d=4)
    X[:, -1] = X[:, 0] + 3e-7 * rng.normal(size=len(X))
    found = fit(X, y, U, tol=1e-10)
    assert found.contrast_lower_ > 1e12
    assert found.solver_status_ == "converged"
    assert found.duality_gap_ <= 1e-10


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_contrast__derivatives_are_those_of_differences(rng, ridge):
    X, y, U = make_rows(rng, n=40, m=50, d=3, n_classes=3)
    labeled = moments_of(X, y, 3)
    supervised = fit_labeled_rows(labeled, ridge=ridge)
    contrast = lda_contrast(labeled, supervised, moments_of(U), ridge=ridge)
    origin = U.mean(axis=0)

    def random_point():
        q = rng.dirichlet(np.ones(3), len(U))
        sums = np.column_stack([q.sum(axis=0), q.T @ (U - origin)])
        return contrast.whiten_sums(sums, origin).ravel()

    point, step = random_point(), 1e-5
    along = random_point() - point
    above, below = (contrast.expand(point + s * along) for s in (step, -step))
    here = contrast.expand(point)
    slope = (above.value - below.value) / (2 * step)
    assert here.gradient @ along == pytest.approx(slope, rel=1e-6)
    bend = (above.gradient - below.gradient) / (2 * step)
    np.testing.assert_allclose(here.curvature(along[None])[0], bend, atol=1e-8)
