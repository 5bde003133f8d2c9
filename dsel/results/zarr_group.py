"""A dataset as the files of a zarr group (format 3), one chunk for each array.

Cubes are some dozens of small arrays. What zarr does to write them takes half a
millisecond each, which a search of seconds notices; what the format asks for is this.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from math import prod
from typing import Any, Final

import numpy as np
import xarray as xr
from numcodecs import VLenUTF8, Zstd
from numpy.typing import NDArray
from xarray.conventions import encode_dataset_coordinates

SMALL_NBYTES: Final = 2**14
"""Arrays of at most that many bytes are not worth the time to compress them."""
LEVEL: Final = 1


def group_files(
    dataset: xr.Dataset, fill_values: Mapping[str, int]
) -> dict[str, bytes]:
    """Return the content of each file by its name within the group.

    Parameters
    ----------
    dataset
        Variables of numbers, truth values and strings.
    fill_values
        What the arrays say that a chunk would hold which is not there, by name; NaN,
        zero and the empty string for those that are not named.

    Raises
    ------
    TypeError
        Where a variable holds something else.
    """
    variables, attributes = encode_dataset_coordinates(dataset)
    return dict(_files(variables, attributes, fill_values))


def _files(
    variables: Mapping[Hashable, xr.Variable],
    attributes: Mapping[Any, Any],
    fill_values: Mapping[str, int],
) -> Iterator[tuple[str, bytes]]:
    yield "zarr.json", _json(node_type="group", attributes=attributes)
    for name, variable in variables.items():
        data_type, fill_value, codecs, chunk = _encode(variable.values, str(name))
        if len(chunk) > SMALL_NBYTES:
            codecs.append(_named("zstd", level=LEVEL, checksum=False))
            chunk = Zstd(level=LEVEL).encode(chunk)
        yield (
            f"{name}/zarr.json",
            _json(
                node_type="array",
                shape=variable.shape,
                data_type=data_type,
                chunk_grid=_named(
                    "regular", chunk_shape=[max(1, size) for size in variable.shape]
                ),
                chunk_key_encoding=_named("default", separator="."),
                fill_value=fill_values.get(str(name), fill_value),
                codecs=codecs,
                attributes=variable.attrs,
                dimension_names=variable.dims,
            ),
        )
        if prod(variable.shape):
            yield f"{name}/{'.'.join(['c', *'0' * variable.ndim])}", bytes(chunk)


def _encode(
    values: NDArray[Any], name: str
) -> tuple[str, Any, list[dict[str, Any]], bytes]:
    """Return type, fill value, codecs and bytes of an array."""
    kind = values.dtype.kind
    if kind in "TUO":
        codec = _named("vlen-utf8")
        return "string", "", [codec], VLenUTF8().encode(values.astype(object))
    if kind not in "biuf":
        raise TypeError(
            f"`results[{name!r}]` must hold numbers, truth values or strings, got "
            f"{values.dtype}."
        )
    fill_value = {"b": False, "f": "NaN"}.get(kind, 0)
    codec = _named("bytes", endian="little")
    ordered = values.astype(values.dtype.newbyteorder("<"))
    return values.dtype.name, fill_value, [codec], ordered.tobytes()


def _named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def _json(**entries: Any) -> bytes:
    return json.dumps({"zarr_format": 3, **entries}, default=np.ndarray.tolist).encode()
