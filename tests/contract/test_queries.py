"""Labels queried where both deployed models differ, through public names."""

import copy
import json
import pickle
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.bounds import (
    mean_difference_limit,
    nested_all_rows,
    nested_one_fold,
    queried_all_rows,
    sign_test_limit,
)
from dsel.results import Choice

pytestmark = pytest.mark.contract

ROWS, TRUTH = make_classification(
    3900, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=0
)
X, Y = ROWS[:300], TRUTH[:300]
N_FRESH, N_COPIES = 3600, 100
POOL = np.vstack([ROWS[300:], X[:N_COPIES]])
LABELS = np.concatenate([TRUTH[300:], Y[:N_COPIES]])
TREE, GRID = DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4, 8]}


def plan(pool=POOL, estimator=TREE, grid=GRID, y=Y, **options):
    options = {"n_queries": 50, "random_state": 7, **options}
    return dsel.plan_search(estimator, grid, X, y, pool, **options)


@pytest.fixture(scope="module")
def outcome():
    return plan().run()


@pytest.fixture(scope="module")
def labeled(outcome):
    return outcome.certify_with_labels(LABELS[outcome.query_rows().index])


def unlabeled(outcome):
    """Return an outcome that has not met labels: other labels are refused later."""
    return replace(outcome, choice=Choice.from_json(outcome.choice.to_json()))


def differing(outcome, pool=POOL):
    one_fold, all_rows = (
        outcome.models[deploy].predict(pool) for deploy in ("one_fold", "all_rows")
    )
    return one_fold != all_rows


def test_query_rows__are_rows_on_which_both_models_differ(outcome):
    rows = outcome.query_rows()
    assert rows.index.name == "pool_row"
    assert len(rows) == 50
    assert rows.index.is_monotonic_increasing
    assert differing(outcome)[rows.index].all()
    np.testing.assert_array_equal(rows.to_numpy(), POOL[rows.index])


def test_query_rows__equal_no_labeled_row(outcome):
    many = plan(n_queries=5000).run()
    differs = differing(many)
    assert differs[N_FRESH:].any()  # else nothing is shown
    expected = np.flatnonzero(differs[:N_FRESH])
    np.testing.assert_array_equal(many.query_rows().index, expected)
    queries = many.choice.queries
    assert queries.n_differ == len(expected)
    assert queries.n_duplicates_differ == differs[N_FRESH:].sum()
    assert queries.n_duplicates == N_COPIES
    assert set(outcome.query_rows().index) < set(expected)


def test_bounds__are_those_of_the_formulas(outcome, labeled):
    delta, counts = 0.05, outcome.results
    errors, rows, pairs, duplicates = (
        counts[name].values.astype(int)
        for name in (
            "outer_errors",
            "fold_rows",
            "outer_disagreements",
            "outer_duplicate_disagreements",
        )
    )
    fold, limit = nested_one_fold(errors, rows, delta=0.78 * delta)
    certificates = outcome.certificates
    assert certificates["one_fold"].bound == pytest.approx(float(limit), abs=1e-12)
    _, terms = nested_all_rows(
        errors, rows, pairs, len(POOL) - N_COPIES + duplicates, delta=0.79 * delta,
        label_share=0.78 / 0.79,
    )  # fmt: skip
    assert certificates["all_rows"].unclipped == pytest.approx(float(terms.bound))
    index = outcome.query_rows().index
    predicted = {
        deploy: model.predict(POOL[index]) for deploy, model in outcome.models.items()
    }
    truth = LABELS[index]
    is_right = {deploy: each == truth for deploy, each in predicted.items()}
    n_only_g_right = np.sum(is_right["one_fold"] & ~is_right["all_rows"])
    n_only_f_right = np.sum(is_right["all_rows"] & ~is_right["one_fold"])
    mean = sign_test_limit(
        n_only_g_right, n_only_f_right, 50, delta=0.2 * delta
    )  # three classes
    expected = queried_all_rows(
        float(limit), float(mean), int(pairs[fold] - duplicates[fold]), len(POOL),
        delta=delta, n_duplicates=N_COPIES, n_duplicates_differ=int(duplicates[fold]),
    )  # fmt: skip
    queries = labeled.choice.queries
    assert queries.queried == pytest.approx(expected, abs=1e-12)
    assert queries.pool_only == certificates["all_rows"].unclipped
    assert labeled.certificates["all_rows"].unclipped == queries.queried
    assert queries.queried < queries.pool_only
    assert labeled.certificates["one_fold"] == certificates["one_fold"]
    assert labeled.certificates["all_rows"].certified


