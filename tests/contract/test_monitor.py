"""Is the promise still about these rows? Tests of new rows, through public names."""

import json
import pickle
import shutil
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import make_classification, make_friedman1
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import dsel
from dsel.errors import GuaranteeWarning
from dsel.results import MonitorReport

pytestmark = pytest.mark.contract

X, Y = make_classification(6000, 6, flip_y=0.1, class_sep=0.8, random_state=0)
NEW, TRUTH = X[4000:], Y[4000:]
NAMES = list("abcdef")


def outcome_of(pool=X[400:4000], estimator=None, y=Y[:400], **options):
    estimator = estimator or LogisticRegression()
    options = {"random_state": 0, **options}
    grid = {"C": [0.01, 1.0]} if isinstance(estimator, LogisticRegression) else {}
    grid = grid or {"strategy": ["prior"]}
    return dsel.plan_search(estimator, grid, X[:400], y, pool, **options).run()


@pytest.fixture(scope="module")
def outcome():
    return outcome_of()


def results_of(report):
    return {test.name: test.result for test in report.tests}


def test_named(report, name):
    [found] = [test for test in report.tests if test.name == name]
    return found


test_named.__test__ = False


def test_monitor__keeps_the_promises_on_rows_of_the_same_population(outcome):
    report = outcome.monitor(NEW, y=TRUTH)
    assert set(results_of(report).values()) == {"kept"}
    assert list(results_of(report)) == [
        "rows", "disagreement", "error of one_fold", "error of all_rows",
    ]  # fmt: skip
    assert not report.is_refuted
    assert str(report).startswith(
        "Nothing is refuted by 2,000 new rows (a true statement "
    )


def test_monitor__says_that_a_model_of_arrays_takes_named_columns_by_position(outcome):
    turned = pd.DataFrame(NEW, columns=NAMES)[NAMES[::-1]]
    [note] = [
        note for note in outcome.monitor(turned, y=TRUTH).notes if "order" in note
    ]
    assert "in their order: f, e, d, c, b, a" in note
    assert outcome.monitor(NEW, y=TRUTH).notes == ()


def test_monitor__counts_what_the_deployed_models_predict(outcome):
    report = outcome.monitor(NEW, y=TRUTH)
    one_fold, all_rows = (outcome.models[n].predict(NEW) for n in outcome.certificates)
    differ = test_named(report, "disagreement")
    assert differ.n_found == (one_fold != all_rows).sum()
    error = test_named(report, "error of one_fold")
    # The lower Clopper-Pearson limit at the level of the test.
    n_errors = (one_fold != TRUTH).sum()
    exact = stats.beta.ppf(0.01, n_errors, len(TRUTH) - n_errors + 1)
    assert error.at_least == pytest.approx(exact, abs=1e-6)
    assert error.limit == outcome.certificates["one_fold"].bound


def test_monitor__names_the_column_that_was_shifted(outcome):
    moved = NEW.copy()
    moved[:, 3] += 1.5
    rows = test_named(outcome.monitor(moved), "rows")
    assert rows.result == "refuted"
    assert rows.columns[0] == "3"


def test_monitor__refutes_the_bounds_where_the_labels_have_changed(outcome):
    turned = np.where(np.arange(len(TRUTH)) % 2, TRUTH, 1 - TRUTH)
    found = results_of(outcome.monitor(NEW, y=turned))
    assert found["error of one_fold"] == found["error of all_rows"] == "refuted"
    assert found["rows"] == found["disagreement"] == "kept"


@pytest.mark.parametrize(("n_records", "n_times"), [(60, 20), (800, 2)])
def test_monitor__tests_no_bound_on_copies(outcome, n_records, n_times):
    copied = np.repeat(np.arange(n_records), n_times)
    turned = 1 - TRUTH
    found = results_of(outcome.monitor(NEW[copied], y=turned[copied]))
    assert found.pop("rows") == "kept"
    assert {*found.values()} == {"cannot be tested"}
    once = results_of(outcome.monitor(NEW[:n_records], y=turned[:n_records]))
    assert once["error of one_fold"] == "refuted"


