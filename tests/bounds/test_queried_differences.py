"""Limits of a difference of errors: known values, monotony, and coverage."""

import numpy as np
import pytest
from scipy import stats

from dsel.bounds import (
    baseline_limits,
    mean_difference_limit,
    queried_all_rows,
    queried_difference,
    sign_test_limit,
)
from dsel.bounds.queried_differences import QUERY_SHARES


def lower(count, rows, delta):
    """Clopper-Pearson's lower limit, by another route."""
    return stats.beta.ppf(delta, count, rows - count + 1) if count else 0.0


def upper(count, rows, delta):
    return stats.beta.ppf(1 - delta, count + 1, rows - count) if count < rows else 1.0


@pytest.mark.parametrize(("against", "rows"), [(0, 50), (7, 50), (49, 50), (50, 50)])
def test_mean_difference_limit__is_one_less_two_lower_limits(against, rows):
    found = mean_difference_limit(against, rows, delta=0.02)
    assert found == pytest.approx(1 - 2 * lower(against, rows, 0.02), rel=1e-6)


def test_mean_difference_limit__is_the_sharper_form_for_two_classes():
    # 1 - b(n - z) = B(z), so both read-outs agree where Z is never 0.
    for wins in range(41):
        found = mean_difference_limit(40 - wins, 40, delta=0.05)
        assert found == pytest.approx(2 * upper(wins, 40, 0.05) - 1, abs=1e-7)


@pytest.mark.parametrize(
    ("wins", "losses"), [(0, 0), (0, 20), (5, 20), (20, 5), (50, 50), (0, 100)]
)
def test_sign_test_limit__is_the_balance_times_a_limit_of_the_rate(wins, losses):
    decided, delta = wins + losses, 0.1
    balance = 2 * upper(wins, decided, 0.9 * delta) - 1
    rate = (upper if balance >= 0 else lower)(decided, 100, 0.05 * delta)
    found = sign_test_limit(wins, losses, 100, delta=delta)
    assert found == pytest.approx(balance * rate, rel=1e-6)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_sign_test_limit__is_negative_exactly_when_the_sign_test_rejects(delta):
    for decided in (5, 12, 30):
        for wins in range(decided + 1):
            p = stats.binom.cdf(wins, decided, 0.5)
            found = sign_test_limit(wins, decided - wins, 40, delta=delta)
            assert (found < 0) == (p < 0.9 * delta)


def test_limits__never_fall_when_a_row_without_a_label_counts_for_the_old_model():
    # So a row that was handed out and got no label may count as Z = 1.
    rows = 60
    for limit in (
        lambda wins, losses: sign_test_limit(wins, losses, rows, delta=0.05),
        lambda wins, losses: mean_difference_limit(losses, rows, delta=0.05),
    ):
        for losses in range(1, rows):
            wins = np.arange(rows - losses)
            base = limit(wins, np.full(len(wins), losses))
            assert (limit(wins + 1, np.full(len(wins), losses)) >= base - 1e-12).all()
            assert (limit(wins + 1, np.full(len(wins), losses - 1)) >= base).all()


def test_queried_difference__reads_the_limit_of_the_pool_that_the_sign_asks_for():
    below, above = queried_difference([-0.5, 0.5], 300, 10_000, delta=0.1)
    assert below == pytest.approx(-0.5 * lower(300, 10_000, 0.05), rel=1e-6)
    assert above == pytest.approx(0.5 * upper(300, 10_000, 0.05), rel=1e-6)


def test_queried_difference__adds_what_duplicates_may_hide():
    found = queried_difference(
        -0.5, 300, 10_000, delta=0.1, n_duplicates=400, n_duplicates_differ=30
    )
    rest = upper(30, 10_000 - 400 + 30, 0.05)
    expected = -0.5 * lower(300, 10_000, 0.025) + rest
    assert found == pytest.approx(expected, rel=1e-6)
    # The shares are those of the plan, whether any duplicate was found or not.
    none = queried_difference(0.5, 300, 10_000, delta=0.1, n_duplicates=0)
    expected = 0.5 * upper(300, 10_000, 0.025) + upper(0, 10_000, 0.05)
    assert none == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