def test_two_classes__are_read_by_the_rows_on_which_the_better_one_is_right():
    two = dsel.plan_search(
        TREE, GRID, X, Y == 1, POOL, n_queries=50, random_state=7
    ).run()
    answer = two.certify_with_labels((LABELS == 1)[two.query_rows().index])
    queries = answer.choice.queries
    one_fold, all_rows = queries.right_alone
    assert one_fold + all_rows == 50
    mean = mean_difference_limit(all_rows, 50, delta=0.2 * 0.05)
    expected = queried_all_rows(
        queries.fold_limit, float(mean), queries.n_differ, len(POOL), delta=0.05,
        n_duplicates=N_COPIES, n_duplicates_differ=queries.n_duplicates_differ,
    )  # fmt: skip
    assert queries.queried == pytest.approx(expected, abs=1e-12)


def test_bounds__hold_for_the_truth(labeled):
    for deploy, model in labeled.models.items():
        error = np.mean(model.predict(POOL[:N_FRESH]) != LABELS[:N_FRESH])
        assert error <= labeled.certificates[deploy].bound


def test_labels_that_say_nothing__leave_the_bound_of_the_pool(outcome):
    predicted = outcome.models["one_fold"].predict(outcome.query_rows().to_numpy())
    labels = [*predicted[:1], *[None] * 49]
    answer = unlabeled(outcome).certify_with_labels(labels, partial=True)
    certificate = answer.certificates["all_rows"]
    assert certificate == outcome.certificates["all_rows"]
    assert answer.choice.queries.queried >= answer.choice.queries.pool_only
    assert answer.choice.queries.n_unusable == 49


def test_rows_without_a_usable_label__count_and_are_named(outcome, labeled):
    labels = pd.Series(LABELS, dtype=object)[outcome.query_rows().index]
    labels.iloc[:3], labels.iloc[3:5] = None, 17
    allowed = {"partial": True, "allow_unknown": True}
    outcome = unlabeled(outcome)
    answer = outcome.certify_with_labels(labels, **allowed)
    assert answer.choice.queries.n_unusable == 5
    assert answer.certificates["all_rows"].bound >= (
        labeled.certificates["all_rows"].bound
    )
    assert "5 queried rows have no label, or one that is no class" in str(answer)
    assert "this result is final" in str(answer)
    without = outcome.certify_with_labels(labels.iloc[3:], **allowed)
    assert without.choice == answer.choice


def test_choice__says_both_bounds_and_what_labels_are_expected_to_give(
    outcome, labeled
):
    text = " ".join(str(outcome.choice).split())
    queries = outcome.choice.queries
    assert "with labels of 50 pool rows on which both models differ the bound" in text
    assert "cross-validated, no guarantee" in text
    assert queries.smallest < queries.expected < queries.pool_only
    limits = np.array([queries.smallest, queries.pool_only])
    best, now = [f"{percent:.1f}%" for percent in np.ceil(1000 * limits) / 10]
    assert f"Error at most {now} (95% confidence that both bounds hold)" in text
    assert f"right on half of them, and {best} at best. These queries raised" in text
    first = outcome.certificates["one_fold"].unclipped
    assert queries.fold_limit_without < queries.fold_limit == first
    limits = [f"{np.ceil(1000 * n) / 10:.1f}%" for n in
              (queries.fold_limit_without, first)]  # fmt: skip
    assert f"the other bound from {limits[0]} to {limits[1]}, since all bounds" in text
    # The smallest one has the labels that the model trained on all labels predicts.
    apart = Choice.from_json(outcome.choice.to_json())
    labels = [queries.classes[code] for code in queries.all_rows_codes]
    best = apart.certify_with_labels(labels)
    assert best.certificates["all_rows"].unclipped == queries.smallest
    assert f"{100 * queries.pool_only:.0f}"[:2] in text
    after = " ".join(str(labeled.choice).split())
    assert "from the pool alone" in after
    assert "from the pool alone, and both hold at once" in after
    assert "labels of 50 queried rows" in str(labeled.certificates["all_rows"])


def test_choice__with_labels_survives_json_and_select(labeled):
    choice = labeled.choice
    assert Choice.from_json(choice.to_json()) == choice
    assert dsel.select(labeled) == choice
    record = json.loads(choice.to_json())["queries"]
    assert record["kind"] == "Queries"
    assert json.loads(choice.to_json())["version"] >= 3


