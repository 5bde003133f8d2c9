"""Dimensions and variables of the results cube: each name is written here only.

To add a variable, write its line below the variables that precede it in a cube.
"""

from functools import partial
from typing import Final, NamedTuple


class Variable(NamedTuple):
    """One variable of the cube."""

    kind: str
    """``count``, ``number``, ``seconds``, ``text`` or ``flag``."""
    name: str
    dims: tuple[str, ...]
    """Dimensions, among which `CANDIDATES` and others stand for several."""
    long_name: str
    """Description in one line, for plots and readers."""
    meanings: tuple[str, ...] = ()
    """Meanings of the values 0, 1, ... of a flag."""


BY_NAME: Final[dict[str, Variable]] = {}


def _variable(
    kind: str,
    name: str,
    dims: tuple[str, ...],
    long_name: str,
    meanings: tuple[str, ...] = (),
) -> str:
    """Register a variable of the cube and return its name."""
    BY_NAME[name] = Variable(kind, name, dims, long_name, meanings)
    return name


_DIMENSIONS: Final[set[str]] = set()


def _dimension(name: str) -> str:
    _DIMENSIONS.add(name)
    return name


_STATISTICS: Final[set[str]] = set()


def _statistic(name: str) -> str:
    _STATISTICS.add(name)
    return name


# Dimensions. A parameter of a grid with such a name becomes ``param_<name>``.
FOLD: Final = _dimension("fold")
CRITERION: Final = _dimension("criterion")
CANDIDATE: Final = _dimension("candidate")
REPEAT: Final = _dimension("repeat")
HALF: Final = _dimension("half")
WIDTH: Final = _dimension("width")
REGULARIZATION: Final = _dimension("regularization")
PAIR: Final = _dimension("pair")
SIDE: Final = _dimension("side")
TRUE_CLASS: Final = _dimension("true_class")
PREDICTED_CLASS: Final = _dimension("predicted_class")
OTHER_CLASS: Final = _dimension("other_class")
COLUMN_VALUE: Final = _dimension("column_value")
COLUMN_COUNT: Final = _dimension("column_count")
COLUMN_DIFFERENCE: Final = _dimension("column_difference")
COLUMN_RANK: Final = _dimension("column_rank")
RANK: Final = _dimension("rank")
DEVIATION_BIN: Final = _dimension("deviation_bin")
EXCEEDED: Final = _dimension("exceeded")
RIGHT_ALONE: Final = _dimension("right_alone")
POOL_ROW: Final = "pool_row"
COLUMN: Final = "column"
OUTPUT: Final = "output"

STATES: Final = ("done", "pruned", "failed", "missing")
"""Names of the states of a candidate, by their number."""
PROBLEMS: Final = ("none", "failed", "stopped", "unpredicted", "partly")
"""Problems that a candidate's message is about, by their number in a cube."""

# Stand for the dimensions that vary from cube to cube: those of candidates, those of
# splits, and those of splits that count disagreements, which are all but the halves.
CANDIDATES: Final = "*candidates"
SPLITS: Final = "*splits"
COMPARED: Final = "*compared"

_EACH = (CANDIDATES,)
_FIT = (CANDIDATES, SPLITS)
_PAIR = (CANDIDATES, COMPARED)
OUTER = (FOLD,)
_JUDGED = (CRITERION, CANDIDATES)
_count = partial(_variable, "count")  # whole, NaN in the cube where nothing was counted
_number = partial(_variable, "number")
_seconds = partial(_variable, "seconds")

# fmt: off
STATUS = _variable("flag", "status", _EACH, "what happened to the candidate",
    STATES)
MESSAGE = _variable("text", "message", _EACH, "why the candidate failed")
# The problem is a number, since texts break `mean`, `quantile` and other methods of
# xarray.
FIT_PROBLEM = _variable("flag", "fit_problem", _EACH, "problem of the candidate's fits",
    PROBLEMS)
FOLD_ERRORS = _count("fold_errors", _FIT, "errors on the held-out rows")
ERROR = _number("error", _FIT,
    "errors on the held-out rows divided by the predictions behind them, in [0, 1]")
FOLD_LOSS_MEAN = _number("fold_loss_mean", _FIT,
    "mean loss on the held-out rows of models without them")
VALIDATION_ERRORS = _count("validation_errors", _EACH,
    "errors on the validation rows of the model trained without them")
VALIDATION_ROWS = _count("validation_rows", (), "rows held out for validation")
FOLD_ROWS = _count("fold_rows", (SPLITS,), "held-out rows")
# Its name in cubes, and that of OUTER_PREDICTIONS, are those of 0.2.
FOLD_PREDICTIONS = _count("fold_answers", _FIT,
    "predictions behind the errors: several models predict each held-out row")
TRAIN_ROWS = _count("train_rows", (SPLITS,), "training rows")
TRAIN_ERRORS = _count("train_errors", _FIT, "errors on the training rows")
DISAGREEMENTS = _count("disagreements", _PAIR,
    "pool rows of this split on which its model and that of all rows differ")
POOL_ROWS = _count("pool_rows", _PAIR, "pool rows of this split that were visited")
BEST_FOLD_DISAGREEMENTS = _count("best_fold_disagreements", _EACH,
    "pool rows on which the best fold's model and that of all rows differ")
LOO_ERRORS = _count("loo_errors", _EACH,
    "labeled rows on which the model of all others errs")
OUTER_CANDIDATE = _count("outer_candidate", OUTER, "candidate chosen without the fold")
OUTER_ERRORS = _count("outer_errors", OUTER, "errors on the fold of its model")
OUTER_DISAGREEMENTS = _count("outer_disagreements", OUTER,
    "pool rows on which its model and that of all rows differ")
