import resource
from weakref import WeakSet

import numpy as np
import pytest
import xarray as xr
from dask.utils import format_bytes
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from dsel.cluster import Local, connect
from dsel.data.splits import random_folds
from dsel.runtime.local import LocalExecutor
from dsel.searches import execute, plan_search
from dsel.searches.describe import projected_memory

TIMES = ["fit_seconds", "score_seconds", "full_fit_seconds"]
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [1e-4, 1e-3, 1e-2]}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def make_plan(digits, estimator=None, grid=GRID, **options):
    X, y = digits
    settings = {"criterion": "cv_bound", "cv": 5, "delta": 0.05, "random_state": 0}
    rows = X[:400], y[:400], X[400:]
    return plan_search(estimator or SVC(), grid, *rows, **settings | options)


def test_execute__fold_errors_are_those_of_fits_one_by_one(digits):
    X, y = digits[0][:400], digits[1][:400]
    results = execute(make_plan(digits, prune=False)).results
    folds = random_folds(400, 5, seed=0)
    for C in GRID["C"]:
        for gamma in GRID["gamma"]:
            for fold in range(5):
                held = folds == fold
                model = SVC(C=C, gamma=gamma).fit(X[~held], y[~held])
                n_errors = int((model.predict(X[held]) != y[held]).sum())
                cell = results.fold_errors.sel(C=C, gamma=gamma, fold=fold)
                assert int(cell) == n_errors


def test_execute__disagreements_are_those_of_two_models_a_row(digits):
    from dsel.data.row_random import RANDOM_FOLD_STREAM, row_random_at, uniform_integers

    X, y = digits
    results = execute(make_plan(digits, prune=False)).results
    drawn = uniform_integers(row_random_at(0, RANDOM_FOLD_STREAM, np.arange(1397)), 5)
    folds = random_folds(400, 5, seed=0)
    full = SVC(C=1.0, gamma=1e-3).fit(X[:400], y[:400]).predict(X[400:])
    for fold in range(5):
        held = folds == fold
        model = SVC(C=1.0, gamma=1e-3).fit(X[:400][~held], y[:400][~held])
        differs = model.predict(X[400:]) != full
        cell = results.sel(C=1.0, gamma=1e-3, fold=fold)
        assert int(cell.disagreements) == int(differs[drawn == fold].sum())
        assert int(cell.pool_rows) == int((drawn == fold).sum())


@pytest.mark.parametrize("criterion", ["cv_bound", "cv_error", "holdout_bound"])
def test_execute__pruning_changes_neither_choice_nor_certificate(digits, criterion):
    pruned = execute(make_plan(digits, criterion=criterion)).choice
    full = execute(make_plan(digits, criterion=criterion, prune=False)).choice
    assert pruned.candidate == full.candidate
    assert pruned.certificate.unclipped == full.certificate.unclipped


class SmallExecutor(LocalExecutor):
    slot_memory = 2 * 8 * 400 - 2

    def submit(self, task):
        if task.key.startswith("fit-"):
            pytest.fail("begins to work")
        super().submit(task)


def test_execute__memory_below_two_kernel_rows_is_refused_before_work(digits):
    with pytest.raises(
        MemoryError, match=r"two rows of the kernel matrix, 3,200 bytes"
    ):
        execute(make_plan(digits), SmallExecutor)


def test_execute__reads_the_pool_for_some_where_models_of_all_take_too_much(digits):
    """Else the models of an exhaustive search fill the memory before any is counted."""
    order = []

    class Crowded(LocalExecutor):
        slot_memory = 2**20

        def submit(self, task):
            order.append(task.key.partition("-")[0])
            super().submit(task)

    plan = make_plan(digits, prune=False)
    found = execute(plan, lambda work: Crowded(work, 1)).results
    # The first task compares rows of the pool with labeled ones.
    assert "fit" in order[order.index("span", 1) :]
    xr.testing.assert_equal(
        found.drop_vars(TIMES), execute(plan).results.drop_vars(TIMES)
    )


def test_execute__counts_do_not_depend_on_threads(digits):
    plan = make_plan(digits, LogisticRegression(max_iter=5000), {"C": [0.01, 0.1]})
    one, four = (execute(plan, n_jobs=n).results for n in (1, 4))
    done = (one.status == 0) & (four.status == 0)
    for name in ("fold_errors", "disagreements", "full_train_errors"):
        assert one[name].where(done).equals(four[name].where(done))


