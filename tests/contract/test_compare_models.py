"""Is the new model better? Counts, drawn rows and limits, through public names."""

import json
from dataclasses import dataclass, replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.results import ModelComparison

pytestmark = pytest.mark.contract

X, Y = load_digits(return_X_y=True)
OLD = LogisticRegression(C=1e-4, max_iter=500).fit(X[:200], Y[:200])
NEW = SVC().fit(X[:200], Y[:200])
OTHER = SVC().fit(X[:200], 10 + Y[:200] % 2)
"""A model without a class of the others."""
POOL, TRUTH = X[200:], Y[200:]
DIFFER = OLD.predict(POOL) != NEW.predict(POOL)


def test_comparisons__do_not_call_a_difference_of_nearly_nothing_a_win():
    question = dsel.results.ModelComparison(
        0.05, 100_000, n_differ=1_000, n_queries=200, classes=(0, 1),
        rows=tuple(range(200)), old_predictions=(0,) * 200,
        new_predictions=(1,) * 200,
    )  # fmt: skip
    assert question.headline().startswith(
        "Neither model is proved better: the errors of "
    )
    answer = question.certify_with_labels([1] * 117 + [0] * 83)
    assert -0.001 < answer.upper < 0
    assert answer.headline().endswith(
        "and perhaps less than 0.1, percentage points less than the old one "
        "(95% confidence)"
    )


@dataclass
class FromColumn:
    """A model that reads its labels from a column of the rows."""

    column: int

    def predict(self, rows):
        return np.asarray(rows)[:, self.column].astype(int)


def compare(pool=POOL, n_queries=60, **options):
    options = {"random_state": 0, **options}
    return dsel.compare_models(OLD, NEW, pool, n_queries=n_queries, **options)


def test_compare_models__counts_and_draws_where_the_models_differ():
    question = compare()
    assert question.n_differ == DIFFER.sum()
    rows = question.query_rows()
    assert rows.index.name == "pool_row"
    assert len(rows) == 60
    assert DIFFER[rows.index].all()
    np.testing.assert_array_equal(rows.to_numpy(), POOL[rows.index])


def test_compare_models__proves_that_the_better_model_is_better():
    question = compare()
    answer = question.certify_with_labels(TRUTH[question.query_rows().index])
    difference = np.mean(NEW.predict(POOL) != TRUTH) - np.mean(
        OLD.predict(POOL) != TRUTH
    )
    assert answer.certified
    assert answer.is_better
    assert answer.lower <= difference <= answer.upper < 0
    assert str(answer).startswith("The new model errs ")
    turned = dsel.compare_models(NEW, OLD, POOL, n_queries=60, random_state=0)
    turned = turned.certify_with_labels(TRUTH[turned.query_rows().index])
    assert (turned.lower, turned.upper) == (-answer.upper, -answer.lower)
    assert "more than the old one" in str(turned)


@pytest.mark.parametrize("kind", ["numpy", "dask", "uneven", "frame", "two clients"])
def test_compare_models__draws_the_same_rows_from_any_chunks(kind, request, tmp_path):
    pool, client = POOL, None
    if kind == "dask":
        pool = da.from_array(POOL, (100, 64))
    if kind == "uneven":
        pool = da.from_array(POOL, ((1, 700, 896), (64,)))
    if kind == "frame":
        pool = pd.DataFrame(POOL)
        pool.columns = [f"p{n}" for n in range(64)]
    if kind == "two clients":
        dsel.write_pool(POOL, tmp_path / "pool.zarr")
        pool = dsel.open_pool(tmp_path / "pool.zarr")
    found = compare(pool, client=client)
    assert found.to_json() == compare().to_json()


@pytest.mark.cluster
def test_compare_models__gives_the_same_on_a_cluster(processes, tmp_path):
    dsel.write_pool(da.from_array(POOL, (100, 64)), tmp_path / "pool.zarr")
    found = compare(dsel.open_pool(tmp_path / "pool.zarr"), client=processes)
    assert found.to_json() == compare().to_json()
    assert (
        found.query_rows().to_numpy().tolist()
        == compare().query_rows().to_numpy().tolist()
    )


