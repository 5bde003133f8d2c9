"""The axes of the cube: the numbered candidates of a grid, and the splits of rows."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsel import names

ESTIMATOR = "estimator"
"""Coordinate of candidates that are given as estimators: their text."""

Coordinate = tuple[str, NDArray[Any]]


@dataclass(frozen=True)
class GridAxes:
    """Axes of the candidates of a grid.

    Candidates are numbered in scikit-learn's ``ParameterGrid`` order, which is the
    C order of ``shape``.
    """

    dims: tuple[str, ...]
    """One dimension per parameter, sorted by parameter; or ``("candidate",)``."""
    shape: tuple[int, ...]
    coords: Mapping[str, Coordinate]
    """Dimension and values of each coordinate; odd values stand as text."""
    grids: tuple[Mapping[str, tuple[Any, ...]], ...]
    """The product grids, one after the other; empty for a list of estimators."""
    estimators: tuple[Any, ...] = ()
    """The candidates themselves where they were given as estimators."""

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return prod(self.shape)

    def params(self, number: int) -> dict[str, Any]:
        """Return what candidate `number` sets; empty for one given as an estimator.

        Raises
        ------
        IndexError
            Where the grid has no such candidate.
        """
        if not 0 <= number < self.n_candidates:
            raise IndexError(
                f"`number` must be in [0, {self.n_candidates - 1}], got {number}."
            )
        return next(islice(self, number, None))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the parameters of every candidate, in order."""
        if self.estimators:
            yield from ({} for _ in self.estimators)
        for grid in self.grids:
            for values in product(*grid.values()):
                yield dict(zip(grid, values, strict=True))


def grid_axes(grid: Any) -> GridAxes:
    """Return the numbered candidates of a grid, laid out on the cube's axes.

    Parameters
    ----------
    grid
        A dict of parameter names to sequences of values; a list of such dicts; or a
        list of unfitted estimators.

    Returns
    -------
    GridAxes
        For one dict a dimension per parameter, called as
        `dsel.names.parameter_dimension` says; else the one dimension ``candidate``
        with the parameters as coordinates along it (NaN or "" where one is not set).
        Numbers, strings and booleans keep their type where all values of a parameter
        agree in it; anything else stands as text.

    Raises
    ------
    TypeError
        Where it is no grid.
    ValueError
        Where it is empty, a value is there twice, or two parameters want one
        dimension.

    Examples
    --------
    >>> axes = grid_axes({"gamma": [0.1, 1.0], "C": [1, 10, 100]})
    >>> axes.dims, axes.shape, axes.n_candidates
    (('C', 'gamma'), (3, 2), 6)
    >>> axes.params(3)
    {'C': 10, 'gamma': 1.0}
    """
    grids = _listed(grid)
    if all(hasattr(e, "get_params") and not isinstance(e, type) for e in grids):
        return _estimator_axes(tuple(grids))
    checked = product_grids(grids)
    for parameter, values in (item for each in checked for item in each.items()):
        _check_distinct(parameter, values)
    is_product = len(checked) == 1 and bool(checked[0])
    return _product_axes(checked[0]) if is_product else _list_axes(checked)


@dataclass(frozen=True)
class SplitAxes:
    """Axes of the splits, in the C order of their numbers."""

    dims: tuple[str, ...]
    """``("fold",)``, or ``("repeat", "half")`` in co-validation."""
    shape: tuple[int, ...]
    compared: tuple[str, ...]
    """The dimensions that count disagreements: those of `dims` but the halves."""


def fold_axes(n_folds: int) -> SplitAxes:
    """Return the axes of cross-validation with so many folds, at least 1.

    Examples
    --------
    >>> fold_axes(10)
    SplitAxes(dims=('fold',), shape=(10,), compared=('fold',))
    """
    return SplitAxes((names.FOLD,), (n_folds,), (names.FOLD,))


def half_axes(n_repeats: int) -> SplitAxes:
    """Return the axes of co-validation: two halves in each repeat, then compared.

    Examples
    --------
    >>> half_axes(30).shape, half_axes(30).compared
    ((30, 2), ('repeat',))
    """
    return SplitAxes(
        (names.REPEAT, names.HALF), (n_repeats, 2), compared=(names.REPEAT,)
    )


def parameter_name(dimension: str) -> str:
    """Return the parameter that a dimension or coordinate shows.

    Examples
    --------
    >>> parameter_name("gamma"), parameter_name("param_criterion")
    ('gamma', 'criterion')
    """
    bare = dimension.removeprefix("param_")
    return bare if bare in names.RESERVED else dimension


def as_text(value: Any) -> str:
    """Return a parameter value as one line of text that no address makes vary.

    Examples
    --------
    >>> as_text("scale"), as_text(None), as_text(max)
    ('scale', 'None', 'builtins.max')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))


def product_grids(grid: Any) -> tuple[dict[str, tuple[Any, ...]], ...]:
    """Return the products that a grid is made of, or raise where it is none."""
    return tuple(_checked_product(entry) for entry in _listed(grid))


def is_list(values: Any) -> bool:
    """Whether these are values of a parameter, and not a single one."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    return isinstance(values, Sequence) and not isinstance(values, str)


