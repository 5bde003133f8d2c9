"""What a run's counts depend on, compared with what the store was made for."""

import json
from collections.abc import Mapping
from typing import Any

from dsel.errors import StoreMismatchError

NOTHING = "(nothing)"


def check_fingerprint(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], *, place: str
) -> None:
    """Raise StoreMismatchError, showing each difference, unless the two are equal.

    Examples
    --------
    >>> check_fingerprint({"n_folds": 5}, {"n_folds": 5}, place="run")
    """
    ours = plain(wanted)
    names = sorted(set(stored) | set(ours))
    different = [
        "  {}: {} in the store, {} now".format(name, *_shown(stored, ours, name))
        for name in names
        if stored.get(name, NOTHING) != ours.get(name, NOTHING)
    ]
    if different:
        lines = "\n".join(different)
        if stored.get("splits", NOTHING) != ours.get("splits", NOTHING):
            lines += (
                "\n`splits` come from `cv`, `certificate` and `random_state`; where "
                "none is named, the numbers of rows and candidates decide."
            )
        raise StoreMismatchError(
            f"{place} holds another run; choose another `out`, or give it what it was "
            f"made with:\n{lines}"
        )


def plain(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint as JSON would give it back."""
    text = json.dumps(dict(fingerprint), sort_keys=True, allow_nan=False)
    restored: dict[str, Any] = json.loads(text)
    return restored


def _shown(stored: Mapping[str, Any], ours: Mapping[str, Any], name: str) -> list[str]:
    """Return two values, long ones from shortly before they differ."""
    texts = [
        json.dumps(each[name]) if name in each else NOTHING for each in (stored, ours)
    ]
    if max(map(len, texts)) <= 60:
        return texts
    pairs = enumerate(zip(*texts, strict=False))
    first = max(next((at for at, (a, b) in pairs if a != b), 0) - 20, 0)
    before, rest = "..." if first else "", [text[first:] for text in texts]
    return [before + (text if len(text) <= 60 else f"{text[:57]}...") for text in rest]