def test_query_rows__show_no_prediction(outcome):
    names = {f"x{n}" for n in range(8)}
    assert set(outcome.query_rows().columns) == names


@pytest.mark.parametrize("kind", ["dask", "uneven", "zarr", "frame", "processes"])
def test_query_rows__are_the_same_from_any_chunks(outcome, kind, tmp_path):
    pool, options = POOL, {}
    if kind == "dask":
        pool = da.from_array(POOL, (100, 8))
    if kind == "uneven":
        pool = da.from_array(POOL, ((1, 700, 2999), (8,)))
    if kind == "zarr":
        dsel.write_pool(POOL, tmp_path / "pool.zarr")
        pool = tmp_path / "pool.zarr"
    if kind == "frame":
        pool = pd.DataFrame(POOL)
        pool.columns = [f"x{n}" for n in range(8)]
    if kind == "processes":
        options = {"n_jobs": 2}
    found = plan(pool).run(**options)
    assert found.choice.queries == outcome.choice.queries
    assert found.query_rows().to_numpy().tolist() == (
        outcome.query_rows().to_numpy().tolist()
    )


@pytest.mark.cluster
def test_query_rows__are_the_same_on_a_cluster(processes, outcome, tmp_path):
    dsel.write_pool(da.from_array(POOL, (100, 8)), tmp_path / "pool.zarr")
    found = plan(dsel.open_pool(tmp_path / "pool.zarr")).run(processes)
    assert found.choice.queries == outcome.choice.queries
    pd.testing.assert_frame_equal(found.query_rows(), outcome.query_rows())


def test_query_rows__are_the_same_after_a_kill(outcome, tmp_path):
    def kill(progress):
        if progress.slices_done:
            raise KeyboardInterrupt

    # Slices of a pool of this size are read one by one where they are files.
    pool = da.from_array(np.vstack([POOL] * 6), (3700, 8))
    whole = plan(pool).run()
    with pytest.raises(KeyboardInterrupt):
        plan(pool).run(out=tmp_path / "out", on_progress=kill)
    found = plan(pool).run(out=tmp_path / "out")
    assert found.choice == whole.choice
    pd.testing.assert_frame_equal(found.query_rows(), whole.query_rows())


def test_out__keeps_rows_and_predictions_for_another_process(
    outcome, labeled, tmp_path
):
    plan().run(out=tmp_path / "out")
    found = plan().run(out=tmp_path / "out")  # reads what has ended
    pd.testing.assert_frame_equal(found.query_rows(), outcome.query_rows())
    labels = LABELS[found.query_rows().index]
    assert found.certify_with_labels(labels).choice == labeled.choice
    choice = dsel.select(dsel.open_results(tmp_path / "out"))
    assert choice.certify_with_labels(labels) == labeled.choice


def test_out__of_an_older_version_has_the_rows_of_the_pool(outcome, tmp_path):
    plan().run(out=tmp_path)
    stored = [path for path in (tmp_path / "queries").rglob("*") if path.is_file()]
    assert stored
    for path in stored:
        path.unlink()
    found = plan().run(out=tmp_path)  # it has ended, and only reads
    pd.testing.assert_frame_equal(found.query_rows(), outcome.query_rows())


@pytest.mark.parametrize("names", [[f"p{n}" for n in range(8)], list(range(8))])
def test_query_rows__have_the_index_of_a_pandas_pool(names, labeled, tmp_path):
    order = np.random.default_rng(0).permutation(len(POOL))
    # The rows are those of POOL, under the numbers of another order.
    pool = pd.DataFrame(POOL, index=order, columns=names)
    y = pd.Series(LABELS, index=order).sort_index()
    found = plan(pool).run(out=tmp_path)
    assert found.choice.queries.rows == labeled.choice.queries.rows
    for outcome in (found, plan(pool).run(out=tmp_path), dsel.open_outcome(tmp_path)):
        rows = outcome.query_rows()
        assert rows.index.tolist() == order[list(found.choice.queries.rows)].tolist()
        answer = outcome.certify_with_labels(y[rows.index][::-1])
        assert answer.choice.queries == labeled.choice.queries
        with pytest.raises(ValueError, match="index of the pool"):
            outcome.certify_with_labels(y[list(found.choice.queries.rows)])