OUTER_DUPLICATE_DISAGREEMENTS = _count("outer_duplicate_disagreements", OUTER,
    "pool rows among these that equal labeled rows")
FOLD_LOSS_SUM = _number("fold_loss_sum", _FIT,
    "sum of squared residuals on the held-out rows")
LOO_LOSS_SUM = _number("loo_loss_sum", _EACH, "sum of squared leave-one-out residuals")
GCV_LOSS_SUM = _number("gcv_loss_sum", _EACH,
    "generalised cross-validation score times the labeled rows")
EXTRA_LOSS_MEAN = _number("extra_loss_mean", _EACH,
    "mean squared residual of the model of all rows on extra rows")
FIT_SECONDS = _seconds("fit_seconds", _FIT, "time of the fit")
SCORE_SECONDS = _seconds("score_seconds", _PAIR, "time of scoring the pool")
FULL_FIT_SECONDS = _seconds("full_fit_seconds", _EACH, "time of the fit on all rows")
N_LABELED = _count("n_labeled", (), "labeled rows")
N_GROUPS = _count("n_groups", (), "groups of labeled rows, one row of each counted")
N_UNLABELED = _count("n_unlabeled", (), "rows of the pool")
N_CLASSES = _count("n_classes", (), "classes")
N_CANDIDATES = _count("n_candidates", _EACH, "candidates that share delta")
# Its name in cubes is that of 0.2: it is 0 for a pool that was declared to hold other
# records, however many of its rows equal labeled ones.
N_DUPLICATES = _count("equal_rows", (),
    "pool rows that equal labeled rows; 0 if other records were declared")
# Its name in cubes is that of 0.2: of a certificate it is a bound.
CRITERION_VALUE = _number("estimate", _JUDGED, "value of the criterion, unclipped")
LABEL_TERM = _number("label_term", _JUDGED, "part of the value from labeled rows")
DISAGREEMENT_TERM = _number("disagreement_term", _JUDGED,
    "part of the value from the pool")
CANDIDATE_DELTA = _number("candidate_delta", _JUDGED,
    "probability that the bound of the candidate may fail; missing of an estimate")
PRIOR_SHARE = _number("prior_share", _EACH,
    "share of delta that the prior gives to the candidate")
DELTA = _number("delta", (CRITERION,),
    "probability that the criterion's bounds may fail; NaN of an estimate")
# fmt: on
VARIABLES: Final = tuple(BY_NAME.values())
OUTER_CONFUSION: Final = _statistic("outer_confusion")
OUTER_PREDICTIONS: Final = _statistic("outer_answers")
OUTER_DUPLICATE_PREDICTIONS: Final = _statistic("outer_duplicate_answers")
OUTER_VALUE_COUNTS: Final = _statistic("outer_value_counts")
OUTER_VALUE_DIFFERENCES: Final = _statistic("outer_value_differences")
OUTER_DUPLICATE_VALUE_DIFFERENCES: Final = _statistic(
    "outer_duplicate_value_differences"
)
OUTER_RESIDUALS: Final = _statistic("outer_residuals")
OUTER_DEVIATIONS: Final = _statistic("outer_deviations")
OUTER_DUPLICATE_DEVIATIONS: Final = _statistic("outer_duplicate_deviations")
OUTER_RIGHT_ALONE: Final = _statistic("outer_right_alone")
OUTER_EXCEEDANCES: Final = _statistic("outer_exceedances")
OUTER_APART: Final = _statistic("outer_apart")
OUTER_DUPLICATE_APART: Final = _statistic("outer_duplicate_apart")

# Attributes: caveats and assumptions, in JSON; which models the fold errors are of;
# and, of a coordinate of folds or halves, how many the search has.
CLASS_ROWS: Final = "class_rows"
"""Attribute: labeled rows of each class."""
CLASS_GROUPS: Final = "class_groups"
"""Attribute: groups whose counted row is of each class, where rows come in groups."""
CONSTANT: Final = "constant_prediction"
"""Attribute: the best constant prediction, a class or the median, and its loss."""
COPIED_ROWS: Final = "copied_rows"
"""Attribute: labeled rows that equal rows of other folds, if these are many."""
CAVEATS: Final = "caveats"
ASSUMPTIONS: Final = "assumptions"
CHOICE: Final = "choice"
"""Attribute of a search's cube: the run's choice, with its certificates."""
FOLD_ERROR_KIND: Final = "fold_error_kind"
INNER_MODELS: Final = "models trained without this fold and one other fold"
"""Value of `FOLD_ERROR_KIND` in a nested search that compares candidates."""
LEARNERS: Final = "learners"
"""Attribute: class names of the candidates, of a pipeline with those of its steps."""
N_SPLITS: Final = "n_splits"
INTEGERS: Final = "integers"
"""Attribute of a parameter's coordinate of floats: the values that were integers."""

# Criteria of a nonconformity classifier's cube; a percentage follows the second name.
VALIDATION_ERROR: Final = "validation_error"
CRITICAL_EPSILON: Final = "critical_epsilon"

# The bound planner.
CERTIFICATE: Final = "certificate"
N_FOLDS: Final = "n_folds"
BOUND: Final = "bound"

UNCOUNTED: Final = -1
"""Integer in place of a count that was not made, in computations and in files."""

NO_CLASS: Final = -1
"""Code of a label or prediction that is no class of the plan, as is any below it."""

STATUS_DONE: Final = 0
STATUS_PRUNED: Final = 1
STATUS_FAILED: Final = 2
STATUS_MISSING: Final = 3
RESERVED: Final = frozenset({*_DIMENSIONS, *BY_NAME, *_STATISTICS})
"""Names of the cube: a grid parameter with one has the dimension ``param_<name>``."""
