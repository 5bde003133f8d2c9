"""What is said of labels that are probably not what was meant."""

import re

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import dsel
from dsel.results.assumptions import VIOLATED, Assumption
from dsel.results.records import from_record, to_record
from dsel.search.design.assumption_checks import (
    ALARM,
    FEWEST_TESTED_ROWS,
    NearRows,
    PoolFacts,
    compare_pool,
    count_copies,
    find_near_rows,
    two_sample_test,
)
from dsel.search.running.run_description import with_pool_facts


def certified(labels, model=None):
    X = np.random.default_rng(0).normal(size=(len(labels), 2))
    model = KNeighborsClassifier() if model is None else model
    return str(dsel.certify(model, X, labels, random_state=0))


def test_caveat__names_the_class_that_trainings_lack_and_its_rows():
    text = certified(["yes"] * 60 + ["no"] * 60 + ["perhaps"])
    assert "never predict: 'perhaps' (1 row)" in text
    assert "lack a class" not in certified(["yes"] * 60 + ["no"] * 60)


@pytest.mark.parametrize(
    ("rare", "n", "large"),
    [("noo", 1, "no"), ("n0", 1, None), ("nay", 1, None), ("yess", 3, "yes"),
     ("yess", 20, None), ("site 3", 1, None)],
)  # fmt: skip
def test_caveat__of_a_rare_class_that_is_one_letter_off_a_large_one(rare, n, large):
    text = certified(["yes"] * 80 + ["no"] * 80 + ["site 1"] * 80 + [rare] * n)
    assert ("differs by one letter" in text) == (large is not None)
    if large:
        rows = f"{n} row{'s' if n > 1 else ''}"
        assert f"class '{rare}' ({rows}) differs by one letter from '{large}'" in text


def test_note__of_a_regressor_whose_targets_may_be_classes():
    numbers = np.arange(90) % 10
    note = "`y` has 10 different whole numbers, and Ridge predicts numbers"
    assert note in certified(numbers, Ridge())
    for others in (numbers + 0.5, np.arange(90)):
        assert "different whole numbers" not in certified(others, Ridge())
    X = np.random.default_rng(0).normal(size=(90, 2))
    assert note in str(dsel.plan_search(Ridge(), {"alpha": [1, 2]}, X, numbers))


def _shifted(kind, rng):
    rows = rng.normal(size=(500, 20))
    if kind == "mean":
        rows[:, 7] += 0.8
    elif kind == "scale":
        rows[:, 7] *= 2.0
    else:
        rows[:, 7] = 0.95 * rows[:, 3] + np.sqrt(1 - 0.95**2) * rows[:, 7]
    return rows


@pytest.mark.parametrize("kind", ["mean", "scale", "correlation"])
@pytest.mark.parametrize("seed", range(3))
def test_two_sample_test__sees_a_shift_of_one_column_of_twenty(kind, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(500, 20)), _shifted(kind, rng)
    test = two_sample_test(first, second, seed=seed, level=0.01)
    assert test.p_value <= 0.001
    # Tested alone, no column shows a correlation, and unchanged ones show nothing.
    assert test.columns == (() if kind == "correlation" else (7,))


def test_two_sample_test__has_valid_p_values_in_both_of_its_stages():
    rng = np.random.default_rng(0)
    p_values = np.array([
        two_sample_test(*rng.normal(size=(2, 60, 3)), seed=seed, level=0.01).p_value
        for seed in range(200)
    ])  # fmt: skip
    for level in (0.02, 0.05, 0.1, 0.2, 0.5):
        n_refuted = int((p_values <= level).sum())
        assert stats.binom.sf(n_refuted - 1, len(p_values), level) > 0.001, level
    assert (p_values > 0.1).any()
    assert (p_values < 0.1).any()


