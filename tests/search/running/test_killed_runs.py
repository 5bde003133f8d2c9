"""A killed run that goes on counts what it deploys, whatever a learner draws."""

import os
from collections import Counter
from itertools import product
from signal import SIGKILL

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import dsel
from dsel.criteria import Settings
from dsel.data.cache import process_cache
from dsel.search.engine.exact_pruner import ExactPruner
from dsel.search.running.exhaustive import make_loop
from dsel.search.running.run import open_engine
from dsel.search.running.run_description import make_data_sizes
from tests.clusters import two_workers


class Drawn(TransformerMixin, BaseEstimator):
    """Projects rows on axes that it draws anew where it is fitted to many rows."""

    def __init__(self, least=0):
        self.least = least

    def fit(self, X, y=None):
        seed = None if len(X) >= self.least else 0
        self.axes_ = np.random.default_rng(seed).normal(size=(X.shape[1], 2))
        return self

    def transform(self, X):
        return X @ self.axes_


class DrawnNeighbors(KNeighborsClassifier):
    """Neighbors among such projections."""

    def __init__(self, n_neighbors=5, least=0):
        super().__init__(n_neighbors)
        self.least = least

    def fit(self, X, y):
        self.drawn_ = Drawn(self.least).fit(X)
        return super().fit(self.drawn_.transform(X), y)

    def predict(self, X):
        return super().predict(self.drawn_.transform(X))


class NotedNeighbors(DrawnNeighbors):
    """Writes a line for each fit to a file."""

    def __init__(self, least=0, log=None, n_neighbors=5):
        super().__init__(n_neighbors, least)
        self.log = log

    def fit(self, X, y):
        with open(self.log, "a") as log:
            log.write(f"{self.n_neighbors} {X.tobytes().hex()[:400]} {len(X)}\n")
        return super().fit(X, y)


N_DRAWN = 90
DRAWS = {
    "SVC": lambda n: (make_pipeline(Drawn(n), SVC()), {"svc__C": [0.1, 1.0, 10.0]}),
    "k-NN": lambda n: (
        make_pipeline(Drawn(n), KNeighborsClassifier()),
        {"kneighborsclassifier__n_neighbors": [1, 3, 9]},
    ),
    "bare": lambda n: (DrawnNeighbors(least=n), {"n_neighbors": [1, 3, 9]}),
}
STOPS = {
    "after a fit": lambda now: now.fits_done >= 1,
    "after fits": lambda now: now.fits_done >= 3,
    "after a slice": lambda now: now.slices_done >= 1,
    "after all counts": lambda now: now.slices_done >= now.slices_total > 0,
}


def plan_of_draws(learner, certificate, **options):
    rng = np.random.default_rng(5)
    X, pool = rng.normal(size=(N_DRAWN, 6)), rng.normal(size=(20_000, 6))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=N_DRAWN) > 0).astype(int)
    # Models of folds cannot be asked for: where the model of all rows is compared with
    # them, only this one draws, and those of folds are fitted again.
    is_of_folds = certificate in ("cv_bound", "best_fold")
    learner, grid = DRAWS[learner](N_DRAWN if is_of_folds else 0)
    options = {"certificate": certificate, "cv": 3, "random_state": 7, **options}
    plan = dsel.plan_search(learner, grid, X, y, pool, **options)
    assert len(plan.search.slices) > 2
    return plan, X, y, pool


def interrupted(plan, out, stop):
    """Run a plan until it stops, as in a process that ends; return whether it did."""

    def watch(now):
        if stop(now):
            raise KeyboardInterrupt

    try:
        plan.run(out=out, on_progress=watch, n_jobs=1)
    except KeyboardInterrupt:
        return True
    finally:
        process_cache.cache_clear()
    return False


def check_counts(plan, outcome, X, y, pool):
    """Assert that what was counted is what the models of an outcome answer."""
    choice, cube, models = outcome.choice, outcome.results, outcome.models
    assert choice.certificate.certified
    name = choice.deploy
    if plan.search.method.is_nested:
        name, fold = "one_fold", choice.certificates["one_fold"].fold
        errors = cube["outer_errors"][fold]
        differ = models["one_fold"].predict(pool) != models["all_rows"].predict(pool)
        assert differ.sum() == cube["outer_disagreements"][fold]
        if choice.queries is not None:
            rows = list(choice.queries.rows)
            assert len(rows) > 5
            for deploy in ("one_fold", "all_rows"):
                answers = models[deploy].predict(pool[rows])
                codes = getattr(choice.queries, f"{deploy}_codes")
                assert answers.tolist() == list(codes)
    elif choice.fold is None:
        number, full = choice.candidate, models[name].predict(pool)
        of_folds = [plan.model(number, n) for n in range(plan.search.scheme.n_folds)]
        folds = [model.predict(pool) for model in of_folds]
        for comparison in plan.search.comparisons:
            counted = cube[comparison.key].values.reshape(plan.search.n_candidates, -1)
            if comparison.key == "disagreements":
                drawn = comparison.draw_folds(np.arange(len(pool)))
                differs = np.choose(drawn, folds) != full
                assert counted[number].sum() == differs.sum()
            else:
                assert counted[number, 0] in [(fold != full).sum() for fold in folds]
        return
    else:
        fold = choice.fold
        by_fold = cube["fold_errors"].values.reshape(plan.search.n_candidates, -1)
        errors = by_fold[choice.candidate, fold]
    rows = plan.search.scheme.fold_splits[fold].test_rows
    assert (models[name].predict(X[rows]) != y[rows]).sum() == errors