def test_query_rows__hold_columns_that_no_model_uses_and_no_prediction(tmp_path):
    names = [f"p{n}" for n in range(64)]
    frame = pd.DataFrame(X, columns=names)
    old, new = (m.fit(frame[:200], Y[:200]) for m in (
        make_pipeline(StandardScaler(), LogisticRegression(C=1e-4)), SVC()
    ))  # fmt: skip
    pool = frame[200:].assign(image=[f"images/{n}.png" for n in range(len(POOL))])
    pool.to_parquet(tmp_path / "pool.parquet")
    question = dsel.compare_models(
        old, new, tmp_path / "pool.parquet", n_queries=20, random_state=3
    )
    rows = question.query_rows()
    assert rows.columns.tolist() == [*names, "image"]
    assert rows["image"].tolist() == [f"images/{n}.png" for n in rows.index]


def test_compare_models__takes_models_with_columns_of_their_own():
    frame = pd.DataFrame(X, columns=[f"p{n}" for n in range(64)])
    left, right = list(frame.columns[:40]), list(frame.columns[20:])
    old = SVC().fit(frame[left][:200], Y[:200])
    new = SVC().fit(frame[right][:200], Y[:200])
    found = dsel.compare_models(old, new, frame[200:], n_queries=5, random_state=0)
    differ = old.predict(frame[left][200:]) != new.predict(frame[right][200:])
    assert found.n_differ == differ.sum()