def test_monitor__refutes_the_disagreement_where_both_models_differ(outcome):
    one_fold, all_rows = (outcome.models[n].predict(X) for n in outcome.certificates)
    differ = np.flatnonzero(one_fold != all_rows)
    near = np.repeat(X[differ], 10, axis=0)  # as equal rows they would be copies
    near += 1e-9 * np.random.default_rng(0).normal(size=near.shape)
    often = np.concatenate([NEW[:100], near])
    found = test_named(outcome.monitor(often), "disagreement")
    assert found.result == "refuted"
    assert found.at_least > found.limit


def test_monitor__limit_of_the_disagreement_is_the_part_of_the_bound(outcome):
    found = test_named(outcome.monitor(NEW), "disagreement")
    part = outcome.certificates["all_rows"].disagreement_term
    assert found.limit == pytest.approx(part, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        ({}, "(99.75% confidence)"),
        ({"delta": 0.1}, "(99.5% confidence)"),
        ({"n_queries": 10}, "(99.75% confidence)"),
        ({"loss": dsel.losses.balanced()}, "(99.75% confidence)"),
    ],
)
def test_monitor__states_the_confidence_of_the_limit_of_the_disagreement(
    options, stated
):
    outcome = outcome_of(**options)
    found = test_named(outcome.monitor(NEW), "disagreement")
    assert found.promise.startswith("Both models differ on at most ")
    assert stated in found.promise
    cube, m = outcome.results, 3600
    fold = outcome.certificates["one_fold"].fold
    n, level = int(cube["outer_disagreements"][fold]), 0.05 * outcome.choice.delta / 5
    assert found.limit == pytest.approx(stats.beta.ppf(1 - level, n + 1, m - n))


def test_monitor__rows_that_equal_labeled_ones_refute_nothing(outcome):
    wrong = 1 - outcome.models["one_fold"].predict(X[:400])
    report = outcome.monitor(X[:400], y=wrong)
    assert report.n_duplicates == 400
    assert set(results_of(report).values()) == {"cannot be tested"}
    mixed = outcome.monitor(
        np.concatenate([X[:400], NEW[:100]]), y=np.append(wrong, TRUTH[:100])
    )
    assert results_of(mixed)["error of one_fold"] == "kept"
    assert "400 of 500 new rows equal labeled rows" in str(mixed)


def test_monitor__labels_that_are_missing_or_new_are_told(outcome):
    y = TRUTH.astype(float)
    y[:1500] = np.nan
    y[1500:1520] = 7
    report = outcome.monitor(NEW, y=y)
    error = test_named(report, "error of one_fold")
    assert error.n_rows == 500
    wrong = outcome.models["one_fold"].predict(NEW[1500:]) != y[1500:]
    exact = stats.beta.ppf(0.01, wrong.sum(), (~wrong).sum() + 1)
    assert error.at_least == pytest.approx(exact, abs=1e-6)
    assert any("1,500 new rows have no label" in note for note in report.notes)
    assert any(note.startswith("20 labels are no class") for note in report.notes)


@pytest.mark.parametrize(
    ("loss", "share"),
    [
        (dsel.losses.recall(1), lambda y, z: np.mean(z[y == 1] != 1)),
        (dsel.losses.precision(1), lambda y, z: np.mean(y[z == 1] != 1)),
        (dsel.losses.balanced(),
         lambda y, z: np.mean([np.mean(z[y == c] != c) for c in (0, 1)])),
        (dsel.losses.cost({(0, 1): 1, (1, 0): 4}),
         lambda y, z: np.mean((y != z) * np.where(y == 1, 4, 1))),
    ],
    ids=["recall", "precision", "balanced", "cost"],
)  # fmt: skip
def test_monitor__tests_the_loss_of_the_plan(loss, share):
    outcome = outcome_of(loss=loss)
    kept = test_named(outcome.monitor(NEW, y=TRUTH), "error of one_fold")
    seen = share(TRUTH, outcome.models["one_fold"].predict(NEW))
    assert kept.result == "kept"
    assert 0.6 * seen < kept.at_least < seen
    found = results_of(outcome.monitor(NEW, y=1 - TRUTH))
    assert found["error of one_fold"] == "refuted"


