"""Types of what users pass and of what dsel passes on: rows, labels, models, options.

They are for annotations: a value is checked where it enters, and the message names the
argument. `dsel.arrays` has arrays by the type of their items. Aliases of public
functions are of `TypeAliasType`, so that `help` prints their names.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from dsel.arrays import ArrayLike, Estimator, Features, Integers
from dsel.checks import offer_public

if TYPE_CHECKING:
    import xarray as xr

    from dsel.data.pool import Pool

AnyArray: TypeAlias = NDArray[np.generic]
"""An array of one type that is not known: labels, classes, predictions, keys."""
RowNumbers: TypeAlias = Integers
"""Numbers of rows in the pool, or in the labeled table."""
SplitNumbers: TypeAlias = Integers
"""Numbers of splits in the plan: one for all rows and candidates, shape (), one for
each row, (n_rows,), or one for each candidate, (n_candidates, 1)."""
FoldNumbers: TypeAlias = Integers
"""The fold of each row, (n_rows,), or of each candidate, (n_candidates,)."""
ClassCodes: TypeAlias = Integers
"""The class of each row as its position among the sorted classes; below 0 for a label
that is no class."""
BinCounts: TypeAlias = Integers
"""Numbers of pool rows that were counted in each bin of a comparison."""
RowsLike = TypeAliasType("RowsLike", ArrayLike | Features)
"""Rows of features: an array, a list of rows, a sparse matrix, a data frame of any
library, an xarray or Dask collection, shape (n_rows, n_columns)."""
PoolLike = TypeAliasType("PoolLike", "RowsLike | Pool | str | os.PathLike[str] | None")
"""An argument of `dsel.open_pool`: rows, a pool, or the place of one; None for no
pool."""
LabelsLike = TypeAliasType("LabelsLike", ArrayLike)
"""A label for each row, shape (n_rows,): an array, a list, a column of a data frame."""
GroupsLike = TypeAliasType("GroupsLike", ArrayLike | None)
"""The key of each row's group, shape (n_rows,), or the name of the column of `X` that
has them; None where rows are independent draws."""
PathLike = TypeAliasType("PathLike", str | os.PathLike[str])
"""A path, or the URL of an object store."""
Options = TypeAliasType("Options", Mapping[str, object])
"""Options by name that are passed on as they are: of fsspec, of `fit`, of a grid."""
Procedure = TypeAliasType("Procedure", Callable[..., object])
"""A function of `X` and `y` that returns a fitted model."""


class Model(Protocol):
    """A fitted classifier or regressor."""

    def predict(self, X: Features, /) -> AnyArray:
        """Return a class or a number for each row, shape (n_rows,)."""
        ...


class HasResults(Protocol):
    """An outcome, which has the cube of its search."""

    @property
    def results(self) -> "xr.Dataset":
        """The cube."""
        ...


class FittedSearch(Protocol):
    """A fitted search, which has its cube."""

    results_: "xr.Dataset"


ResultsLike = TypeAliasType("ResultsLike", "xr.Dataset | HasResults | FittedSearch")
"""A results cube, or a fitted search or an outcome, which has one."""


class Splitter(Protocol):
    """A cross-validation splitter of scikit-learn."""

    def split(
        self, X: RowsLike, y: ArrayLike | None = ..., groups: ArrayLike | None = ...
    ) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Yield the row numbers of training and test rows."""
        ...


SplitsLike = TypeAliasType(
    "SplitsLike", int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None
)
"""A number of folds, a splitter, or pairs of training and test rows; None for five."""
ReportLike = TypeAliasType("ReportLike", bool | Sequence[object] | None)
"""Whether classes or shares are reported, or which."""
PriorLike = TypeAliasType("PriorLike", ArrayLike | Callable[[Options], float] | None)
"""Weights that divide delta among candidates, shape (n_candidates,), or a function of a
candidate's parameters that returns its weight; None for equal parts."""
BaselineLike = TypeAliasType("BaselineLike", Model | PathLike | None)
"""A fitted classifier to compare with, a place that `open_model` opens, or ``"largest
class"``; None for none."""

__all__ = [
    "AnyArray",
    "BaselineLike",
    "Estimator",
    "Features",
    "GroupsLike",
    "LabelsLike",
    "Model",
    "Options",
    "PathLike",
    "PoolLike",
    "PriorLike",
    "Procedure",
    "ReportLike",
    "ResultsLike",
    "RowsLike",
    "SplitsLike",
    "Splitter",
]
offer_public(globals())
