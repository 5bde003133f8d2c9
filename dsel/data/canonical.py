"""One text for equal values, so that hashes do not depend on how they were written."""

import json
import math
from collections.abc import Mapping, Set
from numbers import Integral, Real
from typing import Any

import numpy as np


def canonical_text(value: Any) -> str:
    """Return a text that is the same for equal values in every process.

    Numbers that are equal have equal texts (``1``, ``1.0`` and ``np.float32(1)``),
    mappings are sorted by key, arrays are written as lists, estimators and other
    objects with ``get_params`` by class and parameters, functions and classes by
    name. Of any other object only the class counts.

    Examples
    --------
    >>> canonical_text({"gamma": 0.5, "C": np.float64(1)})
    '{"C":1,"gamma":0.5}'
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return json.dumps(value)
    if type(value) is float:  # as most are; asking abstract classes takes longer
        return _number_text(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return _number_text(float(value))
    if isinstance(value, Mapping):
        return _mapping_text(value)
    if isinstance(value, np.ndarray):
        return canonical_text(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical_text, value)) + "]"
    if isinstance(value, Set):
        return "{" + ",".join(sorted(map(canonical_text, value))) + "}"
    return _object_text(value)


def _number_text(value: float) -> str:
    if math.isfinite(value) and value == int(value):
        return str(int(value))
    return repr(value)


def _mapping_text(value: Mapping[Any, Any]) -> str:
    texts = {canonical_text(key): canonical_text(item) for key, item in value.items()}
    return "{" + ",".join(f"{key}:{texts[key]}" for key in sorted(texts)) + "}"


def _object_text(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    name = f"{named.__module__}.{named.__qualname__}"
    if named is value or not hasattr(value, "get_params"):
        return f"<{name}>"
    return f"<{name}{_mapping_text(value.get_params(deep=False))}>"
