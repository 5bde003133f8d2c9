"""Dimension, variable and criterion names: each string stands here and nowhere else."""

from typing import Final

# Dimensions of the results cube.
FOLD: Final = "fold"
INNER_FOLD: Final = "inner_fold"
CRITERION: Final = "criterion"
CANDIDATE: Final = "candidate"
REPEAT: Final = "repeat"
HALF: Final = "half"
WIDTH: Final = "width"
REGULARIZATION: Final = "regularization"
ROW: Final = "row"
POOL_ROW: Final = "pool_row"
PAIR: Final = "pair"
SIDE: Final = "side"
TRUE_CLASS: Final = "true_class"
PREDICTED_CLASS: Final = "predicted_class"
OTHER_CLASS: Final = "other_class"

# Counts: whole numbers, NaN in the cube where nothing was counted.
FOLD_ERRORS: Final = "fold_errors"
FOLD_ROWS: Final = "fold_rows"
FOLD_ANSWERS: Final = "fold_answers"
TRAIN_ERRORS: Final = "train_errors"
TRAIN_ROWS: Final = "train_rows"
FULL_TRAIN_ERRORS: Final = "full_train_errors"
DISAGREEMENTS: Final = "disagreements"
POOL_ROWS: Final = "pool_rows"
BEST_FOLD_DISAGREEMENTS: Final = "best_fold_disagreements"
FOLD_DISAGREEMENTS: Final = "fold_disagreements"
DIFFERING_FOLDS: Final = "differing_folds"
LOO_ERRORS: Final = "loo_errors"
INNER_ERRORS: Final = "inner_errors"
OUTER_CANDIDATE: Final = "outer_candidate"
OUTER_ERRORS: Final = "outer_errors"
OUTER_DISAGREEMENTS: Final = "outer_disagreements"
VOTE_DISAGREEMENTS: Final = "vote_disagreements"
OUTER_TEST_ERRORS: Final = "outer_test_errors"
VOTE_TEST_ERRORS: Final = "vote_test_errors"
FULL_TEST_ERRORS: Final = "full_test_errors"
HALF_TEST_ERRORS: Final = "half_test_errors"
TEST_ROWS: Final = "test_rows"

# Sums of squared residuals of least squares, float64.
FOLD_LOSSES: Final = "fold_losses"
LOO_LOSSES: Final = "loo_losses"
GCV_LOSSES: Final = "gcv_losses"
EXTRA_LOSS: Final = "extra_loss"

# What happened to a candidate, and how long it took.
STATUS: Final = "status"
MESSAGE: Final = "message"
FIT_SECONDS: Final = "fit_seconds"
SCORE_SECONDS: Final = "score_seconds"
FULL_FIT_SECONDS: Final = "full_fit_seconds"
INNER_FIT_SECONDS: Final = "inner_fit_seconds"

# Scalars that the bounds need beside the counts.
N_LABELED: Final = "n_labeled"
N_UNLABELED: Final = "n_unlabeled"
N_CLASSES: Final = "n_classes"
N_CANDIDATES: Final = "n_candidates"
EQUAL_ROWS: Final = "equal_rows"

# Places at which reading the pool may stop; only where it may stop before the end.
# The rows up to each are an attribute in JSON.
N_STAGES: Final = "n_stages"
STAGE_ROWS: Final = "stage_rows"

# What a criterion makes of the evidence.
ESTIMATE: Final = "estimate"
LABEL_TERM: Final = "label_term"
DISAGREEMENT_TERM: Final = "disagreement_term"
DELTA_SHARE: Final = "delta_share"
DELTA: Final = "delta"
LABEL_SHARE: Final = "label_share"

# Attributes in JSON behind `certified`: assumptions, and what delta was spent on.
ASSUMPTIONS: Final = "assumptions"
SPENT: Final = "spent"
# Attribute that says which models the fold errors are of.
FOLD_ERROR_KIND: Final = "fold_error_kind"
# Attribute of a coordinate of folds or halves: how many the search has.
N_SPLITS: Final = "n_splits"

# The bound planner.
CERTIFICATE: Final = "certificate"
N_FOLDS: Final = "n_folds"
CERTIFY_SHARE: Final = "certify_share"
BOUND: Final = "bound"
CERTIFY_BOUND: Final = "certify_bound"

UNCOUNTED: Final = -1
"""Integer for what was not counted, for the mathematics and in files."""

STATUS_DONE: Final = 0
STATUS_PRUNED: Final = 1
STATUS_FAILED: Final = 2
STATUS_MISSING: Final = 3

RESERVED: Final = frozenset(
    {
        FOLD, CRITERION, CANDIDATE, REPEAT, HALF, WIDTH, REGULARIZATION, ROW, POOL_ROW,
        FOLD_ANSWERS, EQUAL_ROWS, PAIR, SIDE, TRUE_CLASS, PREDICTED_CLASS, OTHER_CLASS,
        FOLD_ERRORS, FOLD_ROWS, TRAIN_ERRORS, TRAIN_ROWS, FULL_TRAIN_ERRORS,
        DISAGREEMENTS, POOL_ROWS, BEST_FOLD_DISAGREEMENTS, FOLD_DISAGREEMENTS,
        DIFFERING_FOLDS, LOO_ERRORS, FULL_TEST_ERRORS, HALF_TEST_ERRORS, TEST_ROWS,
        FOLD_LOSSES, LOO_LOSSES, GCV_LOSSES, EXTRA_LOSS, STATUS, MESSAGE, FIT_SECONDS,
        SCORE_SECONDS, FULL_FIT_SECONDS, N_LABELED, N_UNLABELED, N_CLASSES,
        N_CANDIDATES, N_STAGES, ESTIMATE, LABEL_TERM, DISAGREEMENT_TERM, DELTA_SHARE,
        DELTA, LABEL_SHARE, INNER_FOLD, INNER_ERRORS, OUTER_CANDIDATE, OUTER_ERRORS,
        OUTER_DISAGREEMENTS, VOTE_DISAGREEMENTS, OUTER_TEST_ERRORS, VOTE_TEST_ERRORS,
        INNER_FIT_SECONDS,
    }
)  # fmt: skip
"""Names that a grid parameter may not take as its dimension."""


def parameter_dimension(parameter: str) -> str:
    """Return the dimension of a grid parameter: its name, or ``param_<name>`` if taken.

    Examples
    --------
    >>> parameter_dimension("gamma"), parameter_dimension("criterion")
    ('gamma', 'param_criterion')
    """
    return f"param_{parameter}" if parameter in RESERVED else parameter
