"""The variables of the cube: names, dimensions, types and what they mean."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.dtypes import StringDType

from dsel import names

SCHEMA_VERSION: Final = 1
"""Raised whenever a reader of the old schema could misread a cube."""

DONE: Final = 0
PRUNED: Final = 1
FAILED: Final = 2
MISSING: Final = 3

CHECKED: Final = "checked"
DECLARED: Final = "declared"
VIOLATED: Final = "violated"
ASSUMPTION_STATES: Final = (CHECKED, DECLARED, VIOLATED)

# Stand for the dimensions that vary from cube to cube.
CANDIDATES: Final = "*candidates"
TRAININGS: Final = "*trainings"
COMPARED: Final = "*compared"

COUNT: Final = "count"
NUMBER: Final = "number"
TEXT: Final = "text"
FLAG: Final = "flag"

DTYPES: Final[Mapping[str, Any]] = {
    COUNT: np.dtype(np.int64),
    NUMBER: np.dtype(np.float64),
    TEXT: StringDType(),
    FLAG: np.dtype(np.int8),
}
EMPTY: Final[Mapping[str, Any]] = {
    COUNT: names.UNCOUNTED,
    NUMBER: np.nan,
    TEXT: "",
    FLAG: MISSING,
}
"""What stands where nothing was counted or computed."""


@dataclass(frozen=True)
class Variable:
    """One variable of the cube."""

    name: str
    """As in `dsel.names`."""
    dims: tuple[str, ...]
    """Dimensions, `CANDIDATES` and its like standing for several."""
    kind: str
    """``count``, ``number``, ``text`` or ``flag``."""
    long_name: str
    """One line that plots and people read."""
    units: str = "1"
    """``1`` for counts and rates, ``s`` for seconds."""
    is_optional: bool = False
    """Whether a cube may lack it."""
    flags: tuple[str, ...] = ()
    """Meanings of the values 0, 1, ... of a flag."""

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the variable, with CF flags where it is one."""
        attrs: dict[str, Any] = {"long_name": self.long_name}
        if self.kind != TEXT:
            attrs["units"] = self.units
        if self.flags:
            attrs["flag_values"] = list(range(len(self.flags)))
            attrs["flag_meanings"] = " ".join(self.flags)
        return attrs


_CELL = (CANDIDATES, TRAININGS)
_PAIR = (CANDIDATES, COMPARED)
_CRITERION = (names.CRITERION, CANDIDATES)

