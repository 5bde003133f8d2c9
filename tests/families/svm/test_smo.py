import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from dsel.families.svm.smo import (
    SOLVED,
    STOPPED_EARLY,
    solve_path,
    solve_path_by_rows,
    step_limit,
)
from dsel.families.svm.smo_pairs import solve_pairs
from dsel.families.svm.smo_rows import Gram, RowCache

C_VALUES = np.array([0.1, 1.0, 10.0, 1000.0])


@pytest.fixture
def problem(rng):
    X = np.concatenate((rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.2))
    distances = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    y = np.repeat([1.0, -1.0], [30, 25])
    return X, np.exp(-0.5 * distances).astype(np.float32), y


def objective(gram, y, beta):
    return beta @ y - beta @ gram.astype(float) @ beta / 2


def solve(gram, y, *, members=None, weights=None, tol=1e-6, max_iter=-1, C=C_VALUES):
    members = np.arange(len(gram)) if members is None else members
    weights = np.ones(len(members)) if weights is None else weights
    return solve_path(
        gram, members, y[members], weights, C_values=C, tol=tol, max_iter=max_iter
    )


def test_solve_path__equals_libsvm(problem):
    X, gram, y = problem
    path = solve(gram, y).value
    for C, beta, offset in zip(C_VALUES, path.beta, path.offset, strict=True):
        svc = SVC(C=C, gamma=0.5, tol=1e-6).fit(X, -y)
        dual = np.zeros(len(y))
        dual[svc.support_] = -svc.dual_coef_[0]
        assert objective(gram, y, beta) == pytest.approx(objective(gram, y, dual))
        assert offset == pytest.approx(-svc.intercept_[0], abs=1e-4 * max(1, C / 10))


def test_solve_path__meets_the_optimality_conditions(problem):
    _, gram, y = problem
    path = solve(gram, y).value
    for C, beta, gap in zip(C_VALUES, path.beta, path.gap, strict=True):
        residual = y - gram.astype(float) @ beta
        rises = beta < np.where(y > 0, C, 0)
        falls = beta > np.where(y > 0, 0, -C)
        assert residual[rises].max() - residual[falls].min() == pytest.approx(
            gap, abs=1e-9
        )
        assert gap < 1e-6
        assert beta.sum() == pytest.approx(0, abs=1e-10 * C)
        assert (y * beta >= 0).all()
        assert (y * beta <= C).all()


