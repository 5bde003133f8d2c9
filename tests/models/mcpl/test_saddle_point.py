"""The saddle point: against the definition, and its certificate."""

import itertools
from functools import partial

import numpy as np
import pytest

from dsel.data import open_pool
from dsel.models.mcpl.discriminant import supervised_fit
from dsel.models.mcpl.gaussian import class_moments, moments_of
from dsel.models.mcpl.linear_contrasts import (
    lda_contrast,
    nearest_mean_classes,
    nearest_mean_contrast,
)
from dsel.models.mcpl.pool_passes import (
    ClassScores,
    Labeling,
    chunk_lowest,
    read_lowest,
    sums_of,
)
from dsel.models.mcpl.quadratic_contrast import qda_contrast
from dsel.models.mcpl.saddle_point import ContrastProblem, fit_contrasts
from dsel.solvers.frank_wolfe import CONVERGED
from dsel.solvers.simplex import project_to_simplex
from tests.models.mcpl import definition as reference

KINDS = ["lda", "qda", "mean"]


def make_problem(X, y, kind, ridge=0.0, tol=1e-11, max_passes=500):
    labeled = class_moments(X, y, y.max() + 1)
    if kind == "mean":
        return ContrastProblem(
            labeled,
            nearest_mean_classes(labeled.means),
            nearest_mean_contrast,
            tol,
            max_passes,
        )
    make = {"lda": lda_contrast, "qda": qda_contrast}[kind]
    supervised = supervised_fit(labeled, ridge=ridge, shared=kind == "lda")
    contrast = partial(make, ridge=ridge)
    return ContrastProblem(labeled, supervised, contrast, tol, max_passes)


def make_rows(rng, *, n=14, m=9, d=2, n_classes=2):
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * y[:, None]
    U = rng.normal(size=(m, d)) + 1.5 * rng.integers(0, n_classes, (m, 1)) + 0.3
    return X, y, U


def theta_of(classes):
    n_classes = len(classes.priors)
    covariances = np.broadcast_to(
        classes.covariances, (n_classes, *classes.covariances.shape[1:])
    )
    return classes.priors, classes.means, covariances


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_contrasts__saddle_value_is_that_of_a_generic_solver(rng, kind, n_classes):
    X, y, U = make_rows(rng, n=21, n_classes=n_classes)
    fit = fit_contrasts([make_problem(X, y, kind)], open_pool(U), start_rows=0)[0]
    value = reference.saddle_value(X, y, U, kind) / (len(X) + len(U))
    assert fit.status == CONVERGED
    assert fit.contrast_lower <= value + 1e-8
    assert fit.contrast_lower + fit.duality_gap == pytest.approx(value, abs=1e-8)


