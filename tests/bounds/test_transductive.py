import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dsel.bounds import transductive
from dsel.bounds.transductive import most_errors


@settings(max_examples=200)
@given(st.integers(1, 30), st.integers(1, 40), st.floats(1e-6, 0.9), st.data())
def test_most_errors__is_the_largest_likely_total(n, pool, share, data):
    c = data.draw(st.integers(0, n))
    found = most_errors(np.array([c]), np.array([n]), pool, np.array([share]))[0]
    tails = stats.hypergeom.cdf(c, n + pool, np.arange(c, c + pool + 1), n)
    likely = np.flatnonzero(tails >= share)
    # On the border rounding decides; the larger total is the safe one.
    assert found - c >= likely.max()
    assert tails[found - c] >= share * (1 - 1e-9)


def test_transductive__takes_the_best_fold_after_adding_its_disagreement():
    terms = transductive([4, 6], [100, 100], [500, 20], 1000, delta=0.05)
    alone = transductive([6], [100], [20], 1000, delta=0.025)
    assert terms.bound == alone.bound
    assert terms.disagreement_term == 0.02


def test_transductive__is_at_most_one_plus_the_disagreement():
    terms = transductive([5], [5], [3], 10, delta=0.05)
    assert terms.label_term == 1.0
    assert terms.bound == pytest.approx(1.3)


def test_transductive__takes_a_share_for_each_candidate(rng):
    errors = rng.integers(0, 20, (6, 3))
    differing = rng.integers(0, 50, (6, 3))
    shares = np.linspace(0.001, 0.01, 6)
    together = transductive(errors, 40, differing, 500, delta=shares)
    alone = transductive(errors[4], 40, differing[4], 500, delta=shares[4])
    assert together.bound[4] == alone.bound


def test_transductive__refuses_an_empty_pool():
    with pytest.raises(ValueError, match="`n_unlabeled` must be >= 1"):
        transductive([1], [5], [0], 0, delta=0.05)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_transductive__holds_on_the_rows_of_the_pool(rng, n_folds):
    # Two fixed models on a bag of rows of which some are labeled at random.
    pool, n, delta, draws = 60, 60, 0.5, 4000
    bag_errors = rng.random((draws, pool + n)) < 0.2
    on_pool = bag_errors[:, :pool].mean(axis=1)
    folds = bag_errors[:, pool:].reshape(draws, n_folds, -1)
    errors = folds.sum(axis=2)
    none = np.zeros((draws, n_folds), np.int64)
    terms = transductive(errors, n // n_folds, none, pool, delta=delta)
    fails = (terms.bound < on_pool - 1e-12).mean()
    assert 0.05 < fails <= delta + 3 * np.sqrt(0.25 / draws)
