"""Losses by class and the certified report, beside plain loops over the same folds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import (
    FixedThresholdClassifier,
    ParameterGrid,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel import losses

X, NUMBERS = make_classification(
    1500, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=1
)
Y = np.where(NUMBERS == 1, "fraud", "ok")
POOL, X, Y = X[500:], X[:500], Y[:500]
CLASSES = ["fraud", "ok"]
COSTS = {("fraud", "ok"): 5, ("ok", "fraud"): 1}
GRID = {"max_depth": [1, 2, 3, 5]}
TREE = DecisionTreeClassifier(random_state=0)


def plan(learner=TREE, grid=GRID, pool=POOL, y=Y, **options):
    options = {"random_state": 7, **options}
    return dsel.plan_search(learner, grid, X, y, pool, **options)


def upper(wrong, rows, delta):
    return 1.0 if wrong >= rows else stats.beta.ppf(1 - delta, wrong + 1, rows - wrong)


def rate_of(loss, table):
    """Return a loss of a confusion matrix of scikit-learn."""
    if loss == "recall":
        return 1 - table[0, 0] / table[0].sum()
    if loss == "precision":
        return 1 - table[0, 0] / table[:, 0].sum() if table[:, 0].sum() else 1.0
    if loss == "balanced":
        return 1 - np.mean(np.diag(table) / table.sum(axis=1))
    return (table * [[0, 5], [1, 0]]).sum() / table.sum()


LOSSES = {
    "recall": losses.recall("fraud"),
    "precision": losses.precision("fraud"),
    "balanced": losses.balanced(),
    "cost": losses.cost(COSTS),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss__chooses_and_counts_as_a_loop_of_plain_fits(name):
    made = plan(loss=LOSSES[name], prune=False)
    outcome, layout = made.run(), made.layout
    candidates = list(ParameterGrid(GRID))

    def table(number, split, rows):
        model = clone(TREE).set_params(**candidates[number])
        model.fit(X[split.train_rows], Y[split.train_rows])
        return confusion_matrix(Y[rows], model.predict(X[rows]), labels=CLASSES)

    for fold, held_out in enumerate(layout.folds[:-1]):
        tests = [t for t in layout.inner_tests if t.search == fold]
        means = [
            np.mean([
                rate_of(name, table(c, layout.splits[t.split],
                                    layout.splits[t.split].tests[t.side]))
                for t in tests
            ])
            for c in range(len(candidates))
        ]  # fmt: skip
        chosen = int(np.argmin(np.round(means, 12)))
        assert int(outcome.results.outer_candidate[fold]) == chosen
        wanted = table(chosen, held_out, held_out.test_rows)
        found = outcome.results.outer_confusion.sel(
            fold=fold, true_class=CLASSES, predicted_class=CLASSES
        ) if name in ("balanced", "cost") else wanted  # fmt: skip
        np.testing.assert_array_equal(found, wanted)
    errors = outcome.results.outer_confusion.sum(["true_class", "predicted_class"])
    assert (errors == outcome.results.fold_rows).all()


@pytest.mark.parametrize("name", ["recall", "cost"])
def test_loss__by_exact_pruning_chooses_as_the_exhaustive_search(name):
    grid = {"max_depth": [1, 2, 3, 5], "min_samples_leaf": [1, 20]}
    pruned, whole = (
        plan(grid=grid, loss=LOSSES[name], prune=prune).run()
        for prune in ("exact", False)
    )
    assert pruned.results.outer_candidate.equals(whole.results.outer_candidate)
    assert pruned.choice.candidates == whole.choice.candidates
    for deploy, certificate in whole.certificates.items():
        assert pruned.certificates[deploy].unclipped == certificate.unclipped


def test_recall__is_the_limit_of_the_missed_rows_of_the_best_fold():
    outcome = plan(loss=losses.recall("fraud")).run()
    tables = outcome.results.outer_confusion.values.astype(int)
    delta = 0.95 * 0.05 / 5
    limits = [upper(t[0].sum() - t[0, 0], t[0].sum(), delta) for t in tables]
    found = outcome.certificates["one_fold"]
    assert found.bound == pytest.approx(min(limits), rel=1e-8)
    assert found.fold == int(np.argmin(limits))
    answers = outcome.results.outer_answers.values.astype(int)
    few = stats.beta.ppf(0.00125, (Y == "fraud").sum(), (Y == "ok").sum() + 1)
    sums = [
        limit + upper(a[0].sum() - a[0, 0], len(POOL), 0.00125 / 5) / few
        for limit, a in zip(limits, answers, strict=True)
    ]
    assert outcome.certificates["all_rows"].unclipped == pytest.approx(min(sums))
    model = outcome.models["one_fold"]
    rows = plan().layout.folds[found.fold].test_rows
    wanted = confusion_matrix(Y[rows], model.predict(X[rows]), labels=CLASSES)
    np.testing.assert_array_equal(tables[found.fold][0], wanted[0])


@pytest.mark.parametrize(
    ("learner", "grid"),
    [(TREE, GRID), (SVC(), {"C": [0.1, 1, 10], "gamma": [0.03, 0.3]})],
)
def test_cost__of_1_for_every_error_is_the_error(learner, grid):
    same = losses.cost([[0, 1], [1, 0]], CLASSES)
    by_cost = plan(learner, grid, loss=same, prune=False).run()
    by_error = plan(learner, grid, prune=False).run()
    for name, certificate in by_error.certificates.items():
        assert by_cost.certificates[name].unclipped == pytest.approx(
            certificate.unclipped, rel=1e-9
        )
    diagonal = np.trace(by_cost.results.outer_confusion.values, axis1=1, axis2=2)
    errors = by_cost.results.fold_rows - by_cost.results.outer_errors
    assert (diagonal == errors).all()
    left = by_cost.results.outer_answers.values
    differ = left.sum(axis=(1, 2)) - np.trace(left, axis1=1, axis2=2)
    assert (differ == by_cost.results.outer_disagreements).all()


def test_report__has_limits_of_every_number_at_its_share_of_delta():
    search = dsel.SemiSupervisedSearchCV(TREE, GRID, report=True, random_state=7)
    search.fit(X, Y, POOL)
    fold, share = search.certificates_["one_fold"].fold, 0.95 * 0.05 / 5 / 5
    found = search.certified_report().to_dataframe()
    rows = search.plan_.layout.folds[fold].test_rows
    table = confusion_matrix(
        Y[rows], search.models_["one_fold"].predict(X[rows]), labels=CLASSES
    )
    for place, label in enumerate(CLASSES):
        right, n_rows, n_said = (
            table[place, place],
            table[place].sum(),
            table[:, place].sum(),
        )
        row = found.loc[label]
        assert row.recall_at_least == pytest.approx(
            1 - upper(n_rows - right, n_rows, share)
        )
        assert row.precision_at_least == pytest.approx(
            1 - upper(n_said - right, n_said, share)
        )
    full = search.certified_report("all_rows").to_dataframe()
    assert (full.recall_at_least <= full.recall).all()
    # What the pool's own labels say of both models lies above the limits.
    for name, model in search.models_.items():
        truth = classification_report(
            np.where(make_truth(), "fraud", "ok"), model.predict(POOL), output_dict=True
        )
        limits = search.certified_report(name).to_dataframe()
        for label in CLASSES:
            assert limits.recall_at_least[label] <= truth[label]["recall"]
            assert limits.precision_at_least[label] <= truth[label]["precision"]


def make_truth():
    return NUMBERS[500:] == 1


def test_report__is_text_html_and_a_frame_and_is_read_from_out(tmp_path):
    options = {"report": CLASSES, "loss": losses.cost(COSTS)}
    first = plan(**options).run(out=tmp_path / "a")
    again = plan(**options).run(out=tmp_path / "a")
    report = first.certified_report()
    assert again.certified_report() == report
    assert again.choice == first.choice
    lines = str(report).splitlines()
    assert lines[0].startswith("Certified report (95 % sure, all numbers at once): the")
    assert [line.split()[0] for line in lines[2:4]] == CLASSES
    assert max(map(len, lines[1:])) <= 80
    assert report._repr_html_().count("<tr>") == 3
    assert str(first.choice).splitlines()[1].startswith("Mean cost at most ")


@pytest.mark.cluster
def test_loss__is_counted_on_two_processes_as_on_threads(processes):
    options = {"loss": losses.cost(COSTS), "report": CLASSES}
    here, there = plan(**options).run(), plan(**options).run(processes)
    assert here.choice == there.choice
    assert here.results.outer_confusion.equals(there.results.outer_confusion)
    assert here.results.outer_answers.equals(there.results.outer_answers)
    assert here.results.fold_loss_mean.equals(there.results.fold_loss_mean)


def test_loss__resumed_after_a_stop_gives_the_same(tmp_path):
    def stop(progress):
        if progress.fits_done >= 6:
            raise KeyboardInterrupt

    made = plan(loss=losses.balanced())
    with pytest.raises(KeyboardInterrupt):
        made.run(out=tmp_path / "a", on_progress=stop)
    resumed = plan(loss=losses.balanced()).run(out=tmp_path / "a")
    assert resumed.choice == made.run().choice


class OftenFails(ClassifierMixin, BaseEstimator):
    """Predicts by a tree, but raises where a row with a large value is asked."""

    def __init__(self, most=9.0):
        self.most = most

    def fit(self, X, y):
        self.tree_ = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        if (self.most < X).any():
            raise ValueError("too large")
        return self.tree_.predict(X)


def test_loss__a_failed_predict_misses_every_row_of_its_part():
    found = plan(
        OftenFails(), {"most": [2.0, 9.0]}, pool=None, loss=losses.recall("fraud"),
        prune=False,
    ).run()  # fmt: skip
    loss = found.results.fold_loss_mean
    assert (loss.sel(most=2.0) == 1).all()
    assert (loss.sel(most=9.0) < 0.6).all()
    assert found.choice.params == {"most": 9.0}


def test_threshold__is_chosen_by_cost_as_any_other_parameter():
    grid = {"threshold": [0.1, 0.3, 0.5, 0.9]}
    learner = FixedThresholdClassifier(GaussianNB(), pos_label="ok")
    dear = losses.cost({("fraud", "ok"): 50, ("ok", "fraud"): 1})
    cheap = losses.cost({("fraud", "ok"): 1, ("ok", "fraud"): 50})
    chosen = [
        plan(learner, grid, loss=loss).run().choice.params["threshold"]
        for loss in (dear, cheap)
    ]
    assert chosen[0] > chosen[1]


def test_balanced__of_three_classes_reads_what_the_models_answer():
    y = np.where(X[:, 0] > 1, 2, NUMBERS[:500])
    found = plan(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, y=y,
                 loss=losses.balanced([2, 0, 1])).run()  # fmt: skip
    tables = found.results.outer_confusion.values.astype(int)
    assert found.results.true_class.values.tolist() == ["2", "0", "1", "others"]
    delta = 0.95 * 0.05 / 5 / 3
    limits = [
        np.mean([upper(t[c].sum() - t[c, c], t[c].sum(), delta) for c in range(3)])
        for t in tables
    ]
    assert found.certificates["one_fold"].bound == pytest.approx(min(limits), rel=1e-8)


def test_certify_selection__takes_a_loss_and_a_report():
    outcome = dsel.certify_selection(
        TREE, X, Y, POOL, loss=losses.recall("fraud"), report=True, random_state=0
    )
    line = str(outcome.choice).splitlines()[1]
    assert line.startswith("Misses of 'fraud' at most ")
    assert set(outcome.certified_report().classes) == set(CLASSES)


def test_cost__of_right_answers_is_part_of_the_plan():
    dear = losses.cost([[3, 5], [1, 0]], CLASSES)
    assert repr(dear) != repr(losses.cost(COSTS))
    assert plan(loss=dear).identity != plan(loss=losses.cost(COSTS)).identity


def test_cost__is_read_from_a_frame_and_costs_most_elsewhere():
    frame = pd.DataFrame([[0, 5], [1, 0]], index=CLASSES, columns=CLASSES)
    assert losses.cost(frame) == losses.cost(COSTS)
    assert losses.cost(frame[CLASSES[::-1]]) == losses.cost(COSTS)
    assert losses.cost(COSTS).costs.tolist() == [[0, 5, 5], [1, 0, 5], [5, 5, 5]]


REFUSED = {
    "class that is not there": (
        {"loss": losses.recall("theft")}, "'theft' 'fraud' `y`",
    ),
    "class as text": (
        {"loss": losses.recall("1"), "y": NUMBERS[:500]}, "'1' write 1",
    ),
    "reported class": ({"report": ["fraud", "theft"]}, "`report` 'theft'"),
    "class twice": ({"report": ["fraud", "fraud"]}, "`report` different"),
    "another certificate": (
        {"loss": losses.balanced(), "certificate": "cv_bound"},
        "`loss` nested 'cv_bound'",
    ),
    "report of an estimate": (
        {"report": True, "criterion": "cv_error"}, "`report` nested",
    ),
    "folds that are not plain": (
        {"report": True, "cv": StratifiedKFold(5)}, "`report` plain folds",
    ),
    "criterion of a loss": ({"criterion": "mean_loss"}, "'mean_loss' loss="),
    "many classes": (
        {"report": True, "y": np.arange(500) % 150}, "`report` 100 150",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_plan__refuses(options, words):
    with pytest.raises(ValueError, match=" ") as caught:
        plan(**options)
    assert all(word in str(caught.value) for word in words.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "f1"}, "`loss` dsel.losses 'f1'"),
        ({"loss": losses.Recall}, "`loss` dsel.losses"),
        ({"loss": np.eye(2)}, "`loss` dsel.losses .cost("),
        ({"report": "fraud"}, "`report` list ['fraud']"),
        ({"report": 1}, "`report` list [1]"),
    ],
)
def test_plan__refuses_a_loss_or_a_report_of_another_kind(options, words):
    with pytest.raises(TypeError, match=" ") as caught:
        plan(**options)
    assert all(word in str(caught.value) for word in words.split())


def test_labels_of_numpy__are_told_as_they_stand_in_y():
    classes = np.unique(Y)
    made = plan(loss=losses.recall(classes[0]), report=classes)
    outcome = made.run()
    assert outcome.certificate.says == "Misses of 'fraud' at most"
    assert outcome.certified_report().classes == ("fraud", "ok")
    assert losses.cost([[0, 5], [1, 0]], classes) == losses.cost(COSTS)
    numbered = {(np.int64(1), np.int64(0)): 5, (0, 1): 1}
    assert losses.cost(numbered).classes == (1, 0)


def test_small_costs__have_the_digits_that_tell_them():
    tiny = losses.cost([[0, 5e-5], [1e-5, 0]], CLASSES)
    certificate = plan(loss=tiny).run().certificate
    shown = float(certificate.amount(certificate.bound))
    assert certificate.bound <= shown <= 1.01 * certificate.bound


def test_report__of_a_cube_that_was_changed_is_no_guarantee():
    results = plan(report=True).run().results
    assert not dsel.select(results).report().remarks
    report = dsel.select(results.isel(max_depth=[0, 1])).report()
    assert str(report).startswith("No guarantee, since the cube was cut")


def test_report__of_a_class_that_folds_lack_says_so():
    y = Y.copy().astype(object)
    y[np.flatnonzero(Y == "fraud")[2:]] = "ok"
    learner = LogisticRegression()  # cannot be fitted where a class alone is left
    found = plan(learner, {"C": [0.1, 1.0]}, y=y, report=True,
                 loss=losses.recall("fraud")).run()  # fmt: skip
    report = found.certified_report()
    assert report.recall_at_least[0] < 0.01
    assert report.recall_at_least[1] > 0.9
    assert "At least 0.0 %: too few rows" in str(report)
    assert found.certificate.says_nothing


def test_plan__refuses_numbers_that_were_not_declared():
    with pytest.raises(ValueError, match="report=True"):
        plan().run().certified_report()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{("a", "b"): -1, ("b", "a"): 1}], "-1 >= 0"),
        ([{("a", "b"): 1}], "'b' 'a' every pair"),
        ([{"a": 1}], "pairs"),
        ([[[0, 1]], ["a", "b"]], "square (1, 2) 2 classes"),
        ([[[0, 1], [1]], ["a", "b"]], "square (2,) 2 classes"),
        ([[[0, 0], [0, 0]], ["a", "b"]], "above 0"),
        ([[[0, np.nan], [1, 0]], ["a", "b"]], "lacks 'b' 'a'"),
    ],
)
def test_cost__refuses(given, words):
    with pytest.raises(ValueError, match="`costs") as caught:
        losses.cost(*given)
    assert all(word in str(caught.value) for word in words.split())


def test_plan__tells_what_a_class_of_few_rows_can_hope_for():
    y = np.where(np.arange(500) % 50 == 0, "theft", Y)
    text = " ".join(str(plan(y=y, loss=losses.balanced(), report=True)).split())
    least = 100 * (1 - upper(0, 2, 0.95 * 0.05 / 7 / 5))
    told = "'theft' has 10 labeled rows, 2 a fold: even without a miss its recall is"
    assert f"{told} certified to be {int(least * 10) / 10} % at most" in text
    assert text.count("even without a miss") == 3
    assert "nested at delta=0.05; of balanced(" in text


def test_plan_bound__of_recall_reads_the_rows_of_the_class_alone():
    given = {"n_candidates": 1, "error": 0.2, "cv": 5}
    whole = dsel.plan_bound(100, 10_000, **given).bound
    part = dsel.plan_bound(2_000, 10_000, class_share=0.05, **given).bound
    for name in ("one_fold", "held_out_fifth"):
        same = part.sel(certificate=name) == whole.sel(certificate=name)
        assert bool(same.all())
    assert bool((part > whole).sel(certificate="all_rows").all())
    assert part.sel(certificate="cv_bound").isnull().all()
    with pytest.raises(ValueError, match="`class_share`"):
        dsel.plan_bound(100, 100, class_share=2.0, **given)