def test_labels_that_no_model_predicts__are_noted(outcome, labeled):
    queries = outcome.choice.queries
    codes = zip(queries.one_fold_codes, queries.all_rows_codes, strict=True)
    neither = [min({0, 1, 2} - {*pair}) for pair in codes]
    answer = unlabeled(outcome).certify_with_labels(neither)
    words = "neither model predicts 50 of 50 labels: these may be the labels of other"
    assert words in " ".join(str(answer).split())
    assert "neither model predicts" not in str(labeled)


def test_query_rows__have_columns_that_no_model_uses(tmp_path):
    names = [f"p{n}" for n in range(8)]
    frame = pd.DataFrame(X, columns=names)
    pool = pd.DataFrame(POOL, columns=names)
    pool["image"] = [f"images/{n}.png" for n in range(len(pool))]
    pool["taken"] = pd.Timestamp("2026-01-01")
    pool.to_parquet(tmp_path / "pool.parquet")
    search = dsel.SemiSupervisedSearchCV(TREE, GRID, n_queries=20, random_state=3)
    search.fit(frame, Y, pool=tmp_path / "pool.parquet", out=tmp_path / "out")
    rows = search.query_rows()
    assert rows.columns.tolist() == [*names, "image", "taken"]
    assert rows["image"].tolist() == [f"images/{n}.png" for n in rows.index]
    again = dsel.SemiSupervisedSearchCV(TREE, GRID, n_queries=20, random_state=3)
    again.fit(frame, Y, pool=tmp_path / "pool.parquet", out=tmp_path / "out")
    pd.testing.assert_frame_equal(again.query_rows(), rows)


def test_search__answers_from_a_pickle(outcome, labeled):
    search = dsel.SemiSupervisedSearchCV(TREE, GRID, n_queries=50, random_state=7)
    search = pickle.loads(pickle.dumps(search.fit(X, Y, pool=POOL)))
    rows = search.query_rows()
    pd.testing.assert_frame_equal(rows, outcome.query_rows())
    backwards = pd.Series(LABELS[rows.index], rows.index)[::-1]
    answer = search.certify_with_labels(backwards)
    assert answer.choice == labeled.choice
    assert answer.models.keys() == {"one_fold", "all_rows"}
    assert search.choice_ == outcome.choice  # the search stays as it is


def test_certify__queries_for_any_procedure():
    outcome = dsel.certify(TREE, X, Y, POOL, n_queries=20, random_state=0, cv=3)
    rows = outcome.query_rows()
    assert len(rows) == 20
    answer = outcome.certify_with_labels(LABELS[rows.index])
    assert answer.certificates["all_rows"].bound < (
        outcome.certificates["all_rows"].bound
    )
    assert type(answer.models["all_rows"]) is DecisionTreeClassifier


def test_deploy_all_rows__its_certificate_becomes_the_queried_one():
    outcome = plan(deploy="all_rows").run()
    answer = outcome.certify_with_labels(LABELS[outcome.query_rows().index])
    assert answer.certificate == answer.certificates["all_rows"]
    assert answer.certificate.bound < outcome.certificate.bound


def test_models_that_never_differ__leave_nothing_to_label():
    outcome = plan(estimator=None, grid=[DummyClassifier()]).run()
    assert outcome.choice.queries.rows == ()
    assert "differ on no row" in str(outcome)
    for ask in (outcome.query_rows, lambda: outcome.certify_with_labels([])):
        with pytest.raises(ValueError, match="no rows to be labeled"):
            ask()


def test_labels_of_texts__are_classes():
    words = np.array(["no", "yes", "perhaps"])
    made = dsel.plan_search(
        TREE, GRID, X, words[Y], POOL, n_queries=50, random_state=7
    ).run()
    labels = words[LABELS][made.query_rows().index]
    assert made.certify_with_labels(labels).certificates["all_rows"].bound < (
        made.certificates["all_rows"].bound
    )
    with pytest.raises(TypeError, match=r"such as 'no', got 1"):
        made.certify_with_labels(np.ones(50, int))


@pytest.mark.parametrize(
    ("options", "has_forecast"),
    [({}, True), ({"n_queries": 50}, False), ({"loss": "balanced"}, False)],
)
def test_forecast__is_of_searches_that_could_query_and_do_not(options, has_forecast):
    choice = plan(**{"n_queries": 0} | options).run().choice
    assert (choice.forecast is not None) == has_forecast