def _listed(grid: Any) -> Sequence[Any]:
    grids = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(grids, Sequence) or isinstance(grids, str):
        raise TypeError(
            f"`param_grid` must be a dict of parameter values, a list of such dicts or "
            f"a list of estimators, got {type(grid).__name__}."
        )
    if not grids:
        raise ValueError("`param_grid` is empty; give at least one candidate.")
    return grids


def _checked_product(grid: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(grid, Mapping):
        raise TypeError(
            f"`param_grid` must hold dicts of parameter values, or estimators only, "
            f"got {as_text(grid)}."
        )
    for parameter, values in grid.items():
        if not isinstance(parameter, str):
            raise TypeError(
                f"`param_grid` must name parameters by text, got {parameter!r}."
            )
        if not is_list(values):
            raise TypeError(
                f"`param_grid` must give {parameter!r} a list of values, got "
                f"{values!r}; write [{values!r}] for a single one."
            )
        if len(values) == 0:
            raise ValueError(
                f"`param_grid` gives {parameter!r} no values; give at least one."
            )
    return {parameter: tuple(grid[parameter]) for parameter in sorted(grid)}


def _check_distinct(parameter: str, values: Sequence[Any]) -> None:
    """Refuse a value that is there twice: each would take its share of delta."""
    plain = (v for v in values if v is None or isinstance(v, (str, Real, np.bool_)))
    counted = Counter((isinstance(value, str), as_text(value)) for value in plain)
    for (_, text), count in counted.items():
        if count > 1:
            raise ValueError(
                f"`param_grid` gives {parameter!r} the value {text} {count} times; "
                f"give each value once."
            )


def _product_axes(grid: Mapping[str, tuple[Any, ...]]) -> GridAxes:
    dims = _dimensions(list(grid))
    coords = {
        dim: (dim, _coordinate(values))
        for dim, values in zip(dims, grid.values(), strict=True)
    }
    shape = tuple(len(values) for values in grid.values())
    return GridAxes(dims, shape, coords, (grid,))


def _list_axes(grids: tuple[Mapping[str, tuple[Any, ...]], ...]) -> GridAxes:
    size = sum(prod(len(values) for values in grid.values()) for grid in grids)
    axes = GridAxes((names.CANDIDATE,), (size,), {}, grids)
    candidates = list(axes)
    parameters = sorted({parameter for grid in grids for parameter in grid})
    coords = {names.CANDIDATE: (names.CANDIDATE, np.arange(size))}
    for parameter, name in zip(parameters, _dimensions(parameters), strict=True):
        given = {n: c[parameter] for n, c in enumerate(candidates) if parameter in c}
        coords[name] = (names.CANDIDATE, _sparse_coordinate(given, size))
    return replace(axes, coords=coords)


def _estimator_axes(estimators: tuple[Any, ...]) -> GridAxes:
    size = len(estimators)
    texts = np.array([as_text(each) for each in estimators], dtype=object)
    coords = {
        names.CANDIDATE: (names.CANDIDATE, np.arange(size)),
        ESTIMATOR: (names.CANDIDATE, texts),
    }
    return GridAxes((names.CANDIDATE,), (size,), coords, (), estimators)


def _dimensions(parameters: Sequence[str]) -> tuple[str, ...]:
    dims = tuple(names.parameter_dimension(parameter) for parameter in parameters)
    if len(set(dims)) < len(dims):
        raise ValueError(
            f"`param_grid` has two parameters that want one dimension: {dims}."
        )
    return dims


def _coordinate(values: Sequence[Any]) -> NDArray[Any]:
    """Return values with a type of their own where they agree in it, else as text."""
    are_flags = {isinstance(value, (bool, np.bool_)) for value in values}
    if are_flags == {True}:
        return np.array(values, dtype=bool)
    if are_flags == {False} and all(isinstance(value, Real) for value in values):
        with suppress(OverflowError):
            if all(isinstance(value, Integral) for value in values):
                return np.array([int(value) for value in values], dtype=np.int64)
        return np.array([float(value) for value in values])
    text = [as_text(value) for value in values]
    kinds = {(isinstance(v, str), line) for v, line in zip(values, text, strict=True)}
    if len(set(text)) < len(kinds):  # the word "None" beside None itself
        text = [repr(v) if isinstance(v, str) else as_text(v) for v in values]
    return np.array(text, dtype=object)


def _sparse_coordinate(given: Mapping[int, Any], size: int) -> NDArray[Any]:
    """Return values of some candidates, with NaN or "" for the others."""
    values = _coordinate(list(given.values()))
    if len(given) == size:
        return values
    is_number = values.dtype.kind in "if"
    column = np.full(size, np.nan if is_number else "", float if is_number else object)
    column[list(given)] = values if is_number else [str(value) for value in values]
    return column
