import numpy as np
import pytest

from dsel.bounds import averaged_disagreement, betting_limit, cv_bound

SHARE = 0.05 * 0.01 / 225


def histogram_of(n_rows):
    """Shares 0, .4 and .8 of ten fold models: mean .02, variance about .4 d (1 - d)."""
    counts = np.zeros(11, np.int64)
    counts[4] = round(0.97 * n_rows * 0.02 / 0.4)
    counts[8] = round((n_rows * 0.02 - 0.4 * counts[4]) / 0.8)
    counts[0] = n_rows - counts.sum()
    return counts


@pytest.mark.parametrize(
    ("n_rows", "betting", "bet"),
    [(10**4, 0.0252, 0.56), (10**5, 0.02145, 0.18), (10**6, 0.02033, 0.056)],
)
def test_betting_limit__is_near_that_of_the_table(n_rows, betting, bet):
    counts = histogram_of(n_rows)
    found = betting_limit(counts - counts // 20, delta=SHARE, bets=[bet])
    assert found == pytest.approx(betting, rel=0.01)


def test_betting_limit__is_one_where_every_row_differs():
    assert betting_limit([0, 0, 50], delta=0.05) == pytest.approx(1.0)


def test_betting_limit__does_not_depend_on_the_order_of_candidates(rng):
    counts = rng.multinomial(500, [0.9, 0.06, 0.04], 8)
    together = betting_limit(counts, delta=0.01)
    alone = [betting_limit(row, delta=0.01) for row in counts]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_betting_limit__rises_with_every_disagreement(rng):
    for counts in rng.multinomial(300, [0.8, 0.1, 0.1], 20):
        more = counts + [-1, 1, 0]
        assert betting_limit(more, delta=0.1) > betting_limit(counts, delta=0.1)


def test_betting_limit__fails_at_most_delta(rng):
    delta, n_rows, draws = 0.5, 150, 3000
    chances = np.array([0.7, 0.1, 0.05, 0.05, 0.05, 0.05])
    mean = chances @ np.linspace(0, 1, 6)
    counts = rng.multinomial(n_rows, chances, draws)
    fails = (betting_limit(counts, delta=delta) < mean).mean()
    assert 0.005 < fails <= delta


def test_averaged_disagreement__is_the_tighter_one_for_few_rows():
    errors, counts = np.full(10, 3), histogram_of(10_000)
    terms = averaged_disagreement(errors, 50, counts, delta=SHARE)
    plain = cv_bound(errors, 50, 200, 10_000, delta=SHARE)
    assert terms.label_term == plain.label_term
    assert terms.disagreement_term < plain.disagreement_term


def test_averaged_disagreement__refuses_a_histogram_of_other_folds():
    with pytest.raises(ValueError, match="`histogram` must have 3 entries"):
        averaged_disagreement([3, 4], 50, [900, 80, 20, 0], delta=0.1)


@pytest.mark.parametrize("bets", [[0.0], [1.1], [0.5, -1.0]])
def test_betting_limit__refuses_stakes_it_could_not_lose(bets):
    with pytest.raises(ValueError, match="`bets` must lie in"):
        betting_limit([9, 1], delta=0.1, bets=bets)
