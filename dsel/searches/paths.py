"""Paths: hashes of all that a candidate's counts depend on beside the fingerprint.

A store finds a cell again by its path, in another process and in a larger grid. So two
candidates share a path only if they are the same, and the same candidate has the same
path everywhere.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from dsel.models.base import Candidate


def candidate_texts(candidates: Iterable[Candidate]) -> dict[int, str]:
    """Return a text for each candidate number that no other candidate has.

    Candidates whose values cannot be told apart by text (two lambdas, say) are told
    apart by their order.
    """
    seen: Counter[str] = Counter()
    texts = {}
    for candidate in candidates:
        text = exact_text([candidate.params or candidate.estimator])
        seen[text] += 1
        texts[candidate.number] = f"{text}#{seen[text]}" if seen[text] > 1 else text
    return texts


def candidate_path(family: str, candidate: Candidate, text: str) -> str:
    """Return the path of a candidate that no other of its plan has the text of."""
    what = f"{type(candidate.estimator).__qualname__} {text}"
    return blake2b(f"{family} {what}".encode(), digest_size=12).hexdigest()


def exact_text(value: Any) -> str:
    """Return a text of a value that tells 1 from 1.0 and from "1".

    The values of a grid mean what they are: ``max_features=1`` is one column,
    ``max_features=1.0`` all of them.

    Examples
    --------
    >>> exact_text({"b": [1, 1.0], "a": None})
    "{'a': None, 'b': [1, 1.0]}"
    """
    if isinstance(value, np.generic):
        return exact_text(value.item())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, Mapping):
        entries = sorted((exact_text(key), exact_text(value[key])) for key in value)
        return "{" + ", ".join(f"{key}: {entry}" for key, entry in entries) + "}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSUM":
        digest = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=12)
        return f"array({value.dtype.str}, {value.shape}, {digest.hexdigest()})"
    if isinstance(value, (Sequence, np.ndarray)):
        return "[" + ", ".join(exact_text(entry) for entry in value) + "]"
    named = value if hasattr(value, "__qualname__") else type(value)
    name = f"{named.__module__}.{named.__qualname__}"
    if named is value or not hasattr(value, "get_params"):
        return f"<{name}>"
    return f"<{name} {exact_text(value.get_params(deep=False))}>"