def test_compare_models__refuses_columns_in_another_order_than_a_model_has_them():
    names = [f"pixel {j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    new = SVC().fit(frame[:200], Y[:200])
    options = {"n_queries": 60, "random_state": 0}
    question = dsel.compare_models(OLD, new, frame[200:], **options)
    assert question.n_differ == DIFFER.sum()
    with pytest.raises(ValueError, match=r"`old` .* without names .* in their order"):
        dsel.compare_models(OLD, new, frame.loc[200:, names[::-1]], **options)
    turned = SVC().fit(frame[names[::-1]][:200], Y[:200])
    question = dsel.compare_models(turned, new, frame[200:], **options)
    assert question.n_differ < DIFFER.sum() / 4


def test_compare_models__opens_kept_models(tmp_path):
    dsel.results.save_model(OLD, tmp_path / "old")
    dsel.results.save_model(NEW, tmp_path / "new")
    found = dsel.compare_models(
        tmp_path / "old", str(tmp_path / "new"), POOL, n_queries=60, random_state=0
    )
    assert found.to_json() == compare().to_json()


def test_compare_models__says_what_the_pool_alone_proves():
    found = compare(n_queries=0)
    assert found.lower == -found.upper == -found.disagreement
    assert DIFFER.mean() < found.disagreement < DIFFER.mean() + 0.02
    assert "from the pool alone" in str(found)
    with pytest.raises(ValueError, match="n_queries=60"):
        found.query_rows()


def test_compare_models__of_models_that_never_differ_queries_nothing():
    found = dsel.compare_models(NEW, NEW, POOL, n_queries=60, random_state=0)
    assert found.rows == ()
    assert found.upper == -found.lower < 0.005
    with pytest.raises(ValueError, match="differ on no row"):
        found.certify_with_labels([])


def test_compare_models__hands_out_all_rows_where_fewer_differ():
    pool = POOL[np.concatenate([np.flatnonzero(DIFFER)[:3], np.flatnonzero(~DIFFER)])]
    found = compare(pool)
    assert len(found.query_rows()) == 3
    assert "fewer rows" in str(found.certify_with_labels([1, 2, 3]))


def test_compare_models__never_queries_duplicates_of_rows_that_were_trained_on():
    pool = np.concatenate([POOL, POOL[DIFFER][:30], POOL[~DIFFER][:7]])
    seen = np.concatenate([POOL[DIFFER][:30], POOL[~DIFFER][:7], X[:50]])
    found = compare(pool, n_queries=10_000, X_seen=seen)
    stale = {row.tobytes() for row in seen}
    assert not any(row.tobytes() in stale for row in found.query_rows().to_numpy())
    assert found.n_duplicates == 74
    assert found.n_duplicates_differ == 60
    assert found.n_differ == DIFFER.sum() - 30


def test_compare_models__knows_the_rows_of_a_folder_of_results(tmp_path):
    rows, labels = POOL[:200], TRUTH[:200]
    dsel.plan_search(SVC(), {"C": [1]}, rows, labels).run(out=tmp_path, n_jobs=1)
    found = dsel.compare_models(OLD, tmp_path, POOL, n_queries=10_000, X_seen=POOL[:9])
    assert found.n_duplicates == 200
    assert min(found.rows) >= 200
    assert "200 pool rows equal rows on which a model was trained" in str(found)


def test_certify_with_labels__counts_every_row_that_was_handed_out():
    question = compare()
    rows = question.query_rows().index
    truth = pd.Series(TRUTH[rows], index=rows)
    whole = question.certify_with_labels(truth)
    with pytest.raises(ValueError, match="other labels were given before"):
        question.certify_with_labels(truth.iloc[1:], partial=True)
    question = replace(question, passed_labels={})
    part = question.certify_with_labels(truth.iloc[::-1].iloc[5:], partial=True)
    question = replace(question, passed_labels={})
    assert part.unusable_labels == 5
    assert part.upper >= whole.upper
    assert part.lower <= whole.lower
    assert "5 rows have no label" in str(part)
    strange = truth.copy()
    strange.iloc[:5] = 77
    allowed = question.certify_with_labels(strange, allow_unknown=True)
    assert allowed.unusable_labels == 5
    assert "this result is final" in str(allowed)
    question = replace(question, passed_labels={})
    none = question.certify_with_labels(truth.iloc[:1], partial=True)
    assert (none.is_better, none.is_worse) == (False, False)
    assert none.upper == pytest.approx(question.disagreement, rel=1e-2)


def test_certify_with_labels__takes_corrections_that_are_declared_and_says_so():
    question = compare()
    rows = question.query_rows().index
    right = question.certify_with_labels(TRUTH[rows])
    assert right.n_corrected == 0
    question = replace(question, passed_labels={})
    wrong = question.certify_with_labels(np.roll(TRUTH[rows], 1))
    n_differing = int((TRUTH[rows] != np.roll(TRUTH[rows], 1)).sum())
    with pytest.raises(ValueError, match=r"were wrong, such as .* pass corrected=True"):
        question.certify_with_labels(TRUTH[rows])
    corrected = question.certify_with_labels(TRUTH[rows], corrected=True)
    assert (corrected.lower, corrected.upper) == (right.lower, right.upper)
    assert corrected.n_corrected == n_differing > 0
    assert f"other labels of {n_differing} rows were passed before" in " ".join(
        str(corrected).split()
    )
    # Neither the same labels once more nor those of before hide what was passed.
    again = question.certify_with_labels(TRUTH[rows])
    back = question.certify_with_labels(np.roll(TRUTH[rows], 1), corrected=True)
    assert [again.n_corrected, back.n_corrected] == [n_differing] * 2
    assert wrong.n_corrected == 0
    assert ModelComparison.from_json(corrected.to_json()).n_corrected == n_differing


def test_certify_with_labels__takes_an_order_and_a_numbering():
    question = compare()
    rows = question.query_rows().index
    by_order = question.certify_with_labels(TRUTH[rows])
    shuffled = pd.Series(TRUTH[rows], index=rows).sample(frac=1, random_state=1)
    for labels in (
        shuffled,
        shuffled.set_axis(shuffled.index.astype(str)),
        shuffled.astype(float),
        pd.concat([shuffled, shuffled[:3]]),
        TRUTH[rows].tolist(),
    ):
        assert question.certify_with_labels(labels).upper == by_order.upper


def test_certify_with_labels__matches_labels_by_the_index_of_the_pool():
    order = np.random.default_rng(3).permutation(len(POOL))
    pool = pd.DataFrame(POOL[order], index=order)
    pool.columns = [f"p{n}" for n in range(64)]
    y = pd.Series(TRUTH)  # by that index, in another order than the pool
    question = compare(pool)
    rows = question.query_rows()
    pd.testing.assert_frame_equal(
        rows, pool.loc[rows.index], check_names=False, check_index_type=False
    )
    assert list(question.rows) != rows.index.tolist()
    right = compare(pool).certify_with_labels(TRUTH[order][list(question.rows)])
    for labels in (
        y[rows.index],
        y.loc[rows.index].sample(frac=1, random_state=0),
        y[order].iloc[list(question.rows)],
        rows.assign(label=y.loc[rows.index].to_numpy())["label"],
    ):
        assert compare(pool).certify_with_labels(labels).labels == right.labels
    with pytest.raises(IndexError):  # positions are another thing
        TRUTH[rows.index]
    with pytest.raises(ValueError, match=r"index of the pool .*pass y.loc\[rows.index"):
        question.certify_with_labels(y.loc[list(question.rows)])
    with pytest.raises(ValueError, match=r"one level"):
        question.certify_with_labels(pd.Series(1, pd.MultiIndex.from_tuples([(1, 2)])))


def test_certify_with_labels__by_an_index_that_is_not_unique_needs_an_order():
    pool = pd.DataFrame(POOL, index=np.zeros(len(POOL), dtype=int))
    question = compare(pool)
    labels = TRUTH[list(question.rows)]
    by_index = pd.Series(labels, question.query_rows().index)
    assert question.certify_with_labels(by_index).labels == tuple(labels)
    with pytest.raises(ValueError, match="several queried rows have the index 0"):
        question.certify_with_labels(by_index[1:])


def test_certify_with_labels__says_what_the_numbers_of_rows_are():
    question = compare()
    with pytest.raises(ValueError, match=r"positions in the pool from 0, as pool.iloc"):
        question.certify_with_labels(pd.Series(1, index=[-5]))


def test_certify_with_labels__notes_labels_that_no_model_predicts():
    question = compare()
    labels = TRUTH[list(question.rows)]
    words = "of 60 labels: these may be the labels of other rows"
    assert words not in str(question.certify_with_labels(labels))
    other = compare().certify_with_labels(np.random.default_rng(0).permutation(labels))
    assert words in " ".join(str(other).split())
    both = question.old_predictions, question.new_predictions
    neither = [min({0, 1, 2} - {*pair}) for pair in zip(*both, strict=True)]
    for n_right in (29, 30):  # more than half, and half
        labels = [*question.new_predictions[:n_right], *neither[n_right:]]
        result = compare().certify_with_labels(labels)
        assert (
            f"neither model predicts {60 - n_right} {words}"
            in " ".join(str(result).split())
        ) == (n_right == 29)


def test_model_comparison__comes_back_from_json():
    question = compare()
    answer = question.certify_with_labels(TRUTH[question.query_rows().index])
    again = ModelComparison.from_json(answer.to_json())
    assert again == answer
    assert str(again) == str(answer)
    assert "less than the old one" in again._repr_html_()
    record = json.loads(answer.to_json())
    for change, words in (
        ({"kind": "other"}, "kind"),
        ({"version": 99}, "newer"),
        ({"n_differ": 5}, "was changed"),
        ({"labels": 5}, "no model comparison"),
    ):
        with pytest.raises(ValueError, match=words):
            ModelComparison.from_json(json.dumps(record | change))


class Own:
    """A model of a user, which predicts what `function` makes of the sums of rows."""

    def __init__(self, function):
        self.function = function

    def predict(self, rows):
        return self.function(np.asarray(rows).sum(axis=1))


@pytest.mark.parametrize("name", ["old", "new"])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda sums: sums + 0.5, "{} must predict labels, got .*: regressors are not"),
        (
            lambda sums: (sums + 0.5).astype(object),
            "{} must predict labels, got .*: regressors are not compared here; ",
        ),
        (
            lambda sums: np.c_[sums, sums],
            r"of {} must .* shape \(1, 2\) for 1 row; return an array of the shape",
        ),
        (
            lambda sums: sums.no_such_name,
            "{} Own cannot predict the rows of `pool`: AttributeError: .*; pass a pool",
        ),
        (
            lambda sums: [].pop(),
            "{} Own cannot predict .*: IndexError: pop from empty list; pass a pool",
        ),
    ],
)
def test_compare_models__names_the_argument_of_a_model_that_predicts_no_labels(
    function, words, name
):
    models = {"old": OLD, "new": NEW} | {name: Own(function)}
    with pytest.raises(ValueError, match=words.format(f"`{name}`")):
        dsel.compare_models(**models, pool=POOL)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "`new`.*predict", lambda: dsel.compare_models(OLD, 5, POOL)),
        (TypeError, "`old`.*fitted", lambda: dsel.compare_models(SVC, NEW, POOL)),
        (ValueError, "not fitted", lambda: dsel.compare_models(OLD, SVC(), POOL)),
        (
            TypeError,
            "`new`.*classifier.* got LinearRegression.*; to choose among regressors",
            lambda: dsel.compare_models(OLD, LinearRegression().fit(X, Y), POOL),
        ),
        (
            TypeError,
            "one type",
            lambda: dsel.compare_models(
                OLD, DummyClassifier().fit(X, Y.astype(str)), POOL
            ),
        ),
        (ValueError, "columns", lambda: compare(POOL[:, :5])),
        (
            FileNotFoundError,
            "nowhere",
            lambda: dsel.compare_models(OLD, "nowhere", POOL),
        ),
        (ValueError, "`n_queries`", lambda: compare(n_queries=-1)),
        (TypeError, "`n_queries`", lambda: compare(n_queries=2.5)),
        (ValueError, "`delta`", lambda: compare(delta=0)),
        (ValueError, "`classes`", lambda: compare(classes=[3])),
        (
            ValueError,
            r"`old` predicts 0, 1, .*; `new` predicts 10, 11: they answer different",
            lambda: dsel.compare_models(OLD, OTHER, POOL, n_queries=9, random_state=0),
        ),
        (TypeError, "`X_seen`", lambda: compare(X_seen=3)),
        (ValueError, "columns", lambda: compare(X_seen=X[:, :3])),
        (
            ValueError,
            "`labels` .*all 60 labels are missing",
            lambda: compare().certify_with_labels([None] * 60, partial=True),
        ),
        (
            ValueError,
            "`labels` .*59 of 60 rows have none; .*partial=True",
            lambda: compare().certify_with_labels([1] + [None] * 59),
        ),
        (
            ValueError,
            "got 77 in 1 row; .*allow_unknown=True",
            lambda: compare().certify_with_labels([77] + [1] * 59),
        ),
        (
            ValueError,
            "none of 60 labels is one, such as 77",
            lambda: compare().certify_with_labels([77] * 60),
        ),
        (ValueError, "60.*got 3", lambda: compare().certify_with_labels([1, 2, 3])),
        (TypeError, "`labels`", lambda: compare().certify_with_labels(None)),
        (
            TypeError,
            "type",
            lambda: compare().certify_with_labels(["a"] * 60),
        ),
        (
            ValueError,
            "queried pool rows",
            lambda: compare().certify_with_labels(pd.Series(1, index=[-5])),
        ),
        (
            ValueError,
            "one label for each",
            lambda: compare().certify_with_labels(
                pd.Series([1, 2], index=[compare().rows[0]] * 2)
            ),
        ),
        (
            ValueError,
            "one column",
            lambda: compare().certify_with_labels(pd.DataFrame({"a": [1]})),
        ),
    ],
)
def test_compare_models__refuses_in_one_line(error, words, call):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
@pytest.mark.parametrize(
    "law", ["wrong where they differ", "three classes", "duplicates", "few rows differ"]
)
def test_compare_models__limits_fail_at_most_delta_of_the_time(law, delta):
    """Draws of pool and labels through the public path; the truth is known exactly."""
    draws, n_rows = 150, 600
    rng = np.random.default_rng([round(100 * delta), len(law)])
    differ, classes = 0.08, [0, 1, 2]
    right = {"wrong where they differ": 0.0, "three classes": 0.1}.get(law, 0.45)
    if law == "few rows differ":
        differ = 0.01
    wrong = 0.6 if law == "three classes" else 1 - right
    failures = 0
    for draw in range(draws):
        old = rng.integers(0, 3, n_rows)
        new = np.where(rng.random(n_rows) < differ, (old + 1) % 3, old)
        # New alone is right, old alone is right, or both are wrong.
        u = rng.random(n_rows)
        truth = np.where(
            u < right, new, np.where(u < right + wrong, old, (old + 2) % 3)
        )
        value = np.arange(n_rows)
        seen = None
        if law == "duplicates":
            # Records that the new model has memorized: it is right on all of them.
            stale = rng.random(n_rows) < 0.05
            truth = np.where(stale, new, truth)
            value = np.where(stale, value, value + n_rows)
            seen = np.stack([old, new, value], axis=1)[stale]
            if not len(seen):
                continue
        pool = np.stack([old, new, value], axis=1)
        question = dsel.compare_models(
            FromColumn(0), FromColumn(1), pool, n_queries=40, classes=classes,
            X_seen=seen, delta=delta, random_state=draw,
        )  # fmt: skip
        if question.rows:
            question = question.certify_with_labels(truth[list(question.rows)])
        exact = differ * (wrong - right)
        failures += not question.lower - 1e-12 <= exact <= question.upper + 1e-12
    assert failures <= delta * draws + 3 * np.sqrt(delta * draws)


def test_comparison__of_single_rows_speaks_of_one():
    row = {"rows": (0,), "old_predictions": (0,), "new_predictions": (1,)}
    made = ModelComparison(0.05, 1, 1, 1, classes=(0, 1), **row)
    seen = ModelComparison(0.05, 3, 1, 1, 1, 0, **row)
    two = replace(made, rows=(0, 1), old_predictions=(0, 0), new_predictions=(1, 1))
    labeled = two.certify_with_labels([1, None], partial=True)
    texts = [str(made), str(labeled), str(seen), str(made.certify_with_labels([1]))]
    for words in (
        "differ on 1 of 1 row, at most",
        "1 row was queried",
        "of 1 row on which they differ",
        "1 row has no label, or one that is no class: each counts against",
        "1 pool row equals rows on which a model was trained",
    ):
        assert any(words in text for text in texts), texts
    assert " 1 rows" not in " ".join(texts)