@pytest.mark.parametrize("max_iter", [-1, 40])
@pytest.mark.parametrize("power", [0.01, 1.0, 30.0])
def test_solve_path__takes_the_steps_of_libsvm(large_problem, power, max_iter):
    _, gram, y = large_problem
    rows = np.arange(0, len(y), 3)
    y, gram = y[rows], (gram[np.ix_(rows, rows)] ** np.float32(power)).round(3)
    path = solve(gram, y, tol=1e-3, max_iter=max_iter).value
    for C, beta, steps in zip(C_VALUES, path.beta, path.steps, strict=True):
        svc = SVC(
            C=C, kernel="precomputed", tol=1e-3, shrinking=False, max_iter=max_iter
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            svc.fit(gram, -y)
        dual = np.zeros(len(y))
        dual[svc.support_] = -svc.dual_coef_[0]
        assert steps == svc.n_iter_[0]
        np.testing.assert_array_equal(beta, dual)


@pytest.mark.parametrize("share", [0.9, 0.5])  # kernel rows in place, and copied
def test_solve_pairs__takes_the_steps_of_libsvm(large_problem, share, rng):
    rows, y = np.arange(0, 900, 3), np.repeat([0, 1, 2], [80, 110, 110])
    gram, used = large_problem[1][np.ix_(rows, rows)].round(3), rng.random(300) < share
    whole = Gram.empty(300)
    whole.values[:] = gram
    paths = solve_pairs(
        whole, np.array([0, 80, 190, 300]), used.astype(float), C_values=C_VALUES,
        tol=1e-3, max_iter=-1, diagonal=np.ones(300), largest=1.0,
    )  # fmt: skip
    for c, C in enumerate(C_VALUES):
        svc = SVC(C=C, kernel="precomputed", shrinking=False)
        svc.fit(gram[np.ix_(used, used)], y[used])
        duals = np.zeros((2, used.sum()))
        duals[:, svc.support_] = svc.dual_coef_
        np.testing.assert_array_equal(paths.steps[:, c], svc.n_iter_)
        np.testing.assert_array_equal(paths.coefs[..., c].T, duals)


def test_solve_path__takes_a_tiny_curvature_as_it_is(rng):
    X, y = rng.normal(size=(80, 3)) * 1e-7, np.repeat([1.0, -1.0], 40)
    X[:40] += 1e-7
    gram = X @ X.T
    assert np.diagonal(gram).max() < 1e-12
    path = solve_path(
        gram.astype(np.float32), np.arange(80), y, np.ones(80), tol=1e-3, max_iter=-1,
        diagonal=np.diagonal(gram), C_values=np.array([1e12]),
    ).value  # fmt: skip
    svc = SVC(C=1e12, kernel="precomputed", shrinking=False).fit(gram, -y)
    dual = np.zeros(80)
    dual[svc.support_] = -svc.dual_coef_[0]
    assert path.steps[0] == svc.n_iter_[0]
    np.testing.assert_array_equal(path.beta[0], dual)


def test_solve_path__a_fit_does_not_depend_on_the_other_c(large_problem):
    _, gram, y = large_problem
    whole = solve(gram, y, tol=1e-3).value
    for C, beta, steps in zip(C_VALUES, whole.beta, whole.steps, strict=True):
        alone = solve(gram, y, tol=1e-3, C=np.array([C])).value
        np.testing.assert_array_equal(beta, alone.beta[0])
        assert steps == alone.steps[0]


def test_solve_path__is_the_same_for_every_c_that_stops_nothing(problem):
    _, gram, y = problem
    C = np.array([1e6, 1e7])
    narrow = gram ** np.float32(200)
    path = solve(narrow, y, C=C).value
    assert (np.abs(path.beta[0]) < C[0]).all()
    assert path.steps[0] == path.steps[1]
    np.testing.assert_array_equal(path.beta[0], path.beta[1])


def test_solve_path__members_equal_the_gram_matrix_cut_to_them(problem):
    _, gram, y = problem
    members = np.arange(0, len(y), 2)
    cut = solve(gram[np.ix_(members, members)], y[members]).value
    np.testing.assert_array_equal(solve(gram, y, members=members).value.beta, cut.beta)


def test_solve_path__weights_scale_c_row_by_row(problem):
    X, gram, y = problem
    weights = np.where(y > 0, 3.0, 0.5)
    path = solve(gram, y, weights=weights).value
    svc = SVC(C=1.0, gamma=0.5, tol=1e-6).fit(X, y, sample_weight=weights)
    dual = np.zeros(len(y))
    dual[svc.support_] = svc.dual_coef_[0]
    np.testing.assert_allclose(path.beta[1], dual, atol=1e-4)


def test_solve_path__stopping_early_is_a_status(problem):
    _, gram, y = problem
    solution = solve(gram, y, max_iter=3)
    assert solution.status == STOPPED_EARLY
    assert solution.value.steps.max() == 3
    assert solution.value.gap[-1] > 1e-6
    assert solve(gram, y).status == SOLVED


def test_solve_path__ends_where_no_pair_gains_anything():
    gram, y = np.eye(2, dtype=np.float32), np.array([1.0, -1.0])
    path = solve(gram, y, tol=0.0, C=np.array([5.0])).value
    np.testing.assert_array_equal(path.beta, [[1.0, -1.0]])
    assert path.gap == 0.0


def test_solve_path__margins_are_decisions_on_the_rows(problem):
    _, gram, y = problem
    path = solve(gram, y).value
    decisions = path.beta @ gram.astype(float) + path.offset[:, np.newaxis]
    np.testing.assert_allclose(path.margins, decisions, atol=1e-8)


@pytest.mark.parametrize("n_slots", [2, 5, 1000])
def test_solve_path_by_rows__equals_the_full_matrix(problem, n_slots):
    _, gram, y = problem
    cache = RowCache(gram.__getitem__, np.ones(len(y)), nbytes=4 * 64 * n_slots)
    solution = solve_path_by_rows(
        cache, y, np.ones(len(y)), C_values=C_VALUES, tol=1e-3, max_iter=-1
    )
    np.testing.assert_array_equal(
        solution.value.beta, solve(gram, y, tol=1e-3).value.beta
    )
    assert cache.kernel.values.nbytes <= 4 * 64 * n_slots


def test_solve_path_by_rows__weight_zero_leaves_a_row_out(problem):
    _, gram, y = problem
    members = np.flatnonzero(np.arange(len(y)) % 3)
    weights = np.zeros(len(y))
    weights[members] = 1.0
    cache = RowCache(gram.__getitem__, np.ones(len(y)), nbytes=10**6)
    solution = solve_path_by_rows(
        cache, y, weights, C_values=C_VALUES, tol=1e-3, max_iter=-1
    )
    expected = solve(gram, y, members=members, tol=1e-3).value
    np.testing.assert_array_equal(solution.value.beta[:, members], expected.beta)
    assert not solution.value.beta[:, weights == 0].any()


@pytest.fixture
def large_problem(rng):
    X = np.concatenate((rng.normal(size=(500, 3)), rng.normal(size=(400, 3)) + 1.0))
    distances = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    return X, np.exp(-distances).astype(np.float32), np.repeat([1.0, -1.0], [500, 400])


def test_solve_path__leaving_settled_rows_out_changes_no_solution(large_problem):
    X, gram, y = large_problem
    C_values = np.array([1.0, 50.0])
    path = solve(gram, y, C=C_values).value
    assert (path.gap < 1e-6).all()
    for C, beta, offset in zip(C_values, path.beta, path.offset, strict=True):
        svc = SVC(C=C, gamma=1.0, tol=1e-6).fit(X, -y)
        dual = np.zeros(len(y))
        dual[svc.support_] = -svc.dual_coef_[0]
        assert objective(gram, y, beta) == pytest.approx(objective(gram, y, dual))
        assert offset == pytest.approx(-svc.intercept_[0], abs=1e-4)
    residual = y - gram.astype(float) @ path.beta[1]
    np.testing.assert_allclose(
        path.margins[1], y - residual + path.offset[1], atol=1e-8
    )


def test_solve_path_by_rows__leaves_the_same_rows_out(large_problem):
    _, gram, y = large_problem
    members = np.flatnonzero(np.arange(len(y)) % 5)
    weights = np.zeros(len(y))
    weights[members] = 1.0
    cache = RowCache(gram.__getitem__, np.ones(len(y)), nbytes=300 * 4 * 900)
    C_values = np.array([1.0, 50.0])
    found = solve_path_by_rows(
        cache, y, weights, C_values=C_values, tol=1e-3, max_iter=-1
    ).value
    expected = solve(gram, y, members=members, tol=1e-3, C=C_values).value
    np.testing.assert_array_equal(found.beta[:, members], expected.beta)
    np.testing.assert_array_equal(found.steps, expected.steps)


def test_step_limit__is_that_of_libsvm():
    assert step_limit(-1, 10) == 10_000_000
    assert step_limit(-1, 200_000) == 20_000_000
    assert step_limit(7, 200_000) == 7
