"""Is the deployed model better than the one in production? From labeled rows alone."""

import json
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dsel
from dsel.results import Choice, open_results, save_model
from tests.contract.test_refusals import is_refused

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

ORDER = np.random.default_rng(0).permutation(1797)
X, Y = (each[ORDER] for each in load_digits(return_X_y=True))
OLD = LogisticRegression(C=1e-5, max_iter=500).fit(X[1500:], Y[1500:])
ROWS, LABELS, POOL = X[:300], Y[:300], X[300:1500]
GRID = {"C": [1.0, 10.0]}
NAMED = pd.DataFrame(X, columns=[f"p{n}" for n in range(64)])


@dataclass
class Constant:
    """Predicts one value, so many times in the place of once for each row."""

    value: object
    more: int = 0

    def predict(self, rows):
        return np.array([self.value] * (rows.shape[0] + self.more))


class Raising:
    def predict(self, rows):
        raise RuntimeError("no model is loaded")


def plan(baseline, pool=POOL, **options):
    options = {"random_state": 0, **options}
    X, y = options.pop("rows", (ROWS, LABELS))
    grid, model = options.pop("grid", GRID), options.pop("estimator", SVC())
    return dsel.plan_search(model, grid, X, y, pool, baseline=baseline, **options)


def limit(wins, losses, rows, delta):
    """The sign test's limit, by another route."""
    decided = wins + losses
    theta = stats.beta.ppf(1 - 0.9 * delta, wins + 1, losses) if losses else 1.0
    balance, share = 2 * theta - 1, 0.05 * delta
    if balance < 0:
        return balance * stats.beta.ppf(share, decided, rows - decided + 1)
    return balance * stats.beta.ppf(1 - share, decided + 1, rows - decided)


@pytest.fixture(scope="module")
def planned():
    return plan(OLD)


@pytest.fixture(scope="module")
def outcome(planned):
    return planned.run(n_jobs=1)


def right_alone(model, baseline, rows):
    known = model.predict(ROWS[rows]) == LABELS[rows]
    other = baseline.predict(ROWS[rows]) == LABELS[rows]
    return int((known & ~other).sum()), int((other & ~known).sum())


def test_baseline__is_compared_on_the_rows_of_the_fold_that_neither_has_seen(
    planned, outcome
):
    found, fold = outcome.baseline, outcome.certificate.fold
    rows = planned.search.scheme.fold_splits[fold].test_rows
    assert found.n_rows == len(rows)
    counts = right_alone(outcome.models["one_fold"], OLD, rows)
    assert (found.model_right, found.baseline_right) == counts
    counted = outcome.results["outer_right_alone"]
    assert counted.sel(fold=fold).values.tolist() == list(counts)
    assert counted["right_alone"].values.tolist() == ["model", "baseline"]
    share = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16][fold]
    expected = limit(counts[1], counts[0], len(rows), share * 0.95 * 0.05)
    assert found.upper == pytest.approx(expected, rel=1e-6)


class Named(LogisticRegression):
    """A learner whose parameter has the name of a dimension of the cube."""

    def __init__(self, right_alone=1.0):
        super().__init__()
        self.right_alone = right_alone


def test_baseline__is_counted_where_a_parameter_has_the_name_of_its_dimension():
    grid = {"right_alone": [1.0, 10.0]}
    made = plan(OLD, None, estimator=Named(), grid=grid).run(n_jobs=1)
    assert made.results["outer_right_alone"].dims == ("fold", "right_alone")
    assert made.results["fold_errors"].dims[0] == "param_right_alone"
    assert set(made.choice.params) == {"right_alone"}


def test_baseline__proves_that_the_better_model_is_better(outcome):
    found = outcome.baseline
    truth = np.mean(outcome.model.predict(POOL) != Y[300:1500]) - np.mean(
        OLD.predict(POOL) != Y[300:1500]
    )
    assert found.certified
    assert found.is_better
    assert truth <= found.upper < 0
    assert found.headline().startswith(
        "Better than the baseline (LogisticRegression): errs at least "
    )
    assert "percentage points less (95% confidence), model trained on 80%" in (
        found.headline()
    )


def test_baseline__of_all_rows_pays_for_the_disagreement_on_the_pool(outcome):
    made = outcome.choice.bounded_models["all_rows"].baseline
    counts = outcome.results["outer_right_alone"].values
    differ = outcome.results["outer_disagreements"].values
    shares, sums = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16], []
    for (model, baseline), apart, share in zip(counts, differ, shares, strict=True):
        label = limit(baseline, model, 60, share * 0.95 * 0.05)
        pool = stats.beta.ppf(1 - 0.05 * 0.05 / 5, apart + 1, len(POOL) - apart)
        sums.append(label + pool)
    assert made.upper == pytest.approx(min(sums), rel=1e-6)
    assert made.label_term < made.upper
    assert "from the pool" in made.counts


