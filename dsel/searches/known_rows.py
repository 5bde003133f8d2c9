"""Labeled rows that every fit would know: in parameters of `fit`, inside estimators."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import cloudpickle
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dsel.data.equal_rows import comparable
from dsel.data.frames import frame_of, is_frame
from dsel.data.identity import row_hashes
from dsel.families.family import Candidate

FEWEST_VALUES: Final = 20
"""Values of labeled rows that are looked for in estimators."""


def rows_given(X: Any, fit_params: Mapping[str, Any]) -> str:
    """Return which parameter hands labeled rows to every fit; empty if none.

    Tables of one row for each labeled one are cut to the rows of a fit.
    """
    for name, value in fit_params.items():
        if getattr(value, "shape", ())[:1] == X.shape[:1]:
            continue
        for table in _tables(value, X.shape[1]):
            if np.isin(_hashes(table), _hashes(X)).mean() > 0.5:
                return (
                    f"`{name}` holds labeled rows, which every fit sees, held-out ones "
                    f"included: give other rows, or let the learner divide its own"
                )
    return ""


def _tables(value: Any, width: int) -> Iterator[Any]:
    """Yield the tables of so many columns that a value holds."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _tables(each, width)
    elif getattr(value, "shape", ())[1:] == (width,):
        of_numbers = getattr(value, "dtype", np.dtype(object)).kind in "biuf"
        if of_numbers or is_frame(value):
            yield value


def _hashes(table: Any) -> NDArray[np.uint64]:
    table = frame_of(table) if is_frame(table) else table
    return row_hashes(comparable(table, np.dtype(np.float64)))


def rows_inside(
    X: Any, candidates: Iterable[Candidate], fit_params: Mapping[str, Any]
) -> tuple[str, str]:
    """Return why estimators hold labeled rows, and why that cannot be seen.

    More than one in six of some values with many digits must be there.
    """
    # Tables of one row for each labeled one are cut to the rows of a fit.
    n_rows = X.shape[:1]
    given = [v for v in fit_params.values() if getattr(v, "shape", ())[:1] != n_rows]
    try:
        held = cloudpickle.dumps([[each.estimator for each in candidates], given])
    except Exception as error:  # whatever an object raises that cannot be pickled
        said = f"{type(error).__name__}: {error}"
        return "", f"an estimator holds no labeled rows; it cannot be pickled ({said})"
    values = np.asarray(X.data if sparse.issparse(X) else X.ravel(), dtype=np.float64)
    values = np.unique(values[np.isfinite(values)])
    values = values[np.abs(values * 1e4 - np.rint(values * 1e4)) > 1e-3]
    if len(values) < FEWEST_VALUES:
        return "", ""
    looked_for = values[:: len(values) // FEWEST_VALUES]
    kinds = ("<f8", ">f8", "<f4")  # of arrays, of Python's floats
    found = [
        sum(np.array([v], kind).tobytes() in held for v in looked_for) for kind in kinds
    ]
    if max(found) <= len(looked_for) / 6:
        return "", ""
    return (
        "an estimator or function holds labeled rows, in a parameter, a closure, an "
        "attribute or a global: it may use those only that it is fitted to"
    ), ""
