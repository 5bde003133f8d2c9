"""A second `fit` replaces the first one whole, or leaves it whole."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dsel
from dsel.least_squares import KernelLeastSquares, LeastSquaresSearch
from dsel.mcpl import SemiSupervisedLDA
from dsel.nonconformity import NonconformityClassifier

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore")]

_RNG = np.random.default_rng(0)
X, POOL = _RNG.normal(size=(120, 4)), _RNG.normal(size=(300, 4))
NUMBERS = X @ np.arange(4.0) + 0.1 * _RNG.normal(size=120)
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(site=np.arange(120) // 2)
CLASSIFIERS = {"estimator": LogisticRegression(), "param_grid": {"C": [0.1, 1.0]}}
REGRESSORS = {"estimator": Ridge(), "param_grid": {"alpha": [0.1, 1.0]}}

FITS = {
    "classes": (CLASSIFIERS, (X, Y), {}),
    "pool": (CLASSIFIERS, (X, Y, POOL), {}),
    "numbers": (REGRESSORS, (X, NUMBERS), {}),
    "names": (CLASSIFIERS, (FRAME[["a", "b"]], Y), {}),
    "groups": (CLASSIFIERS, (FRAME, Y), {"groups": "site"}),
    "report": ({**CLASSIFIERS, "report": True}, (X, Y), {}),
    "report by": ({**CLASSIFIERS, "report_by": "site"}, (FRAME, Y), {}),
    "queries": ({**CLASSIFIERS, "n_queries": 5}, (X, Y, POOL), {}),
    "baseline": (CLASSIFIERS, (X, Y, POOL), {"baseline": "largest class"}),
    "cv_bound": ({**CLASSIFIERS, "certificate": "cv_bound"}, (X, Y, POOL), {}),
}
DEFAULTS = {"report": False, "report_by": None, "n_queries": 0, "certificate": None}


def fit(search, name):
    params, data, options = FITS[name]
    return search.set_params(**{**DEFAULTS, **params}).fit(*data, **options)


def new_search():
    return dsel.SemiSupervisedSearchCV(**CLASSIFIERS, random_state=0)


def state(search):
    """Return the names of what was fitted, and what shows whose fit it is."""
    return (
        set(vars(search)),
        search.get_params(deep=False)["certificate"],
        (
            search.choice_,
            getattr(search, "classes_", np.array([])).tolist(),
            getattr(search, "feature_names_in_", np.array([])).tolist(),
            search.n_features_in_,
        ),
    )


@pytest.mark.parametrize("second", FITS)
@pytest.mark.parametrize("first", ["classes", "numbers", "groups"])
def test_fit__again_is_as_the_first_time(first, second):
    again = fit(fit(new_search(), first), second)
    assert state(again) == state(fit(new_search(), second))


def test_fit__that_fails_leaves_the_earlier_one():
    def fails(X, y):
        raise RuntimeError("no fit")

    search = fit(new_search(), "names")
    before, predicted = state(search), search.predict(FRAME[["a", "b"]])
    for call, error in (
        (partial(search.fit, FRAME, Y, groups="site", out=3), TypeError),
        (partial(search.fit, FRAME[["c", "d"]], Y[:7]), ValueError),
        (partial(search.fit, X, Y, POOL, sample_weight="a"), (TypeError, ValueError)),
    ):
        with pytest.raises(error):
            call()
        assert state(search) == before
        assert (search.predict(FRAME[["a", "b"]]) == predicted).all()


@pytest.mark.parametrize(
    ("estimator", "first", "second"),
    [
        (
            LeastSquaresSearch([1.0], [0.1], penalty="rkhs", random_state=0),
            {"certificate": "nested"},
            {"certificate": None},
        ),
        (NonconformityClassifier(LogisticRegression(), {"C": [1.0]}), {}, {}),
        (SemiSupervisedLDA(), {}, {}),
        (KernelLeastSquares(), {"n_centers": 9}, {"n_centers": None}),
    ],
)
def test_fit__again_of_other_estimators(estimator, first, second):
    y = NUMBERS if isinstance(estimator, KernelLeastSquares | LeastSquaresSearch) else Y
    more = (POOL,) if isinstance(estimator, SemiSupervisedLDA) else ()
    estimator.set_params(**first).fit(FRAME[list("abcd")], y, *more)
    estimator.set_params(**second).fit(X, y, *more)
    fresh = type(estimator)(**estimator.get_params(deep=False)).fit(X, y, *more)
    assert set(vars(estimator)) == set(vars(fresh))
    with pytest.raises(ValueError, match="120"):
        estimator.fit(X, y[:7], *more)
    assert set(vars(estimator)) == set(vars(fresh))
    assert estimator.predict(X).shape == (120,)
