"""Keys of the journal: hashes of what a count depends on, the same in every process."""

import hashlib
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dsel.results.records import KEY_BYTES

PROCESS: Final = uuid.uuid4().hex


def make_key(*parts: Any) -> bytes:
    """Return the key of a count that depends on these values and nothing else.

    Parameters
    ----------
    parts
        Numbers, strings, parameter dicts, arrays, estimators, and sequences of them.

    Returns
    -------
    bytes
        The same in every process, unless a part has no stable text (a lambda, an
        object without parameters): then no other process has the key, and what it
        stands for is counted again.

    Examples
    --------
    >>> make_key({"C": 1.0, "gamma": 2.0}) == make_key({"gamma": 2.0, "C": 1.0})
    True
    >>> make_key({"C": 1.0}, "fold-3").hex()
    '953e7235f4b89758e8f14a2da36333a8'
    """
    text = canonical(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=KEY_BYTES).digest()


def canonical(value: Any) -> str:
    """Return a text that two values share only if they are the same.

    Examples
    --------
    >>> canonical({"b": [1, 0.5], "a": None})
    "{'a': None, 'b': [1, 0.5]}"
    """
    if isinstance(value, np.generic):
        return canonical(value.item())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, Mapping):
        entries = sorted((canonical(key), canonical(value[key])) for key in value)
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in entries) + "}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSUM":
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array({value.dtype.str}, {value.shape}, {digest})"
    if isinstance(value, (Sequence, np.ndarray)):
        return "[" + ", ".join(canonical(entry) for entry in value) + "]"
    return _object_text(value)


def _object_text(value: Any) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return f"{name}({canonical(value.get_params(deep=False))})"
    own = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '<>')}"
    if "<" not in own and "__main__" not in own:
        return own
    return f"{name} {PROCESS}-{os.getpid()}-{id(value)}"