def test_monitor__keeps_what_was_seen_of_each_promise(outcome):
    report = outcome.monitor(NEW, y=TRUTH)
    errors = np.mean(outcome.models["one_fold"].predict(NEW) != TRUTH)
    assert test_named(report, "error of one_fold").seen == errors
    assert (
        test_named(report, "disagreement").at_least
        < test_named(report, "disagreement").seen
    )
    assert MonitorReport.from_json(report.to_json()) == report


@pytest.mark.parametrize("chunks", [300, 2000])
def test_monitor__chunks_change_nothing(outcome, chunks):
    pool = da.from_array(NEW, chunks=(chunks, 6))
    assert outcome.monitor(pool, y=TRUTH) == outcome.monitor(NEW, y=TRUTH)


def test_monitor__takes_labels_of_a_column():
    frame = pd.DataFrame(X, columns=NAMES)
    labels = np.where(Y == 1, "good", "bad")
    plan = dsel.plan_search(
        LogisticRegression(), {"C": [1.0]}, frame[:400], labels[:400], frame[400:4000],
        random_state=0,
    )  # fmt: skip
    outcome = plan.run()
    table = frame[4000:].assign(truth=labels[4000:])[["truth", *reversed(NAMES)]]
    report = outcome.monitor(table, target="truth")
    assert report == outcome.monitor(frame[4000:], y=labels[4000:])
    assert set(results_of(report).values()) == {"kept"}


def test_monitor__what_was_not_certified_cannot_be_tested():
    alone = outcome_of(pool=None)
    found = results_of(alone.monitor(NEW, y=TRUTH))
    assert found == {
        "rows": "kept", "disagreement": "cannot be tested", "error of one_fold": "kept",
    }  # fmt: skip
    few = outcome_of(pool=X[400:401]).monitor(np.repeat(NEW[:3], 100, axis=0))
    disagreement = test_named(few, "disagreement")
    assert disagreement.limit > 0.999  # which would be printed as 100.0%
    assert disagreement.reason == "no limit was certified"
    assert "too few different rows" in test_named(few, "rows").reason
    assert few.n_tested == 0
    assert "100.0%" not in str(few)
    small = dsel.plan_search(
        DummyClassifier(), {"strategy": ["prior"]}, X[:30], Y[:30], random_state=0
    ).run()
    report = small.monitor(NEW[:20], y=TRUTH[:20])
    assert "there are 20 new rows" in test_named(report, "rows").reason
    groups = np.arange(400) // 2
    of_groups = dsel.plan_search(
        LogisticRegression(), {"C": [1.0]}, X[:400], Y[:400], groups=groups,
        random_state=0,
    ).run()  # fmt: skip
    found = results_of(of_groups.monitor(NEW, y=TRUTH))
    assert set(found.values()) == {"cannot be tested"}


