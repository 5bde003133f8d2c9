"""What a bound must take into account, and what must not be certified."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.bounds import cv_bound, nested_all_rows, upper_pool_rows
from tests.contract.runs import TREES, digits, run_search

pytestmark = pytest.mark.contract

X, Y, POOL = digits(200)
FORMULAS = {
    "nested": ("outer_errors", "outer_disagreements", nested_all_rows),
    "cv_bound": ("fold_errors", "disagreements", cv_bound),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_bound__allows_for_pool_rows_that_are_labeled_rows(name):
    errors, differ, formula = FORMULAS[name]
    run = run_search(*TREES, X, Y, np.vstack([POOL, X[:90]]), certificate=name, cv=3)
    chosen = run.results.isel(max_depth=run.choice.candidate).fillna(0)
    errors, differ, rows = (
        chosen[each].values.astype(int) for each in (errors, differ, "fold_rows")
    )
    if name == "cv_bound":
        terms = formula(errors, rows, differ.sum(), len(POOL), delta=0.05 / 4)
    else:
        among = chosen["outer_duplicate_disagreements"].values.astype(int)
        seen = upper_pool_rows(len(POOL) + 90, 90, among)
        _, terms = formula(errors, rows, differ, seen, delta=0.05)
        assert 0 < among.sum() < differ.sum()
    found = run.certificates["all_rows"]
    assert (found.n_duplicates, found.n_unlabeled) == (90, len(POOL) + 90)
    assert found.bound == pytest.approx(min(1.0, terms.bound), abs=1e-12)
    assert "90 pool rows equal a labeled row" in found.assumptions[0].reason


def test_assumptions__name_the_counted_pool_only_where_a_bound_reads_it():
    run = run_search(*TREES, X, Y, POOL, cv=3)

    def named(assumptions):
        return [assumption.name for assumption in assumptions]

    one_fold, all_rows = (run.certificates[name] for name in ("one_fold", "all_rows"))
    assert named(one_fold.assumptions) == ["A1", "A3", "A5", "A7"]
    assert named(all_rows.assumptions) == ["A1", "A3", "A4", "A5", "A7"]
    assert named(run.choice.assumptions) == ["A1", "A3", "A4", "A5", "A7"]


def test_pool__of_another_population_is_told_and_nothing_is_certified():
    run = run_search(*TREES, X, Y, np.random.default_rng(0).permuted(POOL, axis=1))
    for each in run.certificates.values():
        assert not each.certified
        assert (
            "a classifier distinguishes labeled rows from pool rows" in each.reasons[0]
        )
    assert "the mean of their error and its error is at least" in str(run.choice)


def test_max_pool_rows__are_about_as_many_as_are_counted():
    cube = run_search(*TREES, X, Y, POOL, max_pool_rows=500).results
    assert 420 < int(cube["n_unlabeled"]) < 580
    assert (cube["outer_disagreements"] <= cube["n_unlabeled"]).all()


def centered(rows):
    return rows - rows.mean(axis=0)


def test_function__that_looks_at_all_rows_of_a_call_rules_its_candidate_out():
    learner = make_pipeline(FunctionTransformer(centered), TREES[0])
    with pytest.raises(dsel.errors.AllFitsFailedError, match="otherwise alone than"):
        run_search(learner, {"decisiontreeclassifier__max_depth": [4]}, X, Y, cv=3)


class AloneOtherwise(DecisionTreeClassifier):
    """A tree whose first predictions of single rows are another class."""

    def __init__(self, n_otherwise=0):
        super().__init__(max_depth=4, random_state=0)
        self.n_otherwise = n_otherwise

    def fit(self, X, y):
        self.n_alone_ = 0
        return super().fit(X, y)

    def predict(self, X):
        predictions = super().predict(X)
        if len(X) == 1:
            self.n_alone_ += 1
            if self.n_alone_ <= self.n_otherwise:
                return self.classes_[self.classes_ != predictions[0]][:1]
        return predictions


def test_model__that_predicts_two_rows_otherwise_alone_is_ruled_out_and_one_is_a_tie():
    learner = make_pipeline(FunctionTransformer(), AloneOtherwise())
    name = "aloneotherwise__n_otherwise"
    run = run_search(learner, {name: [0, 1]}, X, Y, cv=3, prune=False)
    assert run.results["status"].values.tolist() == [0, 0]
    with pytest.raises(dsel.errors.AllFitsFailedError, match="2 of 8 rows otherwise"):
        run_search(learner, {name: [2]}, X, Y, cv=3)


class RefusesRowsAlone(DecisionTreeClassifier):
    """A tree that predicts only tables of several rows."""

    def predict(self, X):
        if len(X) == 1:
            raise ValueError("one row has no spread")
        return super().predict(X)


def test_model__that_refuses_a_row_alone_is_ruled_out_without_a_comparison():
    learner = make_pipeline(FunctionTransformer(), RefusesRowsAlone(random_state=0))
    with pytest.raises(dsel.errors.AllFitsFailedError) as raised:
        run_search(learner, {"refusesrowsalone__max_depth": [4]}, X, Y, cv=3)
    cause = "raises on a row alone, and not among other rows (ValueError: one row"
    assert cause in str(raised.value)
    assert "8 of 8" not in str(raised.value)


class MixesWithoutFirstRow(DecisionTreeClassifier):
    """A tree that predicts rows otherwise alone, unless the first row was learned."""

    def fit(self, X, y):
        self.mixes_ = not (MIXED_ROWS[0] == X).all(axis=1).any()
        return super().fit(X, y)

    def predict(self, X):
        predictions = super().predict(X)
        return predictions[::-1] if self.mixes_ and len(X) > 1 else predictions


MIXED_ROWS = np.arange(240.0).reshape(120, 2)


@pytest.mark.parametrize("loss", ["error", "balanced"])
def test_model__that_mixes_rows_counts_as_wrong_on_all_rows_of_its_fold(loss):
    y = np.arange(120) // 7 % 2
    learner = make_pipeline(FunctionTransformer(), MixesWithoutFirstRow(random_state=0))
    outcome = dsel.certify(learner, MIXED_ROWS, y, loss=loss, random_state=0)
    if loss == "error":
        wrong = outcome.results["outer_errors"].values == outcome.results["fold_rows"]
        assert wrong.sum() == 1
    caveat = "otherwise alone than"
    assert [c.text for c in outcome.choice.all_caveats if caveat in c.text]
    estimates = outcome.certificate.estimate, outcome.certificate.estimate_of_models
    assert estimates[0] > estimates[1] + 0.05


@pytest.mark.parametrize(
    ("asked", "rows", "why"),
    [
        ({}, slice(None), ""),
        ({"criterion": "cv_error"}, slice(None), "is an estimate, not a bound"),
        ({"criterion": "best_fold"}, slice(None), "is not the certificate that the"),
        ({"delta": 0.04}, slice(None), "the plan declared delta=0.05"),
        ({}, slice(None, None, -1), "was cut, sorted or changed after the run"),
        ({"criterion": "cv_bound"}, slice(2), "was cut, sorted or changed after"),
    ],
)
def test_select__certifies_what_the_plan_declared_and_nothing_else(asked, rows, why):
    run = run_search(*TREES, X, Y, POOL, certificate="cv_bound", cv=3)
    found = dsel.select(run.results.isel(max_depth=rows), **asked).certificate
    assert found.certified == (not why)
    assert why in "".join(found.reasons[:1])


@pytest.mark.filterwarnings("ignore::dsel.errors.FitFailedWarning")
@pytest.mark.parametrize("grid", [{"cv": [1, 2]}, {"cv": [2, 3]}, {"cv": [2]}])
def test_search_in_a_search__says_what_failed_in_either(grid):
    tree = DecisionTreeClassifier(random_state=0)
    inner = GridSearchCV(tree, {"max_depth": [1, -1]})
    choice = run_search(inner, grid, X, Y).choice
    notes = " ".join(caveat.text for caveat in choice.caveats)
    # A folding in one part is refused; the depth -1 fails in each of the others.
    assert ("1 candidate failed (cv=1)" in notes) == (grid["cv"][0] == 1)
    assert "could not fit all of its own grid, and chose among the others" in notes
    assert "fits failed: The 'max_depth' parameter" in notes


class Unable(ClassifierMixin, BaseEstimator):
    """Learns, and answers in a way that is of no use."""

    def __init__(self, way="raises", most=0):
        self.way = way
        self.most = most

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.first_ = X[0]
        return self

    def predict(self, X):
        if self.way == "raises" or (self.way == "some" and X[0, 20] > self.most):
            raise RuntimeError("it has no answer")
        labels = np.full(len(X), self.classes_[0])
        return {"two": np.c_[labels, labels], "few": labels[1:]}.get(self.way, labels)


RUNS_OF_UNABLE = {
    "certify_selection": lambda model, **rows: dsel.certify(
        model, X, Y, rows.get("pool"), cv=3, random_state=0
    ),
    "search": lambda model, **rows: dsel.SemiSupervisedSearchCV(
        model, {"most": [0, 1, 2]}, random_state=0, n_jobs=1
    ).fit(X, Y, **rows),
    "cv_bound": lambda model, **rows: dsel.SemiSupervisedSearchCV(
        model, {"most": [0, 1]}, random_state=0, n_jobs=1, certificate="cv_bound"
    ).fit(X, Y, pool=POOL),
    "estimate": lambda model, **rows: dsel.plan_search(
        model, {"most": [0, 1]}, X, Y, criterion="cv_error", random_state=0
    ).run(n_jobs=1),
    "covalidate": lambda model, **rows: dsel.covalidate(
        model, {"most": [0, 1]}, X, Y, POOL, repeats=2
    ),
}


@pytest.mark.parametrize("run", RUNS_OF_UNABLE)
@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("raises", "it has no answer"),
        ("two", "return one label for each row, got labels of shape"),
        ("few", "return one label for each row, got labels of shape"),
    ],
)
def test_model__that_predicts_nowhere_is_an_error_with_its_reason(run, way, words):
    for rows in ({}, {"pool": POOL}):
        with pytest.raises(dsel.errors.AllFitsFailedError, match=f"predict.*{words}"):
            RUNS_OF_UNABLE[run](Unable(way), **rows)


def test_model__whose_predict_raises_on_some_folds_errs_there():
    order = np.argsort(X[:, 20])
    most = X[order[len(X) // 2], 20]
    outcome = dsel.certify(Unable("some", most), X, Y, cv=5, random_state=1)
    errors, rows = outcome.results["outer_errors"], outcome.results["fold_rows"]
    assert 0 < int((errors == rows).sum()) < 5
    assert outcome.certificate.certified
    assert any("raised in `predict`" in each for each in outcome.choice.remarks)


def test_candidate__that_predicts_nowhere_does_not_end_a_search_on_the_pool():
    grid = [TREES[0], Unable()]
    with pytest.warns(dsel.errors.FitFailedWarning, match="1 of 2 candidates failed"):
        run = run_search(None, grid, X, Y, POOL, certificate="cv_bound", cv=3)
    assert run.results["status"].values.tolist() == [0, 2]
    assert "it has no answer" in run.results["message"].values[1]
    assert run.choice.candidate == 0
