"""The methods that MCPL is compared with, each against its definition."""

import itertools

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsel.errors import GuaranteeWarning
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.models import (
    AlternatingGradientLDA,
    DensityRatioLDA,
    ExpectationMaximizationLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
    MomentConstrainedNearestMean,
    SelfLearningLDA,
)
from dsel.models.baselines.implicitly_constrained import constrained_likelihood
from dsel.models.mcpl.gaussian import class_moments, moments_of
from dsel.models.mcpl.pool_passes import sums_of
from tests.mcpl import definition as reference

ESTIMATORS = [
    AlternatingGradientLDA,
    DensityRatioLDA,
    ImplicitlyConstrainedLDA,
    ExpectationMaximizationLDA,
    MomentConstrainedLDA,
    MomentConstrainedNearestMean,
    SelfLearningLDA,
]
USING_THE_POOL = [
    AlternatingGradientLDA,
    DensityRatioLDA,
    ImplicitlyConstrainedLDA,
    ExpectationMaximizationLDA,
    MomentConstrainedLDA,
    SelfLearningLDA,
]


@parametrize_with_checks([Estimator() for Estimator in ESTIMATORS])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator__passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    y = np.repeat([0, 1, 2], 12)
    X = rng.normal(size=(36, 3)) + 2 * (y == 1)[:, None] - (y == 2)[:, None]
    truth = rng.integers(0, 3, 600)
    pool = rng.normal(size=(600, 3)) + 2 * (truth == 1)[:, None]
    return X, y, pool - (truth == 2)[:, None], truth


@pytest.mark.parametrize("Estimator", USING_THE_POOL)
def test_fit__without_pool_rows_is_the_supervised_fit(rows, Estimator):
    X, y, pool, _ = rows
    model = Estimator().fit(X, y, pool=pool[:0])
    supervised = MaximumLikelihoodLDA().fit(X, y)
    np.testing.assert_allclose(model.covariance_, supervised.covariance_)


@pytest.mark.parametrize("Estimator", USING_THE_POOL)
def test_fit__a_pool_with_other_columns_is_an_error(rows, Estimator):
    X, y, pool, _ = rows
    with pytest.raises(ValueError, match="`pool` has 2 columns but `X` has 3"):
        Estimator().fit(X, y, pool=pool[:, :2])


def test_moment_constrained_lda__is_lda_on_moved_rows(rows):
    X, y, pool, _ = rows
    everything = np.vstack([X, pool])
    here = np.cov(X.T, bias=True)
    mapping = sqrtm(np.cov(everything.T, bias=True) @ np.linalg.inv(here)).real
    moved = (X - X.mean(axis=0)) @ mapping.T + everything.mean(axis=0)
    expected = MaximumLikelihoodLDA().fit(moved, y)
    model = MomentConstrainedLDA().fit(X, y, pool=pool)
    np.testing.assert_allclose(model.means_, expected.means_)
    np.testing.assert_allclose(model.covariance_, expected.covariance_)


def test_moment_constrained_lda__does_not_depend_on_coordinates(rows, rng):
    X, y, pool, _ = rows
    turn = rng.normal(size=(X.shape[1], X.shape[1]))
    model = MomentConstrainedLDA().fit(X, y, pool=pool)
    turned = MomentConstrainedLDA().fit(X @ turn, y, pool=pool @ turn)
    np.testing.assert_allclose(turned.means_, model.means_ @ turn, rtol=1e-8)
    np.testing.assert_allclose(
        turned.covariance_, turn.T @ model.covariance_ @ turn, rtol=1e-7, atol=1e-9
    )


def test_moment_constrained_nearest_mean__means_average_to_the_total_mean(rows):
    X, y, pool, _ = rows
    model = MomentConstrainedNearestMean().fit(X, y, pool=pool)
    total = np.vstack([X, pool]).mean(axis=0)
    np.testing.assert_allclose(np.bincount(y) / len(y) @ model.means_, total)


def test_self_learning__is_a_fixed_point(rows):
    X, y, pool, _ = rows
    model = SelfLearningLDA().fit(X, y, pool=pool)
    labels = np.append(y, model.predict(pool))
    refitted = MaximumLikelihoodLDA().fit(np.vstack([X, pool]), labels)
    assert model.converged_
    np.testing.assert_allclose(refitted.means_, model.means_)


