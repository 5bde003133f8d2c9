"""The choice that a criterion makes among the candidates of a cube."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from dsel import names
from dsel.results.certificate import Certificate
from dsel.results.cube import candidate_dims, candidate_shape
from dsel.results.grid import parameter_name
from dsel.results.rounding import at_most


@dataclass(frozen=True, repr=False)
class Choice:
    """The candidate that a criterion chose, and how wrong it can be."""

    candidate: int
    """Its number."""
    params: Mapping[str, Any]
    """What the grid sets for it."""
    criterion: str
    """Name of the criterion that chose it."""
    estimate: float
    """The criterion's number for it, unclipped."""
    certificate: Certificate
    """The bound on its error."""
    remarks: tuple[str, ...] = ()
    """What else a reader should know, such as fits that failed."""

    @property
    def bound(self) -> float:
        """The certificate's bound, at most 1."""
        return self.certificate.bound

    @property
    def delta(self) -> float:
        """Probability with which the bound may fail."""
        return self.certificate.delta

    @property
    def fold(self) -> int | None:
        """What `Plan.model` takes for the model that the certificate is about."""
        return self.certificate.fold

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={_show(v)}" for name, v in self.params.items())
        certificate = self.certificate
        model = f", model trained without fold {self.fold}"
        sign = "<=" if certificate.certified else "~"
        return (
            f"Choice(candidate {self.candidate}: {params or 'no parameters'}; "
            f"error {sign} {at_most(self.bound)}, delta={self.delta:g}, "
            f"criterion={self.criterion!r}, certified={certificate.certified}"
            f"{'' if self.fold is None else model})"
        )


def params_of(cube: xr.Dataset, candidate: int) -> dict[str, Any]:
    """Return the parameters of a candidate as the cube shows them.

    Numbers, strings and booleans come back as they were, other values as their text.

    Examples
    --------
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> axes = grid_axes({"C": [1, 10], "kernel": ["linear", "rbf"]})
    >>> params_of(make_cube(axes, fold_axes(5), {}), 2)
    {'C': 10, 'kernel': 'linear'}
    """
    dims = candidate_dims(cube)
    places = np.unravel_index(candidate, candidate_shape(cube))
    cell = cube[names.STATUS].isel(
        {dim: int(place) for dim, place in zip(dims, places, strict=True)}
    )
    is_list = names.CANDIDATE in dims
    # Coordinates come back from a file in another order.
    shown = sorted(set(map(str, cell.coords)) - {names.CANDIDATE}) if is_list else dims
    values = {parameter_name(n): _plain(cell.coords[n].values[()]) for n in shown}
    return {n: v for n, v in values.items() if not is_list or _is_set(v)}


def candidate_labels(cube: xr.Dataset) -> list[str]:
    """Return a text for every candidate that names its parameters, in order.

    Examples
    --------
    >>> from dsel.results import fold_axes, grid_axes, make_cube
    >>> axes = grid_axes({"C": [1, 10], "kernel": ["linear", "rbf"]})
    >>> candidate_labels(make_cube(axes, fold_axes(5), {}))[:2]
    ['C=1, kernel=linear', 'C=1, kernel=rbf']
    """
    dims = candidate_dims(cube)
    if names.CANDIDATE in dims:
        along = sorted(str(name) for name in cube.coords if cube[name].dims == dims)
        shown = [name for name in along if name != names.CANDIDATE]
        columns = (cube[name].values.tolist() for name in shown)
        rows = zip(*columns, strict=True) if shown else [()] * cube.sizes[dims[0]]
        return [_label(shown, row, keep_unset=False) for row in rows]
    values = (cube[dim].values.tolist() for dim in dims)
    return [_label(dims, row, keep_unset=True) for row in product(*values)]


def _label(shown: Sequence[str], values: Iterable[Any], *, keep_unset: bool) -> str:
    return ", ".join(
        f"{parameter_name(name)}={value}"
        for name, value in zip(shown, values, strict=True)
        if keep_unset or _is_set(value)
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_set(value: Any) -> bool:
    return bool(value != "" and value == value)  # NaN is not itself


def _show(value: Any) -> str:
    number = isinstance(value, (float, np.floating))
    return f"{value:g}" if number else repr(_plain(value))
