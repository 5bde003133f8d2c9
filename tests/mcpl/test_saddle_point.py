"""The saddle point: against the definition, and its certificate."""

import itertools

import numpy as np
import pytest

from dsel.data import open_pool
from dsel.mcpl.contrast import lda_contrast
from dsel.mcpl.frank_wolfe import CONVERGED
from dsel.mcpl.gaussian import LinearScores, moments_of, supervised_fit
from dsel.mcpl.pool_passes import chunk_class_sums
from dsel.mcpl.saddle_point import fit_contrast
from tests.mcpl import definition


def fit(X, y, U, *, ridge=0.0, tol=1e-11, max_passes=500, start_rows=0):
    return fit_contrast(
        moments_of(X, y, y.max() + 1),
        open_pool(U),
        ridge=ridge,
        tol=tol,
        max_passes=max_passes,
        start_rows=start_rows,
    )


def make_rows(rng, *, n=14, m=9, d=2, n_classes=2):
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * y[:, None]
    U = rng.normal(size=(m, d)) + 1.5 * rng.integers(0, n_classes, (m, 1)) + 0.3
    return X, y, U


def make_contrast(X, y, U, ridge=0.0):
    labeled = moments_of(X, y, y.max() + 1)
    supervised = supervised_fit(labeled, ridge=ridge)
    return lda_contrast(labeled, supervised, moments_of(U), ridge=ridge)


def theta_of(classes):
    return classes.priors, classes.means, classes.covariance


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [1, 5, 9])
def test_fit_contrast__saddle_value_is_that_of_a_generic_solver(rng, n_classes, n_rows):
    X, y, U = make_rows(rng, n=21, m=n_rows, n_classes=n_classes)
    found = fit(X, y, U)
    value = definition.saddle_value(X, y, U) / (len(X) + len(U))
    assert found.status == CONVERGED
    assert found.contrast_lower <= value + 1e-8
    assert found.contrast_lower + found.duality_gap == pytest.approx(value, abs=1e-8)


def test_fit_contrast__certificate_holds_for_every_labeling(rng):
    X, y, U = make_rows(rng, m=8)
    found = fit(X, y, U)
    everything = np.vstack([X, U])
    supervised = definition.weighted_fit(X, np.eye(2)[y])
    contrasts = [
        definition.contrast(
            theta_of(found.classes),
            supervised,
            everything,
            np.eye(2)[np.append(y, labels)],
        )
        for labels in itertools.product([0, 1], repeat=len(U))
    ]
    lower = found.contrast_lower * len(everything)
    assert found.contrast_lower > 0.0
    # The pessimistic soft labels mix hard ones, so one of these attains the limit.
    assert min(contrasts) == pytest.approx(lower, abs=1e-9)


def test_fit_contrast__certificate_holds_before_the_optimum(rng):
    X, y, U = make_rows(rng, n=40, m=300, d=4)
    found = fit(X, y, U, max_passes=2)
    everything = np.vstack([X, U])
    gains = definition.log_joint(theta_of(found.classes), everything)
    gains -= definition.log_joint(definition.weighted_fit(X, np.eye(2)[y]), everything)
    worst = gains[: len(X)][np.arange(len(X)), y].sum() + gains[len(X) :].min(1).sum()
    assert worst / len(everything) >= found.contrast_lower - 1e-12
    assert found.contrast_lower >= 0.0


def test_fit_contrast__is_affine_invariant(rng):
    X, y, U = make_rows(rng, n=30, m=200, d=3, n_classes=3)
    A, shift = rng.normal(size=(3, 3)) * [[1.0], [100.0], [1e-3]], [9, -5, 0.2]
    plain, moved = fit(X, y, U), fit(X @ A.T + shift, y, U @ A.T + shift)
    assert moved.contrast_lower == pytest.approx(plain.contrast_lower, abs=1e-9)
    expected = plain.classes.means @ A.T + shift
    np.testing.assert_allclose(moved.classes.means, expected, rtol=1e-6)