@pytest.mark.parametrize(
    ("certificate", "stop"),
    [
        *product(("nested", "queries", "cv_bound", "best_fold"), [*STOPS][1:]),
        *product(["holdout"], [*STOPS][:2]),
    ],
)
# A candidate that others led fails if it is the best after all, and is another model.
@pytest.mark.filterwarnings("ignore::dsel.errors.FitFailedWarning")
@pytest.mark.parametrize("learner", DRAWS)
def test_run__that_goes_on_counts_the_models_that_it_deploys(
    learner, certificate, stop, tmp_path
):
    """The learner draws without a seed, so that a second fit is another model."""
    options = {}
    if certificate == "queries":
        certificate, options = "nested", {"n_queries": 20}
    plan, *rows = plan_of_draws(learner, certificate, **options)
    assert interrupted(plan, tmp_path, STOPS[stop])
    check_counts(plan, plan.run(out=tmp_path, n_jobs=1), *rows)


@pytest.mark.parametrize("certificate", ["cv_bound", "best_fold"])
def test_run__that_goes_on_counts_no_slice_of_a_learner_that_repeats_again(
    certificate, tmp_path
):
    plan, X, y, pool = plan_of_draws("SVC", certificate)
    plan = dsel.plan_search(
        SVC(), {"C": [0.1, 1.0]}, X, y, pool, certificate=certificate, cv=3,
        random_state=7, prune=False,
    )  # fmt: skip
    assert interrupted(plan, tmp_path, STOPS["after a slice"])
    shown = []
    outcome = plan.run(out=tmp_path, on_progress=shown.append, n_jobs=1)
    check_counts(plan, outcome, X, y, pool)
    assert 0 < shown[-1].slices_total < len(plan.search.slices)
    assert shown[-1].fits_kept > 0


@pytest.mark.parametrize("repeats", [True, False])
def test_candidate__that_was_dropped_is_deployed_only_if_its_fit_repeats(repeats):
    plan, X, y, pool = plan_of_draws("bare", "holdout")
    if repeats:
        plan = dsel.plan_search(
            SVC(), {"C": [0.1, 1.0]}, X, y, pool, certificate="holdout",
            random_state=7,
        )  # fmt: skip
    search = plan.search
    deltas = Settings(search.candidate_deltas)
    data = make_data_sizes(search.labeled, search.pool, None)
    pruner = ExactPruner(search.criterion, deltas, data, may_prune=False)
    with open_engine(search.context, search.pool, n_jobs=1) as engine:
        loop = make_loop(search, engine, pruner, on_turn=lambda loop: None)
        loop.fit_and_count()
        best, _ = pruner.choose_candidate(pruner.final_counts(loop.table))
        before = loop.table.errors[best].copy()
        # As if others had led for a time, so that the models of the best were dropped.
        loop.released_candidates.add(best)
        for fit in [fit for fit in loop.task_of_model if fit.candidate == best]:
            del loop.task_of_model[fit]
        fitted_group = loop.fetch_counted_group(best, 0)
        assert (fitted_group is not None) == repeats
        assert loop.table.failed_candidates[best] != repeats
        if repeats:
            np.testing.assert_array_equal(loop.table.errors[best], before)
        else:
            [message] = [
                m for f, m in loop.table.messages.items() if f.candidate == best
            ]
            assert "fitted again it is another; give it a" in message.text


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("stop", "n_neighbors"), [("after a slice", [1, 3, 9]), ("after all counts", [3])]
)
def test_run__whose_workers_end_once_fits_once_more_and_deploys_what_it_counted(
    stop, n_neighbors, tmp_path
):
    _, X, y, pool = plan_of_draws("bare", "cv_bound")
    log = tmp_path / "fits"
    learner, grid = NotedNeighbors(N_DRAWN, log), {"n_neighbors": n_neighbors}
    plan = dsel.plan_search(
        learner, grid, X, y, pool, certificate="cv_bound", cv=3, prune=False,
        random_state=7,
    )  # fmt: skip
    n_restarts = 0
    with two_workers() as client:
        processes = client.run(os.getpid)

        def restart(now):
            nonlocal n_restarts
            if not n_restarts and STOPS[stop](now):
                n_restarts += 1
                for process in processes.values():
                    os.kill(process, SIGKILL)

        outcome = plan.run(client, on_progress=restart)
    assert n_restarts == 1
    n_fits = Counter(log.read_text().splitlines())
    assert len(n_fits) == plan.search.n_candidates * len(plan.search.scheme.splits)
    assert max(n_fits.values()) == 2
    assert (outcome.results["status"] == 0).all()
    check_counts(plan, outcome, X, y, pool)
