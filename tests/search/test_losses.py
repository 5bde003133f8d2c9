"""Losses by class and the certified report, beside plain loops over the same folds."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel import losses, names
from dsel.bounds.class_counts import counted_mean_limit
from dsel.losses.by_class import Recall
from dsel.losses.error_rate import ErrorRate
from tests.bounds.test_class_counts import lower, upper
from tests.search.running.test_nested import FailsOnRows

X, NUMBERS = make_classification(
    1500, 6, n_informative=4, weights=[0.8], flip_y=0.05, random_state=1
)
TRUTH = np.where(NUMBERS == 1, "fraud", "ok")
POOL, X, Y = X[500:], X[:500], TRUTH[:500]
CLASSES = ["fraud", "ok"]
COSTS = {("fraud", "ok"): 5, ("ok", "fraud"): 1}
LOSSES = {
    "recall": losses.recall("fraud"),
    "precision": losses.precision("fraud"),
    "balanced": losses.balanced(),
    "cost": losses.cost(COSTS),
}
GRID = {"max_depth": [1, 2, 3, 5]}
TREE = DecisionTreeClassifier(random_state=0)
SHARES = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16]
"""Of the folds of a nested search."""


def plan(learner=TREE, grid=GRID, pool=POOL, y=Y, **options):
    options = {"random_state": 7, **options}
    return dsel.plan_search(learner, grid, X, y, pool, **options)


def counted(model, rows):
    return confusion_matrix(Y[rows], model.predict(X[rows]), labels=CLASSES)


def missed(table, place, delta):
    """Return the limit of the share of a class that is missed."""
    rows = table[place].sum()
    return upper(rows - table[place, place], rows, delta)


def rate_of(loss, table):
    """Return a loss of a confusion matrix of scikit-learn."""
    if loss == "recall":
        return 1 - table[0, 0] / table[0].sum()
    if loss == "precision":
        return 1 - table[0, 0] / table[:, 0].sum() if table[:, 0].sum() else 1.0
    if loss == "balanced":
        return 1 - np.mean(np.diag(table) / table.sum(axis=1))
    return (table * [[0, 5], [1, 0]]).sum() / table.sum()


class RootOfErrorRate(ErrorRate):
    """It cannot be computed of a number of errors below 0."""

    def score_from_errors(self, n_errors, n_rows):
        return math.sqrt(n_errors / n_rows)


def test_loss__is_asked_nothing_about_fits_that_failed():
    made = plan(grid={"max_depth": [2, "not a depth"]}, loss=RootOfErrorRate())
    with pytest.warns(dsel.errors.FitFailedWarning, match="1 of 2 candidates failed"):
        results = made.run().results
    assert results["status"].values.tolist() == [0, names.STATUS_FAILED]


@pytest.mark.parametrize("name", LOSSES)
def test_loss__chooses_and_counts_as_a_loop_of_plain_fits(name):
    made = plan(loss=LOSSES[name], prune=False)
    outcome, scheme = made.run(), made.search.scheme
    candidates = list(ParameterGrid(GRID))

    def table(number, split, rows):
        model = clone(TREE).set_params(**candidates[number])
        return counted(model.fit(X[split.train_rows], Y[split.train_rows]), rows)

    for fold, held_out in enumerate(scheme.outer_splits[:-1]):
        parts = [
            (scheme.splits[test.split_number], test.part_number)
            for test in scheme.inner_tests
            if test.left_out_fold == fold
        ]
        means = [
            np.mean(
                [rate_of(name, table(c, s, s.row_parts[part])) for s, part in parts]
            )
            for c in range(len(candidates))
        ]
        chosen = int(np.argmin(np.round(means, 12)))
        assert int(outcome.results.outer_candidate[fold]) == chosen
        if name in ("balanced", "cost"):
            found = outcome.results.outer_confusion.sel(
                fold=fold, true_class=CLASSES, predicted_class=CLASSES
            )
            wanted = table(chosen, held_out, held_out.test_rows)
            np.testing.assert_array_equal(found, wanted)
    errors = outcome.results.outer_confusion.sum(["true_class", "predicted_class"])
    assert (errors == outcome.results.fold_rows).all()


@pytest.mark.parametrize("loss", [LOSSES["recall"], LOSSES["cost"], "error"])
def test_loss__by_exact_pruning_chooses_as_the_exhaustive_search(loss):
    grid = {"max_depth": [1, 2, 3, 5], "min_samples_leaf": [1, 20]}
    pruned, whole = (
        plan(grid=grid, loss=loss, prune=prune).run() for prune in ("exact", False)
    )
    assert pruned.results.outer_candidate.equals(whole.results.outer_candidate)
    assert pruned.choice.by_model("candidate") == whole.choice.by_model("candidate")
    for deploy, certificate in whole.certificates.items():
        assert pruned.certificates[deploy].unclipped == certificate.unclipped


@pytest.mark.parametrize(("seed", "is_smallest"), [(1, True), (7, False)])
def test_balanced__deploys_the_better_candidate_of_those_with_nearly_equal_limits(
    seed, is_smallest
):
    grid = {"max_depth": [1, 2, 3, 5, 8, 12], "min_samples_leaf": [1, 10]}
    outcome = plan(grid=grid, loss="balanced", pool=None, random_state=seed).run()
    cube = outcome.results
    tables = cube.outer_confusion.values.astype(int)
    limits = np.array([
        np.mean([missed(table, place, 0.05 * share / 2) for place in (0, 1)])
        for table, share in zip(tables, SHARES, strict=True)
    ])  # fmt: skip
    losses_of = cube.fold_loss_mean.mean("fold").values.ravel()
    chosen = losses_of[cube.outer_candidate.values.astype(int)]
    near = limits <= 1.05 * limits.min()
    expected = min(np.flatnonzero(near), key=lambda i: (round(chosen[i], 9), limits[i]))
    certificate = outcome.certificates["one_fold"]
    assert certificate.fold == expected
    assert certificate.bound == pytest.approx(limits[expected], rel=1e-8)
    assert (expected == limits.argmin()) == is_smallest


def test_recall__is_the_limit_of_the_missed_rows_of_the_best_fold():
    outcome = plan(loss=LOSSES["recall"]).run()
    tables = outcome.results.outer_confusion.values.astype(int)
    limits = [
        missed(t, 0, 0.95 * 0.05 * w) for t, w in zip(tables, SHARES, strict=True)
    ]
    found = outcome.certificates["one_fold"]
    assert found.bound == pytest.approx(min(limits), rel=1e-8)
    assert found.fold == int(np.argmin(limits))
    answers = outcome.results.outer_answers.values.astype(int)
    few = lower((Y == "fraud").sum(), len(Y), 0.00125)
    sums = [
        limit + upper(a[0].sum() - a[0, 0], len(POOL), 0.00125 / 5) / few
        for limit, a in zip(limits, answers, strict=True)
    ]
    assert outcome.certificates["all_rows"].unclipped == pytest.approx(min(sums))
    rows = plan().search.scheme.outer_splits[found.fold].test_rows
    wanted = counted(outcome.models["one_fold"], rows)
    np.testing.assert_array_equal(tables[found.fold][0], wanted[0])


def test_balanced__of_three_classes_reads_what_the_models_answer():
    y = np.where(X[:, 0] > 1, 2, NUMBERS[:500])
    loss = losses.balanced([2, 0, 1])
    found = plan(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, y=y, loss=loss).run()
    tables = found.results.outer_confusion.values.astype(int)
    assert found.results.true_class.values.tolist() == ["2", "0", "1", "others"]
    limits = [
        np.mean([missed(t, c, 0.95 * 0.05 * share / 3) for c in range(3)])
        for t, share in zip(tables, SHARES, strict=True)
    ]
    assert found.certificates["one_fold"].bound == pytest.approx(min(limits), rel=1e-8)


@pytest.mark.parametrize(
    ("learner", "grid"),
    [(TREE, GRID), (SVC(), {"C": [0.1, 1, 10], "gamma": [0.03, 0.3]})],
)
def test_cost__of_1_for_every_error_is_the_error(learner, grid):
    same = losses.cost([[0, 1], [1, 0]], CLASSES)
    by_cost, by_error = (
        plan(learner, grid, loss=loss, prune=False).run() for loss in (same, "error")
    )
    for name, certificate in by_error.certificates.items():
        found = by_cost.certificates[name].unclipped
        assert found == pytest.approx(certificate.unclipped, rel=1e-9)
    cube = by_cost.results
    right = np.trace(cube.outer_confusion.values, axis1=1, axis2=2)
    assert (right == cube.fold_rows - cube.outer_errors).all()
    left = cube.outer_answers.values
    differ = left.sum(axis=(1, 2)) - np.trace(left, axis1=1, axis2=2)
    assert (differ == cube.outer_disagreements).all()


def of_all_rows(name, first, cells, m, e, delta):
    """Return the bound of the model of all rows through a fold's, by scipy.

    `first` is the limit of the fold's model; `cells` has the pool rows by both
    predictions, and of these the rows that equal labeled rows, of which there are `e`
    among `m`; `delta` is the pool's share, divided among five folds.
    """
    counts, equal = cells

    def most(rows, columns, share):
        among = counts[rows, columns].sum(), equal[rows, columns].sum()
        return upper(among[0], m - e + among[1], share / 5)

    def missed_more(place, share):
        few = lower((CLASSES[place] == Y).sum(), len(Y), share / 2)
        others = [c for c in range(3) if c != place]
        return most([place] * 2, others, share / 2) / few

    if name == "recall":
        return first + missed_more(0, delta)
    if name == "balanced":
        return first + np.mean([missed_more(place, delta / 2) for place in (0, 1)])
    if name == "precision":
        n, dup = counts[:, 0].sum(), equal[:, 0].sum()
        said = upper(counts[0].sum(), m - e + equal[0].sum(), delta / 3 / 5)
        joined = n - counts[0, 0], n - dup + dup - equal[0, 0]
        moved = upper(joined[0], joined[1], delta / 3 / 5)
        return first * said / lower(n - dup, m - dup, delta / 3) + moved
    # Costs of 5 and 1 as parts of the largest; which duplicates are stale is not known.
    values, places = [0, 0.2, 1], ([[0, 1], [0, 1]], [[1], [0]], [[0], [1]])
    seen, stale = (np.array([t[*at].sum() for at in places]) for t in (counts, equal))
    takes = np.stack(np.meshgrid(*([0, most] for most in stale)), -1).reshape(-1, 3)
    added = [counted_mean_limit(seen - t, values, delta=delta / 5) for t in takes]
    return first + 5 * max(added)


@pytest.mark.parametrize("name", LOSSES)
def test_bound_of_all_rows__allows_for_pool_rows_that_equal_labeled_rows(name):
    pool = np.vstack([POOL[:600], X[:300], X[:300]])
    outcome = plan(pool=pool, loss=LOSSES[name]).run()
    cube, m, e = outcome.results, len(pool), 600
    assert int(cube.equal_rows) == e
    n = len(cube.true_class)  # "others" are the last
    cells = np.zeros((2, 5, 3, 3), int)
    cells[:, :, :n, :n] = cube.outer_answers, cube.outer_duplicate_answers
    sums = []
    for fold, table in enumerate(cube.outer_confusion.values.astype(int)):
        share = 0.95 * 0.05 * SHARES[fold]
        if name == "recall":
            first = missed(table, 0, share)
        elif name == "precision":
            first = missed(table.T, 0, share)
        elif name == "balanced":
            first = np.mean([missed(table, c, share / 2) for c in (0, 1)])
        else:
            costs = [np.trace(table), table[1, 0], table[0, 1]]
            first = 5 * counted_mean_limit(costs, [0, 0.2, 1], delta=share)
        sums.append(of_all_rows(name, first, cells[:, fold], m, e, 0.05 * 0.05))
    found = outcome.certificates["all_rows"]
    assert found.certified
    assert found.unclipped == pytest.approx(min(sums), rel=1e-7)
    # Duplicates are among what is counted, and most are not.
    assert 0 < cube.outer_duplicate_disagreements.sum() < cube.outer_disagreements.sum()


def test_report__has_limits_of_every_number_at_its_share_of_delta():
    outcome = plan(report=True).run()
    fold = outcome.certificates["one_fold"].fold
    share = 0.95 * 0.05 / 5 * SHARES[fold]  # of five numbers
    found = outcome.certified_report("one_fold").to_dataframe()
    rows = plan().search.scheme.outer_splits[fold].test_rows
    table = counted(outcome.models["one_fold"], rows)
    for place, label in enumerate(CLASSES):
        recall, precision = (1 - missed(t, place, share) for t in (table, table.T))
        assert found.recall_at_least[label] == pytest.approx(recall)
        assert found.precision_at_least[label] == pytest.approx(precision)
        # What the fold shows of this model alone stands next to its limits.
        assert found.recall[label] == table[place, place] / table[place].sum()
        precision = table[place, place] / table[:, place].sum()
        assert found.precision[label] == precision
        assert found.test_rows[label] == table[place].sum()
    error = upper(len(rows) - table.trace(), len(rows), share)
    assert outcome.certified_report("one_fold").error_at_most == pytest.approx(error)
    of_fold, report = map(outcome.certified_report, ("one_fold", "all_rows"))
    assert of_fold.error.own[0] == pytest.approx(1 - table.trace() / len(rows))
    assert (report.test_rows, report.recall.own, report.error.own) == (
        (),
        (),
        (),
    )  # no labeled row tests the model of all
    assert report.recall.pooled == of_fold.recall.pooled  # of the models of all folds
    full = report.to_dataframe()
    assert (full.recall_at_least <= full.pooled_recall).all()
    assert report.error_at_most > outcome.certified_report("one_fold").error_at_most
    # What the pool's own labels say of both models lies above the limits.
    for name, model in outcome.models.items():
        said = model.predict(POOL)
        truth = classification_report(TRUTH[500:], said, output_dict=True)
        limits = outcome.certified_report(name).to_dataframe()
        for label in CLASSES:
            assert limits.recall_at_least[label] <= truth[label]["recall"]
            assert limits.precision_at_least[label] <= truth[label]["precision"]


def test_report__is_text_html_and_a_frame_and_is_read_from_out(tmp_path):
    first, again = (
        plan(report=CLASSES, loss=LOSSES["cost"]).run(out=tmp_path) for _ in range(2)
    )
    report = first.certified_report()
    assert again.certified_report() == report
    assert again.choice == first.choice
    lines = str(report).splitlines()
    assert lines[0].startswith(
        "Certified report (95% confidence, all limits jointly), model"
    )
    assert [line.split()[0] for line in lines[2:4]] == CLASSES
    tables = [line for line in lines if line.startswith((" ", *CLASSES))]
    assert max(map(len, tables)) <= 80
    for cell in report.table()[1]:
        assert f">{cell}</td>" in report._repr_html_()
    assert str(first.choice).splitlines()[0].startswith("Mean cost at most ")


@pytest.mark.cluster
def test_loss__is_counted_on_two_processes_as_on_threads(processes):
    made = plan(loss=LOSSES["cost"], report=CLASSES)
    here, there = made.run(), made.run(processes)
    assert here.choice == there.choice
    names = ["outer_confusion", "outer_answers", "fold_loss_mean"]
    assert here.results[names].equals(there.results[names])


def test_loss__resumed_after_a_stop_gives_the_same(tmp_path):
    def stop(progress):
        if progress.fits_done >= 6:
            raise KeyboardInterrupt

    made = plan(loss=LOSSES["balanced"])
    with pytest.raises(KeyboardInterrupt):
        made.run(out=tmp_path, on_progress=stop)
    assert made.run(out=tmp_path).choice == made.run().choice


def test_loss__a_failed_predict_misses_every_row_of_its_part():
    learner = FailsOnRows(rows=X[(X > 2).any(axis=1), 0])
    options = {"pool": None, "loss": LOSSES["recall"], "prune": False}
    found = plan(learner, {"depth": [3, 4]}, **options).run()
    assert (found.results.fold_loss_mean.sel(depth=3) == 1).all()
    assert (found.results.fold_loss_mean.sel(depth=4) < 0.6).all()
    assert found.choice.params == {"depth": 4}


def test_certify__takes_a_loss_and_a_report():
    options = {"loss": LOSSES["recall"], "report": True, "random_state": 0}
    outcome = dsel.certify(TREE, X, Y, POOL, **options)
    line = str(outcome.choice).splitlines()[0]
    assert line.startswith("Misses of 'fraud' at most ")
    assert set(outcome.certified_report().classes) == set(CLASSES)


def test_cost__is_read_from_a_frame_and_costs_most_elsewhere():
    frame = pd.DataFrame([[0, 5], [1, 0]], index=CLASSES, columns=CLASSES)
    assert losses.cost(frame) == LOSSES["cost"]
    assert losses.cost(frame[CLASSES[::-1]]) == LOSSES["cost"]
    assert LOSSES["cost"].costs.tolist() == [[0, 5, 5], [1, 0, 5], [5, 5, 5]]
    dear = losses.cost([[3, 5], [1, 0]], CLASSES)  # of right answers
    assert plan(loss=dear).facts.identity != plan(loss=LOSSES["cost"]).facts.identity


def test_labels_of_numpy__are_told_as_they_stand_in_y():
    classes = np.unique(Y)
    outcome = plan(loss=losses.recall(classes[0]), report=classes).run()
    assert outcome.certificate.title == "Misses of 'fraud'"
    assert outcome.certified_report().classes == ("fraud", "ok")
    assert losses.cost([[0, 5], [1, 0]], classes) == LOSSES["cost"]
    numbered = {(np.int64(1), np.int64(0)): 5, (0, 1): 1}
    assert losses.cost(numbered).classes == (1, 0)


def test_small_costs__have_the_digits_that_tell_them():
    tiny = losses.cost([[0, 5e-5], [1e-5, 0]], CLASSES)
    certificate = plan(loss=tiny).run().certificate
    shown = float(certificate.amount(certificate.bound))
    assert certificate.bound <= shown <= 1.01 * certificate.bound


def test_report__of_a_cube_that_was_changed_is_no_guarantee():
    results = plan(report=True).run().results
    assert not dsel.select(results).report().reasons
    turned = results.isel(max_depth=slice(None, None, -1))
    report = dsel.select(turned).report()
    assert str(report).startswith("No guarantee, since the cube was cut")


def test_report__of_a_class_that_folds_lack_says_so():
    y = Y.copy().astype(object)
    y[np.flatnonzero(Y == "fraud")[2:]] = "ok"
    learner = LogisticRegression()  # cannot be fitted where a class alone is left
    found = plan(learner, {"C": [0.1, 1.0]}, y=y, report=True).run()
    report = found.certified_report()
    assert report.recall_at_least[0] < 0.01
    assert report.recall_at_least[1] > 0.9
    assert "At least 0.0%: too few rows" in str(report)


def test_plan__tells_what_a_class_of_few_rows_can_hope_for():
    y = np.where(np.arange(500) % 50 == 0, "theft", Y)
    text = " ".join(str(plan(y=y, loss=losses.balanced(), report=True)).split())
    least = 100 * (1 - upper(0, 2, 0.95 * 0.05 / 7 * SHARES[0]))
    told = (
        "3 classes have few labeled rows: even with no miss, expect certified recalls"
    )
    best = f"about {int(least * 10) / 10}% of 'theft' (10 rows), "
    assert f"{told} of {best}" in text
    assert text.count("even with no miss") == 1
    alone = plan(grid={"max_depth": [3]}, y=np.where(np.arange(500) == 5, "theft", Y))
    assert "1 of 6 trainings lack a class" in " ".join(alone.remarks)
    assert "nested at delta=0.05; of balanced(" in text


TWO = ["a", "b"]
REFUSED = [
    (lambda: plan(loss=losses.recall("theft")), "'theft' 'fraud' `y`"),
    (lambda: plan(loss=losses.recall("1"), y=NUMBERS[:500]), "'1' write 1"),
    (lambda: plan(loss=LOSSES["recall"], certificate="cv_bound"), "`loss` 'cv_bound'"),
    (lambda: plan(loss="f1"), "`loss` 'f1' report=True"),
    (lambda: plan(loss="f2"), "`loss` recall:CLASS 'f2'"),
    (lambda: plan(loss=Recall), "`loss` dsel.losses"),
    (lambda: plan(loss=np.eye(2)), "`loss` dsel.losses .cost("),
    (lambda: plan(criterion="mean_loss"), "'mean_loss' loss="),
    (lambda: plan(report=["fraud", "theft"]), "`report` 'theft'"),
    (lambda: plan(report=["fraud", "fraud"]), "`report` different"),
    (lambda: plan(report="fraud"), "`report` list ['fraud']"),
    (lambda: plan(report=1), "`report` list [1]"),
    (lambda: plan(report=True, criterion="cv_error"), "`report` nested"),
    (lambda: plan(report=True, cv=StratifiedKFold(5)), "`report` plain folds"),
    (lambda: plan(report=True, y=np.arange(500) % 150), "`report` 100 150"),
    (lambda: plan().run().certified_report(), "report=True"),
    (lambda: losses.cost({("a", "b"): -1, ("b", "a"): 1}), "`costs -1 >= 0"),
    (lambda: losses.cost({("a", "b"): 1}), "`costs 'b' 'a' every pair"),
    (lambda: losses.cost({"a": 1}), "`costs pairs"),
    (lambda: losses.cost({}), "`costs pairs None"),
    (lambda: losses.cost([[0, 1]], TWO), "`costs square (1, 2) 2 classes"),
    (lambda: losses.cost([[0, 1], [1]], TWO), "`costs square (2,) 2 classes"),
    (lambda: losses.cost([[0, 0], [0, 0]], TWO), "`costs above 0"),
    (lambda: losses.cost([[0, np.nan], [1, 0]], TWO), "`costs lacks 'b' 'a'"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[1])
def test_losses__refuse(case):
    call, words = case
    is_of_wrong_type = words.startswith(("`loss` dsel", "`report` list"))
    with pytest.raises(TypeError if is_of_wrong_type else ValueError) as caught:
        call()
    assert [word for word in words.split() if word not in str(caught.value)] == []
