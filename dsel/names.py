"""Dimensions and variables of the results cube: each name stands here and nowhere else.

To add a variable: its name, and its line in `VARIABLES`.
"""

from typing import Final, NamedTuple

# Dimensions.
FOLD: Final = "fold"
CRITERION: Final = "criterion"
CANDIDATE: Final = "candidate"
REPEAT: Final = "repeat"
HALF: Final = "half"
WIDTH: Final = "width"
REGULARIZATION: Final = "regularization"
PAIR: Final = "pair"
SIDE: Final = "side"
TRUE_CLASS: Final = "true_class"
PREDICTED_CLASS: Final = "predicted_class"
OTHER_CLASS: Final = "other_class"

# Counts: whole numbers, NaN in the cube where nothing was counted.
FOLD_ERRORS: Final = "fold_errors"
FOLD_ROWS: Final = "fold_rows"
FOLD_ANSWERS: Final = "fold_answers"
FOLD_LOSS_MEAN: Final = "fold_loss_mean"
TRAIN_ERRORS: Final = "train_errors"
TRAIN_ROWS: Final = "train_rows"
DISAGREEMENTS: Final = "disagreements"
POOL_ROWS: Final = "pool_rows"
BEST_FOLD_DISAGREEMENTS: Final = "best_fold_disagreements"
LOO_ERRORS: Final = "loo_errors"
OUTER_CANDIDATE: Final = "outer_candidate"
OUTER_ERRORS: Final = "outer_errors"
OUTER_DISAGREEMENTS: Final = "outer_disagreements"
OUTER_CONFUSION: Final = "outer_confusion"
OUTER_ANSWERS: Final = "outer_answers"

# Squared residuals of least squares, over rows: sums and a mean, as they are called.
FOLD_LOSS_SUM: Final = "fold_loss_sum"
LOO_LOSS_SUM: Final = "loo_loss_sum"
GCV_LOSS_SUM: Final = "gcv_loss_sum"
EXTRA_LOSS_MEAN: Final = "extra_loss_mean"

# What happened to a candidate, and how long it took.
STATUS: Final = "status"
MESSAGE: Final = "message"
FIT_SECONDS: Final = "fit_seconds"
SCORE_SECONDS: Final = "score_seconds"
FULL_FIT_SECONDS: Final = "full_fit_seconds"

# Scalars that the bounds need beside the counts.
N_LABELED: Final = "n_labeled"
N_UNLABELED: Final = "n_unlabeled"
N_CLASSES: Final = "n_classes"
N_CANDIDATES: Final = "n_candidates"
EQUAL_ROWS: Final = "equal_rows"

# What a criterion makes of the evidence.
ESTIMATE: Final = "estimate"
LABEL_TERM: Final = "label_term"
DISAGREEMENT_TERM: Final = "disagreement_term"
DELTA_SHARE: Final = "delta_share"
DELTA: Final = "delta"

# Attributes: the assumptions, in JSON; which models the fold errors are of; and, of a
# coordinate of folds or halves, how many the search has.
ASSUMPTIONS: Final = "assumptions"
FOLD_ERROR_KIND: Final = "fold_error_kind"
N_SPLITS: Final = "n_splits"

# The bound planner.
CERTIFICATE: Final = "certificate"
N_FOLDS: Final = "n_folds"
BOUND: Final = "bound"

UNCOUNTED: Final = -1
"""Integer for what was not counted, for the mathematics and in files."""

STATUS_DONE: Final = 0
STATUS_PRUNED: Final = 1
STATUS_FAILED: Final = 2
STATUS_MISSING: Final = 3
STATES: Final = ("done", "pruned", "failed", "missing")
"""What these mean."""

# Stand for the dimensions that vary from cube to cube: those of candidates, those of
# splits, and those of splits that count disagreements, which are all but the halves.
CANDIDATES: Final = "*candidates"
SPLITS: Final = "*splits"
COMPARED: Final = "*compared"


class Variable(NamedTuple):
    """One variable of the cube."""

    name: str
    dims: tuple[str, ...]
    """Dimensions, `CANDIDATES` and its like standing for several."""
    kind: str
    """``count``, ``number``, ``seconds``, ``text`` or ``flag``."""
    long_name: str
    """One line that plots and people read."""


