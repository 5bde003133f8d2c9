"""Results as JSON: a record has a kind and a version, and is checked when it is read.

A checksum reveals a damaged file, not a forged one, and a newer version may give a name
another meaning. Therefore a record is read field by field, and each value is checked
against the type that the dataclass declares. Fields that an older version did not have
get their defaults.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import xarray as xr

from dsel.checks import show
from dsel.errors import NewerRecordError

T = TypeVar("T")
NOT_KEPT: Final = {"key": None}
"""Metadata of a field that is left out of records, such as a fitted model."""
VERSION: Final = 3
"""Raised whenever a reader of old records could misread new ones. Records of dsel 0.2
have no number, and are read."""


def older_name(key: str) -> Mapping[str, str]:
    """Return the metadata of a field that records have under an older name."""
    return {"key": key}


def check_version(version: object, known: int, what: str) -> None:
    """Raise if `what` was written in a version that this dsel does not know."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"{what} has no version, got {show(version)}")
    if version > known:
        raise NewerRecordError(
            f"{what} is of version {version} and this dsel reads up to {known}; open "
            f"it with the dsel that wrote it, or a newer one."
        )


def to_json(value: object) -> str:
    """Return a dataclass as JSON, with all digits."""
    return json.dumps({"version": VERSION, **to_record(value)})


def from_json(kind: type[T], text: str) -> T:
    """Return the object that `to_json` wrote.

    Raises TypeError or ValueError if the text is something else, `NewerRecordError` if
    a newer dsel wrote it.
    """
    record = json.loads(text)
    if isinstance(record, dict) and "version" in record:
        check_version(record.pop("version"), VERSION, f"the {kind.__name__.lower()}")
    return from_record(kind, record)


def to_record(value: object) -> Any:
    """Return a value as JSON types: dataclasses with their kind, objects as text."""
    if is_dataclass(value) and not isinstance(value, type):
        by_key = {
            key: getattr(value, name)
            for key, (name, _) in _fields_by_key(type(value)).items()
        }
        return {"kind": _record_kind(type(value)), **to_record(by_key)}
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_record(item) for item in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | NoneType) else str(value)


def from_record(kind: type[T], record: object) -> T:
    """Return a record as an object of the dataclass `kind`; TypeError if it is none."""
    if not isinstance(record, Mapping):
        raise TypeError(f"this is no {kind.__name__}")
    values = dict(record)
    if values.pop("kind", name := _record_kind(kind)) != name:
        raise TypeError(f"this is no {kind.__name__}")
    # An older version used other names; unknown fields are refused below.
    upgrade = getattr(kind, "upgrade_record", None)
    values = values if upgrade is None else upgrade(values)
    stored = _fields_by_key(cast(Hashable, kind))
    # An unknown field would be lost when the record is written again.
    if unknown := sorted(values.keys() - stored.keys()):
        raise TypeError(f"a {kind.__name__} has no {unknown[0]}")
    named = ((*stored[key], value) for key, value in values.items())
    return kind(**{name: _read(value, hint) for name, hint, value in named})


def _record_kind(kind: type) -> str:
    """Return the name of a type in records, which may be an older one."""
    return cast(str, getattr(kind, "record_kind", kind.__name__))


@lru_cache
def _fields_by_key(kind: Hashable) -> dict[str, tuple[str, Any]]:
    """Return the name and type of each field of a record, by its key there."""
    hints = get_type_hints(kind)
    keys = {f.name: f.metadata.get("key", f.name) for f in fields(cast(Any, kind))}
    return {key: (name, hints[name]) for name, key in keys.items() if key is not None}


def _read(value: Any, hint: Any) -> Any:
    """Return a JSON value in the declared type; TypeError if it has another type."""
    origin = get_origin(hint)
    inner = get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        [hint] = (kind for kind in inner if kind is not NoneType)
        return _read(value, hint)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(item, inner[0]) for item in value)
    if origin is not None and isinstance(value, dict):
        return {key: _read(item, inner[1]) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        if value not in hint.__members__:
            raise TypeError(f"{value!r:.40} is no {hint.__name__}")
        return hint[value]
    if isinstance(hint, type) and issubclass(hint, tuple) and isinstance(value, list):
        hints = get_type_hints(hint).values()  # of a NamedTuple
        items = zip(value, hints, strict=True)
        return hint(*(_read(item, item_hint) for item, item_hint in items))
    if is_dataclass(hint):
        return from_record(cast(type, hint), value)
    wanted = (int, float) if hint is float else hint
    is_right = origin is None and isinstance(value, wanted)
    if not is_right or (isinstance(value, bool) and hint is not bool):
        raise TypeError(f"{value!r:.40} is no {getattr(hint, '__name__', hint)}")
    return value


def read_attribute(
    cube: xr.Dataset, name: str, read: Callable[[Any], T], default: T
) -> T:
    """Return an attribute of a cube; ValueError if dsel cannot have written it."""
    if name not in cube.attrs:
        return default
    try:
        return read(cube.attrs[name])
    except NewerRecordError:
        raise  # its message names the version
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"`results` has the attribute {name} = {str(cube.attrs[name])[:40]!r}, "
            f"which no run has written; take the results that the run returned, or "
            f"open them again."
        ) from error
