"""The variables of the cube: names, dimensions, kinds and what they mean.

Every type is one that numpy promotes (texts are objects), so that what xarray does to
a whole Dataset works on a cube.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dsel import names

SCHEMA_VERSION: Final = 3
"""Raised whenever a reader of the old schema could misread a cube."""

STATES: Final = ("done", "pruned", "failed", "missing")
"""What the status 0, 1, ... of a candidate means, as `dsel.names` numbers it."""

# Stand for the dimensions that vary from cube to cube.
CANDIDATES: Final = "*candidates"
SPLITS: Final = "*splits"
COMPARED: Final = "*compared"

COUNT: Final = "count"
NUMBER: Final = "number"
SECONDS: Final = "seconds"
TEXT: Final = "text"
FLAG: Final = "flag"

DTYPES: Final[Mapping[str, Any]] = {
    COUNT: np.dtype(np.float64),
    NUMBER: np.dtype(np.float64),
    SECONDS: np.dtype(np.float64),
    TEXT: np.dtype(object),
    FLAG: np.dtype(np.int8),
}
"""Types in memory. Counts are floats, exact to 2^53, so that one that was not made is
NaN, which no mean or minimum of a reader can take for a count."""
COUNT_IN_FILE: Final = {"dtype": "int64", "_FillValue": names.UNCOUNTED}
"""What counts are in a file."""

BY_ANSWER: Final = (names.TRUE_CLASS, names.PREDICTED_CLASS)
"""Trailing dimensions of labeled rows by class and answer, where these are counted."""
BY_TWO_ANSWERS: Final = (names.PREDICTED_CLASS, names.OTHER_CLASS)
"""Those of pool rows by the answers of a fold's model and of the model of all rows."""


@dataclass(frozen=True)
class Variable:
    """One variable of the cube."""

    name: str
    dims: tuple[str, ...]
    """Dimensions, `CANDIDATES` and its like standing for several."""
    kind: str
    """``count``, ``number``, ``seconds``, ``text`` or ``flag``."""
    long_name: str
    """One line that plots and people read."""
    trailing: tuple[str, ...] = ()
    """Dimensions that it may have behind these."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the variable, with CF flags where it is one."""
        attrs: dict[str, Any] = {"long_name": self.long_name}
        if self.kind != TEXT:
            attrs["units"] = "s" if self.kind == SECONDS else "1"
        if self.kind == FLAG:
            attrs["flag_values"] = list(range(len(STATES)))
            attrs["flag_meanings"] = " ".join(STATES)
        return attrs


_EACH = (CANDIDATES,)
_FIT = (CANDIDATES, SPLITS)
_PAIR = (CANDIDATES, COMPARED)
_OUTER = (names.FOLD,)
_JUDGED = (names.CRITERION, CANDIDATES)

# fmt: off
VARIABLES: Final = (
    Variable(names.STATUS, _EACH, FLAG, "what happened to the candidate"),
    Variable(names.MESSAGE, _EACH, TEXT, "why the candidate failed"),
    Variable(names.FOLD_ERRORS, _FIT, COUNT, "errors on the held-out rows", BY_ANSWER),
    Variable(names.FOLD_ROWS, (SPLITS,), COUNT, "held-out rows"),
    Variable(names.FOLD_ANSWERS, _FIT, COUNT,
             "answers behind the errors: several models answer each held-out row"),
    Variable(names.TRAIN_ROWS, (SPLITS,), COUNT, "training rows"),
    Variable(names.TRAIN_ERRORS, _FIT, COUNT, "errors on the training rows"),
    Variable(names.DISAGREEMENTS, _PAIR, COUNT,
             "pool rows given to this split on which its model and the full one differ",
             BY_TWO_ANSWERS),
    Variable(names.POOL_ROWS, _PAIR, COUNT,
             "pool rows given to this split and visited"),
    Variable(names.BEST_FOLD_DISAGREEMENTS, _EACH, COUNT,
             "pool rows on which the best fold's model and the full one differ"),
    Variable(names.LOO_ERRORS, _EACH, COUNT,
             "labeled rows on which the model of all others errs"),
    Variable(names.OUTER_CANDIDATE, _OUTER, COUNT, "candidate chosen without the fold"),
    Variable(names.OUTER_ERRORS, _OUTER, COUNT, "errors on the fold of its model",
             BY_ANSWER),
    Variable(names.OUTER_DISAGREEMENTS, _OUTER, COUNT,
             "pool rows on which its model and the full one differ", BY_TWO_ANSWERS),
    Variable(names.FOLD_LOSSES, _FIT, NUMBER,
             "sum of squared residuals on the held-out rows"),
    Variable(names.LOO_LOSSES, _EACH, NUMBER, "sum of squared leave-one-out residuals"),
    Variable(names.GCV_LOSSES, _EACH, NUMBER,
             "generalised cross-validation score times the labeled rows"),
    Variable(names.EXTRA_LOSS, _EACH, NUMBER,
             "mean squared residual of the full model on extra rows"),
    Variable(names.FIT_SECONDS, _FIT, SECONDS, "time of the fit"),
    Variable(names.SCORE_SECONDS, _PAIR, SECONDS, "time of scoring the pool"),
    Variable(names.FULL_FIT_SECONDS, _EACH, SECONDS, "time of the full fit"),
    Variable(names.N_LABELED, (), COUNT, "labeled rows"),
    Variable(names.N_UNLABELED, (), COUNT, "rows of the pool"),
    Variable(names.N_CLASSES, (), COUNT, "classes"),
    Variable(names.N_CANDIDATES, (), COUNT, "candidates that share delta"),
    Variable(names.EQUAL_ROWS, (), COUNT, "pool rows that equal labeled rows"),
    Variable(names.ESTIMATE, _JUDGED, NUMBER, "the criterion's number, unclipped"),
    Variable(names.LABEL_TERM, _JUDGED, NUMBER,
             "part of the estimate from labeled rows"),
    Variable(names.DISAGREEMENT_TERM, _JUDGED, NUMBER,
             "part of the estimate from the pool"),
    Variable(names.DELTA_SHARE, _JUDGED, NUMBER,
             "probability of failure given to the candidate"),
    Variable(names.DELTA, (names.CRITERION,), NUMBER,
             "probability that the criterion's bounds may fail"),
)
# fmt: on
BY_NAME: Final[Mapping[str, Variable]] = {each.name: each for each in VARIABLES}

EVIDENCE: Final = tuple(
    each.name
    for each in VARIABLES
    if each.kind in (COUNT, NUMBER, FLAG) and names.CRITERION not in each.dims
)
"""Variables that criteria may read."""


def expand(
    dims: tuple[str, ...], parts: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Put the cube's own dimensions in the place of those that stand for them."""
    for dim in dims:
        yield from parts.get(dim, (dim,))