def test_no_queries__changes_no_bound():
    before, none = plan(n_queries=0).run(), plan(n_queries=0)
    assert before.choice.queries is None
    assert "n_queries" not in none.facts.identity
    with pytest.raises(ValueError, match="n_queries=50"):
        before.query_rows()
    with pytest.raises(ValueError, match="n_queries=50"):
        before.certify_with_labels([1])


def test_plan__says_how_many_are_queried(tmp_path):
    text = " ".join(str(plan()).split())
    assert "labels of 50 pool rows on which they differ will be queried" in text
    plan().run(out=tmp_path / "out")
    with pytest.raises(dsel.errors.StoreMismatchError, match="`n_queries` is 50 there"):
        plan(n_queries=40).run(out=tmp_path / "out")


REFUSED_PLANS = {
    "no pool": ({"pool": None}, "`n_queries` 50 .*`pool` is None"),
    "cv_bound": ({"certificate": "cv_bound"}, "certificate='cv_bound'"),
    "best_fold": ({"certificate": "best_fold"}, "'best_fold', which has one model"),
    "holdout": ({"certificate": "holdout"}, "'holdout', which has one model"),
    "an estimate": ({"criterion": "cv_error"}, "certificate=None"),
    "a splitter": ({"cv": StratifiedKFold(3)}, "give `cv` as a number"),
    "a loss": ({"loss": dsel.losses.recall(1)}, "is for loss='error'"),
    "a report": ({"report": True}, "and a report"),
    "negative": ({"n_queries": -1}, "`n_queries` must be >= 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"), REFUSED_PLANS.values(), ids=REFUSED_PLANS
)
def test_plan__refuses(options, words):
    with pytest.raises(ValueError, match=words) as caught:
        plan(**options)
    assert "\n" not in str(caught.value)


def test_plan__refuses_what_is_no_number():
    with pytest.raises(TypeError, match="`n_queries`"):
        plan(n_queries="many")


WORDS = np.array(["no", "yes", "not sure"])


@pytest.fixture(scope="module")
def of_words():
    return plan(y=WORDS[Y]).run()


def changed(rows, changes, partial=False):
    """Return the true words, some of them changed; without them if `partial`."""
    labels = pd.Series(WORDS[LABELS[rows.index]], rows.index, dtype=object)
    labels.iloc[list(changes)] = list(changes.values())
    return labels.iloc[list(changes)] if partial else labels


UNFINISHED = {
    "nothing": (lambda rows: [None] * 50, {}, "`labels` .* all 50 labels are missing"),
    "nothing, partial": (
        lambda rows: pd.Series([], dtype=object), {"partial": True}, "all 50 labels"),
    "upper case": (
        lambda rows: changed(rows, {3: "YES"}), {"allow_unknown": True},
        "`labels` .*'YES' is no class; did you mean 'yes'"),
    "blanks": (
        lambda rows: changed(rows, {3: " notsure"}), {},
        "' notsure' is no class; did you mean 'not sure'"),
    "none is a class": (
        lambda rows: ["oui"] * 50, {"allow_unknown": True, "partial": True},
        "none of 50 labels is one, such as 'oui'"),
    "some are no class": (
        lambda rows: changed(rows, {3: "oui", 4: "oui", 5: "x"}), {"partial": True},
        "got 'oui' in 2 rows, 'x' in 1 row; .*allow_unknown=True: then each counts"),
    "some are missing": (
        lambda rows: changed(rows, {3: None, 4: None}), {"allow_unknown": True},
        "2 of 50 rows have none; fill them in, or pass partial=True: .* final"),
    "some rows are missing": (
        lambda rows: changed(rows, {3: "yes"}, partial=True), {},
        "49 of 50 rows have none"),
    "no truth value": (
        lambda rows: changed(rows, {}), {"partial": "a"}, "`partial` must be True"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "options", "words"), UNFINISHED.values(), ids=UNFINISHED
)
def test_certify_with_labels__refuses_labels_that_are_not_finished(
    of_words, make, options, words
):
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        of_words.certify_with_labels(make(of_words.query_rows()), **options)
    assert "\n" not in str(caught.value)


REFUSED_LABELS = {
    "another length": (lambda rows: [1] * 49, "50 queried rows"),
    "another pool's rows": (lambda rows: pd.Series([1], [999_999]), "got 999999"),
    "a row twice": (lambda rows: pd.Series([0, 1], rows.index[[0, 0]]), "got 0 and 1"),
    "a frame": (lambda rows: rows, "must be one column"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), REFUSED_LABELS.values(), ids=REFUSED_LABELS)