def test_fit_contrast__weighted_class_means_are_the_total_mean(rng):
    X, y, U = make_rows(rng, n=40, m=200, d=3)
    classes = fit(X, y, U).classes
    total = np.vstack([X, U]).mean(axis=0)
    np.testing.assert_allclose(classes.priors @ classes.means, total)


def test_fit_contrast__copies_of_the_labeled_rows_gain_nothing(rng):
    X, y, _ = make_rows(rng, n=30, d=3)
    found = fit(X, y, np.vstack([X, X]))
    assert found.contrast_lower == pytest.approx(0.0, abs=1e-9)
    means = definition.weighted_fit(X, np.eye(2)[y])[1]
    np.testing.assert_allclose(found.classes.means, means, atol=1e-4)


def test_fit_contrast__a_subsample_to_start_from_changes_nothing(rng):
    X, y, U = make_rows(rng, n=60, m=3000, d=3, n_classes=3)
    cold, warm = (fit(X, y, U, start_rows=rows) for rows in (0, 300))
    assert warm.contrast_lower == pytest.approx(cold.contrast_lower, abs=2e-10)
    assert warm.status == cold.status == CONVERGED
    np.testing.assert_allclose(warm.classes.means, cold.classes.means, atol=1e-4)


def test_fit_contrast__a_subsample_may_meet_no_row_of_a_filtered_pool(rng):
    X, y, U = make_rows(rng, n=60, m=900)
    pool = open_pool(U).excluding([0, 898])  # every 898th row is none of these
    found, expected = fit(X, y, pool, start_rows=1), fit(X, y, pool)
    np.testing.assert_array_equal(found.classes.means, expected.classes.means)


def test_fit_contrast__settles_with_more_vertices_than_dimensions(rng):
    # Then the weights are not unique, and a step among them would be mere noise.
    X, y, U = make_rows(rng, n=60, m=193, d=1)
    assert fit(X, y, U).status == CONVERGED


def test_fit_contrast__nearly_singular_classes_are_certified(rng):
    X, y, U = make_rows(rng, n=60, m=500, d=4)
    X[:, -1] = X[:, 0] + 3e-7 * rng.normal(size=len(X))
    found = fit(X, y, U, tol=1e-10)
    assert found.contrast_lower > 1e12
    assert found.status == CONVERGED
    assert found.duality_gap <= 1e-10


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_contrast__derivatives_are_those_of_differences(rng, ridge):
    X, y, U = make_rows(rng, n=40, m=50, d=3, n_classes=3)
    contrast = make_contrast(X, y, U, ridge)
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


def test_contrast__is_zero_without_a_pool(rng):
    X, y, U = make_rows(rng, n=40, d=3)
    value = make_contrast(X, y, U[:0]).expand(np.zeros(2 * 4)).value
    assert value == pytest.approx(0.0, abs=1e-10)


def test_chunk_class_sums__cuts_are_row_numbers_of_the_pool(rng):
    U, rows = rng.normal(size=(100, 3)), np.arange(1000, 1100)
    scores = LinearScores(rng.normal(size=2), rng.normal(size=(2, 3)))
    whole, shares = (
        chunk_class_sums(U, rows, functions=[scores], origin=np.zeros(3), cuts=cuts)[0]
        for cuts in ([], [0, 1017, 1060])
    )
    assert shares[:, :, 0].sum(axis=1).tolist() == [0, 17, 43, 40]
    np.testing.assert_allclose(shares.sum(axis=0), whole[0])
    codes = (U @ scores.linear.T + scores.constants).argmin(axis=1)
    np.testing.assert_allclose(whole[0, 1, 1:], U[codes == 1].sum(axis=0))


def test_moments__of_parts_merge_to_those_of_the_whole(rng):
    X, y = rng.normal(size=(60, 3)) + 100.0, np.repeat([0, 1], 30)
    whole = moments_of(X, y, 3)
    parts = moments_of(X[:40], y[:40], 3).merged(moments_of(X[40:], y[40:], 3))
    for name in ("counts", "means", "scatter"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))
    np.testing.assert_allclose(whole.total.scatter, 60 * np.cov(X.T, bias=True))