NAMED = pd.DataFrame(NEW, columns=NAMES)
OLD_KEYS = [f"c{n}" for n in np.arange(400) // 2]
NEW_KEYS = np.array([f"c{n}" for n in 100 + np.arange(2000) // 4], object)
"""Of new rows, of which the first 100 groups were labeled."""


@pytest.fixture(scope="module")
def of_groups():
    frame = pd.DataFrame(X[:400], columns=NAMES).assign(key=OLD_KEYS)
    return dsel.plan_search(
        LogisticRegression(), {"C": [1.0]}, frame, Y[:400], groups="key",
        random_state=0,
    ).run()  # fmt: skip


@pytest.mark.parametrize("as_column", [True, False])
def test_monitor__of_groups_tests_one_row_with_a_label_of_each_new_group(
    of_groups, as_column
):
    truth = TRUTH.astype(object)
    truth[1996:] = None  # the last group has no label, and of others some rows
    truth[400:1996:4] = None
    if as_column:
        frame = NAMED.assign(key=NEW_KEYS, truth=truth)
        report = of_groups.monitor(frame, target="truth", groups="key")
    else:
        report = of_groups.monitor(NAMED, y=truth, groups=NEW_KEYS)
    test = test_named(report, "error of one_fold")
    assert test.n_rows == 399
    assert "399 rows with a label, one of each new group" in test.reason
    assert "on a random row of a new group" in test.promise
    wrong = of_groups.models["one_fold"].predict(NAMED) != TRUTH
    # Each group counts once, so at most as many errors as groups with one.
    n_groups = len({*NEW_KEYS[400:1996][wrong[400:1996]]})
    most = stats.beta.ppf(0.01, n_groups, 399 - n_groups + 1)
    assert 0 < test.at_least <= most
    assert results_of(report)["rows"] == "cannot be tested"
    notes = " ".join(report.notes)
    assert "each of 399 new groups" in notes
    assert "400 rows of groups that were labeled" in notes


def test_monitor__finds_the_column_of_groups_by_itself(of_groups, tmp_path):
    frame = NAMED.assign(key=NEW_KEYS)
    with_name = of_groups.monitor(frame, y=TRUTH, groups="key")
    assert of_groups.monitor(frame, TRUTH) == with_name  # labels second, as in `fit`
    path = tmp_path / "new.csv"
    frame.assign(truth=TRUTH).to_csv(path, index=False)
    assert of_groups.monitor(path, target="truth") == with_name
    # A column that was passed as keys has its name, too.
    labeled = pd.DataFrame(X[:400], columns=NAMES)
    keys = pd.Series(OLD_KEYS, name="key")
    passed = dsel.certify(
        LogisticRegression(), labeled, Y[:400], groups=keys, random_state=0
    )
    assert test_named(passed.monitor(frame, TRUTH), "error of one_fold").n_rows == 400
    # Without the column nothing is tested, and a line says what is missing.
    alone = test_named(of_groups.monitor(NAMED, TRUTH), "error of one_fold")
    assert alone.reason.endswith("`groups` names the column of their groups")


def test_monitor__counts_rows_of_new_groups_that_equal_labeled_rows(of_groups):
    rows, keys = pd.DataFrame(X[:400], columns=NAMES), [f"new {i}" for i in range(400)]
    report = of_groups.monitor(rows, y=Y[:400], groups=keys)
    assert test_named(report, "error of one_fold").n_rows == 400
    assert "equal labeled rows" not in str(report)


def test_monitor__of_groups_refutes_a_broken_promise_and_names_the_way(of_groups):
    report = of_groups.monitor(NAMED, y=1 - TRUTH, groups=NEW_KEYS)
    assert [test.name for test in report.refuted] == ["error of one_fold"]
    without = of_groups.monitor(NAMED, y=TRUTH)
    assert "`groups` names the column" in without.tests[-1].reason
    assert "of each of" not in str(of_groups.monitor(NAMED, groups=NEW_KEYS))


def test_monitor__explains_kept_where_something_is_kept(outcome):
    kept, no = outcome.monitor(NEW, y=TRUTH), "kept means not refuted"
    least = "so the true error is at least "
    assert least not in str(kept)
    assert least in str(outcome.monitor(NEW, y=1 - TRUTH))
    assert no in str(kept)
    refuted = replace(
        kept, tests=tuple(replace(t, result="refuted") for t in kept.tests)
    )
    assert no not in str(refuted)
    assert "one or more of 4 true ones in at most 4%" in str(refuted)


def test_monitor__of_groups_counts_no_row_twice_however_large_its_group_is(of_groups):
    # Errors of a single group that has most of the rows refute nothing.
    keys = np.where(np.arange(2000) < 1900, "large", NEW_KEYS.astype(str))
    wrong = of_groups.models["one_fold"].predict(NAMED).copy()
    truth = np.where(np.arange(2000) < 1900, 1 - wrong, wrong)
    report = of_groups.monitor(NAMED, y=truth, groups=keys)
    assert test_named(report, "error of one_fold").n_rows == 26
    assert not report.is_refuted


def test_monitor__report_is_text_html_and_json(outcome):
    report = outcome.monitor(NEW, y=TRUTH)
    assert MonitorReport.from_json(report.to_json()) == report
    record = json.loads(report.to_json())
    assert (record["kind"], record["version"]) == ("MonitorReport", 3)
    assert "<dt>Kept</dt>" in report._repr_html_()
    assert "not refuted, which proves nothing" in str(report)


def test_monitor__refutes_what_holds_at_most_as_often_as_its_level():
    # The error is exactly the bound: what holds with nothing to spare.
    rng = np.random.default_rng(0)
    outcome = outcome_of()
    bound = outcome.certificates["one_fold"].bound
    predicted = outcome.models["one_fold"].predict(NEW)
    draws, level = 200, 0.1
    refuted = 0
    for _ in range(draws):
        rows = rng.integers(0, len(NEW), 300)
        y = np.where(rng.random(300) < bound, 1 - predicted[rows], predicted[rows])
        report = outcome.monitor(NEW[rows], y=y, level=level)
        refuted += test_named(report, "error of one_fold").is_refuted
    # Discrete limits refute less often; a binomial margin above the level.
    assert 0 < refuted <= stats.binom.ppf(0.999, draws, level)


@pytest.mark.parametrize("loss", [None, dsel.losses.beyond(4.0)], ids=repr)
def test_monitor__tests_how_far_off_predictions_of_numbers_are(loss):
    rows, y = make_friedman1(3000, random_state=0)
    options = {} if loss is None else {"loss": loss}
    outcome = dsel.plan_search(
        Ridge(), {"alpha": [0.1, 1.0]}, rows[:500], y[:500], rows[500:2000],
        random_state=0, **options,
    ).run()  # fmt: skip
    report = outcome.monitor(rows[2000:], y=y[2000:])
    assert results_of(report) == {
        "rows": "kept", "disagreement": "cannot be tested",
        "error of one_fold": "kept", "error of all_rows": "kept",
    }  # fmt: skip
    error = test_named(report, "error of one_fold")
    bound = outcome.certificates["one_fold"].bound
    tolerance, limit = (bound, 0.1) if loss is None else (4.0, bound)
    off = np.abs(y[2000:] - outcome.models["one_fold"].predict(rows[2000:])) > tolerance
    exact = stats.beta.ppf(0.01, off.sum(), (~off).sum() + 1)
    assert (error.n_found, error.limit) == (off.sum(), pytest.approx(limit))
    assert error.at_least == pytest.approx(exact, abs=1e-6)
    noisy = y[2000:] + 10 * np.resize([1, -1, 0], 1000)
    found = results_of(outcome.monitor(rows[2000:], y=noisy))
    assert found["error of one_fold"] == found["error of all_rows"] == "refuted"
    some = np.where(np.arange(1000) < 400, np.nan, y[2000:])
    error = test_named(outcome.monitor(rows[2000:], y=some), "error of one_fold")
    assert error.n_rows == 600
    with pytest.raises(ValueError, match="`y` must hold numbers"):
        outcome.monitor(rows[2000:], y=["far"] * 1000)


REFUSED = [
    ({"level": 0.0001}, ValueError, "level between 0.001"),
    ({"level": 0.9}, ValueError, "level 0.5 0.9"),
    ({"level": "high"}, TypeError, "level number"),
    ({"y": TRUTH, "target": "truth"}, ValueError, "target y leave one out"),
    ({"target": "truth"}, ValueError, "target truth names both"),
    ({"y": TRUTH[:50]}, ValueError, "y label each row 50"),
    ({"y": np.append(TRUTH, 1)}, ValueError, "y 2,001 2,000"),
    ({"y": np.c_[TRUTH, TRUTH]}, ValueError, "y label shape"),
    ({"y": TRUTH + 7}, ValueError, "y none 2,000 classes 0, 1"),
    ({"y": TRUTH, "groups": NEW_KEYS}, ValueError, "groups search independent"),
    ({"source": NEW[:, :5]}, ValueError, "5 columns"),
    ({"source": "nowhere.parquet"}, FileNotFoundError, "source nowhere.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": TRUTH, "groups": NEW_KEYS[:50]}, "groups key each 50 2,000"),
        ({"y": TRUTH, "groups": "key"}, "`source` lacks column 'key'"),
    ],
)
def test_monitor__refuses_keys_that_are_none(of_groups, options, words):
    with pytest.raises(ValueError, match="key") as caught:
        of_groups.monitor(NAMED, **options)
    message = str(caught.value)
    assert all(word in message for word in words.split()), message


@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_monitor__refuses(outcome, options, error, words):
    options = {"source": NEW, **options}
    with pytest.raises(error) as caught:
        outcome.monitor(**options)
    message = str(caught.value)
    assert all(word in message for word in words.split()), message


def test_monitor__finds_a_small_shift_of_one_column():
    rng = np.random.default_rng(1)
    names = [f"amount {number}" for number in range(6)]
    old, new = (pd.DataFrame(rng.lognormal(size=(n, 6)), columns=names)
                for n in (1_500, 4_000))  # fmt: skip
    y = old["amount 1"] > old["amount 2"]
    outcome = dsel.certify(LogisticRegression(), old, y, random_state=0)
    same = test_named(outcome.monitor(new), "rows")
    assert same.result == "kept"
    assert "compared are 1,500 and 2,000 rows" in same.reason
    dearer = new.assign(**{"amount 0": 1.25 * new["amount 0"]})
    shifted = test_named(outcome.monitor(dearer), "rows")
    assert shifted.result == "refuted"
    assert shifted.columns == ("amount 0",)
    assert shifted.p_value < 0.01
    medians = [t["amount 0"].median() for t in (old, dearer)]
    change = "amount 0: median {:.3g} then, {:.3g} now)".format(*medians)
    assert shifted.reason.endswith(change)


@pytest.mark.parametrize("loss", ["error", "recall:p", "precision:p"])
def test_monitor__what_was_seen_is_of_rows_that_equal_no_labeled_one(loss):
    rng = np.random.default_rng(0)
    X, fresh = rng.normal(size=(300, 2)), rng.normal(size=(400, 2))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=300) > 0, "p", "q")
    fresh_y = np.where(fresh[:, 0] > 0, "p", "q")
    outcome = dsel.certify(LogisticRegression(), X, y, loss=loss, random_state=0)
    # The labels of the same records are all wrong.
    again, again_y = X[:80], np.where(y[:80] == "p", "q", "p")
    rows, labels = np.r_[fresh, again], np.r_[fresh_y, again_y]
    found = outcome.monitor(rows, labels).tests[-1]
    alone = outcome.monitor(fresh, fresh_y).tests[-1]
    predicted = outcome.predict(fresh)
    is_counted = {
        "error": np.full(400, True),
        "recall:p": fresh_y == "p",
        "precision:p": predicted == "p",
    }[loss]
    assert (found.seen, found.n_found, found.n_rows) == (
        (alone.seen, alone.n_found, is_counted.sum())
    )
    assert found.result == "kept"
    assert not found.is_in_doubt
    wrong = predicted[is_counted] != fresh_y[is_counted]
    assert (found.n_found, found.seen) == (wrong.sum(), wrong.mean())
    kind = {
        "error": "rows with a label",
        "recall:p": "rows of 'p' with a label",
        "precision:p": "rows with a label that are predicted 'p'",
    }[loss]
    # The number of rows next to a rate is that of the rows which it is about.
    assert f"on {is_counted.sum()} {kind}" in found.reason


