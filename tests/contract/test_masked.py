"""Masked values, as netCDF4 and Dask return them: a gap, never what lies under it."""

import dask.array as da
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import dsel
from dsel.least_squares import (
    KernelLeastSquares,
    KernelLeastSquaresClassifier,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier
from dsel.search import predict_pool

RNG = np.random.default_rng(0)
A = RNG.normal(size=(400, 3))
GAPS = RNG.random(A.shape) < 0.05
GAPS[0, 1] = True
HOLES = np.where(GAPS, np.nan, A)
MASKED = np.ma.masked_array(np.where(GAPS, -9999.0, A), GAPS)
WHOLE = np.ma.masked_array(np.where(GAPS, -9999, (10 * A).astype(int)), GAPS)
TRUTHS = np.ma.masked_array(A > 0, GAPS)
Y = np.where(A[:, 0] + RNG.normal(size=400) > 0, "a", "b")
NUMBERS = A[:, 0]
NO_LABEL = np.arange(400) == 5


def lazy(rows):
    return da.from_array(rows, chunks=(100, 3))


def made_by_blocks(rows):
    """Return a Dask array whose blocks are masked, and whose meta does not say so."""
    numbers = da.from_array(np.arange(400), chunks=100)
    return numbers.map_blocks(
        lambda block: rows[block], new_axis=1, chunks=(numbers.chunks[0], (3,)),
        dtype=rows.dtype, meta=np.empty((0, 0), rows.dtype),
    )  # fmt: skip


POOLS = {
    "numpy": lambda rows: rows,
    "Dask": lazy,
    "Dask, by blocks": made_by_blocks,
    "masked by Dask": lambda rows: da.ma.masked_array(lazy(rows.data), lazy(rows.mask)),
    "list of rows": list,
}


@pytest.mark.parametrize("kind", POOLS)
def test_open_pool__takes_masked_numbers_for_gaps(kind):
    pool = dsel.open_pool(POOLS[kind](MASKED))
    np.testing.assert_array_equal(pool.as_array().compute(), HOLES)


@pytest.mark.parametrize("rows", [WHOLE, TRUTHS], ids=["int", "bool"])
@pytest.mark.parametrize("kind", POOLS)
def test_open_pool__refuses_masked_whole_numbers(kind, rows):
    with pytest.raises(ValueError, match=r"`pool`.* masked in row 0.*pool\.astype"):
        dsel.open_pool(POOLS[kind](rows)).reduce(lambda X, _: X.sum(), np.add)


@pytest.mark.parametrize("rows", [WHOLE, MASKED], ids=["int", "float"])
def test_open_pool__takes_masked_arrays_without_a_gap(rows):
    whole = np.ma.masked_array(rows.data, False)
    pool = dsel.open_pool(whole)
    assert pool.dtype == rows.dtype
    np.testing.assert_array_equal(pool.as_array().compute(), rows.data)


def counts(X, pool):
    plan = dsel.plan_search(
        HistGradientBoostingClassifier(max_iter=5), {"max_depth": [2, 3]}, X, Y, pool,
        cv=3, random_state=0, prune=False,
    )  # fmt: skip
    return plan.run(n_jobs=1).results


@pytest.mark.parametrize("kind", ["numpy", "Dask", "list of rows"])
def test_plan_search__counts_masked_rows_as_those_with_nan(kind):
    make = POOLS[kind]
    found = counts(make(MASKED), make(MASKED))
    for name in ("fold_errors", "outer_disagreements", "equal_rows"):
        assert (found[name] == counts(HOLES, HOLES)[name]).all()


FITS = {
    "search": lambda X, y: dsel.SemiSupervisedSearchCV(
        LogisticRegression(), {"C": [1.0]}, cv=2
    ).fit(X, y),
    "certify_selection": lambda X, y: dsel.certify(LogisticRegression(), X, y, cv=2),
    "covalidate": lambda X, y: dsel.covalidate(
        LogisticRegression(), {"C": [1.0]}, X, y, A, repeats=1
    ),
    "nonconformity": lambda X, y: NonconformityClassifier(
        LogisticRegression(), {"C": [1.0]}
    ).fit(X, y),
    "MCPL": lambda X, y: SemiSupervisedLDA().fit(X, y),
    "classifier": lambda X, y: KernelLeastSquaresClassifier().fit(X, y),
}
TARGETS = {
    "least squares": lambda X, y: KernelLeastSquares().fit(X, y),
    "LeastSquaresSearch": lambda X, y: LeastSquaresSearch([1.0], [0.1]).fit(X, y),
    "streamed": lambda X, y: StreamedLeastSquaresSearch(
        [1.0], [0.1], n_centers=9, random_state=0
    ).fit(X, y),
    "streamed, lazy": lambda X, y: StreamedLeastSquaresSearch(
        [1.0], [0.1], n_centers=9, random_state=0
    ).fit(lazy(X), da.from_array(y, chunks=100)),
}


@pytest.mark.parametrize("fit", [*FITS.values(), *TARGETS.values()])
def test_fit__of_what_takes_no_gaps_names_nan(fit):
    y = Y if fit in FITS.values() else NUMBERS
    with pytest.raises(ValueError, match=r"(?i)nan"):
        fit(MASKED, y)


@pytest.mark.parametrize("fit", [*FITS.values(), *TARGETS.values()])
def test_fit__refuses_masked_whole_numbers(fit):
    y = Y if fit in FITS.values() else NUMBERS
    with pytest.raises(ValueError, match="masked"):
        fit(WHOLE, y)


@pytest.mark.parametrize("labels", [Y, (Y == "a").astype(int), Y == "a"])
@pytest.mark.parametrize("fit", FITS.values())
def test_fit__refuses_rows_whose_label_is_masked(fit, labels):
    with pytest.raises(ValueError, match=r"`y` must hold a label .*row 5 is masked"):
        fit(A, np.ma.masked_array(labels, NO_LABEL))
    with pytest.raises(ValueError, match=r"`y` must hold a label .*row 5 is masked"):
        fit(A, list(np.ma.masked_array(labels, NO_LABEL)))


@pytest.mark.parametrize("fit", TARGETS.values())
def test_fit__refuses_rows_whose_target_is_masked(fit):
    with pytest.raises(ValueError, match=r"`y` must hold .*row 5 is masked"):
        fit(A, np.ma.masked_array(NUMBERS, NO_LABEL))


def test_predict__takes_masked_numbers_for_gaps(tmp_path):
    search = dsel.SemiSupervisedSearchCV(
        HistGradientBoostingClassifier(max_iter=5), {"max_depth": [2]}, cv=2
    ).fit(HOLES, Y)
    expected = search.predict(HOLES)
    assert (search.predict(MASKED) == expected).all()
    assert (search.predict(lazy(MASKED)) == expected).all()
    assert (search.predict_proba(MASKED) == search.predict_proba(HOLES)).all()
    predict_pool(search, MASKED, tmp_path / "labels")
    [(_, codes)] = dsel.search.read_rows(tmp_path / "labels", "label")
    assert (search.classes_[codes] == expected).all()


@pytest.mark.parametrize(
    "name", sorted(FITS.keys() - {"certify_selection", "covalidate"})
)
def test_predict__of_what_takes_no_gaps_names_nan(name):
    model = FITS[name](A, Y)
    with pytest.raises(ValueError, match=r"(?i)nan"):
        model.predict(MASKED)
    with pytest.raises(ValueError, match="masked"):
        model.predict(WHOLE)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_fit__refuses_weights_that_are_missing(bad):
    weights = np.ones(400)
    weights[7] = bad
    masked = np.ma.masked_array(np.ones(400), np.arange(400) == 7)
    search = dsel.SemiSupervisedSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2)
    for each in (weights, masked):
        with pytest.raises(ValueError, match=r"`sample_weight` .* row 7 is"):
            dsel.plan_search(
                search.estimator, search.param_grid, A, Y, cv=2,
                fit_params={"sample_weight": each},
            )  # fmt: skip


class MasksHalf(LogisticRegression):
    def predict(self, X):
        return np.ma.array(super().predict(X), mask=np.arange(len(X)) % 2 == 0)


@pytest.mark.parametrize("learner", [MasksHalf(), lambda X, y: MasksHalf().fit(X, y)])
def test_certify__refuses_masked_predictions_of_an_estimator_and_a_function(learner):
    with pytest.raises(ValueError, match=r"must return a label .*, got masked ones"):
        dsel.certify(learner, A, Y, random_state=0)
