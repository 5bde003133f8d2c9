"""Nested searches: the rule of inner searches, halving, and what is handed over."""

import json
import pickle
import threading
import time
import warnings
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.losses.error_rate import ErrorCount, ErrorRate
from dsel.results.records import from_record, to_record
from dsel.results.run_store import Store
from dsel.search.engine.exact_pruner import ExhaustiveTable
from dsel.search.engine.fit_batch import FitBatch
from dsel.search.engine.jobs import (
    CountedJob,
    CountJob,
    CountResult,
    FitResult,
    FitStatus,
    join_tokens,
)
from dsel.search.running.nested import search_nested
from dsel.search.running.run import Run
from tests.clusters import wait_until
from tests.estimators import Drawn
from tests.executors import faulty_threads

X, Y = make_classification(
    900, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=0
)
POOL, X, Y = X[300:], X[:300], Y[:300]
GRID = {"max_depth": [1, 2, 3, 4, 6, 8, 12]}


def plan(estimator=None, grid=None, pool=POOL, **options):
    learner = DecisionTreeClassifier(random_state=0) if estimator is None else estimator
    options = {"random_state": 7, **options}
    return dsel.plan_search(learner, grid or GRID, X, Y, pool, **options)


class FailsOnRows(ClassifierMixin, BaseEstimator):
    """Predicts by a tree; at depth 3 it raises where one of some rows is asked."""

    def __init__(self, rows=None, depth=3):
        self.rows = rows
        self.depth = depth

    def fit(self, X, y):
        tree = DecisionTreeClassifier(max_depth=self.depth, random_state=0)
        self.tree_, self.classes_ = tree.fit(X, y), np.unique(y)
        return self

    def predict(self, X):
        if self.depth == 3 and np.isin(np.asarray(X)[:, 0], self.rows).any():
            raise ValueError("a category that only one fold holds")
        return self.tree_.predict(X)


def test_inner_search__a_failed_predict_counts_in_the_search_that_reads_it_alone():
    folds = plan().search.scheme.outer_splits
    grid = {"depth": [3, 4]}
    learner = FailsOnRows(rows=X[folds[2].test_rows, 0])
    failing = plan(learner, grid, pool=None, prune=False).run()
    clean = plan(FailsOnRows(rows=np.empty(0)), grid, pool=None, prune=False).run()
    errors, expected = (run.pair_results["fold_errors"] for run in (failing, clean))
    on_fold = errors["fold"] == 2
    assert (errors.where(~on_fold, 0) == expected.where(~on_fold, 0)).all()
    rows = failing.pair_results["fold_rows"]
    assert int((errors.sel(depth=3).where(on_fold) == rows).sum()) == 4
    assert int(failing.results["outer_candidate"][2]) == int(
        clean.results["outer_candidate"][2]
    )


