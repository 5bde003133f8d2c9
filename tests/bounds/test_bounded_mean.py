"""Intervals for bounded means, and of active testing."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from dsel.bounds import bounded_mean_interval, leveled_risk, progressive_risk
from dsel.searches import sample_logged

N_DRAWS = 300


def misses(draw, truth, **options):
    found = [
        bounded_mean_interval(draw(), delta=0.2, **options) for _ in range(N_DRAWS)
    ]
    return np.mean([not each.lower <= truth <= each.upper for each in found])


def test_bounded_mean_interval__misses_at_most_at_delta(rng):
    assert misses(lambda: rng.random(100) < 0.1, 0.1) <= 0.2
    assert misses(lambda: rng.beta(0.3, 2.7, 100), 0.1) <= 0.2


def test_bounded_mean_interval__without_replacement_is_of_the_rows(rng):
    rows = rng.beta(0.5, 1.5, 200)
    rate = misses(lambda: rng.permutation(rows)[:120], rows.mean(), n_population=200)
    assert rate <= 0.2
    part = rng.permutation(rows)[:120]
    apart = bounded_mean_interval(part, delta=0.2)
    among = bounded_mean_interval(part, delta=0.2, n_population=200)
    assert among.upper - among.lower < apart.upper - apart.lower
    whole = bounded_mean_interval(rows, delta=0.2, n_population=200)
    np.testing.assert_allclose(whole, rows.mean())


def test_bounded_mean_interval__is_narrower_where_values_vary_less(rng):
    wide = bounded_mean_interval(rng.random(500) < 0.5, delta=0.05)
    narrow = bounded_mean_interval(0.5 + 0.1 * (rng.random(500) - 0.5), delta=0.05)
    hoeffding = np.sqrt(np.log(2 / 0.05) / (2 * 500))
    assert narrow.upper - narrow.lower < 0.5 * hoeffding
    assert wide.upper - wide.lower < 3 * hoeffding


@pytest.mark.parametrize("values", [[], [1.2], [[0.5]], [np.nan]])
def test_bounded_mean_interval__refuses_what_is_not_bounded(values):
    with pytest.raises(ValueError, match="`values` must be"):
        bounded_mean_interval(values, delta=0.1)


@pytest.fixture(scope="module")
def tested():
    X, y = make_classification(700, 5, flip_y=0.1, random_state=2)
    model = LogisticRegression().fit(X[:100], y[:100])
    return model, X[100:], (model.predict(X[100:]) != y[100:]).astype(float)


def test_leveled_risk__is_unbiased_and_covers(tested):
    model, X, wrong = tested
    found = []
    for seed in range(N_DRAWS):
        run = sample_logged(model, X, n_rows=60, least=0.3, random_state=seed)
        losses, chances = wrong[run.rows], run.query_probabilities
        found.append(leveled_risk(losses, chances, len(X), least=0.3, delta=0.2))
    mean, lower, upper = np.transpose(found)
    truth, error = wrong.mean(), mean.std() / np.sqrt(N_DRAWS)
    assert abs(mean.mean() - truth) < 4 * error
    assert np.mean((lower > truth) | (upper < truth)) <= 0.2
    assert (upper < 1).any()


def test_leveled_risk__of_all_rows_is_their_mean(tested):
    model, X, wrong = tested
    run = sample_logged(model, X, n_rows=len(X), least=0.5)
    found = leveled_risk(
        wrong[run.rows], run.query_probabilities, len(X), least=0.5, delta=0.1
    )
    assert found.mean == pytest.approx(wrong.mean())


def test_leveled_risk__refuses_rows_that_were_picked_greedily():
    with pytest.raises(ValueError, match="picked greedily"):
        leveled_risk([0.0, 1.0], [0.5, np.nextafter(0, 1)], 10, least=0.1, delta=0.1)
    with pytest.raises(ValueError, match="one chance for each"):
        leveled_risk([0.0, 1.0], [0.5], 10, least=0.1, delta=0.1)


def learn(rng, n_pool=80, n_picks=50, least=0.4):
    """Models that change with what was picked, and rows picked where they err."""
    hard = rng.random(n_pool)
    free, truths, log = np.ones(n_pool, dtype=bool), [], []
    for _ in range(n_picks):
        wrong = hard > 0.6 + 0.3 * np.mean(hard[~free] > 0.5 if (~free).any() else 0)
        weights = np.where(free, least + (1 - least) * hard, 0.0)
        chances = weights / weights.sum()
        row = rng.choice(n_pool, p=chances)
        log.append((wrong[row], chances[row], wrong[~free].sum(), free.sum()))
        truths.append(wrong.mean())
        free[row] = False
    found = progressive_risk(*np.transpose(log), n_pool, least=least, delta=0.2)
    return found, np.mean(truths)


def test_progressive_risk__is_unbiased_and_covers_models_that_change(rng):
    found, truths = zip(*(learn(rng) for _ in range(N_DRAWS)), strict=True)
    mean, lower, upper = np.transpose(found)
    off = mean - np.array(truths)
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(N_DRAWS)
    assert np.mean((lower > truths) | (upper < truths)) <= 0.2
    assert (upper < 0.9).all()


def test_progressive_risk__refuses_rows_that_were_picked_greedily():
    with pytest.raises(ValueError, match="picked greedily"):
        progressive_risk([0.0], [0.001], [0], [9], 10, least=0.1, delta=0.1)
    with pytest.raises(ValueError, match="one number for each"):
        progressive_risk([0.0], [0.5], [0, 1], [9], 10, least=0.1, delta=0.1)


LEFT = np.arange(10, 5, -1)


@pytest.mark.parametrize("losses", [[2.0, 0, 0, 0, 0], [0, -0.1, 0, 0, 0]])
@pytest.mark.parametrize("chances", [1.0 / LEFT])
def test_risks__refuse_losses_that_are_not_bounded(losses, chances):
    with pytest.raises(ValueError, match="must be in \\[0, 1\\]"):
        leveled_risk(losses, chances, 10, least=1.0, delta=0.1)
    with pytest.raises(ValueError, match="must be in \\[0, 1\\]"):
        progressive_risk(losses, chances, np.zeros(5), LEFT, 10, least=1.0, delta=0.1)


@pytest.mark.parametrize("earlier", [np.full(5, -1.0), np.full(5, 9.0)])
def test_progressive_risk__refuses_more_errors_than_rows_labeled_before(earlier):
    with pytest.raises(ValueError, match="`earlier_losses` must be"):
        progressive_risk(
            np.zeros(5), 1.0 / LEFT, earlier, LEFT, 10, least=1.0, delta=0.1
        )