def test_baseline__changes_no_bound_and_no_choice(outcome):
    without = plan(None).run(n_jobs=1)
    assert without.baseline is None
    assert without.choice.by_model("baseline") == {}
    assert {n: c.bound for n, c in without.certificates.items()} == {
        n: c.bound for n, c in outcome.certificates.items()
    }
    assert "outer_right_alone" not in without.results


def test_baseline__that_is_as_good_is_not_proved_worse_or_better(outcome):
    # The old model against itself, in the place of a search.
    itself = plan(OLD, None, estimator=None, grid=[LogisticRegression(C=1e-5)])
    worse = plan(SVC(C=10).fit(X[300:], Y[300:]), None, estimator=None,
                 grid=[LogisticRegression(C=1e-5)])  # fmt: skip
    assert not itself.run(n_jobs=1).baseline.is_better
    found = worse.run(n_jobs=1).baseline
    assert not found.is_better
    assert found.upper > 0
    assert found.headline().startswith("Not proved better than the baseline (SVC): ")


def test_largest_class__is_that_of_the_rows_outside_of_the_fold():
    y = np.where(np.arange(300) % 2, "no", "yes")
    made = plan("largest class", rows=(ROWS, y), certificate="nested")
    for split in made.search.scheme.fold_splits:
        classes, counts = np.unique(y[split.train_rows], return_counts=True)
        code = made.search.context.baseline.codes[split.test_rows]
        assert (made.search.classes[code] == classes[counts.argmax()]).all()
    found = made.run(n_jobs=1).baseline
    assert found.largest_class in ("'no'", "'yes'")
    assert f"always predicting {found.largest_class}" in found.headline()
    assert "the largest class is that of the rows that a model" in str(found)
    assert not found.is_better  # the labels are a coin's


def test_baseline__of_rows_in_groups_counts_one_row_of_each():
    keys = np.arange(300) // 3
    outcome = plan(OLD, None, groups=keys).run(n_jobs=1)
    found = outcome.baseline
    assert found.n_rows == 20  # of 60 rows in the fold
    assert "on a random row of a new group" in found.headline()
    largest = plan("largest class", None, groups=keys).run(n_jobs=1).baseline
    assert largest.is_better
    assert largest.n_rows == 20


def test_baseline__goes_with_queries_reports_and_limits_by_value(outcome):
    frame = NAMED.assign(site=np.arange(1797) % 2)
    old = LogisticRegression(C=1e-5, max_iter=500).fit(NAMED[1500:], Y[1500:])
    rows, pool = (frame[:300], LABELS), frame[300:1500]
    for options in ({"n_queries": 20}, {"report": True}, {"report_by": "site"}):
        made = plan(old, pool, rows=rows, **options).run(n_jobs=1)
        assert made.baseline.is_better
        assert set(made.choice.by_model("baseline")) == {"one_fold", "all_rows"}


def test_search__takes_a_baseline_where_it_is_fitted(outcome):
    search = dsel.SemiSupervisedSearchCV(SVC(), GRID, random_state=0, n_jobs=1)
    search.fit(ROWS, LABELS, POOL, baseline=OLD)
    assert search.choice_.baseline == outcome.baseline
    certified = dsel.certify(SVC(C=10), ROWS, LABELS, baseline=OLD, random_state=0)
    assert certified.baseline.is_better


@pytest.mark.parametrize("kind", ["path", "frame", "columns", "pipeline", "outcome"])
def test_baseline__is_what_predict_says_however_it_is_given(kind, outcome, tmp_path):
    baseline, options = OLD, {}
    if kind == "path":
        save_model(OLD, tmp_path / "old")
        baseline = tmp_path / "old"
    if kind in ("frame", "columns"):  # names are found, whatever their order
        names = [f"p{n}" for n in range(64)][::-1]
        order = [*range(64)][::-1]
        options = {"rows": (NAMED[:300], LABELS), "pool": NAMED[300:1500]}
        baseline = LogisticRegression(C=1e-5, max_iter=500).fit(
            X[1500:][:, order], Y[1500:]
        )
        baseline.feature_names_in_ = np.array(names, object)
        if kind == "frame":
            baseline = OLD
    if kind == "pipeline":
        baseline = make_pipeline(StandardScaler(with_std=False), OLD)
        baseline.named_steps["standardscaler"].fit(np.zeros((2, 64)))
    if kind == "outcome":
        baseline = plan(None, None, estimator=None, grid=[OLD]).run(n_jobs=1)
    found = plan(baseline, **options).run(n_jobs=1).baseline
    if kind == "outcome":
        assert found.n_rows == 60
    else:
        assert (found.model_right, found.baseline_right) == (
            outcome.baseline.model_right, outcome.baseline.baseline_right,
        )  # fmt: skip