def test_monitor__refuses_labeled_rows_of_which_some_are_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=300) > 0, "a", "b")
    outcome = dsel.certify(LogisticRegression(), X, y, random_state=0)
    copied = pickle.loads(pickle.dumps(outcome))
    with pytest.raises(ValueError, match=r"`labeled`.*150 of them are missing"):
        copied.monitor(X[150:], labeled=np.repeat(X[:150], 2, axis=0))
    assert copied.monitor(X[150:], labeled=X).n_duplicates == 150
    single = copied.monitor(X[150:], labeled=rng.permutation(X))
    assert single.n_duplicates == 150


def test_open_outcome__knows_the_column_of_the_groups(tmp_path):
    rng = np.random.default_rng(0)
    keys = np.repeat(np.arange(150), 3)
    X = pd.DataFrame({"a": rng.normal(size=450), "customer": keys})
    y = np.where(X.a + 0.4 * rng.normal(size=450) > 0, "p", "q")
    new = X.assign(y=y, customer=keys + 500)
    made = dsel.certify(
        LogisticRegression(), X, y, groups="customer", random_state=0,
        out=tmp_path / "run",
    )  # fmt: skip
    made.save(tmp_path / "saved")
    for name in ("run", "saved"):
        opened = dsel.open_outcome(tmp_path / name)
        assert opened.group_column == "customer"
        found = opened.monitor(new, target="y", labeled=X.drop(columns="customer"))
        assert found.tests[-1].seen == made.monitor(new, target="y").tests[-1].seen