VARIABLES: Final = (
    Variable(names.FOLD_ERRORS, _CELL, COUNT, "errors on the held-out rows"),
    Variable(names.FOLD_ROWS, (TRAININGS,), COUNT, "held-out rows"),
    Variable(names.TRAIN_ROWS, (TRAININGS,), COUNT, "training rows"),
    Variable(names.TRAIN_ERRORS, _CELL, COUNT, "errors on the training rows"),
    Variable(
        names.FULL_TRAIN_ERRORS,
        (CANDIDATES,),
        COUNT,
        "errors of the full model on all labeled rows",
    ),
    Variable(
        names.DISAGREEMENTS,
        _PAIR,
        COUNT,
        "pool rows given to this training on which its model and the full one differ",
    ),
    Variable(
        names.POOL_ROWS, _PAIR, COUNT, "pool rows given to this training and visited"
    ),
    Variable(
        names.BEST_FOLD_DISAGREEMENTS,
        (CANDIDATES,),
        COUNT,
        "pool rows on which the best fold's model and the full one differ",
    ),
    Variable(
        names.FOLD_DISAGREEMENTS,
        _CELL,
        COUNT,
        "pool rows on which this fold's model and the full one differ",
        is_optional=True,
    ),
    Variable(
        names.DIFFERING_FOLDS,
        _CELL,
        COUNT,
        "pool rows on which fold + 1 fold models differ from the full one",
        is_optional=True,
    ),
    Variable(
        names.LOO_ERRORS,
        (CANDIDATES,),
        COUNT,
        "labeled rows on which the model of all others errs",
        is_optional=True,
    ),
    Variable(
        names.FULL_TEST_ERRORS,
        (CANDIDATES,),
        COUNT,
        "errors of the full model on labeled test rows",
        is_optional=True,
    ),
    Variable(
        names.HALF_TEST_ERRORS,
        _CELL,
        COUNT,
        "errors of the half model on labeled test rows",
        is_optional=True,
    ),
    Variable(names.TEST_ROWS, (), COUNT, "labeled test rows", is_optional=True),
    Variable(
        names.FOLD_LOSSES,
        _CELL,
        NUMBER,
        "sum of squared residuals on the held-out rows",
        is_optional=True,
    ),
    Variable(
        names.LOO_LOSSES,
        (CANDIDATES,),
        NUMBER,
        "sum of squared leave-one-out residuals",
        is_optional=True,
    ),
    Variable(
        names.GCV_LOSSES,
        (CANDIDATES,),
        NUMBER,
        "generalised cross-validation score times the labeled rows",
        is_optional=True,
    ),
    Variable(
        names.EXTRA_LOSS,
        (CANDIDATES,),
        NUMBER,
        "mean squared residual of the full model on extra rows",
        is_optional=True,
    ),
    Variable(
        names.STATUS,
        (CANDIDATES,),
        FLAG,
        "what happened to the candidate",
        flags=("done", "pruned", "failed", "missing"),
    ),
    Variable(names.MESSAGE, (CANDIDATES,), TEXT, "why the candidate failed"),
    Variable(names.FIT_SECONDS, _CELL, NUMBER, "time of the fit", "s"),
    Variable(names.SCORE_SECONDS, _PAIR, NUMBER, "time of scoring the pool", "s"),
    Variable(
        names.FULL_FIT_SECONDS, (CANDIDATES,), NUMBER, "time of the full fit", "s"
    ),
    Variable(names.N_LABELED, (), COUNT, "labeled rows"),
    Variable(names.N_UNLABELED, (), COUNT, "rows of the pool"),
    Variable(names.N_CLASSES, (), COUNT, "classes"),
    Variable(names.N_CANDIDATES, (), COUNT, "candidates that share delta"),
    Variable(
        names.N_LOOKS,
        (),
        COUNT,
        "looks at the pool that divide delta; 0 where its limits hold at every row",
        is_optional=True,
    ),
    Variable(
        names.LOOK_ROWS,
        (names.LOOK,),
        COUNT,
        "pool rows up to each look",
        is_optional=True,
    ),
    Variable(
        names.ESTIMATE,
        _CRITERION,
        NUMBER,
        "the criterion's number, unclipped",
        is_optional=True,
    ),
    Variable(
        names.LABEL_TERM,
        _CRITERION,
        NUMBER,
        "part of the estimate from labeled rows",
        is_optional=True,
    ),
    Variable(
        names.DISAGREEMENT_TERM,
        _CRITERION,
        NUMBER,
        "part of the estimate from the pool",
        is_optional=True,
    ),
    Variable(
        names.DELTA_SHARE,
        _CRITERION,
        NUMBER,
        "probability of failure given to the candidate",
        is_optional=True,
    ),
    Variable(
        names.DELTA,
        (names.CRITERION,),
        NUMBER,
        "probability that the criterion's bounds may fail",
        is_optional=True,
    ),
    Variable(
        names.LABEL_SHARE,
        (names.CRITERION,),
        NUMBER,
        "part of delta given to the label term",
        is_optional=True,
    ),
    Variable(
        names.SPENT_BY,
        (names.SPENDING,),
        TEXT,
        "certificate that rests on the event",
        is_optional=True,
    ),
    Variable(
        names.SPENT_ON,
        (names.SPENDING,),
        TEXT,
        "event that may fail",
        is_optional=True,
    ),
    Variable(
        names.SPENT_DELTA,
        (names.SPENDING,),
        NUMBER,
        "probability with which the event may fail",
        is_optional=True,
    ),
    Variable(
        names.DECLARED_DELTA,
        (),
        NUMBER,
        "probability declared for all that is ever read, the reserve included",
        is_optional=True,
    ),
    Variable(
        names.DELTA_RESERVE,
        (),
        NUMBER,
        "part of it kept for what is added later",
        is_optional=True,
    ),
    Variable(
        names.ASSUMPTIONS,
        (names.ASSUMPTION,),
        FLAG,
        "whether the assumption holds",
        flags=ASSUMPTION_STATES,
    ),
    Variable(names.REASON, (names.ASSUMPTION,), TEXT, "why the assumption stands so"),
)

BY_NAME: Final[Mapping[str, Variable]] = {each.name: each for each in VARIABLES}

EVIDENCE: Final = tuple(
    each.name
    for each in VARIABLES
    if each.kind != TEXT
    and each.units != "s"
    and not {names.CRITERION, names.SPENDING, names.ASSUMPTION} & set(each.dims)
    and each.name not in {names.DECLARED_DELTA, names.DELTA_RESERVE}
)
"""Variables that criteria may read."""


def expand(
    dims: tuple[str, ...], parts: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Put the cube's own dimensions in the place of those that stand for them."""
    for dim in dims:
        yield from parts.get(dim, (dim,))