def test_execute__missing_values_pass_where_every_estimator_takes_them(digits):
    X, y = digits[0].copy(), digits[1]
    X[::7, 3] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression(max_iter=2000))
    trees = HistGradientBoostingClassifier(max_iter=2)
    plan = plan_search(
        None, [trees, model], X[:300], y[:300], X[300:], cv=3, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    assert execute(plan).choice.certificate.certified


def test_plan__refuses_missing_values_where_an_estimator_does_not_take_them(digits):
    X, y = digits[0].copy(), digits[1]
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match="`X`"):
        make_plan((X, y))


ALIVE = WeakSet()


class Remembered(LogisticRegression):
    """Tells how many fitted ones there are."""

    def fit(self, X, y):
        ALIVE.add(self)
        return super().fit(X, y)


def test_execute__without_a_pool_keeps_few_models(digits):
    grid, most = {"C": np.logspace(-6, -5, 40)}, []
    settings = {"criterion": "cv_error", "cv": 2, "random_state": 0}
    X, y = digits[0][:60], digits[1][:60] < 5
    plan = plan_search(Remembered(), grid, X, y, **settings)
    execute(plan, n_jobs=1, on_progress=lambda _: most.append(len(ALIVE)))
    assert max(most) < 20


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(n_neighbors=3), SVC(kernel="poly")]
)
def test_execute__of_dense_labels_takes_a_sparse_pool(rng, model):
    X, pool = rng.normal(size=(60, 3)), rng.normal(size=(200, 3))
    cubes = [
        plan_search(
            None,
            [model],
            X,
            X[:, 0] > 0,
            each,
            cv=3,
            random_state=0,
            criterion="cv_bound",
        ).run()
        for each in (pool, sparse.csr_matrix(pool))
    ]
    assert cubes[0].disagreements.equals(cubes[1].disagreements)


def test_projected_memory__contains_the_kernel_matrices(digits):
    plan = make_plan(digits)
    n, n_groups = len(plan.work.y), len(plan.work.groups)
    _, shared = projected_memory(plan)
    assert shared == (2 * 8 + 4 * n_groups) * n**2
    said = f"{format_bytes(shared)} of it to share work between fits"
    assert said in " ".join(repr(plan).split())


@pytest.mark.cluster
def test_projected_memory__is_near_what_a_worker_is_seen_to_use(rng):
    X = rng.normal(size=(3000, 20))
    y = (X[:, 0] > 0).astype(int)
    plan = plan_search(SVC(), {"C": [1.0]}, X, y, cv=2, random_state=0)
    with connect(Local(workers=1, memory="3 GiB")) as client:
        plan.run(client)
        (seen,) = client.run(lambda: resource.getrusage(0).ru_maxrss * 2**10).values()
    projected, _ = projected_memory(plan)
    assert seen / 1.5 < projected < 1.5 * seen


def test_execute__counts_train_errors_where_they_are_asked_for(tmp_path, digits):
    X, y = digits[0][:150], digits[1][:150]

    def run(out=None, **options):
        plan = plan_search(
            SVC(), {"C": [0.5, 4.0], "gamma": [1e-4]}, X, y, cv=3, prune=False,
            random_state=0, **options,
        )  # fmt: skip
        return execute(plan, n_jobs=2, out=out).results

    without, asked = run(tmp_path / "out"), run(train_errors=True)
    assert without.train_errors.isnull().all()
    assert without.full_train_errors.isnull().all()
    assert asked.full_train_errors.sel(C=0.5, gamma=1e-4) == (
        (SVC(C=0.5, gamma=1e-4).fit(X, y).predict(X) != y).sum()
    )
    # A place that was begun without them: the same run goes on, another one fits again.
    continued = run(tmp_path / "out", train_errors=True)
    for name in ("fold_errors", "train_errors", "full_train_errors"):
        np.testing.assert_array_equal(continued[name], asked[name])
    np.testing.assert_array_equal(
        run(tmp_path / "out").full_train_errors, without.full_train_errors
    )
