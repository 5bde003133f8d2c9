"""MCPL for counts: never less likely than naive Bayes of the labeled rows alone."""

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import dsel
from dsel.models import SemiSupervisedNaiveBayes
from dsel.models.mcpl.gaussian import class_moments, moments_of
from dsel.models.mcpl.naive_bayes import multinomial_contrast


@parametrize_with_checks([SemiSupervisedNaiveBayes()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator__passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def counts(rng):
    rates = rng.dirichlet(np.ones(5), size=2)
    y = np.arange(10) % 2
    X = np.stack([rng.multinomial(6, rates[k]) for k in y])
    pool = np.stack([rng.multinomial(6, rates[k]) for k in rng.integers(0, 2, 8)])
    return X, y, pool


def penalised(X, y, log_prior, log_rates, alpha):
    """Return the log-likelihood of counts, with the penalty, but for a constant."""
    joint = log_prior[y] + np.einsum("nd,nd->n", X, log_rates[y])
    return joint.sum() + alpha * log_rates.sum()


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_fit__is_no_less_likely_under_any_labeling(counts, alpha):
    X, y, pool = counts
    alone = MultinomialNB(alpha=alpha).fit(X, y)
    model = SemiSupervisedNaiveBayes(alpha=alpha, tol=1e-9).fit(X, y, pool=pool)
    both = np.vstack([X, pool])
    gains = []
    for labels in product((0, 1), repeat=len(pool)):
        codes = np.concatenate([y, labels])
        gains.append(
            penalised(
                both, codes, model.class_log_prior_, model.feature_log_prob_, alpha
            )
            - penalised(
                both, codes, alone.class_log_prior_, alone.feature_log_prob_, alpha
            )
        )
    least = model.contrast_lower_ * len(both)
    assert 0 < least <= min(gains) + 1e-9
    # The most pessimistic labeling is one of them: the limit is exact.
    assert min(gains) == pytest.approx(least, abs=1e-6)


def test_fit__without_a_pool_is_that_of_scikit_learn(counts):
    X, y, _ = counts
    ours, theirs = SemiSupervisedNaiveBayes().fit(X, y), MultinomialNB().fit(X, y)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))


def test_contrast__has_the_derivatives_of_its_value(counts, rng):
    X, y, pool = counts
    labeled, moments = class_moments(X, y, 2), moments_of(pool.astype(float))
    contrast = multinomial_contrast(labeled, moments, alpha=1.0)
    shares = rng.dirichlet(np.ones(2), size=len(pool)).T
    point = np.column_stack([shares.sum(1), shares @ pool]).ravel()
    here = contrast.expand(point)
    moves = rng.dirichlet(np.ones(2), size=len(pool)).T - shares
    step = 1e-5 * np.column_stack([moves.sum(1), moves @ pool]).ravel()
    after, before = contrast.expand(point + step), contrast.expand(point - step)
    assert here.gradient @ step == pytest.approx(
        (after.value - before.value) / 2, rel=1e-6
    )
    np.testing.assert_allclose(
        here.curvature(step[None])[0], (after.gradient - before.gradient) / 2, rtol=1e-4
    )


def test_search__certifies_it_and_leaves_its_pool_apart(rng):
    X, y = load_digits(n_class=3, return_X_y=True)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    search = dsel.SemiSupervisedSearchCV(
        SemiSupervisedNaiveBayes(), {"alpha": [0.1, 10.0]}, criterion="best_fold",
        cv=3, duplicates="keep", random_state=0,
    ).fit(X[:150], y[:150], pool=X[150:])  # fmt: skip
    assert search.certificate_.certified
    assert search.score(X[150:], y[150:]) > 0.9


def test_fit__refuses_negative_counts(counts):
    X, y, pool = counts
    with pytest.raises(ValueError, match="Negative values"):
        SemiSupervisedNaiveBayes().fit(X - 1, y)
    with pytest.raises(ValueError, match="`pool` must hold counts"):
        SemiSupervisedNaiveBayes().fit(X, y, pool=pool - 1)
