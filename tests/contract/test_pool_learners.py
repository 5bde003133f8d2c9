"""Learners that are given a part of the pool, which may hold the labeled records."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import dsel
from tests.contract.runs import CERTIFICATES

RNG = np.random.default_rng(11)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)
FRESH = RNG.normal(size=(3_000, 4))
HOLDS = np.concatenate([FRESH[:1_000], X, FRESH[1_000:]])


class OfPool(ClassifierMixin, BaseEstimator):
    """A linear model that centers by the pool, as a transductive learner may."""

    def __init__(self, C=1.0, reads="array"):
        self.C = C
        self.reads = reads

    def fit(self, X, y, pool=None):
        self.mean_ = np.zeros(X.shape[1])
        if pool is not None:
            rows = np.asarray(pool)
            if self.reads == "dask":
                assert isinstance(pool.to_dask_array(lengths=True), da.Array)
                rows = pool.to_dask_array().compute(scheduler="sync")
            self.mean_ = rows.mean(axis=0)
        self.model_ = LogisticRegression(C=self.C).fit(X - self.mean_, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X - self.mean_)


def run(pool, estimator=None, **options):
    options = {"cv": 3, "random_state": 0, **options}
    plan = dsel.plan_search(
        estimator or OfPool(), {"C": [0.1, 1.0]}, X, Y, pool, **options
    )
    return plan.run(n_jobs=1)


RECORDS = {
    "array": HOLDS,
    "float32": HOLDS.astype(np.float32),
    "frame": pd.DataFrame(HOLDS),
    "Dask": da.from_array(HOLDS, chunks=(500, 4)),
    "CSR": sparse.csr_matrix(HOLDS),
}


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_certificate__is_withheld_where_learners_got_labeled_records(certificate):
    outcome = run(HOLDS, certificate=certificate)
    for made in outcome.certificates.values():
        assert not made.certified
        assert made.reasons[0].startswith("A3 is not known to hold: ")
        assert "by their index or id, never by their values" in made.reasons[0]
        assert made.headline().startswith("No guarantee, since A3 is not known")
    # Nor is what is read out of the counts later.
    again = dsel.select(outcome.results)
    assert not again.certificate.certified


@pytest.mark.parametrize("kind", RECORDS)
def test_certificate__is_withheld_for_pools_of_any_kind(kind):
    assert "A3 is not known" in run(RECORDS[kind]).certificate.reasons[0]


@pytest.mark.parametrize("certificate", CERTIFICATES)
def test_certificate__holds_for_fresh_rows_and_where_it_was_declared(certificate):
    assert run(FRESH, certificate=certificate).certificate.certified
    declared = dsel.open_pool(HOLDS, other_records=True)
    made = run(declared, certificate=certificate).certificate
    assert made.certified
    [a3] = [each for each in made.assumptions if each.name == "A3"]
    assert "declared to hold other records" in a3.reason


def test_certificate__of_learners_without_a_pool_is_not_withheld():
    assert run(HOLDS, LogisticRegression()).certificate.certified


def test_certificate__holds_where_records_were_taken_out_by_their_numbers():
    pool = dsel.open_pool(HOLDS).excluding(np.arange(1_000, 1_200))
    assert run(pool).certificate.certified


def test_report_and_loss__are_withheld_as_the_certificate_is():
    outcome = run(HOLDS, report=True)
    assert "A3 is not known" in outcome.certified_report().reasons[0]


def test_certify__withholds_the_certificate_of_a_pool_learner():
    outcome = dsel.certify(OfPool(), X, Y, HOLDS, cv=3, random_state=0)
    assert "A3 is not known" in outcome.certificate.reasons[0]


def test_fit__withholds_the_certificate_and_takes_the_declaration():
    search = dsel.SemiSupervisedSearchCV(OfPool(), {"C": [1.0]}, cv=3, random_state=0)
    assert not search.fit(X, Y, pool=HOLDS).certificate_.certified
    declared = dsel.open_pool(HOLDS, other_records=True)
    assert search.fit(X, Y, pool=declared).certificate_.certified


@pytest.mark.parametrize("asked", ["cv_error", "max_dt_e"])
def test_estimates__tell_that_learners_met_labeled_records(asked):
    options = {} if asked == "cv_error" else {"cv": 2}
    outcome = run(HOLDS, criterion=asked, **options)
    assert any("A3 is not known" in why for why in outcome.certificate.reasons)
    told = run(FRESH, criterion=asked, **options).certificate.reasons
    assert not any("A3 is not known" in why for why in told)


def test_out__of_a_plan_without_the_declaration_is_another_plan(tmp_path):
    options = {"cv": 3, "random_state": 0}
    rows = OfPool(), {"C": [1.0]}, X, Y
    dsel.plan_search(*rows, HOLDS, **options).run(out=tmp_path, n_jobs=1)
    declared = dsel.open_pool(HOLDS, other_records=True)
    with pytest.raises(dsel.errors.StoreMismatchError, match="other_records"):
        dsel.plan_search(*rows, declared, **options).run(out=tmp_path)


def test_open_pool__keeps_and_checks_the_declaration():
    pool = dsel.open_pool(HOLDS, columns=list("abcd"), other_records=True)
    assert dsel.open_pool(pool).other_records
    assert pool.excluding([3]).with_columns(["b", "a"]).other_records
    assert not dsel.open_pool(pool, other_records=False).other_records
    with pytest.raises(TypeError, match="`other_records` must be True, False or None"):
        dsel.open_pool(HOLDS, other_records="yes")


@pytest.mark.parametrize("kind", RECORDS)
def test_pool__is_an_array_and_a_dask_array_for_learners(kind):
    pool = dsel.open_pool(RECORDS[kind]).excluding([0, 2])
    expected = np.delete(HOLDS, [0, 2], axis=0).astype(pool.dtype)
    np.testing.assert_array_equal(np.asarray(pool), expected)
    assert np.asarray(pool, dtype=np.float32).dtype == np.float32
    rows = pool.to_dask_array().compute(scheduler="sync")
    rows = rows.toarray() if sparse.issparse(rows) else rows
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("reads", ["array", "dask"])
def test_fit__of_a_learner_reads_the_pool_as_it_likes(reads):
    outcome = run(FRESH, OfPool(reads=reads))
    assert outcome.results.status.values.tolist() == [0, 0]


@pytest.mark.cluster
@pytest.mark.parametrize("reads", ["array", "dask"])
def test_fit__on_workers_reads_the_pool_as_it_likes(reads, processes):
    plan = dsel.plan_search(
        OfPool(reads=reads), {"C": [0.1, 1.0]}, X, Y, FRESH, cv=3, random_state=0
    )
    assert plan.run(processes).results.status.values.tolist() == [0, 0]
