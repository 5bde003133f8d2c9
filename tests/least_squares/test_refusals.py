"""What the estimators and searches refuse, and in which words."""

import re
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

import dsel.losses
from dsel.least_squares import (
    KernelLeastSquares,
    LeastSquaresSearch,
    StreamedLeastSquaresSearch,
)

X, Y = np.linspace(-2, 2, 33)[:, np.newaxis], np.linspace(-1, 1, 33)
TWICE = {"X": np.array([[0.0], [0.0], [1.0]]), "y": [1.0, 2.0, 3.0]}
MODEL = KernelLeastSquares
SEARCH = partial(LeastSquaresSearch, widths=[0.3, 1.0], regularizations=[1e-3, 1.0])
CERTIFIED = partial(SEARCH, penalty="rkhs", certificate="nested")
STREAMED = partial(
    StreamedLeastSquaresSearch, widths=[0.5], regularizations=[0.1], n_centers=10
)
REFUSED = [
    (MODEL, {"width": 0.0}, {}, "`width` must be positive and finite, got 0.0"),
    (MODEL, {"width": -1}, {}, "`width` must be positive"),
    (MODEL, {"regularization": -0.5}, {}, "`regularization` must be >= 0 and finite"),
    (MODEL, {"penalty": "l1"}, {}, "`penalty` must be one of 'coefficients', 'rkhs'"),
    (MODEL, {"n_centers": 0}, {}, "`n_centers` must be >= 1, got 0"),
    (MODEL, {"centers": np.zeros((4, 3))}, {}, "`centers` must have the 1 columns of"),
    (MODEL, {"centers": np.zeros((4, 1)), "n_centers": 4}, {}, "set one of both"),
    *((MODEL, {"regularization": 0.0, **options}, TWICE, "kernel matrix is singular")
      for options in ({}, {"penalty": "rkhs"}, {"centers": X[:4]})),
    (SEARCH, {"widths": []}, {}, "`widths` must be a list of at least one number"),
    (SEARCH, {"widths": ["a"]}, {}, "`widths` must be a positive number"),
    (SEARCH, {"regularizations": [-1.0]}, {}, "`regularizations` must be >= 0 and fin"),
    (SEARCH, {"regularizations": [[1.0, 2.0]]}, {}, "`regularizations` must be a list"),
    (SEARCH, {"regularizations": [1.0, None]}, {}, "`regularizations` must be a numb"),
    (SEARCH, {"penalty": "l1"}, {}, "`penalty` must be one of"),
    (SEARCH, {"criterion": "extra_sample"}, {}, "pass them to `fit` as `X_extra`"),
    (SEARCH, {"criterion": "kfold", "cv": None}, {}, "`cv` must be a number of folds"),
    (SEARCH, {"cv": 34}, {}, "`cv` must be in [2, 33], got 34"),
    (SEARCH, {}, {"X_extra": X, "y_extra": Y[:-1]}, "`y_extra` must have the shape (3"),
    (SEARCH, {}, {"X_extra": X}, "`X_extra` and `y_extra` belong together"),
    (SEARCH, {}, {"y": np.ma.masked_array(Y, mask=np.arange(33) == 3)}, "row 3 is mas"),
    (SEARCH, {}, {"y": pd.Series(np.where(Y > 0, "up", "down"))},
     "for classes search with KernelLeastSquaresClassifier"),
    (SEARCH, {}, {"y": np.arange(33).astype(str)}, "hold numbers, got array(['0'"),
    (SEARCH, {}, {"y": np.arange(33).astype(str).astype(object)}, "must hold numbers"),
    *((kind, {}, {"y": [*first, *Y[2:]]}, words) for kind in (MODEL, SEARCH, STREAMED)
      for first, words in [((1j, 2.0), "`y` must hold numbers"),
                           (({}, 2.0), "`y` must hold numbers"),
                           ((True, 10**400), "`y` must hold numbers"),
                           ((1.0, pd.NA), "that of row 1 is <NA>")]),
    (MODEL, {}, {"y": np.array([*Y[:-1], np.inf], object)}, "that of row 32 is inf"),
    (SEARCH, {}, {"y": np.where(Y < -0.7, np.nan, Y)}, "that of row 0 is nan; leave"),
    (SEARCH, {}, {"y": np.where(X[:, 0] == 0, np.inf, Y)}, "of row 16 is inf"),
    (SEARCH, {}, {"y": Y[:-1]}, "a target for each row of `X`, got the shapes (32,)"),
    (CERTIFIED, {"certificate": "cv_bound"}, {}, "`certificate` must be one of 'nest"),
    (CERTIFIED, {"penalty": "coefficients"}, {}, "needs penalty='rkhs', got 'coeffi"),
    (CERTIFIED, {"criterion": "gcv"}, {}, "`criterion` 'gcv' is for estimates"),
    (CERTIFIED, {"cv": None}, {}, "`cv` must be a number of folds for certificate='n"),
    (CERTIFIED, {"cv": TimeSeriesSplit(3)}, {}, "certificate='nested', got a Time"),
    (CERTIFIED, {"cv": 20}, {}, "`cv` must leave at least 4 labeled rows to every"),
    (CERTIFIED, {"widths": "median"}, {}, "`widths` must be an array or a list"),
    (CERTIFIED, {"widths": [0.5, "scale"]}, {}, "`widths` must be a positive number"),
    (CERTIFIED, {"regularizations": [0.0, 1e-13]}, {}, "must have one above 2.4e-13"),
    (CERTIFIED, {"loss": dsel.losses.recall(1)}, {}, "is for classifiers, and the"),
    (CERTIFIED, {"loss": 0.9}, {}, "`loss` must be a name, such as"),
    (CERTIFIED, {"delta": 0.9}, {}, "`delta` must be at most 0.5, got 0.9"),
    (CERTIFIED, {"deploy": "all_rows"}, {}, "`pool` is None; pass the pool"),
    (CERTIFIED, {"deploy": "best"}, {}, "`deploy` must be one of 'one_fold', 'all_r"),
    (CERTIFIED, {}, {"y": np.column_stack([Y, Y])}, "`y` must be one column for cert"),
    (SEARCH, {"loss": dsel.losses.beyond(1.0)}, {}, "`loss` is for certificate='nes"),
    (SEARCH, {"report": True}, {}, "`report` is for certificate='nested', got True"),
    (SEARCH, {"deploy": "one_fold"}, {}, "`deploy` is for certificate='nested'"),
    (SEARCH, {"delta": 0.1}, {}, "`delta` is for certificate='nested', got 0.1"),
    (SEARCH, {}, {"pool": X}, "`pool` is for certificate='nested'"),
    (SEARCH, {"cv": "five"}, {}, "`cv` must be"),
    (STREAMED, {}, {"y": np.where(X[:, 0] == 0, np.nan, Y)}, "of row 16 is nan"),
    (STREAMED, {"criterion": "kfold"}, {}, "`criterion` must be one of 'loo', 'gcv'"),
    (STREAMED, {"n_centers": 0}, {}, "`n_centers` must be >= 1, got 0"),
    (STREAMED, {"centers": np.zeros((3, 5))}, {}, "`centers` must have the 1 columns"),
    (STREAMED, {"centers": np.full((3, 1), np.nan)}, {}, "`centers` contains NaN"),
    (STREAMED, {"centers": np.zeros((0, 1))}, {}, "0 sample(s)"),
    (STREAMED, {"widths": [-1.0]}, {}, "`widths` must be positive"),
    (STREAMED, {"n_centers": 3}, {"X": da.from_array(X), "y": Y[:-1]},
     "`y` must have its rows"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "arguments", "words"), REFUSED)
def test_fit__refuses(kind, options, arguments, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        kind(**options).fit(**{"X": X, "y": Y, **arguments})
