"""Co-validation through plan and driver, against fits one by one."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from dsel import names
from dsel.data.splits import half_splits
from dsel.errors import StoreMismatchError
from dsel.results import open_results, save_results
from dsel.searches import SemiSupervisedSearchCV, select
from dsel.searches.co_validation.covalidate import covalidate, plan_covalidation

GRID = {"C": [0.1, 10.0], "gamma": [0.01, 0.3, 30.0]}
CRITERIA = ["disagreement", "dis_error", "half_true_error", "loo_error", "max_cv_dt_e",
            "max_dt_e", "train_error", "true_error", "two_fold_cv"]  # fmt: skip


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(
        500, 6, n_informative=5, n_redundant=0, n_classes=3, flip_y=0.1, random_state=4
    )
    return X, np.array(["a", "b", "c"])[y]


def run(table, n=61, repeats=4, **options):
    X, y = table
    return covalidate(SVC(), GRID, X[:n], y[:n], X[n:], repeats=repeats, **options)


def test_covalidate__counts_are_those_of_fits_one_by_one(table):
    X, y = table
    results = run(table, pool_labels=table[1][61:])
    halves = half_splits(61, 4, seed=0)
    cell = results.sel(C=10.0, gamma=0.3)
    full = SVC(C=10.0, gamma=0.3).fit(X[:61], y[:61])
    for repeat in range(4):
        models = []
        for half in (0, 1):
            rows = halves[2 * repeat + half]
            model = SVC(C=10.0, gamma=0.3).fit(X[rows.train_rows], y[rows.train_rows])
            here = cell.sel(repeat=repeat, half=half)
            for name, X_part, y_part in [
                ("train_errors", X[rows.train_rows], y[rows.train_rows]),
                ("fold_errors", X[rows.test_rows], y[rows.test_rows]),
                ("half_test_errors", X[61:], y[61:]),
            ]:
                assert int(here[name]) == int((model.predict(X_part) != y_part).sum())
            models.append(model.predict(X[61:]))
        here = cell.sel(repeat=repeat)
        assert int(here.disagreements) == int((models[0] != models[1]).sum())
        assert int(here.pool_rows) == 439
    assert int(cell.full_test_errors) == int((full.predict(X[61:]) != y[61:]).sum())
    assert int(results.test_rows) == 439


def test_covalidate__the_first_half_of_an_odd_table_is_smaller(table):
    results = run(table)

    assert results.train_rows.values.tolist() == [[30, 31]] * 4
    assert results.fold_rows.values.tolist() == [[31, 30]] * 4


@pytest.mark.parametrize("criterion", CRITERIA)
def test_covalidate__pruning_changes_neither_choice_nor_number(table, criterion):
    known = {"pool_labels": table[1][61:]}

    pruned = select(run(table, criterion=criterion, prune=True, **known))

    whole = select(run(table, leave_one_out=True, **known), criterion)
    assert pruned.candidate == whole.candidate
    assert pruned.estimate == whole.estimate


@pytest.mark.parametrize("criterion", CRITERIA)
def test_search__takes_every_criterion_of_co_validation(table, criterion):
    X, y = table
    search = SemiSupervisedSearchCV(
        SVC(), GRID, criterion=criterion, cv=4, random_state=0
    )
    labels = {"pool_labels": y[61:]} if "true" in criterion else {}

    search.fit(X[:61], y[:61], pool=X[61:], **labels)

    results = run(table, leave_one_out=True, **labels)
    assert search.best_params_ == select(results, criterion).params
    assert not search.certificate_.certified


def test_covalidate__leave_one_out_errors_are_those_of_fits_one_by_one(table):
    X, y = table
    grid = {"C": [0.1, 10.0], "gamma": [0.3, "scale"]}

    results = covalidate(
        SVC(), grid, X[:40], y[:40], X[61:], repeats=2, leave_one_out=True
    )

    rows = np.arange(40)
    for C in grid["C"]:
        for gamma in grid["gamma"]:
            wrong = [
                SVC(C=C, gamma=gamma)
                .fit(X[:40][rows != i], y[:40][rows != i])
                .predict(X[[i]])[0]
                != y[i]
                for i in rows
            ]
            assert int(results.loo_errors.sel(C=C, gamma=str(gamma))) == sum(wrong)


def test_covalidate__leave_one_out_is_added_to_what_was_stored(table, tmp_path):
    X, y = table
    plan = plan_covalidation(SVC(), GRID, X[:61], y[:61], X[61:], repeats=2)
    plan.run(out=tmp_path / "store")
    more = plan_covalidation(
        SVC(), GRID, X[:61], y[:61], X[61:], repeats=2, leave_one_out=True
    )

    results = more.run(out=tmp_path / "store")

    assert (results.loo_errors >= 0).all()
    assert select(results, "loo_error").estimate == results.loo_errors.min() / 61


def test_covalidate__excluded_rows_are_no_test_rows(table):
    X, y = table

    results = covalidate(
        SVC(), {"C": [1.0]}, X[:61], y[:61], X[50:], repeats=2, pool_labels=y[50:],
        duplicates="exclude",
    )  # fmt: skip

    assert int(results.test_rows) == 439


def test_covalidate__never_certifies_and_says_so(table):
    choice = select(run(table, picked=True), "max_dt_e")

    assert not choice.certificate.certified
    assert "estimate, not a bound" in choice.certificate.reasons[0]
    assert any("active learning" in reason for reason in choice.certificate.reasons)


def test_covalidate__a_store_is_of_the_pool_labels_that_were_counted(table, tmp_path):
    labels = table[1][61:]
    first = run(table, pool_labels=labels, out=tmp_path)

    with pytest.raises(StoreMismatchError, match="pool_labels"):
        run(table, pool_labels=labels[::-1], out=tmp_path)
    assert run(table, pool_labels=labels, out=tmp_path).equals(first)


def test_covalidate__labels_may_be_known_for_some_rows_only(table):
    labels = np.ma.masked_array(table[1][61:], mask=np.arange(439) >= 100)

    some = run(table, pool_labels=labels)

    assert int(some.test_rows) == 100
    model = SVC(C=0.1, gamma=0.01).fit(table[0][:61], table[1][:61])
    wrong = model.predict(table[0][61:161]) != table[1][61:161]
    assert int(some.full_test_errors.sel(C=0.1, gamma=0.01)) == int(wrong.sum())


def test_covalidate__labels_that_were_never_seen_are_errors(table):
    labels = np.full(439, "z")

    errors = run(table, pool_labels=labels).full_test_errors

    assert (errors == 439).all()


def test_covalidate__takes_an_estimator_as_it_is(table):
    X, y = table
    model = LogisticRegression(max_iter=1000)

    results = covalidate(model, None, X[:60], y[:60], X[60:], repeats=2)

    assert results.sizes["candidate"] == 1
    assert results.disagreements.shape == (1, 2)


def test_covalidate__a_half_may_lack_a_class(table):
    X, y = table
    rare = np.where(np.arange(30) == 0, "z", y[:30])

    results = covalidate(SVC(), {"C": [1.0]}, X[:30], rare, X[60:], repeats=3)

    assert (results.status == 0).all()
    assert "3 of 6 halves lack a class" in results.attrs["remarks"]


def test_select__says_where_halves_differ_more_than_models_can(table):
    X, _ = table
    # Halves of two rows: each model knows one class, and the two never agree.
    results = covalidate(SVC(), None, X[:2], ["a", "b"], X[60:], repeats=2)

    choice = select(results, "dis_error")

    assert choice.estimate == 0.5
    assert "more than the 0.5" in choice.remarks[0]


def test_covalidate__cubes_are_saved_and_opened(table, tmp_path):
    results = run(table)

    save_results(results, tmp_path / "cube.zarr")

    opened = open_results(tmp_path / "cube.zarr")
    one, other = select(opened, "two_fold_cv"), select(results, "two_fold_cv")
    assert (one.candidate, one.estimate) == (other.candidate, other.estimate)
    assert opened[names.DISAGREEMENTS].dims == ("C", "gamma", "repeat")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "`repeats` must be"),
        ({"criterion": "cv_bound"}, "`criterion` must be one of co-validation"),
        ({"criterion": "best"}, "`criterion` must be one of"),
        ({"pool_labels": ["a"]}, "`pool_labels` must have one label for each"),
        ({"criterion": "true_error"}, "needs labels of pool rows"),
        ({"pool": None}, "`pool` must hold unlabeled rows"),
    ],
)
def test_plan_covalidation__refuses_what_cannot_be(table, options, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        plan_covalidation(SVC(), GRID, X[:60], y[:60], **{"pool": X[60:]} | options)


@pytest.mark.cluster
def test_covalidate__counts_are_the_same_on_a_cluster(table, processes):
    local = run(table, leave_one_out=True)
    remote = run(table, leave_one_out=True, client=processes)
    for name in ("disagreements", "train_errors", "fold_errors", "loo_errors"):
        assert remote[name].equals(local[name])


@pytest.mark.parametrize("missing", [np.nan, None])
def test_covalidate__missing_labels_of_pool_rows_are_not_known(table, missing):
    X, y = table
    labels = y[61:].astype(object)
    labels[::3] = missing
    model = SVC(C=1.0).fit(X[:61], y[:61])
    wrong = model.predict(X[61:]) != y[61:]
    wrong[::3] = False

    results = covalidate(
        SVC(), {"C": [1.0]}, X[:61], y[:61], X[61:], repeats=2, pool_labels=labels
    )

    assert int(results.test_rows) == len(wrong[1::3]) + len(wrong[2::3])
    assert results.full_test_errors.item() == wrong.sum()


def test_covalidate__labels_of_pool_rows_are_as_those_of_labeled_rows(table):
    with pytest.raises(TypeError, match="`pool_labels` must be of the type of `y`"):
        run(table, pool_labels=np.arange(439))


@pytest.mark.parametrize("option", ["cv", "groups", "prior", "repeat"])
def test_covalidate__names_the_option_that_it_lacks(table, option):
    with pytest.raises(TypeError, match=f"covalidate has no option `{option}`.*`rep"):
        run(table, **{option: 3})