def test_certify_with_labels__refuses(outcome, make, words):
    with pytest.raises(ValueError, match=words):
        outcome.certify_with_labels(make(outcome.query_rows()))


def test_certify_with_labels__refuses_other_labels_once_a_bound_is_known(labeled):
    with pytest.raises(ValueError, match="are known already"):
        labeled.certify_with_labels([1] * 50)


def test_certify_with_labels__is_final_for_the_outcome_that_got_them(outcome, labeled):
    labels = LABELS[outcome.query_rows().index]
    assert outcome.certify_with_labels(labels).choice == labeled.choice
    other = [(labels[0] + 1) % 3, *labels[1:]]
    for had_labels in (outcome, outcome.choice, copy.deepcopy(outcome)):
        with pytest.raises(ValueError, match=r"before \(1 of 50 rows differ\).* final"):
            had_labels.certify_with_labels(other)
    assert unlabeled(outcome).certify_with_labels(other)


def test_certify_with_labels__takes_the_place_of_wrong_ones_if_this_is_declared(
    outcome, labeled
):
    fresh, labels = unlabeled(outcome), LABELS[outcome.query_rows().index]
    wrong = fresh.certify_with_labels(np.roll(labels, 1))
    with pytest.raises(ValueError, match=r"were wrong, such as .* pass corrected=True"):
        fresh.certify_with_labels(labels)
    with pytest.raises(ValueError, match=r"to the result without labels, with correc"):
        wrong.certify_with_labels(labels, corrected=True)
    corrected = fresh.certify_with_labels(labels, corrected=True)
    assert corrected.certificates == labeled.certificates
    n_differing = int((labels != np.roll(labels, 1)).sum())
    assert corrected.choice.queries.n_corrected == n_differing > 0
    text = f"other labels of {n_differing} rows were passed before, and corrected"
    assert text in " ".join(str(corrected.choice).split())
    assert text not in " ".join(str(labeled.choice).split())


def test_unfitted_search__says_so():
    search = dsel.SemiSupervisedSearchCV(TREE, GRID, n_queries=5)
    with pytest.raises(AttributeError, match="not fitted"):
        search.query_rows()


class Turned(LogisticRegression):
    """Predicts for rows turned around once it has seen all labeled rows."""

    def fit(self, X, y):
        self.n_seen_ = len(X)
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(-X if self.n_seen_ >= 300 else X)


def test_a_model_of_all_labels_that_is_wrong__is_not_helped_by_labels():
    outcome = plan(estimator=Turned(), grid={"C": [1.0]}).run()
    answer = outcome.certify_with_labels(LABELS[outcome.query_rows().index])
    error = np.mean(outcome.models["all_rows"].predict(POOL) != LABELS)
    one_fold = np.mean(outcome.models["one_fold"].predict(POOL) != LABELS)
    assert one_fold < error <= answer.certificates["all_rows"].bound


def test_choice__asks_for_no_labels_that_would_hardly_help(outcome):
    queries, few = outcome.choice.queries, slice(4)
    assert queries.would_help
    queries = replace(
        queries, n_planned=4, rows=queries.rows[few],
        one_fold_codes=queries.one_fold_codes[few],
        all_rows_codes=queries.all_rows_codes[few],
    )  # fmt: skip
    text = dict(queries.lines())["Labels"]
    assert "labels of 4 pool rows on which both models differ would hardly" in text
    assert "if each model is right" not in text


def test_numbers_without_guarantee__are_not_called_bounds():
    rng = np.random.default_rng(0)
    X, P = rng.normal(size=(200, 2)), rng.normal(size=(600, 2)) + [0, 2]
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=200) > 0, "yes", "no")
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    for pool, certified in ((P, False), (P - [0, 2], True)):
        outcome = dsel.certify(
            model, X, y, pool, n_queries=20, baseline="largest class", random_state=0
        )
        rows = outcome.query_rows().index
        choice = outcome.certify_with_labels(np.where(pool[rows, 0] > 0, "yes", "no"))
        assert choice.certificate.certified == certified
        text = " ".join(str(choice).split())
        assert ("both hold at once" in text) == certified
        assert ("neither is a bound" in text) != certified
        assert ("with the bounds of the models this holds" in text) == certified