def test_baseline__of_a_search_that_had_some_of_these_rows_is_refused(tmp_path):
    plan(None, pool=None).run(out=tmp_path, n_jobs=1)
    searched = dsel.SemiSupervisedSearchCV(SVC(), {"C": [1]}).fit(ROWS, LABELS)
    for baseline in (tmp_path, str(tmp_path), searched):
        rows = X[290:500].astype(np.float32), Y[290:500]
        with pytest.raises(ValueError, match="was trained on 10 of these 210 labeled"):
            plan(baseline, rows=rows)
        with pytest.raises(ValueError, match="was trained on 300 of these 300"):
            dsel.certify(OLD, ROWS, LABELS, cv="prefit", baseline=baseline)
        plan(baseline, rows=(X[300:500], Y[300:500]))


def test_models__without_names_of_columns_take_those_of_a_frame_by_position():
    named = SVC().fit(NAMED[:60], Y[:60])
    unnamed = SVC().fit(X[:60], Y[:60])
    words = "`X` has names of columns and `{}` has none: columns are taken by position"
    rows, labels = NAMED[300:500], Y[300:500]
    for model, baseline in product((named, unnamed), (named, unnamed)):
        notes = str(dsel.certify(model, rows, labels, cv="prefit", baseline=baseline))
        notes = " ".join(notes.split())
        assert (words.format("model") in notes) == (model is unnamed)
        assert (words.format("baseline") in notes) == (baseline is unnamed)
    for baseline in (named, unnamed):
        texts = plan(baseline, rows=(rows, labels), pool=None).remarks
        assert (words.format("baseline") in texts) == (baseline is unnamed)
    # Rows without names have no other order.
    found = dsel.certify(unnamed, X[300:500], labels, cv="prefit", baseline=unnamed)
    assert "by position" not in str(found)


