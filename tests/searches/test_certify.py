import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.bounds import select_then_certify
from dsel.report import report_html
from dsel.searches.certify import certifying_split


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    return X[order], y[order]


def test_search__certifies_by_the_split_and_the_disagreement(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"gamma": [0.001]}, cv=3, certify_rows=0.2, random_state=4
    ).fit(X[:500], y[:500], pool=X[500:])
    split = certifying_split(500, 0.2, seed=4)
    winner = SVC(gamma=0.001).fit(X[split.train_rows], y[split.train_rows])
    final = SVC(gamma=0.001).fit(X[:500], y[:500])
    expected = select_then_certify(
        int((winner.predict(X[split.test_rows]) != y[split.test_rows]).sum()),
        100,
        int((winner.predict(X[500:]) != final.predict(X[500:])).sum()),
        len(X) - 500,
        delta=0.05,
    )
    assert search.certificate_.unclipped == pytest.approx(float(expected.bound))
    assert (search.predict(X[500:]) == final.predict(X[500:])).all()


def test_search__certifies_by_rows_that_the_selection_never_saw(digits, tmp_path):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        SVC(),
        {"C": [1.0, 10.0], "gamma": [1e-4, 1e-3]},
        cv=5,
        certify_rows=0.2,
        random_state=0,
    )
    search.fit(X[:600], y[:600], pool=X[600:], out=tmp_path)
    assert search.certificate_.criterion == "select_then_certify"
    assert search.certificate_.certified
    assert int(search.results_.n_labeled) == 480
    assert 1 - search.score(X[600:], y[600:]) <= search.certificate_.bound


def test_select__refuses_to_certify_with_rows_of_the_selection(digits):
    X, y = digits
    plan = dsel.plan_search(
        SVC(), {"gamma": [1e-3]}, X[:200], y[:200], X[500:], cv=5, random_state=0,
        criterion="cv_bound",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"5 folds that all.*CV\(certify_rows=0.2"):
        dsel.select(plan.run(), "select_then_certify")


class Unfit(SVC):
    def fit(self, X, y):
        raise AssertionError("nothing may be fitted")


def certified(learner, X, y, pool, *, out=None, pool_labels=None, **options):
    options = {"cv": 3, "certify_rows": 0.2, "random_state": 0, **options}
    grid = {"gamma": [1e-4, 1e-3, 1e-2]}
    search = dsel.SemiSupervisedSearchCV(learner, grid, **options)
    return search.fit(X, y, pool=pool, out=out, pool_labels=pool_labels)


@pytest.mark.parametrize(
    "rows", [sparse.csr_matrix, sparse.coo_array, pd.DataFrame, np.ndarray.tolist]
)
def test_certify_rows__takes_rows_of_every_kind(digits, rows):
    X, y = digits
    as_array = certified(SVC(), X[:300], y[:300], X[300:900])
    found = certified(SVC(), rows(X[:300]), y[:300], rows(X[300:900]))
    assert found.certificate_.unclipped == as_array.certificate_.unclipped


@pytest.mark.parametrize(
    ("pool", "options", "message"),
    [
        (False, {}, "`certify_rows` needs a pool"),
        (True, {"certificate": "best_fold"}, "must be None or 'select_then_certify'"),
        (True, {"criterion": "cv_bound"}, "needs unlabeled rows"),
        (True, {"reserve": 2.0}, "`reserve`"),
        (True, {"pool_labels": [1, 2]}, "`pool_labels`"),
    ],
)
def test_certify_rows__refuses_before_anything_is_fitted(
    digits, pool, options, message
):
    X, y = digits
    with pytest.raises(ValueError, match=message):
        certified(Unfit(), X[:300], y[:300], X[300:900] if pool else None, **options)


def test_certify_rows__honours_reserve_and_labels_of_the_pool(digits):
    X, y = digits
    found = certified(
        SVC(), X[:300], y[:300], X[300:900], pool_labels=y[300:900], reserve=0.1
    )
    part = found.certificate_results_
    wrong = found.predict(X[300:900]) != y[300:900]
    assert dsel.select(part, "true_error").estimate == wrong.mean()
    assert part.dsel.spent.attrs["reserve"] == 0.1


def test_certify_rows__keeps_the_certificate_in_the_cube_of_the_search(
    digits, tmp_path
):
    X, y = digits
    for _ in range(2):  # a finished run says the same again
        found = certified(SVC(), X[:300], y[:300], X[300:900], out=tmp_path)
        cube = dsel.open_results(tmp_path)
        assert cube.sizes["gamma"] == 3
        kept = dsel.select(cube).certificate
        assert kept.to_json() == found.certificate_.to_json()
        assert dsel.select(cube).params == found.best_params_
    assert not dsel.select(cube, certificate="holdout_bound").certificate.certified
    with pytest.raises(ValueError, match="was made for gamma"):
        dsel.select(cube, delta=0.01)


def test_certify_rows__has_a_report_with_the_grid(digits, tmp_path):
    pytest.importorskip("matplotlib")
    X, y = digits
    found = certified(SVC(), X[:300], y[:300], X[300:900], out=tmp_path)
    page = report_html(dsel.open_results(tmp_path))
    assert "Error at most" in page
    assert found.certificate_.reading().split()[-1] in page
    assert page.count("gamma=0.0") >= 3


def test_search__cuts_labeled_dask_frames_for_certifying_rows(digits):
    X, y = digits
    frame = pd.DataFrame(X[:300]).add_prefix("pixel ")
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [1.0]}, cv=3, certify_rows=0.2, random_state=0
    )
    expected = search.fit(X[:300], y[:300], pool=X[300:]).certificate_.bound
    lazy = dd.from_pandas(frame, npartitions=2)
    labels = dd.from_pandas(pd.Series(y[:300]), npartitions=3)
    assert search.fit(lazy, labels, pool=X[300:]).certificate_.bound == expected


def test_search__takes_dask_rows_whose_number_is_not_known(digits):
    X, y, pool = digits[0][:150], digits[1][:150], digits[0][150:400]
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [0.1, 1.0]}, certify_rows=0.4, cv=3, random_state=0,
        duplicates="keep",
    )  # fmt: skip
    expected = search.fit(X, y, pool=pool).certificate_
    mask = da.ones(len(y), dtype=bool, chunks=40)
    rows = da.from_array(X, chunks=(40, X.shape[1]))[mask]
    search.fit(rows, da.from_array(y, chunks=40)[mask], pool=pool)
    assert search.certificate_ == expected
    search.set_params(certify_rows=None).fit(X, y)
    assert not hasattr(search, "certificate_results_")


def test_deployed__refuses_a_choice_that_other_rows_certified(digits):
    X, y = digits
    search = dsel.SemiSupervisedSearchCV(
        SVC(), {"C": [1.0]}, cv=3, certify_rows=0.5, random_state=0
    ).fit(X[:200], y[:200], pool=X[200:])
    for choice in (search.choice_, dsel.select(search.results_)):
        with pytest.raises(ValueError, match="`best_estimator_` of the search"):
            search.plan_.deployed(choice)
