"""A run that was killed goes on from its `out` and ends in the same cube."""

import json
import os
import re
import signal
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from distributed import Client
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import dsel
from dsel.data.cache import process_cache
from tests.clusters import environment, running_cluster, wait_until
from tests.contract.runs import (
    CERTIFICATES,
    K_NEAREST,
    ROOT,
    counts_of,
    digits,
    job,
    plan_search,
    run_search,
)

pytestmark = pytest.mark.contract


def n_files(place):
    return sum(len(files) for _, _, files in os.walk(place))


def lines(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def killed_later(kind, log, out, count, place, more):
    """Kill a job once there is more than now; return whether it was still running."""
    code = "import sys; from tests.contract.runs import job; job(*sys.argv[1:])"
    command, before = [sys.executable, "-c", code, kind, log, out], count(place)
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), start_new_session=True
    )
    wait_until(lambda: process.poll() is not None or count(place) > before + more)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["SVC", "tree"])
def test_run__killed_again_and_again_ends_in_the_same_counts(kind, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    # Trees: before anything is kept, then in the middle of the fits.
    count, place, n = (n_files, out, (2,)) if kind == "SVC" else (lines, log, (0, 20))
    killed = [killed_later(kind, log, out, count, place, more) for more in n]
    assert killed[0]
    resumed, whole = job(kind, log, out), job(kind, tmp_path / "other")
    assert counts_of(resumed) == counts_of(whole)
    assert dsel.open_results(out)["status"].equals(resumed.results["status"])


def test_run__what_was_finished_is_not_fitted_again(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    first, n = job("tree", log, out), lines(log)
    again = job("tree", log, out)
    assert counts_of(again) == counts_of(first)
    assert again.choice == first.choice
    assert lines(log) == n > 0


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("is_url", [False, True])
def test_run__with_out_is_the_run_without(certificate, is_url, tmp_path):
    rows = (*K_NEAREST, *digits(200))
    options = {"certificate": certificate, "cv": 3}
    out = f"memory://contract/{certificate}" if is_url else tmp_path / "out"
    kept = run_search(*rows, out=out, **options)
    assert counts_of(kept) == counts_of(run_search(*rows, **options))
    assert run_search(*rows, out=out, **options).choice == kept.choice
    assert dsel.select(dsel.open_results(out)) == kept.choice


@pytest.mark.cluster
def test_run__a_worker_that_is_killed_changes_no_count(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    with (
        running_cluster(tmp_path) as cluster,
        Client(cluster.address, set_as_default=False) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        running = thread.submit(job, "tree", log, out, client)
        wait_until(lambda: lines(log) > 5 or running.done(), what="some fits")
        cluster.kill("worker-0")
        cluster.start_worker("worker-2")
        counts = counts_of(running.result(timeout=120))
    assert counts == counts_of(job("tree", tmp_path / "other"))


@pytest.mark.parametrize("body", [b'{"said": {}, "datasets": {}, "models": {}}', b"[]"])
def test_run__refuses_an_outcome_that_it_did_not_write(body, tmp_path):
    """One whose checksum is right: a torn one is refused beside."""
    rows = (*K_NEAREST, *digits(100))
    run_search(*rows, cv=2, out=tmp_path)
    (tmp_path / "outcome.json").write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    with pytest.raises(
        ValueError, match=r"outcome.* not what dsel wrote there; (bring|rest)"
    ):
        run_search(*rows, cv=2, out=tmp_path)


@pytest.mark.parametrize(
    "record",
    [["fit", {}], ["fit/", {}], ["", {}], ["slice", []], ["fit/{what}/{key}", []]],
)
def test_run__refuses_a_record_that_no_run_has_written(record, tmp_path):
    def stop(progress):
        if progress.fits_done:
            raise KeyboardInterrupt

    rows = (*K_NEAREST, *digits(100))
    with pytest.raises(KeyboardInterrupt):
        plan_search(*rows, cv=2).run(out=tmp_path, on_progress=stop)
    [*_, last] = sorted(
        path for path in tmp_path.rglob("*.json") if path.stat().st_size
    )
    head, line, *_ = last.read_bytes().partition(b"\n")[2].splitlines()
    _, what, key = json.loads(line)[0].split("/")[:3]
    record = [record[0].format(what=what, key=key), record[1]]
    body = b"\n".join([head, json.dumps(record).encode()])
    last.write_bytes(b"%08x\n" % zlib.crc32(body) + body)  # a right checksum
    with pytest.raises(ValueError, match=r"^`out` .* holds a record that no run of th"):
        run_search(*rows, cv=2, out=tmp_path)


def test_interrupt__says_what_is_kept_and_how_the_run_goes_on(tmp_path, capsys):
    def stop(progress):
        if progress.fits_done >= 2:
            raise KeyboardInterrupt

    plan = plan_search(*K_NEAREST, *digits(100), cv=2, random_state=5)
    for out, words in (
        (None, "it had no `out`: with out='results'"),
        (tmp_path / "out", f"kept in `out` {tmp_path / 'out'}: the same call with "
         "random_state=5 goes on from there."),
    ):  # fmt: skip
        with pytest.raises(KeyboardInterrupt) as caught:
            plan.run(out=out, on_progress=stop, n_jobs=1)
        [note] = caught.value.__notes__
        assert words in note
    assert "Continues" not in capsys.readouterr().err
    most = plan.fits_range()[1]
    assert plan.run(out=tmp_path / "out").choice == plan.run().choice
    lines = re.findall("Continues: .*", capsys.readouterr().err)
    assert len(lines) == 1
    kept = re.fullmatch(
        rf"Continues: ([0-9]+) of up to {most} fits were kept in the results", lines[0]
    )
    assert kept is not None
    assert 2 <= int(kept[1]) < most


# ---------------------------------------------------- learners that draw without seed


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
    assert len(plan.slices) > 2
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
    if plan.scheme.is_nested:
        name, fold = "one_fold", choice.certificates["one_fold"].fold
        errors = cube["outer_errors"][fold]
        differ = models["one_fold"].predict(pool) != models["all_rows"].predict(pool)
        assert differ.sum() == cube["outer_disagreements"][fold]
        if choice.queries is not None:
            rows = list(choice.queries.rows)
            assert len(rows) > 5
            for deploy in ("one_fold", "all_rows"):
                answers = models[deploy].predict(pool[rows])
                assert answers.tolist() == list(getattr(choice.queries, deploy))
    elif choice.fold is None:
        number, full = choice.candidate, models[name].predict(pool)
        of_folds = [plan.model(number, n) for n in range(plan.scheme.n_folds)]
        folds = [model.predict(pool) for model in of_folds]
        for comparison in plan.comparisons:
            counted = cube[comparison.variable].values.reshape(plan.n_candidates, -1)
            if comparison.variable == "disagreements":
                drawn = comparison.draw_folds(np.arange(len(pool)))
                differs = np.choose(drawn, folds) != full
                assert counted[number].sum() == differs.sum()
            else:
                assert counted[number, 0] in [(fold != full).sum() for fold in folds]
        return
    else:
        fold = choice.fold
        by_fold = cube["fold_errors"].values.reshape(plan.n_candidates, -1)
        errors = by_fold[choice.candidate, fold]
    rows = plan.scheme.held_out[fold].test_rows
    assert (models[name].predict(X[rows]) != y[rows]).sum() == errors


@pytest.mark.parametrize(
    ("certificate", "stop"),
    [
        *product(("nested", "queries", "cv_bound", "best_fold"), [*STOPS][1:]),
        *product(["holdout"], [*STOPS][:2]),
    ],
)
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