def test_fit_contrasts__saddle_value_is_that_of_projected_gradient(rng):
    X, y, U = make_rows(rng, n_classes=2)
    problem = make_problem(X, y, "lda")
    contrast = problem.contrast(problem.labeled, moments_of(U))
    Z = contrast.whitening.whiten(U - contrast.whitening.shift)
    soft = np.full((len(U), 2), 0.5)
    for _ in range(5000):
        here = contrast.expand(np.column_stack([soft.sum(axis=0), soft.T @ Z]).ravel())
        scores = ClassScores.from_flat(here.gradient, *contrast.sums.shape)
        soft = project_to_simplex(soft - 0.2 * scores.of(Z).T)
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    value = here.value / contrast.n_rows
    assert fit.contrast_lower == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_contrasts__certificate_holds_for_every_labeling(rng, kind):
    X, y, U = make_rows(rng, m=8)
    problem = make_problem(X, y, kind)
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    everything = np.vstack([X, U])
    contrasts = [
        reference.contrast(
            theta_of(fit.classes),
            theta_of(problem.supervised),
            everything,
            np.eye(2)[np.append(y, labels)],
        )
        for labels in itertools.product([0, 1], repeat=len(U))
    ]
    lower = fit.contrast_lower * len(everything)
    assert fit.contrast_lower > 0.0
    # The pessimistic soft labels mix hard ones, so one of these attains the limit.
    assert min(contrasts) == pytest.approx(lower, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_contrasts__certificate_holds_before_the_optimum(rng, kind):
    X, y, U = make_rows(rng, n=40, m=300, d=4)
    problem = make_problem(X, y, kind, max_passes=2)
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    everything = np.vstack([X, U])
    gains = reference.log_joint(theta_of(fit.classes), everything)
    gains -= reference.log_joint(theta_of(problem.supervised), everything)
    worst = gains[: len(X)][np.arange(len(X)), y].sum() + gains[len(X) :].min(1).sum()
    assert worst / len(everything) >= fit.contrast_lower - 1e-12
    assert fit.contrast_lower >= 0.0


def test_fit_contrasts__lda_is_affine_invariant(rng):
    X, y, U = make_rows(rng, n=30, m=200, d=3, n_classes=3)
    A, shift = rng.normal(size=(3, 3)) * [[1.0], [100.0], [1e-3]], [9, -5, 0.2]
    plain = fit_contrasts([make_problem(X, y, "lda")], open_pool(U), start_rows=0)[0]
    moved = fit_contrasts(
        [make_problem(X @ A.T + shift, y, "lda")],
        open_pool(U @ A.T + shift),
        start_rows=0,
    )[0]
    assert moved.contrast_lower == pytest.approx(plain.contrast_lower, abs=1e-9)
    expected = plain.classes.means @ A.T + shift
    np.testing.assert_allclose(moved.classes.means, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["lda", "qda"])
def test_fit_contrasts__weighted_class_means_are_the_total_mean(rng, kind):
    X, y, U = make_rows(rng, n=40, m=200, d=3)
    fit = fit_contrasts([make_problem(X, y, kind)], open_pool(U), start_rows=0)[0]
    total = np.vstack([X, U]).mean(axis=0)
    np.testing.assert_allclose(fit.classes.priors @ fit.classes.means, total)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_contrasts__copies_of_the_labeled_rows_gain_nothing(rng, kind):
    X, y, _ = make_rows(rng, n=30, d=3)
    problem = make_problem(X, y, kind)
    fit = fit_contrasts([problem], open_pool(np.vstack([X, X])), start_rows=0)[0]
    assert fit.contrast_lower == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(fit.classes.means, problem.supervised.means, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_contrasts__a_subsample_to_start_from_changes_nothing(rng, kind):
    X, y, U = make_rows(rng, n=60, m=3000, d=3, n_classes=3)
    cold, warm = (
        fit_contrasts([make_problem(X, y, kind)], open_pool(U), start_rows=rows)[0]
        for rows in (0, 300)
    )
    assert warm.contrast_lower == pytest.approx(cold.contrast_lower, abs=2e-10)
    assert warm.status == cold.status == CONVERGED
    np.testing.assert_allclose(warm.classes.means, cold.classes.means, atol=1e-4)


@pytest.mark.parametrize("start_rows", [0, 100])
def test_fit_contrasts__together_is_the_same_as_one_by_one(rng, start_rows):
    X, y, U = make_rows(rng, n=60, m=500, d=3)
    problems = [make_problem(X[s::3], y[s::3], "lda") for s in range(3)]
    pool = open_pool(U)
    together = fit_contrasts(problems, pool, start_rows=start_rows)
    for problem, one in zip(problems, together, strict=True):
        alone = fit_contrasts([problem], pool, start_rows=start_rows)[0]
        np.testing.assert_array_equal(one.classes.means, alone.classes.means)
        assert one.n_passes == alone.n_passes
        assert one.duality_gap <= 1e-11


@pytest.mark.parametrize("n_rows", [1, 5])
def test_fit_contrasts__takes_fewer_rows_than_there_are_shares(rng, n_rows):
    X, y, U = make_rows(rng, m=n_rows)
    fit = fit_contrasts([make_problem(X, y, "lda")], open_pool(U), start_rows=0)[0]
    value = reference.saddle_value(X, y, U, "lda") / (len(X) + len(U))
    assert fit.status == CONVERGED
    assert fit.contrast_lower == pytest.approx(value, abs=1e-8)


def test_fit_contrasts__settles_with_more_vertices_than_dimensions(rng):
    # Then the weights are not unique, and a step among them would be mere noise.
    X, y, U = make_rows(rng, n=60, m=193, d=1)
    problem = make_problem(X, y, "qda")
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    assert fit.status == CONVERGED


@pytest.mark.parametrize("quadratic", [False, True])
def test_read_lowest__shares_add_up_to_the_whole(rng, quadratic):
    U = rng.normal(size=(100, 3))
    bends = rng.normal(size=(2, 3, 3)) if quadratic else None
    scores = ClassScores(rng.normal(size=2), rng.normal(size=(2, 3)), bends)
    whole = Labeling((scores,), np.zeros(3))
    apart = Labeling((scores,), np.zeros(3), cuts=(0, 17, 60))
    total, shares = (each[0] for each in read_lowest(open_pool(U), [whole, apart]))
    each = shares.reshape(4, 2, -1)
    assert each[:, :, 0].sum(axis=1).tolist() == [0, 17, 43, 40]
    np.testing.assert_allclose(each.sum(axis=0), total)
    assert total.shape == (2, 13 if quadratic else 4)


def test_chunk_lowest__cuts_are_row_numbers_of_the_pool(rng):
    U = rng.normal(size=(20, 3))
    scores = ClassScores(np.zeros(2), rng.normal(size=(2, 3)))
    labeling = Labeling((scores,), np.zeros(3), cuts=(1005,))
    found = chunk_lowest(U, np.arange(1000, 1020), labelings=[labeling])[0][0]
    assert found[:, 0].reshape(2, 2).sum(axis=1).tolist() == [5, 15]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_contrast__derivatives_are_those_of_differences(rng, kind, ridge):
    X, y, U = make_rows(rng, n=40, m=50, d=3, n_classes=3)
    problem = make_problem(X, y, kind, ridge)
    contrast = problem.contrast(problem.labeled, moments_of(U))
    origin = U.mean(axis=0)

    def random_point():
        q, V = rng.dirichlet(np.ones(3), len(U)), U - origin
        products = np.einsum("uk,ud,ue->kde", q, V, V) if kind == "qda" else None
        sums = sums_of(q.sum(axis=0), q.T @ V, products)
        return contrast.whitening.whiten_sums(sums, origin).ravel()

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
    for kind in KINDS:
        problem = make_problem(X, y, kind)
        contrast = problem.contrast(problem.labeled, moments_of(U[:0]))
        products = np.zeros((2, 3, 3)) if kind == "qda" else None
        none = sums_of(np.zeros(2), np.zeros((2, 3)), products)
        value = contrast.expand(none.ravel()).value
        assert value == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize(("kind", "spread"), [("lda", 3e-7), ("qda", 1e-3)])
def test_fit_contrasts__nearly_singular_classes_are_certified(rng, kind, spread):
    X, y, U = make_rows(rng, n=60, m=500, d=4)
    X[:, -1] = X[:, 0] + spread * rng.normal(size=len(X))
    problem = make_problem(X, y, kind, tol=1e-10)
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    assert fit.contrast_lower > 0.1 / spread**2
    assert fit.status == CONVERGED
    assert fit.duality_gap <= 1e-10


def test_fit_contrasts__what_rounding_stops_is_certified_as_far_as_it_came(rng):
    X, y, U = make_rows(rng, n=60, m=500, d=4)
    X[:, -1] = X[:, 0] + 3e-7 * rng.normal(size=len(X))
    problem = make_problem(X, y, "qda", tol=1e-10, max_passes=20)
    fit = fit_contrasts([problem], open_pool(U), start_rows=0)[0]
    assert fit.status != CONVERGED
    assert 1e-10 < fit.duality_gap < 1e-12 * fit.contrast_lower
