"""Labeled rows that are in the pool too, in any of its parts and nearly or exactly."""

import operator

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import dsel
from tests.estimators import Rememberer


def draw(rng, n_rows, n_columns=4):
    X = rng.normal(size=(n_rows, n_columns)) * [1.0, 20.0, 0.1, 3.0][:n_columns]
    y = (X[:, 0] > 0).astype(int)
    y[:2] = 0, 1
    return X, y


def numbers_of(pool):
    return pool.reduce(lambda X, rows: rows.tolist(), operator.add)


def search(X, y, pool, estimator=None, **options):
    estimator = GaussianNB() if estimator is None else estimator
    given = {"cv": 3, "random_state": 1, "delta": 0.1, "criterion": "cv_bound"}
    return dsel.SemiSupervisedSearchCV(None, [estimator], **given | options).fit(
        X, y, pool
    )


def about_rows(found):
    return found.certificate_.assumptions[0]


def with_labeled_rows_in_fitting_part(rng, seed, n_labeled=120):
    X, y = draw(rng, n_labeled)
    pool, _ = draw(rng, 2_000)
    plan = dsel.plan_search(
        None, [Rememberer()], X, y, pool, cv=3, random_state=seed, criterion="cv_bound"
    )
    fitted = numbers_of(plan.work.fitting_pool)
    pool[fitted[:n_labeled]] = X
    return X, y, pool, fitted[:n_labeled]


def test_plan_search__refuses_a_pool_without_rows(rng):
    X, y = draw(rng, 60)
    with pytest.raises(ValueError, match="`pool` must have rows, got none; use None"):
        search(X, y, X[:0])


def test_fit__refuses_labeled_rows_in_the_fitting_part_alone(rng):
    X, y, pool, _ = with_labeled_rows_in_fitting_part(rng, 1)
    with pytest.raises(ValueError, match="120 of 120 labeled rows equal one of 120"):
        search(X, y, pool, Rememberer(errs_on_pool=False))


def test_fit__excludes_labeled_rows_from_both_parts(rng):
    X, y, pool, shared = with_labeled_rows_in_fitting_part(rng, 1)
    counted = numbers_of(dsel.open_pool(pool).part(0.5, 1.0, seed=1))
    pool[shared[:60]] += 1.0
    pool[counted[:60]] = X[:60]
    found = search(X, y, pool, Rememberer(), duplicates="exclude")
    remembered = found.best_estimator_.remembered_
    assert found.results_.pool_rows.sum() == len(counted) - 60
    assert len(remembered) == 2_000 - len(counted) - 60
    assert not remembered & {row.tobytes() for row in X}


def test_fit__certifies_no_learner_that_remembers_labeled_rows_of_its_pool():
    rng, failed = np.random.default_rng(3), 0
    for seed in range(20):
        X, y, pool, _ = with_labeled_rows_in_fitting_part(rng, seed)
        learner = Rememberer(errs_on_pool=False)
        found = search(X, y, pool, learner, duplicates="exclude", random_state=seed)
        fresh, truth = draw(rng, 500)
        certificate = found.certificate_
        wrong = np.mean(found.predict(fresh) != truth)
        failed += certificate.certified and wrong > certificate.bound
    assert failed == 0  # the learner errs on all new rows, which no bound is below


def test_fit__refuses_a_pool_of_which_nothing_is_left(rng):
    X, y = draw(rng, 200)
    with pytest.raises(ValueError, match="none is left: 50 equal labeled rows"):
        search(X, y, X[:50], duplicates="exclude")


def nearly(X, how):
    return {
        "noise": lambda: X * (1 + 1e-9),
        "six digits": lambda: np.round(X, 6),
        "float32": lambda: X.astype(np.float32).astype(float),
    }[how]()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("how", ["noise", "six digits", "float32"])
def test_fit__refuses_near_copies(how, make, rng):
    (X, y), (pool, _) = draw(rng, 200), draw(rng, 1_000)
    copied = make(np.vstack([pool, nearly(X, how)]))
    estimator = Rememberer() if make is np.asarray else None
    message = r"near copies of \d+ of \d+ labeled rows.*noise alone.*\"exclude\""
    with pytest.raises(ValueError, match=message):
        search(X, y, copied, estimator)


def test_fit__excludes_near_copies(rng):
    (X, y), (pool, _) = draw(rng, 200), draw(rng, 1_000)
    copied = np.vstack([pool, X[:100], nearly(X[100:], "noise")])
    found = search(X, y, copied, duplicates="exclude")
    assert found.results_.pool_rows.sum() == 1_000
    assert "200 pool rows were the labeled records" in about_rows(found).reason


