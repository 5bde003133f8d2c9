"""Variables of a saved cube: read when they are used, named where they cannot be."""

from typing import Any

import xarray as xr
from xarray.backends import BackendArray
from xarray.core.indexing import (
    ExplicitIndexer,
    IndexingSupport,
    LazilyIndexedArray,
    explicit_indexing_adapter,
)


def naming_variables(results: xr.Dataset, place: str, group: str) -> xr.Dataset:
    """Return the cube, of which a variable that cannot be read says so.

    Parameters
    ----------
    results
        As xarray opened it.
    place, group
        Where the cube is.

    Returns
    -------
    xarray.Dataset
        Reading a value that is not there whole raises a ValueError with the place,
        the variable and what can be done, not what the codec has to say.
    """
    lazy = {
        name: xr.Variable(
            variable.dims,
            LazilyIndexedArray(_Named(variable, str(name), place, group)),
            variable.attrs,
            variable.encoding,
        )
        for name, variable in results.variables.items()
        if name not in results.indexes
    }
    return results.assign_coords(
        {name: lazy.pop(name) for name in results.coords if name in lazy}
    ).assign(lazy)


class _Named(BackendArray):
    """A variable that is read through its own name."""

    def __init__(
        self, variable: xr.Variable, name: str, place: str, group: str
    ) -> None:
        self._variable, self._name = variable, name
        self._place, self._group = place, group
        self.shape, self.dtype = variable.shape, variable.dtype

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(
            key, self.shape, IndexingSupport.BASIC, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> Any:
        try:
            return self._variable[key].values
        except (RuntimeError, ValueError) as error:  # of codecs and checksums
            raise ValueError(
                f"{self._place} is damaged: `{self._name}` in {self._group} cannot be "
                f"read ({error}). Run the same command again with the same `out`, "
                f"which makes it anew of what was counted."
            ) from error
