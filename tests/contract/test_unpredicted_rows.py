"""Pool rows on which `predict` raises count as differences, and no fit is lost."""

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import dsel

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(200, 3)), RNG.normal(size=(2_000, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=200) > 0).astype(int)
MOST = max(X.max(), 2.5)
FIRST_VALUE = X[0, 0]
N_ABOVE = int((POOL[:, 0] > MOST).sum())
OPTIONS = {"random_state": 0, "n_jobs": 1}


class Raises(LogisticRegression):
    """Raises on rows such as a pipeline refuses that knows no value of a column."""

    def __init__(self, most=MOST, C=1.0):
        self.most = most
        super().__init__(C=C)

    def predict(self, X):
        if (np.asarray(X)[:, 0] > self.most).any():
            raise KeyError("unknown value")
        return super().predict(X)


class RaisesInRegression(LinearRegression):
    def predict(self, X):
        if (np.asarray(X)[:, 0] > MOST).any():
            raise KeyError("unknown value")
        return super().predict(X)


def certify(model, pool=POOL, y=Y, **options):
    return dsel.certify(model, X, y, pool, **options, **OPTIONS)


def differences(outcome):
    return outcome.results["outer_disagreements"].values


def test_rows__on_which_predict_raises_count_as_differences_of_all_models():
    assert 0 < N_ABOVE < 30
    outcome, without = certify(Raises()), certify(LogisticRegression())
    above = POOL[POOL[:, 0] > MOST]
    assert LogisticRegression().fit(X, Y).predict(above).all()  # models agree there
    assert (differences(outcome) == differences(without) + N_ABOVE).all()
    one_fold, all_rows = (outcome.certificates[n] for n in ("one_fold", "all_rows"))
    assert one_fold.bound == without.certificates["one_fold"].bound
    assert all_rows.certified
    assert all_rows.bound > without.certificates["all_rows"].bound


def test_rows__on_which_predict_raises_are_named_with_the_cause():
    first = int(np.argmax(POOL[:, 0] > MOST))
    text = " ".join(str(certify(Raises())).split())
    expected = f"`predict` raised on {N_ABOVE} pool rows (row {first}: KeyError: 'unk"
    assert expected in text
    assert "raised on" not in str(certify(LogisticRegression()))


class RaisesWithoutTheFirstRow(Raises):
    """Raises if it was trained without the first row, as one model of a fold is."""

    def fit(self, X, y):
        self.knows_first_ = bool((np.asarray(X)[:, 0] == FIRST_VALUE).any())
        return super().fit(X, y)

    def predict(self, X):
        if self.knows_first_:
            return LogisticRegression.predict(self, X)
        return super().predict(X)


def test_rows__on_which_one_model_raises_count_as_differences_of_this_one():
    outcome = certify(RaisesWithoutTheFirstRow())
    more = differences(outcome) - differences(certify(LogisticRegression()))
    assert sorted(more.ravel()) == [0, 0, 0, 0, N_ABOVE]
    text = " ".join(str(outcome).split())
    assert "counted as if a model that raised differed from all others there" in text
    assert "all labels may be larger than it would be" in text


def test_rows__on_which_predict_raises_do_not_depend_on_chunks():
    one, other = (
        differences(certify(Raises(), da.from_array(POOL, chunks=(n, 3))))
        for n in (2_000, 70)
    )
    assert one.tolist() == other.tolist()


def test_regression__counts_them_as_far_apart():
    y = X[:, 0] + RNG.normal(size=200)
    counts, without = (
        certify(model, y=y).results["outer_deviations"].values
        for model in (RaisesInRegression(), LinearRegression())
    )
    # The last bin is that of distances beyond all edges.
    assert (counts[:, -1] == without[:, -1] + N_ABOVE).all()
    assert "raised on" in str(certify(RaisesInRegression(), y=y))


def test_models__that_raise_on_most_pool_rows_keep_the_bound_of_one_fold():
    far = np.r_[POOL, POOL[:1_500] * [0.0, 1.0, 1.0] + [MOST + 1.0, 0.0, 0.0]]
    outcome = certify(Raises(), far)
    assert set(outcome.certificates) == {"one_fold"}
    # The rows beyond are another population, so that the number is no bound here.
    assert outcome.certificates["one_fold"].number < 0.5
    text = " ".join(str(outcome).split())
    assert "the model trained on all labels has no bound, since models cannot" in text
    assert "KeyError: 'unknown value'" in text


def test_search__by_the_bounds_of_all_candidates_names_the_rows_and_the_cause():
    plan = dsel.plan_search(
        Raises(), {"C": [0.1, 1.0]}, X, Y, POOL, certificate="cv_bound", random_state=0
    )
    with pytest.raises(ValueError, match=r"predict pool rows .*KeyError: 'unk"):
        plan.run(n_jobs=1)
