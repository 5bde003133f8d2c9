"""Parameter values as text: exact, with their type, and unique.

An *entry* is the text of a value in a coordinate of the cube. The value is read from
the entry alone, so that it survives every operation on a cube. An entry is Python:
``1``, ``1.0`` and ``'1'`` are three settings, ``scale`` is short for ``'scale'``. It
ends with ``  # 2`` if it is that of the second value with this text.
"""

import re
from ast import literal_eval
from collections.abc import Hashable, Sequence
from math import inf, nan
from typing import Any, Final
from warnings import catch_warnings

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.arrays import as_plain
from dsel.data.identity import exact_text
from dsel.typing import Options

UNSET: Final = object()
"""Marks a parameter that a candidate does not set, and others do."""
BARE: Final = re.compile(r"\w[\w +-]*")
"""Strings that need no quotes, unless they are Python for another value."""
_FLOATS: Final = {"nan": nan, "inf": inf, "-inf": -inf}


class ValueText(str):
    """The text of a value that cannot be read from text, such as an estimator.

    Its `repr` has no quotes, so that a candidate read from a cube looks the same.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def value_text(value: object) -> str:
    """Return a parameter value as one line, of Python where it has one; no addresses.

    Examples
    --------
    >>> value_text(1), value_text(1.0), value_text("1"), value_text(np.float64(2**-10))
    ('1', '1.0', "'1'", '0.0009765625')
    """
    value = as_plain(value)
    if isinstance(value, ValueText):
        return str(value)
    if isinstance(value, str):
        return repr(str(value))
    if hasattr(value, "__qualname__"):
        return f"{getattr(value, '__module__', None)}.{value.__qualname__}"
    try:
        text = repr(value)
    except Exception:  # a `repr` of a user's class may raise any error
        text = f"<{type(value).__module__}.{type(value).__qualname__} object>"
    if _literal(text) is not UNSET:
        return text  # unchanged, since strings in it may look like addresses
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", re.sub(r"\s*\n\s*", " ", text))


def entry_of(value: object) -> str:
    """Return a value as its text, without quotes if these are not needed.

    Examples
    --------
    >>> entry_of("scale"), entry_of("None"), entry_of(None)
    ('scale', "'None'", 'None')
    """
    text = value_text(value)
    if isinstance(value, str) and not isinstance(value, ValueText):
        bare = str(value)
        is_bare = BARE.fullmatch(bare) and _literal(bare) is UNSET
        return bare if is_bare else text
    # The text is in <>, so that `read_entry` does not take a one-word repr for a
    # string.
    return f"<{text}>" if _literal(text) is UNSET and BARE.fullmatch(text) else text


def read_entry(entry: str) -> Any:
    """Return the value of an entry; a `ValueText` if the entry is no literal.

    Examples
    --------
    >>> read_entry("scale"), read_entry("1.0"), read_entry("1  # 2"), read_entry("'1'")
    ('scale', 1.0, 1, '1')
    """
    text = re.sub(r"  # \d+$", "", entry)
    value = _literal(text)
    if value is not UNSET:
        return value
    return text if BARE.fullmatch(text) else ValueText(text)


def coordinate_of(
    values: Sequence[object], *, is_axis: bool
) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return a parameter's values as a coordinate, and attributes that restore types.

    Numbers or booleans stay as they are, all other values become entries. Along an axis
    of the grid these are unique. Equal values in a list of candidates share an entry,
    and NaN or "" marks a candidate that does not set the parameter.
    """
    plain = [as_plain(value) for value in values]
    is_unset = [value is UNSET for value in plain]
    kinds = {type(value) for value in plain if value is not UNSET}
    if (kinds == {bool} and not any(is_unset)) or kinds <= {int, float}:
        coordinates = [nan if value is UNSET else value for value in plain]
        array = np.array(coordinates)
        is_exact = array.dtype.kind in "bif" and all(
            a == b or (a != a and b != b)
            for a, b in zip(array.tolist(), coordinates, strict=True)
        )
        by_kind: list[set[Any]] = [
            {value for value in plain if type(value) is kind} for kind in (int, float)
        ]
        # Entries are needed where one array of numbers is ambiguous: it cannot keep 1
        # and 1.0 apart, a value that is listed twice, or NaN and a value not set.
        is_unique = is_exact and not (by_kind[0] & by_kind[1])
        if is_axis:
            is_unique = is_unique and len(np.unique(array)) == len(array)
        elif array.dtype.kind != "b":
            is_unique = is_unique and sum(np.isnan(array)) == sum(is_unset)
        if is_unique:
            integers = sorted(map(float, by_kind[0])) if array.dtype.kind == "f" else []
            return array, {names.INTEGERS: integers} if integers else {}
    return np.array(_entries(plain, is_axis), dtype=object), {}


def read_coordinate(coordinate: xr.DataArray, *, may_lack: bool) -> list[Any]:
    """Return the values of a parameter's coordinate, flat, in their original types.

    With `may_lack`, NaN and "" mean that a candidate does not set it: `UNSET`.
    """
    values: list[Any] = np.ravel(coordinate.values).tolist()
    if coordinate.dtype.kind == "f":
        whole = np.atleast_1d(coordinate.attrs.get(names.INTEGERS, [])).tolist()
        integers = set(whole)
        values = [int(value) if value in integers else value for value in values]
        return [UNSET if may_lack and v != v else v for v in values]
    if coordinate.dtype.kind in "OUT":
        # An empty entry means "not set"; the entry of an empty string has quotes.
        return [
            (read_entry(value) if value else UNSET) if isinstance(value, str) else value
            for value in values
        ]
    return values


def encode_params(params: Options) -> dict[str, str]:
    """Return a candidate's parameters as texts for JSON, which keep their types."""
    return {name: entry_of(value) for name, value in params.items()}


def decode_params(params: Options) -> dict[str, Any]:
    """Invert `encode_params`; numbers, as in older files, stay numbers."""
    return {
        name: read_entry(value) if isinstance(value, str) else value
        for name, value in params.items()
    }


def _entries(values: Sequence[object], is_axis: bool) -> list[str]:
    """Return an entry for each value, "" for one that is not set."""
    keys: dict[str, dict[Hashable, int]] = {}
    entries = []
    for i, value in enumerate(values):
        if value is UNSET:
            entries.append("")
            continue
        text = entry_of(value)
        exact_key: Hashable = i
        if not is_axis:
            exact_key = text if _literal(text) is not UNSET else exact_text(value)
        same = keys.setdefault(text, {})
        number = same.setdefault(exact_key, len(same) + 1)
        entries.append(text if number == 1 else f"{text}  # {number}")
    return entries


def _literal(text: str) -> Any:
    """Return the value whose `repr` is a text, `UNSET` if there is none."""
    if text in _FLOATS:
        return _FLOATS[text]
    try:
        with catch_warnings(action="ignore"):
            value = literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return UNSET
    return value if repr(value) == text else UNSET