def test_fit__declares_that_a_few_near_copies_are_other_records(rng):
    (X, y), (pool, _) = draw(rng, 200), draw(rng, 1_000)
    found = search(X, y, np.vstack([pool, nearly(X[:5], "noise")]))
    assert found.certificate_.certified
    assert about_rows(found).state == "declared"
    assert "near copies of 5 of 200 labeled rows" in about_rows(found).reason


@pytest.mark.parametrize("n_shared", [200, 60])
def test_fit__is_no_guarantee_where_kept_rows_are_the_labeled_records(n_shared, rng):
    (X, y), (pool, _) = draw(rng, 200), draw(rng, 1_000)
    found = search(X, y, np.vstack([pool, X[:n_shared]]), duplicates="keep")
    assert not found.certificate_.certified
    said = found.certificate_.reasons[0]
    assert "random pool rows equal a labeled row, more than chance makes" in said
    assert "rows were drawn at random" not in said  # it speaks for A1


def test_fit__is_no_guarantee_where_a_learner_sees_kept_labeled_records(rng):
    X, y, pool, _ = with_labeled_rows_in_fitting_part(rng, 1)
    found = search(X, y, pool, Rememberer(), duplicates="keep")
    said = found.certificate_.reasons[0]
    assert "120 of 120 labeled rows equal pool rows, more than chance makes" in said


def test_fit__keeps_its_guarantee_where_chance_makes_rows_equal(rng):
    X = rng.integers(0, 3, size=(1_500, 4)).astype(float)
    y = (X.sum(axis=1) > 4).astype(int)
    found = search(X[:300], y[:300], X[300:], duplicates="keep")
    assert found.certificate_.certified
    assert "are kept as other records" in about_rows(found).reason


@pytest.mark.parametrize("times", [1, 4])
def test_fit__is_no_guarantee_where_records_recur_that_are_left_out_once(times, rng):
    X, y = draw(rng, 100)
    pool = np.vstack([draw(rng, 2_000)[0], *[X] * times])
    found = search(X, y, pool, duplicates="exclude")
    assert found.certificate_.certified == (times == 1)
    if times > 1:
        assert "the pool holds records more than once" in about_rows(found).reason


def test_fit__leaves_out_records_among_discrete_rows_that_recur_by_chance(rng):
    X = rng.integers(0, 6, size=(3_000, 3)).astype(float)
    y = (X[:100, 0] > 2).astype(int)
    found = search(X[:100], y, X, duplicates="exclude")
    assert found.certificate_.certified


@pytest.mark.parametrize("form", ["array", "frames", "csr"])
@pytest.mark.parametrize("rounded", ["labels", "pool"])
def test_fit__takes_float32_of_few_digits_for_no_other_population(rounded, form, rng):
    X = np.round(rng.normal(size=(1_500, 4)), 1)
    y = (X[:300, 0] > 0).astype(int)
    given, pool = X[:300], X[300:]
    if rounded == "labels":
        given = given.astype(np.float32)
    else:
        pool = pool.astype(np.float32)
    if form == "frames":
        given, pool = (
            pd.DataFrame(each, columns=list("abcd")) for each in (given, pool)
        )
    if form == "csr":
        given, pool = map(sparse.csr_matrix, (given, pool))
    estimator = LogisticRegression()
    found = search(given, y, pool, estimator, duplicates="keep")
    assert found.certificate_.certified
    assert "does not tell labeled rows from pool rows" in about_rows(found).reason


def test_fit__refuses_labeled_float32_that_are_pool_rows_of_float64(rng):
    times = 1.7e9 + 86_400 * rng.random((600, 2))  # float32 rounds to 128 seconds
    X, y = times[:100].astype(np.float32), np.arange(100) % 2
    with pytest.raises(ValueError, match="100 of 100 labeled rows equal one of 100"):
        search(X, y, times)
    assert search(X, y, times[100:]).certificate_.certified


def test_fit__takes_no_float_for_the_whole_number_before_it(rng):
    codes = rng.integers(0, 256, size=(600, 4))
    y = np.arange(100) % 2
    pool = codes.astype(np.uint8)
    found = about_rows(search(codes[:100] + 0.5, y, pool))
    assert "no pool row equals a labeled row" in found.reason
    found = about_rows(search(codes[:100] + 256, y, pool))
    assert "a classifier tells labeled rows from pool rows" in found.reason
    with pytest.raises(ValueError, match="100 of 100 labeled rows equal one of 100"):
        search(codes[:100].astype(float), y, pool)
