"""Parameters of candidates as texts, with short names where these are clear."""

from collections import Counter
from collections.abc import Sequence

from dsel.results.values import value_text
from dsel.typing import Options


def params_text(params: Options) -> str:
    """Return the parameters of a candidate as one line that Python can read.

    Examples
    --------
    >>> params_text({"C": 0.5, "kernel": "rbf"}), params_text({})
    ("C=0.5, kernel='rbf'", 'the only candidate')
    """
    shown = (f"{name}={value_text(value)}" for name, value in params.items())
    return ", ".join(shown) or "the only candidate"


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the shortest ending of each name that no other name has, by full name.

    Endings begin at a step of a pipeline.

    Examples
    --------
    >>> short_names(["model__C", "model__gamma"])
    {'model__C': 'C', 'model__gamma': 'gamma'}
    >>> list(short_names(["a__svc__C", "b__svc__C", "enc__imputer__strategy"]).values())
    ['a__svc__C', 'b__svc__C', 'strategy']
    """
    endings = {
        name: ["__".join(path[n:]) for n in reversed(range(len(path)))]
        for name, path in ((name, name.split("__")) for name in names)
    }
    counts = Counter(end for ends in endings.values() for end in ends)
    return {
        name: next((end for end in ends if counts[end] == 1), name)
        for name, ends in endings.items()
    }


def short_params_text(params: Options) -> str:
    """Return parameters as one line, by the endings of `short_names`.

    Examples
    --------
    >>> short_params_text({"svc__C": 0.5, "svc__kernel": "rbf"})
    "C=0.5, kernel='rbf'"
    """
    short = short_names(list(params))
    return params_text({short[name]: value for name, value in params.items()})