def test_self_learning__stops_at_the_limit(rows):
    X, y, pool, _ = rows
    model = SelfLearningLDA(max_passes=1).fit(X, y, pool=pool)
    assert (model.converged_, model.n_passes_) == (False, 2)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_expectation_maximization__likelihood_never_falls(rows, ridge):
    X, y, pool, _ = rows
    model = ExpectationMaximizationLDA(ridge=ridge).fit(X, y, pool=pool)
    path = model.observed_log_likelihoods_
    assert model.converged_
    assert (np.diff(path) >= -1e-9 * abs(path[-1])).all()


def test_expectation_maximization__counts_the_observed_likelihood(rows):
    X, y, pool, _ = rows
    model = ExpectationMaximizationLDA(max_passes=1).fit(X, y, pool=pool)
    theta = reference.weighted_fit(X, np.eye(3)[y])
    labeled = reference.log_joint(theta, X)[np.arange(len(y)), y].sum()
    unlabeled = np.logaddexp.reduce(reference.log_joint(theta, pool), axis=1).sum()
    expected = labeled + unlabeled
    assert model.observed_log_likelihoods_[0] == pytest.approx(expected)


def test_alternating_gradient__certificate_bounds_the_saddle_value(rows):
    X, y, pool, _ = rows
    exact = SemiSupervisedLDA(tol=1e-10).fit(X, y, pool=pool)
    model = AlternatingGradientLDA(step=1.0).fit(X, y, pool=pool)
    assert model.contrast_lower_ <= exact.contrast_lower_ + 1e-10
    upper = model.contrast_lower_ + model.duality_gap_
    assert upper >= exact.contrast_lower_ - 1e-10


def test_alternating_gradient__says_where_nothing_is_certified(rows):
    X, y, _, _ = rows
    with pytest.warns(GuaranteeWarning, match="may be worse than the supervised one"):
        model = AlternatingGradientLDA().fit(X, y, pool=X)
    assert model.contrast_lower_ < 0.0


def test_density_ratio__weights_are_those_of_a_linear_logit(rng):
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    pool = rng.normal(size=(6000, 2)) + [0.6, 0.0]
    model = DensityRatioLDA().fit(X, y, pool=pool)
    # Of two unit Gaussians 0.6 apart the logarithm of the ratio has the slope 0.6.
    slope = np.polyfit(X[:, 0], np.log(model.weights_), 1)[0]
    assert slope == pytest.approx(0.6, abs=0.1)
    assert model.weights_.mean() == pytest.approx(1.0)
    assert model.priors_[1] > MaximumLikelihoodLDA().fit(X, y).priors_[1] + 0.1


def test_implicitly_constrained__is_the_likeliest_fit_of_any_labeling(rng):
    X, y = rng.normal(size=(8, 1)), np.tile([0, 1], 4)
    X[y == 1] += 1.5
    pool = rng.normal(size=(7, 1)) + 0.7
    model = ImplicitlyConstrainedLDA(tol=1e-9).fit(X, y, pool=pool)
    found = model.log_likelihood(X, y)
    likelihoods = [
        OracleLDA()
        .fit(X, y, pool=pool, pool_labels=np.array(labels))
        .log_likelihood(X, y)
        for labels in itertools.product([0, 1], repeat=7)
    ]
    # Soft labels contain the hard ones; from this start no hard one is better.
    assert found >= max(likelihoods) - 1e-6
    assert found <= MaximumLikelihoodLDA().fit(X, y).log_likelihood(X, y) + 1e-12


def test_implicitly_constrained__gradient_is_that_of_its_likelihood(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    moments = class_moments(X, y, 3)
    pool = rng.normal(size=(50, 2))
    target = constrained_likelihood(moments, moments_of(pool), ridge=0.5)
    shares = rng.dirichlet(np.ones(3), size=50)
    about = pool - pool.mean(axis=0)

    def sums(shares):
        return sums_of(shares.sum(axis=0), shares.T @ about)

    step = 1e-6 * rng.normal(size=shares.shape)
    scores = target.gradient(sums(shares)).of(about).T
    # A constant for every row, by the total of its shares, plays no role on a simplex.
    step_in = step - step.mean(axis=1, keepdims=True)
    expected = target.value(sums(shares + step_in)) - target.value(
        sums(shares - step_in)
    )
    assert expected == pytest.approx(2 * (scores * step_in).sum(), rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_nearest_mean__does_not_depend_on_the_unit(rng, n_classes):
    y = np.arange(30) % n_classes
    X = rng.normal(size=(30, 4)) + y[:, None]
    unit = 2.0**-40

    found = MomentConstrainedNearestMean().fit(X * unit, y).predict(X * unit)

    assert np.array_equal(found, MomentConstrainedNearestMean().fit(X, y).predict(X))
