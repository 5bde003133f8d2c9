"""The variables of the cube: names, dimensions, kinds and what they mean."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.dtypes import StringDType

from dsel import names

SCHEMA_VERSION: Final = 2
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
    TEXT: StringDType(),
    FLAG: np.dtype(np.int8),
}
"""Types in memory. Counts are floats, exact to 2^53, so that one that was not made is
NaN, which no mean or minimum of a reader can take for a count."""
EMPTY: Final[Mapping[str, Any]] = {
    COUNT: np.nan,
    NUMBER: np.nan,
    SECONDS: np.nan,
    TEXT: "",
    FLAG: names.STATUS_MISSING,
}
"""What stands where nothing was counted or computed."""
ENCODING: Final[Mapping[str, Mapping[str, Any]]] = {
    COUNT: {"dtype": "int64", "_FillValue": names.UNCOUNTED}
}
"""What stands for it in a file, where that is something else."""


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
    is_optional: bool = False

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
_INNER = (CANDIDATES, SPLITS, names.INNER_FOLD)
_JUDGED = (names.CRITERION, CANDIDATES)
_RULE = (names.CRITERION,)

Row = tuple[str, tuple[str, ...], str, str]
# fmt: off
_ALWAYS: tuple[Row, ...] = (
    (names.FOLD_ERRORS, _FIT, COUNT, "errors on the held-out rows"),
    (names.FOLD_ROWS, (SPLITS,), COUNT, "held-out rows"),
    (names.TRAIN_ROWS, (SPLITS,), COUNT, "training rows"),
    (names.TRAIN_ERRORS, _FIT, COUNT, "errors on the training rows"),
    (names.FULL_TRAIN_ERRORS, _EACH, COUNT,
     "errors of the full model on all labeled rows"),
    (names.DISAGREEMENTS, _PAIR, COUNT,
     "pool rows given to this split on which its model and the full one differ"),
    (names.POOL_ROWS, _PAIR, COUNT, "pool rows given to this split and visited"),
    (names.BEST_FOLD_DISAGREEMENTS, _EACH, COUNT,
     "pool rows on which the best fold's model and the full one differ"),
    (names.STATUS, _EACH, FLAG, "what happened to the candidate"),
    (names.MESSAGE, _EACH, TEXT, "why the candidate failed"),
    (names.FIT_SECONDS, _FIT, SECONDS, "time of the fit"),
    (names.SCORE_SECONDS, _PAIR, SECONDS, "time of scoring the pool"),
    (names.FULL_FIT_SECONDS, _EACH, SECONDS, "time of the full fit"),
    (names.N_LABELED, (), COUNT, "labeled rows"),
    (names.N_UNLABELED, (), COUNT, "rows of the pool"),
    (names.N_CLASSES, (), COUNT, "classes"),
    (names.N_CANDIDATES, (), COUNT, "candidates that share delta"),
)
_SOMETIMES: tuple[Row, ...] = (
    (names.FOLD_DISAGREEMENTS, _FIT, COUNT,
     "pool rows on which this fold's model and the full one differ"),
    (names.DIFFERING_FOLDS, _FIT, COUNT,
     "pool rows on which fold + 1 fold models differ from the full one"),
    (names.LOO_ERRORS, _EACH, COUNT,
     "labeled rows on which the model of all others errs"),
    (names.INNER_ERRORS, _INNER, COUNT,
     "errors on the inner fold of the model without both folds"),
    (names.INNER_FIT_SECONDS, _INNER, SECONDS, "time of its fit"),
    (names.OUTER_CANDIDATE, (SPLITS,), COUNT, "candidate chosen without the fold"),
    (names.OUTER_ERRORS, (SPLITS,), COUNT, "errors on the fold of its model"),
    (names.OUTER_DISAGREEMENTS, (SPLITS,), COUNT,
     "pool rows on which its model and the full one differ"),
    (names.VOTE_DISAGREEMENTS, (SPLITS,), COUNT,
     "pool rows on which its model and the vote of all folds' models differ"),
    (names.OUTER_TEST_ERRORS, (SPLITS,), COUNT, "its errors on labeled test rows"),
    (names.VOTE_TEST_ERRORS, (), COUNT, "errors of the vote on labeled test rows"),
    (names.FULL_TEST_ERRORS, _EACH, COUNT,
     "errors of the full model on labeled test rows"),
    (names.HALF_TEST_ERRORS, _FIT, COUNT,
     "errors of the half model on labeled test rows"),
    (names.TEST_ROWS, (), COUNT, "labeled test rows"),
    (names.FOLD_LOSSES, _FIT, NUMBER, "sum of squared residuals on the held-out rows"),
    (names.LOO_LOSSES, _EACH, NUMBER, "sum of squared leave-one-out residuals"),
    (names.GCV_LOSSES, _EACH, NUMBER,
     "generalised cross-validation score times the labeled rows"),
    (names.EXTRA_LOSS, _EACH, NUMBER,
     "mean squared residual of the full model on extra rows"),
    (names.N_STAGES, (), COUNT,
     "stages of the pool that divide delta; 0 where its limits hold at every row"),
    (names.ESTIMATE, _JUDGED, NUMBER, "the criterion's number, unclipped"),
    (names.LABEL_TERM, _JUDGED, NUMBER, "part of the estimate from labeled rows"),
    (names.DISAGREEMENT_TERM, _JUDGED, NUMBER, "part of the estimate from the pool"),
    (names.DELTA_SHARE, _JUDGED, NUMBER,
     "probability of failure given to the candidate"),
    (names.DELTA, _RULE, NUMBER, "probability that the criterion's bounds may fail"),
    (names.LABEL_SHARE, _RULE, NUMBER, "part of delta given to the label term"),
)
# fmt: on

VARIABLES: Final = (
    *(Variable(*each) for each in _ALWAYS),
    *(Variable(*each, is_optional=True) for each in _SOMETIMES),
)
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