@pytest.mark.parametrize(
    ("worse", "better", "differ"),
    # P(f wrong, g right | D), P(g wrong, f right | D), P(D). 1, 0 is a model that is
    # wrong wherever both differ; three values of Z; fewer rows than queries.
    [(1, 0, 0.02), (0.4, 0.6, 0.05), (0.05, 0.2, 0.1), (0.3, 0.3, 0.002), (0, 1, 0.01)],
)
@pytest.mark.parametrize("rule", ["any labels", "sign test"])
def test_limits__fail_at_most_delta_of_the_time(
    rng, worse, better, differ, delta, rule
):
    draws, n_pool, n_queries = 4_000, 5_000, 40
    a = rng.binomial(n_pool, differ, draws)
    rows = np.minimum(a, n_queries)
    rates = [worse, better, max(0.0, 1 - worse - better)]
    z = np.stack([rng.multinomial(n, rates) for n in rows])
    if rule == "sign test":
        mean = sign_test_limit(z[:, 0], z[:, 1], rows, delta=0.9 * delta)
    else:
        mean = mean_difference_limit(z[:, 1], rows, delta=0.9 * delta)
    limits = queried_difference(mean, a, n_pool, delta=0.1 * delta)
    failures = (limits < differ * (worse - better) - 1e-12).mean()
    assert failures <= delta + 4 * np.sqrt(delta / draws)


def test_shares_of_a_search_with_queries__sum_to_delta():
    assert sum(QUERY_SHARES) == pytest.approx(1.0, abs=1e-15)
    assert min(QUERY_SHARES) > 0


@pytest.mark.parametrize("against", [0, 12, 40])
def test_queried_all_rows__adds_the_difference_at_its_parts_of_delta(against):
    delta, m, e, e_differ, a = 0.05, 5_000, 300, 20, 400
    mean = 1 - 2 * lower(against, 40, 0.2 * delta)
    # Duplicates are never queried: half of the pool's part is for them.
    rest = upper(e_differ, m - e + e_differ, 0.01 * delta / 2)
    most, least = upper(a, m - e, 0.01 * delta / 4), lower(a, m, 0.01 * delta / 4)
    expected = 0.1 + mean * (most if mean >= 0 else least) + rest
    found = queried_all_rows(
        0.1, mean, a, m, delta=delta, n_duplicates=e, n_duplicates_differ=e_differ
    )
    assert found == pytest.approx(expected, rel=1e-6)


def test_queried_all_rows__without_rows_to_query_pays_for_the_disagreement():
    found = queried_all_rows(0.1, 1.0, 0, 10_000, delta=0.05)
    assert 0.1 < found < 0.103


@pytest.mark.parametrize(
    ("n_classes", "chances"),
    [(2, (0.6, 0.4)), (3, (0.3, 0.2)), (3, (1.0, 0.0)), (3, (0.05, 0.1))],
)
def test_queried_all_rows__holds_for_any_law_of_labels(n_classes, chances):
    rng, delta, m, draws = np.random.default_rng(5), 0.2, 3_000, 2_000
    rate, error_of_fold, n = 0.05, 0.1, 150
    truth = error_of_fold + rate * (chances[0] - chances[1])
    chances = [*chances, max(0.0, 1 - sum(chances))]
    errors = rng.binomial(n, error_of_fold, draws)
    limit = np.array([upper(count, n, 0.78 * delta) for count in errors])
    a = rng.binomial(m, rate, draws)
    s = np.minimum(30, a)
    wins, losses, _ = rng.multinomial(s, chances).T
    if n_classes == 2:
        mean = mean_difference_limit(losses, s, delta=0.2 * delta)
    else:
        mean = sign_test_limit(wins, losses, s, delta=0.2 * delta)
    bound = queried_all_rows(limit, mean, a, m, delta=delta)
    failures = ((limit < error_of_fold) | (bound < truth)).sum()
    assert failures <= stats.binom.ppf(0.999, draws, delta)


@pytest.mark.parametrize(
    ("counts", "options", "words"),
    [
        ((1001, 1000), {}, "n_differ"),
        ((100, 1000), {"delta": 1.0}, "delta"),
        ((100, 1000), {"n_duplicates_differ": 1}, "n_duplicates_differ"),
    ],
)
def test_queried_all_rows__refuses(counts, options, words):
    with pytest.raises(ValueError, match=words):
        queried_all_rows(0.1, 0.5, *counts, **{"delta": 0.05, **options})


def test_baseline_limits__are_sign_tests_of_all_folds_at_their_shares():
    found = baseline_limits([3, 9, 5], [25, 12, 20], [100, 90, 80], delta=0.05)
    expected = [
        sign_test_limit(plus, minus, rows, delta=0.05 * share)
        for plus, minus, rows, share in (
            (3, 25, 100, 1 / 2), (9, 12, 90, 1 / 4), (5, 20, 80, 1 / 4)
        )
    ]  # fmt: skip
    assert found.tolist() == pytest.approx([float(each) for each in expected])