def search_copies(rows, pool=None, groups=None):
    """Certify one neighbor; every two rows have one label."""
    y = np.repeat(np.random.default_rng(1).integers(2, size=len(rows) // 2), 2)
    one = KNeighborsClassifier(1)
    return dsel.certify(one, rows, y, pool, groups=groups, random_state=0)


COPIED = np.repeat(np.random.default_rng(0).normal(size=(100, 3)), 2, axis=0)
SINGLE = np.random.default_rng(5).normal(size=(150, 3))
SOME_COPIED = np.vstack([SINGLE, COPIED[:50]])
"""A quarter of so few rows may be equal by chance."""
FRESH = np.random.default_rng(2).normal(size=(600, 3))


@pytest.mark.parametrize("n_equal", [0, 3])
def test_copies__that_the_pool_lacks_void_every_bound(n_equal):
    outcome = search_copies(COPIED, np.vstack([COPIED[: 2 * n_equal : 2], FRESH]))
    which = (
        f"only {n_equal} of 603 pool rows equal" if n_equal else "no pool row equals"
    )
    for certificate in outcome.certificates.values():
        assert not certificate.certified
        [reason] = certificate.reasons
        assert "of 200 labeled rows equal rows of other folds, but " + which in reason
        assert "(drop_duplicates), or pass `groups`" in repr(certificate)
        finding = reason.partition("population): ")[2]
        assert finding in repr(certificate)
    assert str(outcome.choice).count("equal rows of other folds") == 1


def test_copies__in_the_pool_void_every_bound():
    pool = np.repeat(FRESH[:100], 3, axis=0)
    rng = np.random.default_rng(3)
    for rows, is_certified in ((rng.normal(size=(200, 3)), False), (COPIED, True)):
        certificate = search_copies(rows, pool).certificate
        said = "pool rows equal an earlier one, and far fewer labeled rows do"
        assert (said in " ".join(certificate.reasons)) is not is_certified


@pytest.mark.parametrize("n_values", [2, 9, 1000])
def test_copies__of_labeled_rows_in_the_pool_are_allowed(n_values):
    rng = np.random.default_rng(5)
    rows, new = rng.integers(n_values, size=(2, 200, 3)).astype(float)
    outcome = search_copies(rows, np.vstack([rows, rows, rows, new]))
    assert outcome.certificate.certified


@pytest.mark.parametrize("n_times", [2, 3])
def test_copies__without_a_pool_void_every_bound(n_times):
    outcome = search_copies(np.repeat(FRESH[: 600 // n_times], n_times, axis=0))
    assert not outcome.certificate.certified
    assert "rows repeat as independent draws cannot" in str(outcome).lower()
    assert "Warning" not in str(outcome)


def test_copies__of_fitted_models_rows_void_the_bound():
    y = np.random.default_rng(1).integers(2, size=400)
    model = KNeighborsClassifier(1).fit(FRESH[:400] + 1.0, y)
    for rows, is_certified in (
        (FRESH[:400], True),
        (FRESH[np.arange(400) // 2], False),
    ):
        found = dsel.certify(model, rows, y, cv="prefit")
        assert found.certified is is_certified
        assert found.headline().startswith("No guarantee") is not is_certified
        assert ("Rows repeat as independent draws" in str(found)) is not is_certified


def test_copies__of_a_whole_pool_void_every_bound():
    rng, n = np.random.default_rng(3), 20_000
    pool = rng.normal(size=(n, 3))
    twice = np.repeat(pool[: n // 2], 2, axis=0)[rng.permutation(n)]
    for rows, is_certified in ((pool, True), (twice, False)):
        certificate = search_copies(SINGLE, rows).certificate
        assert certificate.certified is is_certified
        found = "pool rows repeat as independent draws cannot"
        assert (found in " ".join(certificate.reasons)) is not is_certified


def test_copies__without_a_pool_are_the_first_thing_said():
    outcome = search_copies(SOME_COPIED)
    assert outcome.certificate.certified
    for shown in (outcome.choice, outcome.certificate):
        assert str(shown).startswith("Warning   ")
        assert str(shown).count("labeled rows equal rows of other folds") == 1
    assert "labeled rows equal rows of other folds" in repr(outcome.certificate)
    assert "% (95% confidence, if duplicates are no copies), model" in str(
        outcome.choice
    )


def test_duplicates__are_no_copies_where_pool_rows_are_equal_as_often():
    few = np.random.default_rng(3).integers(9, size=(800, 2)).astype(float)
    outcome = search_copies(few[:200], few[200:])
    assert outcome.certificate.certified
    assert "Caveat" in str(outcome.choice)  # caveats of the plan stay


def test_two_sample_test__is_not_misled_by_copies_in_one_table():
    rng = np.random.default_rng(4)
    copied = np.repeat(rng.normal(size=(50, 3)), 10, axis=0)
    p_values = [
        two_sample_test(
            copied, rng.normal(size=(500, 3)), seed=seed, level=0.01
        ).p_value
        for seed in range(3)
    ]
    assert min(p_values) > 0.01
    # Of a few values, equal rows are no copies: they show the shift.
    few, other = (rng.integers(low, 4, size=(500, 1)) * 1.0 for low in (0, 1))
    assert two_sample_test(few, other, seed=0, level=0.01).p_value <= 0.001
    alone = two_sample_test(
        np.zeros((500, 3)), rng.normal(size=(500, 3)), seed=0, level=0.01
    )
    assert np.isnan(alone.auc)


def test_two_sample_test__finds_keys_of_which_each_is_in_one_table_alone():
    rng = np.random.default_rng(0)
    keys = rng.permutation(2_000) * 1.0
    first, second = keys[rng.integers(0, 100, 400)], keys[rng.integers(100, 2_000, 900)]
    tables = [np.c_[rng.normal(size=len(each)), each] for each in (first, second)]
    test = two_sample_test(*tables, seed=0, level=0.001)
    assert test.p_value <= 0.001
    assert test.columns == (1,)
    same = [
        np.c_[rng.normal(size=n), keys[rng.integers(0, 300, n)]] for n in (400, 900)
    ]
    assert two_sample_test(*same, seed=0, level=0.001).p_value > 0.001


def customers(rng, n, spread=0.2):
    """Return rows of customers, 3 to 10 of each, and the customer of each row."""
    of = np.repeat(np.arange(n), rng.integers(3, 11, size=n))
    return rng.normal(size=(n, 8))[of] + spread * rng.normal(size=(len(of), 8)), of


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_find_near_rows__finds_groups_of_which_the_pool_has_others(missing):
    rng = np.random.default_rng(0)
    (X, _), (pool, _) = customers(rng, 50), customers(rng, 400)
    X[rng.random(X.shape) < missing] = np.nan
    pool[rng.random(pool.shape) < missing] = np.nan
    pool = rng.permutation(pool)[:500]
    n_rows, n_near, n_expected = find_near_rows(X, pool, seed=0)
    assert n_rows == len(X)
    assert n_near > 0.8 * n_rows
    assert n_expected == pytest.approx(n_rows * (n_rows - 1) / (n_rows + 499), abs=1)


def test_find_near_rows__finds_none_where_both_tables_are_of_the_same_rows():
    rng = np.random.default_rng(0)
    rows, _ = customers(rng, 200)
    rows = rng.permutation(rows)
    assert not find_near_rows(rows[:400], rows[400:800], seed=0)
    for values in (rng.normal(size=(900, 4)), rng.integers(3, size=(900, 4)) * 1.0):
        for seed in range(20):
            X = rng.permutation(values)
            assert not find_near_rows(X[:400], X[400:], seed=seed)
    # Equal rows are for other tests: here each is there three times.
    X = np.repeat(rng.normal(size=(100, 4)), 3, axis=0)
    assert not find_near_rows(X, rng.normal(size=(400, 4)), seed=0)


def test_find_near_rows__takes_sparse_rows_of_either_table():
    X, pool = np.random.default_rng(0).normal(size=(2, 60, 4))
    assert find_near_rows(X, sparse.csr_array(pool), seed=0) is None
    assert find_near_rows(sparse.csr_array(X), pool, seed=0) is None


def test_near_rows__are_read_as_all_versions_wrote_them():
    facts = PoolFacts(auc=0.5, near_rows=NearRows(9, 8, 3))
    record = to_record(facts)
    assert record["near_rows"] == [9, 8, 3]
    assert from_record(PoolFacts, record) == facts
    assert from_record(PoolFacts, record | {"near_rows": []}).near_rows is None
    for wrong in ([9, 8], [9, 8, "3"]):
        with pytest.raises((TypeError, ValueError)):
            from_record(PoolFacts, record | {"near_rows": wrong})


def test_find_near_rows__takes_no_other_population_for_groups():
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(2, 400, 4))
    pool[:, 0] += 3.0
    assert find_near_rows(X, pool, seed=0)
    assert not find_near_rows(X, pool, seed=0, is_shifted=True)
    (X, _), (pool, _) = customers(rng, 80), customers(rng, 400)
    pool = rng.permutation(pool)[:500]
    assert find_near_rows(X, pool, seed=0, is_shifted=True)


def test_search__of_customers_without_their_keys_certifies_nothing():
    rng = np.random.default_rng(0)
    (X, of), (pool, _) = customers(rng, 400), customers(rng, 1_500)
    y = rng.integers(2, size=400)[of]
    pool = rng.permutation(pool)[:1_000]
    arguments = KNeighborsClassifier(), {"n_neighbors": [1]}, X, y
    choice = dsel.plan_search(*arguments, pool, random_state=0).run().choice
    text = " ".join(str(choice).split())
    assert (
        "No guarantee, since A1 is violated (independent draws from one population): "
        in text
    )
    assert "labeled rows have another labeled row as their nearest one" in text
    assert "no bound of this run holds, so run again with groups='customer'" in text
    grouped = dsel.plan_search(*arguments, groups=of, random_state=0).run().choice
    assert grouped.certificate.certified


def test_copies__have_the_way_to_balance_classes_only_where_there_are_some():
    grid, y = {"n_neighbors": [1]}, np.arange(200) // 2
    numbers = (KNeighborsRegressor(), grid, SOME_COPIED, 0.5 + y)
    classes = (KNeighborsClassifier(), grid, SOME_COPIED, y % 2)
    for arguments, has_way in ((numbers, False), (classes, True)):
        text = str(dsel.plan_search(*arguments, random_state=0))
        assert "equal rows of other folds" in text
        assert ("class_weight" in text) == has_way


def test_copies__are_told_once_with_the_numbers_that_they_make_too_small():
    text = " ".join(str(search_copies(SOME_COPIED).choice).split())
    found = r"Warning \d+ of 200 labeled rows equal rows of other folds: if they are "
    assert re.search(f"{found}copies .*, bound and estimate may be too small", text)
    assert len(re.findall("equal rows|such rows", text)) == 1


def test_copies__in_one_group_say_nothing():
    outcome = search_copies(COPIED, groups=np.repeat(np.arange(100), 2))
    assert outcome.certificate.certified
    assert "equal rows of other folds" not in str(outcome.choice)


A1 = Assumption("A1")


def with_facts(violation="", known=A1, **facts):
    """Return A1 with the facts of a pool; A2 never changes."""
    first, other = with_pool_facts(
        [known, Assumption("A2")], PoolFacts(**facts), violation
    )
    assert other == Assumption("A2")
    return first


def test_with_pool_facts__says_what_was_found_where_nothing_refutes():
    for n, text in ((0, "no pool row equals"), (1, "1 pool row equals a"),
                    (1_200, "1,200 pool rows equal a")):  # fmt: skip
        found = with_facts(n_duplicates=n, auc=0.52, p_value=0.4)
        assert not found.is_violated
        assert text in found.reason
        assert "does not refute it (AUC 0.52, p = 0.4;" in found.reason
    assert "too few rows for a two-sample test" in with_facts().reason


def test_with_pool_facts__a_classifier_refutes_and_names_its_column():
    found = with_facts(auc=0.9, p_value=1e-5, telling_columns=("age", "town", "site"))
    assert found.is_violated
    assert found.reason == (
        "a classifier distinguishes labeled rows from pool rows, most by column age, "
        "then by town, site (AUC 0.90, p = 1e-05)"
    )


def areas_of_customers(rng, n_customers, rows_each, *, as_text=False):
    """Return rows of customers, with the area of each, which all its rows share."""
    of = np.repeat(np.arange(n_customers), rows_each)
    area = rng.permutation(10_000)[:n_customers]
    u = rng.normal(size=n_customers)[of] + 0.5 * rng.normal(size=len(of))
    areas = np.char.add("A", area.astype(str)) if as_text else area / 10
    X = pd.DataFrame({"area": areas[of], "u": u})
    return X, (u + rng.normal(size=len(of)) > 0).astype(int)


class Numbers(LinearDiscriminantAnalysis):
    """A classifier by the numbers of a frame alone."""

    def fit(self, X, y):
        return super().fit(X[["u"]], y)

    def predict(self, X):
        return super().predict(X[["u"]])


@pytest.mark.parametrize("as_text", [False, True])
def test_forgotten_groups__are_named_beside_the_shift_of_a_column(as_text):
    rng = np.random.default_rng(0)
    X, y = areas_of_customers(rng, 40, 8, as_text=as_text)
    pool, _ = areas_of_customers(rng, 400, 4, as_text=as_text)
    search = dsel.SemiSupervisedSearchCV(Numbers(), {"tol": [1e-4]}, random_state=0)
    text = str(search.fit(X, y, pool=pool).choice_)
    assert "most by column area" in text
    assert "100% of labeled rows have the area of another labeled row, and" in text
    assert "so these may be groups: if rows of one area belong together" in text
    assert "run again with groups='area'" in text
    again = search.fit(X, y, pool=pool, groups="area")  # what it says runs
    assert "may be groups" not in str(again.choice_)


def test_shared_values__are_no_groups_where_numbers_are_only_shifted():
    rng = np.random.default_rng(0)

    def people(low, high):
        X = np.column_stack([rng.integers(low, high, 400), rng.normal(size=400)])
        return X, (X[:, 1] > 0).astype(int)

    (X, y), (pool, _) = people(18, 40), people(18, 90)
    search = dsel.SemiSupervisedSearchCV(
        LinearDiscriminantAnalysis(), {"tol": [1e-4]}, random_state=0
    )
    text = str(search.fit(X, y, pool=pool).choice_)
    assert "most by column 0" in text
    assert "may be groups" not in text
    # Arrays have no names of columns.
    pool[:, 0] = rng.permutation(40_000)[:400] / 1_000
    text = str(search.fit(X, y, pool=pool).choice_)
    assert "run again with groups=X[:, 0]" in text


def test_with_pool_facts__speaks_of_groups_where_no_column_differs():
    found = with_facts(auc=0.6, p_value=1e-3).reason
    assert "(AUC 0.60, p = 0.001), by no column alone; rows that come in" in found
    assert found.endswith("so run again with groups='customer' then")


def test_with_pool_facts__copies_refute_and_stand_first():
    assert with_facts("copies", p_value=0.4) == Assumption("A1", VIOLATED, "copies")
    found = with_facts("copies", auc=0.9, p_value=1e-5)
    assert found.is_violated
    assert found.reason.startswith("copies; a classifier distinguishes")


def test_with_pool_facts__keep_a_violation_that_the_plan_has_found():
    known = Assumption("A1", VIOLATED, "rows come in groups")
    assert with_facts(known=known, auc=0.5, p_value=0.5) == known


LABELED = dsel.plan_search(
    KNeighborsClassifier(), {"n_neighbors": [1]}, SINGLE, SINGLE[:, 0] > 0
).search.labeled


def compare(rows, chunk_rows=100, **options):
    pool = dsel.open_pool(da.from_array(rows, chunks=(chunk_rows, -1)))
    return compare_pool(pool, LABELED, seed=0, allow_nan=False, **options)


def test_compare_pool__counts_duplicates_and_no_shift_in_any_blocks():
    pool = np.vstack([FRESH[:200], SINGLE[:7], FRESH[200:], SINGLE[3:5]])
    findings, others = compare(pool), compare(pool, chunk_rows=37)
    assert findings.pool_facts == others.pool_facts
    assert findings.pool_facts.n_duplicates == 9
    assert findings.pool_facts.p_value > ALARM
    assert findings.pool_facts.telling_columns == ()
    assert not findings.pool_facts.violation
    numbers, other_numbers = (
        found.sampled_rows.row_numbers.tolist() for found in (findings, others)
    )
    assert numbers == other_numbers


def test_compare_pool__finds_the_column_of_a_shift_and_copies():
    shifted = compare(FRESH + [0.0, 2.0, 0.0]).pool_facts
    assert (shifted.p_value <= ALARM, shifted.telling_columns) == (True, ("1",))
    assert compare(np.repeat(FRESH[:200], 3, axis=0)).pool_facts.violation
    few = compare(FRESH[: FEWEST_TESTED_ROWS - 1]).pool_facts
    assert np.isnan(few.auc)
    assert few.p_value == 1.0
    assert not few.violation  # a pool that is too small for tests refutes nothing
    assert np.isfinite(compare(FRESH[:FEWEST_TESTED_ROWS]).pool_facts.auc)


def test_count_copies__are_none_where_labeled_rows_repeat_as_often():
    labeled = np.append(np.arange(60), np.arange(40))[:, None]
    # All repeats of the pool come last, where as many rows as labeled ones have none.
    pool = 100 + np.append(np.arange(120), np.arange(80))[:, None]
    assert count_copies(labeled, pool, np.full(200, True), seed=0) == 0
    assert count_copies(labeled[:80], pool, np.full(200, True), seed=0) == 80


def test_compare_pool__is_ended_by_its_turn_before_the_test():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(FRESH, on_turn=stop)