_EACH = (CANDIDATES,)
_FIT = (CANDIDATES, SPLITS)
_PAIR = (CANDIDATES, COMPARED)
_OUTER = (FOLD,)
_JUDGED = (CRITERION, CANDIDATES)

# fmt: off
VARIABLES: Final = (
    Variable(STATUS, _EACH, "flag", "what happened to the candidate"),
    Variable(MESSAGE, _EACH, "text", "why the candidate failed"),
    Variable(FOLD_ERRORS, _FIT, "count", "errors on the held-out rows"),
    Variable(FOLD_LOSS_MEAN, _FIT, "number",
             "mean loss on the held-out rows of models without them"),
    Variable(FOLD_ROWS, (SPLITS,), "count", "held-out rows"),
    Variable(FOLD_ANSWERS, _FIT, "count",
             "answers behind the errors: several models answer each held-out row"),
    Variable(TRAIN_ROWS, (SPLITS,), "count", "training rows"),
    Variable(TRAIN_ERRORS, _FIT, "count", "errors on the training rows"),
    Variable(DISAGREEMENTS, _PAIR, "count",
             "pool rows of this split on which its model and the full one differ"),
    Variable(POOL_ROWS, _PAIR, "count", "pool rows of this split that were visited"),
    Variable(BEST_FOLD_DISAGREEMENTS, _EACH, "count",
             "pool rows on which the best fold's model and the full one differ"),
    Variable(LOO_ERRORS, _EACH, "count",
             "labeled rows on which the model of all others errs"),
    Variable(OUTER_CANDIDATE, _OUTER, "count", "candidate chosen without the fold"),
    Variable(OUTER_ERRORS, _OUTER, "count", "errors on the fold of its model"),
    Variable(OUTER_DISAGREEMENTS, _OUTER, "count",
             "pool rows on which its model and the full one differ"),
    Variable(FOLD_LOSS_SUM, _FIT, "number",
             "sum of squared residuals on the held-out rows"),
    Variable(LOO_LOSS_SUM, _EACH, "number", "sum of squared leave-one-out residuals"),
    Variable(GCV_LOSS_SUM, _EACH, "number",
             "generalised cross-validation score times the labeled rows"),
    Variable(EXTRA_LOSS_MEAN, _EACH, "number",
             "mean squared residual of the full model on extra rows"),
    Variable(FIT_SECONDS, _FIT, "seconds", "time of the fit"),
    Variable(SCORE_SECONDS, _PAIR, "seconds", "time of scoring the pool"),
    Variable(FULL_FIT_SECONDS, _EACH, "seconds", "time of the full fit"),
    Variable(N_LABELED, (), "count", "labeled rows"),
    Variable(N_UNLABELED, (), "count", "rows of the pool"),
    Variable(N_CLASSES, (), "count", "classes"),
    Variable(N_CANDIDATES, (), "count", "candidates that share delta"),
    Variable(EQUAL_ROWS, (), "count", "pool rows that equal labeled rows"),
    Variable(ESTIMATE, _JUDGED, "number", "the criterion's number, unclipped"),
    Variable(LABEL_TERM, _JUDGED, "number", "part of the estimate from labeled rows"),
    Variable(DISAGREEMENT_TERM, _JUDGED, "number",
             "part of the estimate from the pool"),
    Variable(DELTA_SHARE, _JUDGED, "number",
             "probability of failure given to the candidate"),
    Variable(DELTA, (CRITERION,), "number",
             "probability that the criterion's bounds may fail"),
)
# fmt: on
BY_NAME: Final = {each.name: each for each in VARIABLES}

RESERVED: Final = frozenset({
    FOLD, CRITERION, CANDIDATE, REPEAT, HALF, WIDTH, REGULARIZATION, PAIR, SIDE,
    TRUE_CLASS, PREDICTED_CLASS, OTHER_CLASS, *BY_NAME,
})  # fmt: skip
"""Names that a grid parameter may not take: its dimension is ``param_<name>`` then."""