def test_prefit__compares_two_fitted_models_on_rows_that_neither_has_seen():
    new = SVC(C=10).fit(ROWS, LABELS)
    rows, labels = X[300:800], Y[300:800]
    made = dsel.certify(new, rows, labels, cv="prefit", baseline=OLD)
    found = made.baseline
    right = [model.predict(rows) == labels for model in (new, OLD)]
    counts = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    assert (found.model_right, found.baseline_right) == counts
    assert found.upper == pytest.approx(limit(*counts[::-1], 500, 0.05), rel=1e-6)
    assert found.is_better
    assert found.headline() in str(made)
    assert "model as given, if it has not seen these 500 rows" in found.headline()
    assert type(made).from_json(made.to_json()) == made
    without = dsel.certify(new, rows, labels, cv="prefit")
    assert without.baseline is None
    assert without.bound == made.bound
    grouped = dsel.certify(
        new, rows, labels, cv="prefit", baseline=OLD, groups=np.arange(500) // 2
    )
    assert grouped.baseline.n_rows == 250
    for baseline, words in (
        ("largest class", "cv='prefit' does not know"), (Raising(), "no model is")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            dsel.certify(new, rows, labels, cv="prefit", baseline=baseline)


def test_choice__says_the_verdict_and_what_it_rests_on(outcome):
    lines = str(outcome.choice).splitlines()
    assert outcome.baseline.headline() in lines
    assert outcome.choice.bounded_models["all_rows"].baseline.headline() in lines
    text = "\n".join(lines)
    assert "Baseline  of 60 rows that the model has not seen, only the model" in text
    joint = "with the bounds of the models this holds at 90% confidence (95% with del"
    assert f"{joint}ta=0.025)" in text
    alone = "all of them hold together with 90% confidence; for 95% pass delta=0.025"
    assert alone in str(outcome.baseline)
    assert "Assumes   the baseline was trained on none of these labels" in text
    assert "baseline       whether the models err less than" in str(plan(OLD))


def test_comparison__is_no_guarantee_where_the_bound_is_none(outcome):
    shifted = plan(OLD, POOL + 4.0).run(n_jobs=1)
    found = shifted.baseline
    assert not found.certified
    assert not found.is_better
    assert "No guarantee, for the reason above: whether it errs less" in str(
        shifted.choice
    )


def test_choice__warns_of_the_largest_class_beside_another_baseline():
    """The comparison with a model does not say what always the same class gives."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    labels = np.where(rng.random(300) < 0.15, "fraud", "ok")
    old = LogisticRegression().fit(rng.normal(size=(50, 3)), labels[:50])
    grid, model = {"C": [1.0]}, LogisticRegression()
    said = [
        str(plan(baseline, None, rows=(rows, labels), grid=grid, estimator=model).run())
        for baseline in (None, old, "largest class")
    ]
    line = "No better than always predicting ok ("
    assert [line in text for text in said] == [True, True, False]


def test_record__keeps_the_comparison_and_older_ones_have_none(outcome):
    text = outcome.choice.to_json()
    assert Choice.from_json(text).by_model("baseline") == outcome.choice.by_model(
        "baseline"
    )
    record = json.loads(text)
    for each in record["deployed"].values():
        del each["baseline"]
    older = Choice.from_json(json.dumps(record))
    assert older.by_model("baseline") == {}
    assert older.certificates == outcome.choice.certificates


def test_out__of_one_baseline_is_read_back_and_refused_for_another(tmp_path):
    made = plan(OLD).run(n_jobs=1, out=tmp_path / "a")
    again = plan(OLD).run(
        n_jobs=1, out=tmp_path / "a", on_progress=lambda progress: pytest.fail("fits")
    )
    assert again.choice.by_model("baseline") == made.choice.by_model("baseline")
    assert dsel.select(open_results(tmp_path / "a")).baseline == made.baseline
    # A model that predicts the same is the same baseline, wherever it comes from.
    save_model(OLD, tmp_path / "old")
    assert plan(tmp_path / "old").run(out=tmp_path / "a").baseline == made.baseline
    for other in (None, "largest class", SVC().fit(X[1500:], Y[1500:])):
        with pytest.raises(dsel.errors.StoreMismatchError, match="baseline"):
            plan(other).run(out=tmp_path / "a")


TEXTS = np.array(["a", "b"])[Y % 2]
REFUSED = {
    "a class": ({"baseline": SVC}, TypeError, "`baseline` must be a fitted model"),
    "a number": ({"baseline": 3}, TypeError, "or 'largest class', got 3"),
    "no predict": ({"baseline": StandardScaler()}, TypeError, "StandardScaler()"),
    "not fitted": ({"baseline": SVC()}, ValueError, "`baseline` must be a fitted"),
    "no place": (
        {"baseline": "largest_class"}, OSError,
        "`baseline` 'largest_class' cannot be opened did you mean 'largest class'?",
    ),
    "a regressor": (
        {"baseline": Ridge().fit(X, Y)}, TypeError, "`baseline` must be a classifier"
    ),
    "of a regressor": (
        {"estimator": Ridge(), "grid": {"alpha": [1]}, "rows": (ROWS, ROWS.mean(1))},
        ValueError, "`baseline` LogisticRegression",
    ),
    "other columns": (
        {"baseline": SVC().fit(X[:, :9], Y)}, ValueError,
        "`baseline` was fitted with 9 columns, but `X` has 64",
    ),
    "other names": (
        {
            "baseline": SVC().fit(NAMED, Y), "pool": None,
            "rows": (NAMED[:300].drop(columns="p7"), LABELS),
        },
        ValueError, "`baseline` was fitted with the column 'p7', which `X` lacks",
    ),
    "labels of another type": (
        {"baseline": SVC().fit(X, TEXTS)}, TypeError, "'a' where `y` holds 0"
    ),
    "other classes": (
        {"baseline": SVC().fit(X, Y + 20)}, ValueError, "none of which is one of `y`"
    ),
    "predicts another type": (
        {"baseline": Constant("x")}, TypeError, "`baseline` predicts 'x'"
    ),
    "predicts no class": (
        {"baseline": Constant(0.3)}, ValueError,
        "`baseline` Constant predicts 0.3 for row 0 of `X`",
    ),
    "predicts nothing": (
        {"baseline": Constant(None)}, ValueError, "predicts None for row 0"
    ),
    "too many": (
        {"baseline": Constant(1, 2)}, ValueError,
        "`predict` of `baseline` must return one label for each row, got 302 labels",
    ),
    "chances": (
        {"baseline": Constant([0.2, 0.8])}, ValueError,
        "got an array of shape (300, 2) for 300 rows",
    ),
    "raises": (
        {"baseline": Raising()}, ValueError,
        "`baseline` Raising cannot predict the rows of `X`: no model is loaded",
    ),
    "cv_bound": (
        {"certificate": "cv_bound"}, ValueError, "got certificate='cv_bound'"
    ),
    "holdout": (
        {"certificate": "holdout", "baseline": "largest class"}, ValueError,
        "`baseline` 'largest class' is compared with the models of",
    ),
    "an estimate": ({"criterion": "cv_error"}, ValueError, "got certificate=None"),
    "another loss": (
        {"loss": dsel.losses.balanced()}, ValueError, "got loss=balanced("
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_baseline__is_refused_in_one_line_before_work_starts(case):
    options, error, words = REFUSED[case]
    is_refused(lambda: plan(**{"baseline": OLD, **options}), error, words)


def test_regressor__is_no_baseline_of_a_comparison_either():
    with pytest.raises(TypeError, match="`new` must be a classifier"):
        dsel.compare_models(OLD, LinearRegression().fit(X, Y), POOL)
