"""A dataset as the files of a zarr group (format 3), one chunk for each array.

A cube is some dozens of small arrays. To create and write one takes zarr the better
part of a millisecond, most of it to find out what is known here: that nothing is there,
and that one chunk holds all of it. This is what the format asks for, and no more.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import xarray as xr
from google_crc32c import value as crc32c
from numcodecs import VLenUTF8, Zstd
from numpy.typing import NDArray
from xarray.conventions import encode_dataset_coordinates

SMALL_NBYTES: Final = 2**14
"""Arrays of at most that many bytes are not worth the time to compress them."""
LEVEL: Final = 0
"""What the library of zstd takes for its own default."""


def group_files(
    dataset: xr.Dataset, fill_values: Mapping[str, int]
) -> dict[str, bytes]:
    """Return the content of each file by its name within the group.

    Every chunk ends with a checksum, and none is left out for holding the fill value.

    Parameters
    ----------
    dataset
        Variables of numbers, truth values and strings, in memory.
    fill_values
        What an array says that a chunk would hold which is not there, by the array's
        name; zero and the empty string for those that are not named.

    Raises
    ------
    TypeError
        Where a variable holds something else.
    """
    variables, attributes = encode_dataset_coordinates(dataset)
    files = {"zarr.json": _json(node_type="group", attributes=attributes)}
    for name, variable in variables.items():
        fill_value = fill_values.get(str(name))
        for file, content in _array_files(str(name), variable, fill_value):
            files[f"{name}/{file}"] = content
    return files


def _array_files(
    name: str, variable: xr.Variable, fill_value: int | None
) -> Iterator[tuple[str, bytes]]:
    data_type, empty, codecs, chunk = _encoded(name, np.asarray(variable.values))
    if len(chunk) > SMALL_NBYTES:
        codecs.append(_named("zstd", level=LEVEL, checksum=False))
        chunk = Zstd(level=LEVEL).encode(chunk)
    codecs.append({"name": "crc32c"})
    yield (
        "zarr.json",
        _json(
            node_type="array",
            shape=variable.shape,
            data_type=data_type,
            chunk_grid=_named(
                "regular", chunk_shape=[max(1, size) for size in variable.shape]
            ),
            chunk_key_encoding=_named("default", separator="."),
            fill_value=empty if fill_value is None else fill_value,
            codecs=codecs,
            attributes=variable.attrs,
            dimension_names=variable.dims,
        ),
    )
    if variable.size:
        checksum = crc32c(chunk).to_bytes(4, "little")
        yield ".".join("c" + "0" * variable.ndim), chunk + checksum


def _encoded(
    name: str, values: NDArray[Any]
) -> tuple[str, Any, list[dict[str, Any]], bytes]:
    """Return type, fill value, codecs and bytes of an array."""
    if values.dtype.kind in "TUO":
        codecs = [_named("vlen-utf8")]
        return "string", "", codecs, bytes(VLenUTF8().encode(values.astype(object)))
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"`results[{name!r}]` must hold numbers, truth values or strings, got "
            f"{values.dtype}."
        )
    codecs = [_named("bytes", endian="little")]
    zero = np.zeros((), values.dtype).item()
    ordered = values.astype(values.dtype.newbyteorder("<"))
    return values.dtype.name, zero, codecs, ordered.tobytes()


def _named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def _json(**entries: Any) -> bytes:
    document = {"zarr_format": 3, **entries}
    # Attributes may hold what numpy computed.
    return json.dumps(document, default=lambda value: value.tolist()).encode()