class OfColumn(ClassifierMixin, BaseEstimator):
    """Predicts a column, which holds class codes."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return X[:, self.column].astype(int)


@pytest.mark.parametrize("prune", [True, False, "exact"])
@pytest.mark.parametrize("cv", [2, 5])
def test_choice__without_a_fold_is_blind_to_its_rows(cv, prune):
    # Elsewhere the columns are nearly tied, so that any look at the rows of the fold,
    # where one column alone is right, would choose this one.
    rng, grid = np.random.default_rng(0), {"column": [1, 0]}
    options = {"cv": cv, "prune": prune, "random_state": 7}
    plan = dsel.plan_search(OfColumn(), grid, X, Y, **options)
    splits = plan.search.scheme.outer_splits
    for fold in (0, cv - 1):
        rows, y = splits[fold].test_rows, rng.integers(2, size=len(Y))
        codes = np.tile(1 - y[:, np.newaxis], 2)
        codes[np.setdiff1d(np.arange(len(y)), rows)[0], 0] ^= 1
        chosen = set()
        for right in (0, 1):
            codes[rows, right], codes[rows, 1 - right] = y[rows], 1 - y[rows]
            outcome = dsel.plan_search(OfColumn(), grid, codes, y, **options).run()
            chosen.add(outcome.choice.fold_params[fold]["column"])
        assert len(chosen) == 1


@pytest.mark.parametrize("cv", [3, 5])
def test_models__without_folds_are_blind_to_their_rows(cv):
    learner, grid = KNeighborsClassifier(1), {"weights": ["uniform", "distance"]}
    plain = plan(learner, grid, cv=cv, prune=False)
    first = plain.run(n_jobs=1)
    deployed = first.choice.certificates["one_fold"].fold
    rows = plain.search.scheme.outer_splits[deployed].test_rows
    others = np.setdiff1d(np.arange(len(Y)), rows)
    y = Y.copy()  # by what its model predicts there the fold is the best one again
    y[rows] = learner.fit(X[others], Y[others]).predict(X[rows])
    moved = dsel.plan_search(
        learner, grid, X, y, POOL, cv=cv, prune=False, random_state=7
    ).run(n_jobs=1)
    assert moved.choice.certificates["one_fold"].fold == deployed
    models = [outcome.models["one_fold"] for outcome in (first, moved)]
    one, other = (model.predict(POOL) for model in models)
    assert (one == other).all()
    errors, moved_errors = (o.pair_results["fold_errors"] for o in (first, moved))
    is_unseen = (errors["fold"] == deployed).any("side") & (errors["fold"] != deployed)
    assert int(is_unseen.sum()) == cv - 1  # counts on the other fold of each pair
    assert (errors == moved_errors).where(is_unseen, True).all()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((X - X.mean(axis=0)) / X.std(axis=0), "mean 0 and variance 1"),
        (np.tile(X[:100], (3, 1)), "288 of 300 labeled rows equal rows of other folds"),
        (X[:, :1].round(), "labeled rows equal rows of other folds"),
    ],
)
def test_plan__has_caveats_about_rows_that_weaken_a_search(rows, words):
    made = dsel.plan_search(SVC(), {"C": [1, 10]}, rows, Y, random_state=7)
    assert words in " ".join(str(made).split())
    assert words in str(made.run().choice)
    assert words not in " ".join(str(plan(pool=None)).split())


def test_halving__keeps_the_best_quarter_of_each_search_and_chooses_among_them():
    halved, whole = plan().run(), plan(prune=False).run()
    counts = halved.pair_results["fold_errors"]
    same = whole.pair_results["fold_errors"]
    assert (counts.isnull() | (counts == same)).all()
    n_fits = int(halved.pair_results["fit_seconds"].notnull().sum())
    assert 7 * 5 + 2 * 5 <= n_fits <= 7 * 5 + 2 * 2 * 5 < 70
    status = halved.results["status"].values
    for number in halved.results["outer_candidate"].values.astype(int):
        assert status[number] in (0, 1)
    assert (status == 1).any()
    with pytest.raises(ValueError, match="were pruned and might win") as refused:
        dsel.select(halved.results, "cv_error")
    assert "with criterion='cv_error'" not in str(refused.value)  # it ranks already
    assert "dsel.select(results), without a criterion, has" in str(refused.value)
    assert dsel.select(halved.results) == halved.choice
    assert dsel.select(whole.results, "cv_error").candidate >= 0
    done, pruned = (np.flatnonzero(status == state).tolist() for state in (0, 1))
    cuts = [halved.results.isel(max_depth=[*done, number]) for number in pruned]
    with pytest.raises(ValueError, match=": 1 candidate was pruned and might win"):
        [dsel.select(cut, "cv_error") for cut in cuts]


def test_halving__shows_what_is_chosen_as_done_where_some_search_has_dropped_it():
    outcome = plan(grid={"max_depth": [4, 6, 8]}, random_state=1).run()
    counts = outcome.pair_results["fold_errors"]
    row = outcome.results.isel(max_depth=outcome.choice.candidate)
    assert counts.isel(max_depth=outcome.choice.candidate).isnull().any()
    assert row["status"] == 0
    rate = float((row["fold_errors"] / row["fold_answers"]).mean())
    assert outcome.choice.criterion_value == float(row["estimate"].squeeze()) == rate


def test_halving__compares_no_error_with_one_that_is_counted_on_fewer_rows():
    # Depth 6 has the smaller mean, over fewer rows: one search has dropped it early.
    learner = DecisionTreeClassifier(random_state=0)
    search = dsel.SemiSupervisedSearchCV(
        learner, {"max_depth": [4, 6]}, random_state=0, n_jobs=1
    ).fit(X, Y)
    table = pd.DataFrame(search.cv_results_)
    assert table.status.tolist() == ["done", "partly pruned"]
    assert table.cv_error[1] < table.cv_error[0]
    assert table.rank_test_score.tolist() == [1, 2]
    assert search.results_.dsel.table().status.equals(table.status)
    choice = dsel.select(search, "cv_error")
    assert choice.params == {"max_depth": 4}
    note = "max_depth=6 is not compared, though its number is smaller: some searches d"
    assert [text for text in choice.remarks if text.startswith(note)]
    whole = search.set_params(prune=False).fit(X, Y)
    assert set(whole.cv_results_["status"]) == {"done"}
    assert "not compared" not in str(dsel.select(whole, "cv_error"))


class FailsWithoutTheFirst(DecisionTreeClassifier):
    """Fits no four fifths of the rows that lack the first one; each pair is fitted."""

    def fit(self, X_train, y):
        if len(X_train) == 240 and not (X_train == X[0]).all(axis=1).any():
            raise ValueError("the first row is missing")
        return super().fit(X_train, y)


def test_chosen__a_model_that_cannot_be_fitted_counts_as_wrong_everywhere():
    outcome = plan(FailsWithoutTheFirst(random_state=0)).run()
    cube, folds = outcome.results, plan().search.scheme.outer_splits
    fold = next(n for n in range(5) if 0 in folds[n].test_rows)
    assert int(cube["outer_errors"][fold]) == len(folds[fold].test_rows)
    assert int(cube["outer_disagreements"][fold]) == len(POOL)
    assert (cube["outer_errors"] < 60).sum() == 4
    assert f"(fold {fold}: " in str(outcome.choice)


@pytest.mark.parametrize(
    "options", [{"loss": dsel.losses.recall(1)}, {"certificate": "cv_bound"}], ids=str
)
def test_counts__of_a_slice_are_those_of_its_blocks(options, monkeypatch):
    whole = plan(prune=False, **options).run().results
    monkeypatch.setattr("dsel.search.engine.count_batch.BLOCK_ROWS", (70, 70))
    found = plan(prune=False, **options).run().results
    names = [n for n in whole if "disagreements" in n or n.endswith("answers")]
    assert found[names].equals(whole[names])
    assert len(names) >= 2


def test_duplicates__are_counted_among_the_rows_on_which_models_differ(tmp_path):
    pool, n = np.vstack([POOL, X, X]), len(POOL)
    made = plan(pool=pool, loss=dsel.losses.recall(1), prune=False)

    def stop(progress):
        if progress.slices_done == progress.slices_total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.run(out=tmp_path, on_progress=stop)
    for outcome in (made.run(), made.run(out=tmp_path)):
        cube = outcome.results
        assert int(cube["equal_rows"]) == 2 * len(X)
        fold = outcome.certificates["one_fold"].fold
        one, full = (outcome.models[name].predict(pool) for name in outcome.models)
        for name, rows in (("", slice(None)), ("duplicate_", slice(n, None))):
            differ = (one != full)[rows]
            table = cube[f"outer_{name}answers"].isel(fold=fold)
            table = table.sel(predicted_class="1", other_class="others")
            assert int(cube[f"outer_{name}disagreements"][fold]) == differ.sum()
            assert int(table) == (differ & (one == 1)[rows]).sum()
    without = plan().run().results  # no row of this pool equals a labeled one
    assert (without["outer_duplicate_disagreements"] == 0).all()


def test_outcome__unseeded_models_are_those_that_were_counted():
    outcome = pickle.loads(pickle.dumps(plan(Drawn(), {"scale": [1.0, 2.0]}).run()))
    assert all(each.certified for each in outcome.certificates.values())
    fold = outcome.certificates["one_fold"].fold
    rows = outcome.choice and plan().search.scheme.outer_splits[fold].test_rows
    wrong = (outcome.models["one_fold"].predict(X[rows]) != Y[rows]).sum()
    assert wrong == int(outcome.results["outer_errors"][fold])
    one, full = (outcome.models[name].predict(POOL) for name in outcome.models)
    differ = (one != full).sum()
    assert differ == int(outcome.results["outer_disagreements"][fold])


def test_out__a_finished_run_is_read_and_its_models_come_back(tmp_path):
    made = plan(SVC(gamma=0.1), {"C": [0.1, 1, 10], "class_weight": [{0: 2.0}]})
    first, again = (made.run(out=tmp_path) for _ in range(2))
    assert again.certificates == first.certificates
    assert again.choice.by_model("params") == first.choice.by_model("params")
    assert again.results.identical(first.results)
    for name, model in first.models.items():
        assert (again.models[name].predict(POOL) == model.predict(POOL)).all()


class Unwritable(Drawn):
    """Holds what no file can, once it is fitted."""

    def fit(self, X, y):
        self.iterator_ = iter(y)
        return super().fit(X, y)


def overtaken(made, out):
    """Return the outcomes of a run that another one overtook, and of the other."""
    first = []

    def overtake(_):
        if not first:
            first.append(None)
            first[0] = made.run(out=out)

    return made.run(out=out, on_progress=overtake), first[0]


def test_out__a_run_that_came_later_has_the_unseeded_models_that_were_counted(tmp_path):
    made = plan(Drawn(), {"scale": [1.0, 2.0]})
    late, first = overtaken(made, tmp_path)
    for again in (late, made.run(out=tmp_path)):
        assert again.certificates == first.certificates
        for name, model in first.models.items():
            assert (again.models[name].predict(POOL) == model.predict(POOL)).all()


@pytest.mark.filterwarnings("ignore:models cannot be kept")
def test_out__an_unseeded_model_that_was_not_kept_is_not_made_up(tmp_path):
    made = plan(Unwritable(), {"scale": [1.0, 2.0]})
    late, first = overtaken(made, tmp_path)
    for again in (late, made.run(out=tmp_path)):
        assert again.certificates == first.certificates
        assert again.results.identical(first.results)
        with pytest.raises(RuntimeError, match="others than those that were counted"):
            _ = again.models


@pytest.mark.parametrize("criterion", ["two_fold_cv", "cv_error"])
def test_out__the_model_of_an_estimate_is_made_again(criterion, tmp_path):
    learner, grid = FailsOnRows(rows=np.empty(0)), {"depth": [3, 4]}
    made = plan(learner, grid, criterion=criterion, cv=2)
    first, again = (made.run(out=tmp_path).model for _ in range(2))
    assert (again.predict(POOL) == first.predict(POOL)).all()


def test_out__of_other_versions_is_another_plan(tmp_path, monkeypatch):
    plan(grid={"max_depth": [2]}).run(out=tmp_path)
    versions = "dsel.search.running.run.installed_versions"
    monkeypatch.setattr(versions, lambda: {"numpy": "0.1"})
    with pytest.raises(ValueError, match=r"version of numpy is .* there and 0.1 now"):
        plan(grid={"max_depth": [2]}).run(out=tmp_path)


class NeedsARow(DecisionTreeClassifier):
    """Fits only where the first of all rows is among the training rows."""

    def fit(self, X_train, y):
        if X[0, 0] not in X_train[:, 0]:
            raise ValueError("the first row is missing")
        return super().fit(X_train, y)


def test_slices__are_stored_by_the_failed_fits_and_the_best_fold(tmp_path):
    made = plan(NeedsARow(), {"max_depth": [2]}, n_queries=5)
    [lacking] = [
        n
        for n, split in enumerate(made.search.scheme.fold_splits)
        if 0 in split.test_rows
    ]
    with Store(tmp_path, kind="search", identity=made.facts.identity) as store:
        outcome = search_nested(Run(made.search, made.facts, store=store))
    with Store(tmp_path, kind="search", identity=made.facts.identity) as store:
        keys = {key.split("/")[2] for key in store.records if key.startswith("slice")}
    fold = outcome.certificates["one_fold"].fold
    assert keys == {f"chosen-0-0-0-0-0-0-without-{lacking}-deployed-{fold}"}


def test_count_table__drops_what_was_counted_with_other_models():
    made = plan(certificate="cv_bound", prune=False)
    table = ExhaustiveTable(
        made.search.scheme,
        made.search.context.candidate_groups,
        made.search.n_candidates,
        made.search.comparisons,
        made.search.slices,
    )
    fit = FitResult(FitStatus.DONE, 0.0, (1, 0))
    splits = made.search.scheme.splits_with_models
    for split in splits:
        table.add_fit(0, split, replace(fit, token="a"))
    [pool_slice] = made.search.slices
    counts = {c.key: (1,) * c.n_bins for c in made.search.comparisons}
    token = join_tokens(dict.fromkeys(splits, "a"))
    counted = CountResult(pool_slice.start, pool_slice.stop, 0.0, token, counts, counts)
    record = json.loads(json.dumps(to_record(counted)))
    assert from_record(CountResult, record) == counted
    table.pool_table.add_slice(0, counted)
    assert table.pool_table.is_complete[0]
    table.add_fit(0, 1, replace(fit, token="b"))
    assert not table.pool_table.is_complete[0]
    job = CountJob(pool_slice.start, pool_slice.stop, (0,))
    counted_job = CountedJob(job, (counted,))
    assert table.pool_table.sets_of_other_models(counted_job) == [0]
    table.pool_table.add_slice(0, counted)
    assert not np.any(table.pool_table.differences[0])


class Nested(DecisionTreeClassifier):
    """Fits with a search of its own, in the same thread, and warns before and after."""

    def fit(self, X_train, y):
        warnings.warn("before", ConvergenceWarning, stacklevel=2)
        inner = dsel.plan_search(
            LogisticRegression(max_iter=2 if self.max_depth > 2 else 200),
            {"C": [1.0]},
            X_train,
            y,
            certificate="holdout",
            random_state=0,
        )
        inner.model(0, 0)
        return super().fit(X_train, y)


def test_fits__may_contain_fits_of_a_search_in_the_same_thread():
    before = warnings.showwarning, warnings.filters[:]
    outcome = plan(Nested(random_state=0), {"max_depth": [2, 3]}, pool=None).run()
    assert "2 candidates stopped before they converged" in " ".join(
        outcome.choice.remarks
    )
    assert outcome.certificate.certified
    assert (warnings.showwarning, warnings.filters) == before


def test_select__by_an_estimate_repeats_what_the_choice_says_of_its_search():
    rng = np.random.default_rng(0)
    rows, pool = rng.normal(size=(60, 5)), 0.01 * rng.normal(size=(2_000, 5))
    rows[:, 0] += np.repeat([-9, 9], 30)  # so no model errs, and all differ on the pool
    learner = LogisticRegression(max_iter=2, fit_intercept=False)
    outcome = dsel.plan_search(
        learner, {"C": [1.0, 1e4]}, rows, rows[:, 0] > 0, pool, prune=False,
        random_state=0,
    ).run()  # fmt: skip
    caveats = dsel.select(outcome, "cv_error").caveats
    assert {text.split()[0] for text in map(str, caveats)} >= {"fits", "the"}
    assert set(caveats) <= set(outcome.choice.caveats)


class NeverFits(DecisionTreeClassifier):
    def fit(self, X_train, y):
        raise ValueError("never")


def test_run__that_fails_does_not_wait_for_the_check_of_the_pool():
    read, n_chunks = [], 40

    def chunk(block, block_info=None):
        read.append(time.sleep(0.3))
        return block + 1.0

    pool = da.zeros((n_chunks * 1024, 1024), chunks=(1024, 1024)).map_blocks(
        chunk, meta=np.empty((0, 0))
    )
    rows = np.random.default_rng(0).normal(size=(100, 1024))
    made = dsel.plan_search(NeverFits(), GRID, rows, rows[:, 0] > 0, pool)
    read.clear()
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="never"):
        made.run(on_failure="raise", n_jobs=1)
    assert len(read) < n_chunks / 2
    wait_until(lambda: threading.active_count() <= before, what="the end of the check")
    assert len(read) < n_chunks


def test_progress__ends_with_all_chosen_models_counted():
    told = []
    plan().run(on_progress=told.append)
    last, first = told[-1], told[0]
    assert last.fits_done == last.fits_total - last.fits_dropped
    assert last.slices_done == last.slices_total == first.slices_total > 0
    assert last.pool_rows_done == len(POOL)
    assert first.fits_total == last.fits_total == 70 + 6
    plan(certificate="holdout").run(on_progress=told.append)
    assert told[-1].slices_total == 0  # it counts labeled rows alone


def test_tasks__are_named_by_candidates_and_folds_and_spread_over_workers():
    tasks = []
    client = faulty_threads(tasks.append, 2)
    plan(SVC(), {"C": [1, 8], "gamma": [0.1, 0.2]}).run(client)
    names = [task.key.rpartition("-")[0] for task in tasks]
    assert {"fit-gamma=0.1-folds=0,1", "fit-gamma=0.2-folds=2,3"} <= {*names}
    assert sum(name.startswith("fit-chosen-gamma=0.") for name in names) == 6
    assert sum(name.endswith("-fold=3") for name in names) == 1
    # A thread may run two tasks before the other one begins.
    fits = {task.affinity for task in tasks if task.key.startswith("fit-gamma")}
    assert fits == {0, 1}
    assert len({task.affinity for task in tasks if "chosen" in task.key}) == 6


def test_estimate__without_a_pool_keeps_no_model_of_who_cannot_be_chosen():
    kept = set()

    def client(work):
        executor = faulty_threads(lambda task: kept.add(task.key))(work)
        executor.forget = lambda key: executor.inner.forget(key) or kept.discard(key)
        return executor

    plan(grid={"max_depth": [1, 2, 3, 4]}, criterion="cv_error", pool=None).run(client)
    assert len(kept) <= 6  # of the chosen candidate, five folds and all rows


def test_fits__that_stopped_early_are_a_note_and_no_warning():
    learner = LogisticRegression(max_iter=2)
    choice = plan(learner, {"C": [1.0]}).run().choice
    assert "1 candidate stopped before they converged" in " ".join(choice.remarks)


class Stops(Drawn):
    """Takes a while to stop before it converges."""

    def fit(self, X, y):
        time.sleep(self.scale)
        warnings.warn("too few steps", ConvergenceWarning, stacklevel=2)
        time.sleep(self.scale)
        return super().fit(X, y)


@pytest.mark.cluster
def test_fits__on_threads_of_a_worker_keep_their_warnings_apart(monkeypatch):
    shown = []
    monkeypatch.setattr(warnings, "showwarning", lambda said, *_: shown.append(said))
    made = plan(Stops(), {"scale": [0.001, 0.002, 0.003, 0.005]}, prune=False)
    local = {"processes": False, "threads_per_worker": 4, "dashboard_address": ":0"}
    with Client(**local) as client:
        before = warnings.showwarning, warnings.filters[:]
        choice = made.run(client).choice
    assert "4 candidates stopped before they converged" in " ".join(choice.remarks)
    assert (warnings.showwarning, warnings.filters) == before
    assert not shown


def test_two_folds__work_and_say_what_models_have_seen():
    found = plan(cv=2)
    assert "half of the labels" in str(found)
    outcome = found.run()
    assert outcome.certificate.certified
    assert outcome.pair_results["fold_errors"].isel(side=1).isnull().all()


def test_out__equal_candidates_have_records_of_their_own(tmp_path):
    twins = [Drawn(), Drawn()]  # each fit draws without a seed

    def stop(progress):
        if progress.fits_done >= 20:
            raise KeyboardInterrupt

    made = dsel.plan_search(None, twins, X, Y, prune=False, random_state=7)
    with pytest.raises(KeyboardInterrupt):
        made.run(out=tmp_path, on_progress=stop)
    told = []
    outcome = made.run(out=tmp_path, on_progress=told.append)
    assert told[0].fits_done >= 20
    one, other = outcome.pair_results["fold_errors"]
    assert not one.equals(other)


class FailsWithoutTheFirstFold(DummyClassifier):
    """Predicts one class, and cannot be fitted on four fifths that lack a fold."""

    first = plan().search.scheme.outer_splits[0].test_rows

    def fit(self, X_train, y):
        if len(X_train) == 240 and not np.isin(X[self.first, 0], X_train[:, 0]).any():
            raise ValueError("the first fold is missing")
        return super().fit(X_train, y)


@pytest.mark.parametrize("options", [{"pool": None}, {}], ids=["no pool", "pool"])
def test_chosen__deploys_a_fold_that_has_a_model_where_limits_tie(options):
    learner, grid = FailsWithoutTheFirstFold(strategy="constant"), {"constant": [0]}
    outcome = plan(learner, grid, loss=dsel.losses.recall(1), **options).run()
    certificate = outcome.certificates["one_fold"]
    assert certificate.bound == 1  # as of all folds: each row of the class is missed
    assert certificate.fold != 0
    assert not outcome.model.predict(X).any()


@pytest.mark.parametrize(
    ("score", "words"),
    [("raises", "raised ZeroDivisionError in `score`"), (None, "got None"),
     (np.nan, "got nan"), ("0.1", "got '0.1'")],
)  # fmt: skip
def test_search__a_loss_that_gives_no_number_ends_it(score, words):
    class Bad(type(dsel.losses.balanced())):
        def score(self, rows, predictions):
            return 1 / 0 if score == "raises" else score

        def score_from_errors(self, n_errors, n_rows):
            return None

    with pytest.raises(dsel.errors.LossError, match=words):
        plan(loss=Bad()).run()


CALLS_OF_A_LOSS = {
    # Number of rows, or the first count: the labeled rows that a plan tries are 200.
    "score_from_errors": lambda loss, n_errors, n_rows: n_rows == 200,
    "score": lambda loss, rows, predictions: len(predictions) == 200,
    "limits": lambda loss, folds, delta: False,
    "estimate": lambda loss, folds: False,
    "expected_holdout": lambda loss, folds, delta: False,
    "bound_all_rows": lambda loss, folds, pool_counts, division: False,
    "caveats": lambda loss, y, n_folds, delta: False,
    "named_classes": lambda loss, known: False,
}
CALLS_OF_A_STATISTIC = {
    "count": lambda counts, rows, predictions: len(predictions) == 200,
    "counts_from_errors": lambda counts, n_errors: False,
    "count_pair": lambda counts, rows, one, other, fold: False,
}


class Uncounted(ErrorRate):
    """The error as a loss that reads predictions."""

    def score_from_errors(self, n_errors, n_rows):
        return None

    def score(self, rows, predictions):
        return float(np.mean(predictions != rows.y))


class UncountedErrors(ErrorCount):
    """Errors that are counted again."""

    def counts_from_errors(self, n_errors):
        return None


def changed_loss(name, works, answer):
    """Return the error as a loss one of whose methods does something else."""
    of_statistic = name in CALLS_OF_A_STATISTIC
    kind = ErrorCount if of_statistic else ErrorRate
    kind = {"score": Uncounted, "count": UncountedErrors}.get(name, kind)

    def method(self, *args):
        return getattr(kind, name)(self, *args) if works(self, *args) else answer()

    body = {name: method, "__repr__": lambda self: "Changed", "__module__": __name__}
    changed = type("Changed", (kind,), body)()
    return OwnError(statistic=changed) if of_statistic else changed


class OwnError(ErrorRate):
    """The error, as a loss of a user."""


@pytest.mark.parametrize(
    ("name", "works"),
    [*CALLS_OF_A_LOSS.items(), *CALLS_OF_A_STATISTIC.items()],
    ids=[*CALLS_OF_A_LOSS, *CALLS_OF_A_STATISTIC],
)
def test_search__a_loss_that_raises_anywhere_ends_it(name, works):
    """No candidate fails by it: rows of a fold would fail it in the search without."""
    loss = changed_loss(name, works, lambda: 1 / 0)
    words = f"Changed.* raised ZeroDivisionError in `{name}`: division by zero"
    with pytest.raises(dsel.errors.LossError, match=words):
        plan(grid={"max_depth": [1, 4]}, loss=loss).run()


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [("score_from_errors", lambda: np.nan, "number from `score_from_errors`, got nan"),
     ("score_from_errors", lambda: "0.1", "number from `score_from_errors`, got '0.1'"),
     ("counts_from_errors", lambda: np.array([1, 2]),
      r"`fold_shape`.*`counts_from_errors`"),
     ("count_pair", lambda: np.array(0.5), "integers from `count_pair`, got 0.5")],
)  # fmt: skip
def test_search__a_loss_that_returns_no_number_anywhere_ends_it(name, answer, words):
    works = {**CALLS_OF_A_LOSS, **CALLS_OF_A_STATISTIC}[name]
    with pytest.raises(dsel.errors.LossError, match=words):
        plan(grid={"max_depth": [1, 4]}, loss=changed_loss(name, works, answer)).run()


class ErrorByDivision(ErrorRate):
    """The error; it cannot be computed without a row."""

    def score_from_errors(self, n_errors, n_rows):
        return n_errors / n_rows


def test_search__a_loss_is_not_asked_about_no_rows():
    grid = {"max_depth": [1, 4]}
    ours, own = plan(grid=grid).run(), plan(grid=grid, loss=ErrorByDivision()).run()
    bounds = [[c.bound for c in run.certificates.values()] for run in (ours, own)]
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize("part", [0, 1])
def test_search__a_test_that_kills_its_task_fails_the_search_that_reads_it(part):
    """Else rows of a fold would decide what the search without it chooses from."""

    def fault(task):
        is_search = isinstance(task.work, FitBatch)
        for job in task.work.jobs if is_search else ():
            if (
                0 in job.candidate_numbers
                and job.split_number == 3
                and job.part_number in (None, part)
            ):
                raise MemoryError("4 workers died")

    made = plan(grid={"max_depth": [4, 1]}, pool=None)
    undisturbed = made.run()
    with pytest.warns(dsel.errors.FitFailedWarning, match="4 workers died"):
        outcome = made.run(faulty_threads(fault))
    [reader] = [
        test.left_out_fold
        for test in made.search.scheme.inner_tests
        if (test.split_number, test.part_number) == (3, part)
    ]
    assert undisturbed.results["outer_candidate"].values.tolist() == [0] * 5
    by_fold = outcome.results["outer_candidate"].values.tolist()
    assert by_fold == [int(fold == reader) for fold in range(5)]
    assert all(c.certified for c in outcome.certificates.values())


def test_search__a_fit_that_kills_its_tasks_fails_its_candidate():
    def fault(task):
        is_search = isinstance(task.work, FitBatch)
        for job in task.work.jobs if is_search else ():
            if 0 in job.candidate_numbers and job.split_number == 3:
                raise MemoryError("4 workers died")

    made = plan(grid={"max_depth": [1, 4]}, pool=None)
    with pytest.warns(dsel.errors.FitFailedWarning, match="4 workers died"):
        outcome = made.run(faulty_threads(fault))
    assert all(c.certified for c in outcome.certificates.values())
    assert outcome.results["status"].values.tolist()[0] == 2
