import numpy as np
import pytest

from dsel.bounds import (
    best_fold,
    best_fold_interval,
    best_fold_model,
    best_fold_number,
    binomial_tail_inversion,
    cv_bound,
)


def test_best_fold__takes_the_fold_with_the_smallest_limit():
    terms = best_fold([5, 3, 4], [50, 50, 51], 7, 1000, delta=0.06, label_share=0.5)
    assert terms.label_term == binomial_tail_inversion(3, 50, delta=0.01)
    assert terms.disagreement_term == binomial_tail_inversion(7, 1000, delta=0.03)


def test_best_fold_number__has_the_smallest_limit_at_every_delta(rng):
    rows = np.array([21, 21, 20, 20, 20])
    errors = rng.integers(0, 20, (500, 5))
    for delta in (1e-6, 0.1, 0.5):
        limits = binomial_tail_inversion(errors, rows, delta=delta)
        assert (limits.argmin(axis=1) == best_fold_number(errors, rows)).all()


def test_best_fold_number__is_the_smallest_among_equals():
    numbers = best_fold_number([[5, 3, 3], [2, 2, 2]], 50)
    assert numbers.tolist() == [1, 0]


def test_best_fold__label_term_never_exceeds_that_of_the_mean(rng):
    errors = rng.integers(0, 30, (200, 7))
    mean = cv_bound(errors, 40, 0, 100, delta=0.1)
    best = best_fold(errors, 40, 0, 100, delta=0.1)
    assert (best.label_term <= mean.label_term).all()


def test_best_fold__spends_more_on_disagreement_if_labels_alone_chose():
    terms = best_fold([5, 3], 50, 7, 1000, delta=0.05 / 225, disagreement_delta=0.025)
    assert terms.disagreement_term == binomial_tail_inversion(7, 1000, delta=0.025)


@pytest.mark.parametrize(
    ("n", "rate", "n_folds", "expected"),
    [
        (500, 0.05, 10, 0.241),
        (500, 0.05, 5, 0.166),
        (5000, 0.01, 10, 0.0339),
        (5000, 0.05, 5, 0.0758),
        (5000, 0.20, 10, 0.258),
        (50_000, 0.05, 10, 0.0597),
    ],
)
def test_best_fold__first_term_is_that_of_the_table(rng, n, rate, n_folds, expected):
    rows = n // n_folds
    errors = rng.binomial(rows, rate, (4000, n_folds))
    terms = best_fold(errors, rows, 0, 1, delta=0.01 / 225, label_share=0.95)
    assert terms.label_term.mean() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [(500, 0.05, 0.323), (5000, 0.01, 0.0478), (20_000, 0.05, 0.0759)],
)
def test_semi_supervised_cv_bound__first_term_is_that_of_the_table(
    rng, n, rate, expected
):
    errors = rng.binomial(n // 10, rate, (1000, 10))
    terms = cv_bound(errors, n // 10, 0, 1, delta=0.01 / 225)
    assert np.mean(terms.label_term) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("bound", [best_fold_model, best_fold, best_fold_interval])
def test_best_fold__takes_several_shares_of_one_candidate(bound):
    shares, errors = [0.05, 0.01], np.array([4, 6])
    pool = {
        best_fold_model: (),
        best_fold: (30, 10_000),
        best_fold_interval: ([30, 20], 10_000),
    }[bound]

    together = bound(errors, 100, *pool, delta=shares)

    alone = [bound(errors, 100, *pool, delta=share) for share in shares]
    assert np.array_equal(together, np.stack(alone, axis=-1))


def test_best_fold__is_never_a_fold_without_rows():
    assert best_fold_number([0, 3], [0, 10]) == 1