def test_outcome_of_groups__knows_their_keys_when_it_is_opened(of_groups, tmp_path):
    of_groups.save(tmp_path / "run")
    new = NAMED.assign(key=NEW_KEYS)
    known = "400 rows of groups that were labeled are not counted"
    line = "400 of these 2,000 rows are of groups that were labeled, and the bound is"
    opened = dsel.open_outcome(tmp_path / "run")
    for outcome in (of_groups, opened, pickle.loads(pickle.dumps(opened))):
        assert known in outcome.monitor(new, y=TRUTH).notes
        with pytest.warns(GuaranteeWarning, match=line):
            predicted = outcome.predict_table(new)
        assert "key" not in predicted
    with pytest.warns(GuaranteeWarning, match=line):
        described = opened.predict_table(new, out=tmp_path / "p.csv")
    assert described.n_of_known_groups == 400
    assert "Not used of the table: key" in str(described)
    described = opened.predict_table(NAMED, out=tmp_path / "q.csv")
    assert "of groups that" not in str(described)


def test_outcome_of_groups__without_their_keys_reads_them_of_labeled(
    of_groups, tmp_path
):
    of_groups.save(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "row_hashes")  # as an older version stored it
    new = NAMED.assign(key=NEW_KEYS)
    opened = dsel.open_outcome(tmp_path / "run")
    labeled = pd.DataFrame(X[:400], columns=NAMES)
    notes = opened.monitor(new, y=TRUTH, labeled=labeled).notes
    assert "the keys of the labeled groups are not known" in " ".join(notes)
    labeled = labeled.assign(key=OLD_KEYS)
    notes = opened.monitor(new, y=TRUTH, labeled=labeled).notes
    assert "400 rows of groups that were labeled are not counted" in notes
    opened.predict_table(new)  # it cannot tell
