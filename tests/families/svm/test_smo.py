"""Paths of two-class machines against libsvm and the optimality conditions."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from dsel.families.svm.fit import solve_pairs

C_VALUES = np.array([0.1, 1.0, 10.0, 1000.0])


@pytest.fixture
def problem(rng):
    """Rows of two classes, their kernel and +-1 for each."""
    X = np.concatenate((rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 1.2))
    distances = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    return X, np.exp(-0.5 * distances).astype(np.float32), signs(30, 25)


@pytest.fixture
def large_problem(rng):
    X = np.concatenate((rng.normal(size=(500, 3)), rng.normal(size=(400, 3)) + 1.0))
    distances = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    return X, np.exp(-distances).astype(np.float32), signs(500, 400)


def signs(n_first, n_second):
    return np.repeat([1.0, -1.0], [n_first, n_second])


class Machine:
    """The path of one machine: betas (n_C, n_rows), and what belongs to each C."""

    def __init__(
        self, gram, y, *, weights=None, diagonal=None, tol=1e-6, max_iter=-1, C=C_VALUES
    ):
        starts = np.array([0, np.sum(y > 0), len(y)])
        paths = solve_pairs(
            gram, np.arange(len(y)), starts,
            np.ones(len(y)) if weights is None else weights,
            np.diagonal(gram).astype(float) if diagonal is None else diagonal,
            C_values=C, tol=tol, max_iter=max_iter,
        )  # fmt: skip
        self.betas = paths.coefs[:, 0].T
        self.offsets, self.steps, self.gaps = (each[0] for each in paths[1:])


def dual_of(svc, n_rows):
    dual = np.zeros(n_rows)
    dual[svc.support_] = -svc.dual_coef_[0]
    return dual


def test_solve_pairs__meets_the_optimality_conditions(problem):
    _, gram, y = problem
    path = Machine(gram, y)
    for C, beta, gap in zip(C_VALUES, path.betas, path.gaps, strict=True):
        residual = y - gram.astype(float) @ beta
        rises = beta < np.where(y > 0, C, 0)
        falls = beta > np.where(y > 0, 0, -C)
        left = residual[rises].max() - residual[falls].min()
        assert left == pytest.approx(gap, abs=1e-9)
        assert gap < 1e-6
        assert beta.sum() == pytest.approx(0, abs=1e-10 * C)
        assert (y * beta >= 0).all()
        assert (y * beta <= C).all()


@pytest.mark.parametrize("max_iter", [-1, 40])
@pytest.mark.parametrize("power", [0.01, 1.0, 30.0])
def test_solve_pairs__takes_the_steps_of_libsvm(large_problem, power, max_iter):
    _, gram, y = large_problem
    rows = np.arange(0, len(y), 3)
    y, gram = y[rows], (gram[np.ix_(rows, rows)] ** np.float32(power)).round(3)
    path = Machine(gram, y, tol=1e-3, max_iter=max_iter)
    for C, beta, steps in zip(C_VALUES, path.betas, path.steps, strict=True):
        svc = SVC(
            C=C, kernel="precomputed", tol=1e-3, shrinking=False, max_iter=max_iter
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            svc.fit(gram, -y)
        assert steps == svc.n_iter_[0]
        np.testing.assert_array_equal(beta, dual_of(svc, len(y)))


def test_solve_pairs__of_some_rows_of_three_classes_takes_the_steps_of_libsvm(
    large_problem, rng
):
    rows, y = np.arange(0, 900, 3), np.repeat([0, 1, 2], [80, 110, 110])
    gram, used = large_problem[1][np.ix_(rows, rows)].round(3), rng.random(300) < 0.7
    members = np.flatnonzero(used)
    ones = np.ones(len(members))
    paths = solve_pairs(
        gram, members, np.searchsorted(y[members], np.arange(4)), ones, ones,
        C_values=C_VALUES, tol=1e-3, max_iter=-1,
    )  # fmt: skip
    for c, C in enumerate(C_VALUES):
        svc = SVC(C=C, kernel="precomputed", shrinking=False)
        svc.fit(gram[np.ix_(used, used)], y[used])
        duals = np.zeros((2, used.sum()))
        duals[:, svc.support_] = svc.dual_coef_
        np.testing.assert_array_equal(paths.steps[:, c], svc.n_iter_)
        np.testing.assert_array_equal(paths.coefs[..., c].T, duals)


def test_solve_pairs__takes_a_tiny_curvature_as_it_is(rng):
    X, y = rng.normal(size=(80, 3)) * 1e-7, signs(40, 40)
    X[:40] += 1e-7
    gram = X @ X.T
    assert np.diagonal(gram).max() < 1e-12
    path = Machine(
        gram.astype(np.float32), y, tol=1e-3, diagonal=np.diagonal(gram).copy(),
        C=np.array([1e12]),
    )  # fmt: skip
    svc = SVC(C=1e12, kernel="precomputed", shrinking=False).fit(gram, -y)
    assert path.steps[0] == svc.n_iter_[0]
    np.testing.assert_array_equal(path.betas[0], dual_of(svc, 80))


def test_solve_pairs__a_fit_does_not_depend_on_the_other_c(large_problem):
    _, gram, y = large_problem
    whole = Machine(gram, y, tol=1e-3)
    for C, beta, steps in zip(C_VALUES, whole.betas, whole.steps, strict=True):
        alone = Machine(gram, y, tol=1e-3, C=np.array([C]))
        np.testing.assert_array_equal(beta, alone.betas[0])
        assert steps == alone.steps[0]


def test_solve_pairs__ends_where_no_pair_gains_anything():
    path = Machine(np.eye(2, dtype=np.float32), signs(1, 1), tol=0.0, C=np.array([5.0]))
    np.testing.assert_array_equal(path.betas, [[1.0, -1.0]])
    assert path.gaps == 0.0
