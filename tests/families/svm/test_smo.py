"""Paths of two-class machines against libsvm and the optimality conditions."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from dsel.families.svm.smo import solve_pairs

C_VALUES = np.array([0.1, 1.0, 10.0, 1000.0])


def problem(rng, n_first, n_second):
    """The Gaussian kernel of rows of two classes, and +-1 for each."""
    X = np.concatenate(
        (rng.normal(size=(n_first, 3)), rng.normal(size=(n_second, 3)) + 1.0)
    )
    distances = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    y = np.repeat([1.0, -1.0], [n_first, n_second])
    return np.exp(-0.7 * distances).astype(np.float32), y


class Machine:
    """The path of one machine: betas (n_C, n_rows), and what belongs to each C."""

    def __init__(self, gram, y, *, diagonal=None, tol=1e-6, max_iter=-1, C=C_VALUES):
        paths = solve_pairs(
            gram, np.arange(len(y)), np.array([0, np.sum(y > 0), len(y)]),
            np.ones(len(y)),
            np.diagonal(gram).astype(float) if diagonal is None else diagonal,
            C, tol, max_iter,
        )  # fmt: skip
        self.betas = paths.coefs[:, 0].T
        self.offsets, self.steps, self.gaps = (each[0] for each in paths[1:])


def dual_of(svc, n_rows):
    dual = np.zeros(n_rows)
    dual[svc.support_] = -svc.dual_coef_[0]
    return dual


@pytest.mark.parametrize("max_iter", [-1, 40])
@pytest.mark.parametrize("power", [0.01, 1.0, 30.0])
def test_solve_pairs__takes_the_steps_of_libsvm(rng, power, max_iter):
    gram, y = problem(rng, 167, 133)
    gram = (gram ** np.float32(power)).round(3)
    path = Machine(gram, y, tol=1e-3, max_iter=max_iter)
    for c, C in enumerate(C_VALUES):
        beta, steps, gap = path.betas[c], path.steps[c], path.gaps[c]
        residual = y - gram.astype(float) @ beta
        rises = residual[beta < np.where(y > 0, C, 0)].max()
        falls = residual[beta > np.where(y > 0, 0, -C)].min()
        assert rises - falls == pytest.approx(gap, abs=1e-9)
        svc = SVC(
            C=C, kernel="precomputed", tol=1e-3, shrinking=False, max_iter=max_iter
        )
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            svc.fit(gram, -y)
        assert steps == svc.n_iter_[0]
        np.testing.assert_array_equal(beta, dual_of(svc, len(y)))


def test_solve_pairs__of_some_rows_of_three_classes_takes_the_steps_of_libsvm(rng):
    y, used = np.repeat([0, 1, 2], [80, 110, 110]), rng.random(300) < 0.7
    gram, members = problem(rng, 167, 133)[0].round(3), np.flatnonzero(used)
    ones, starts = np.ones(len(members)), np.searchsorted(y[members], np.arange(4))
    paths = solve_pairs(gram, members, starts, ones, ones, C_VALUES, 1e-3, -1)
    for c, C in enumerate(C_VALUES):
        svc = SVC(C=C, kernel="precomputed", shrinking=False)
        svc.fit(gram[np.ix_(used, used)], y[used])
        duals = np.zeros((2, used.sum()))
        duals[:, svc.support_] = svc.dual_coef_
        np.testing.assert_array_equal(paths.steps[:, c], svc.n_iter_)
        np.testing.assert_array_equal(paths.coefs[..., c].T, duals)


def test_solve_pairs__takes_a_tiny_curvature_as_it_is(rng):
    X, y = rng.normal(size=(80, 3)) * 1e-7, np.repeat([1.0, -1.0], 40)
    X[:40] += 1e-7
    gram = X @ X.T
    assert np.diagonal(gram).max() < 1e-12
    diagonal, C = np.diagonal(gram).copy(), np.array([1e12])
    path = Machine(gram.astype(np.float32), y, tol=1e-3, diagonal=diagonal, C=C)
    svc = SVC(C=1e12, kernel="precomputed", shrinking=False).fit(gram, -y)
    assert path.steps[0] == svc.n_iter_[0]
    np.testing.assert_array_equal(path.betas[0], dual_of(svc, 80))


def test_solve_pairs__ends_where_no_pair_gains_anything():
    signs = np.array([1.0, -1.0])
    path = Machine(np.eye(2, dtype=np.float32), signs, tol=0.0, C=np.array([5.0]))
    np.testing.assert_array_equal(path.betas, [[1.0, -1.0]])
    assert path.gaps == 0.0
