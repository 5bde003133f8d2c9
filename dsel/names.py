"""Dimension, variable and criterion names: each string stands here and nowhere else."""

from typing import Final

# Dimensions of the results cube.
FOLD: Final = "fold"
CRITERION: Final = "criterion"
CANDIDATE: Final = "candidate"
ASSUMPTION: Final = "assumption"
REPEAT: Final = "repeat"
HALF: Final = "half"
WIDTH: Final = "width"
REGULARIZATION: Final = "regularization"
ROW: Final = "row"
POOL_ROW: Final = "pool_row"
LOOK: Final = "look"

# Evidence: integer counts, -1 where nothing was counted.
FOLD_ERRORS: Final = "fold_errors"
FOLD_ROWS: Final = "fold_rows"
TRAIN_ERRORS: Final = "train_errors"
TRAIN_ROWS: Final = "train_rows"
FULL_TRAIN_ERRORS: Final = "full_train_errors"
DISAGREEMENTS: Final = "disagreements"
POOL_ROWS: Final = "pool_rows"
BEST_FOLD_DISAGREEMENTS: Final = "best_fold_disagreements"
FOLD_DISAGREEMENTS: Final = "fold_disagreements"
DIFFERING_FOLDS: Final = "differing_folds"
LOO_ERRORS: Final = "loo_errors"
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

# Scalars that the bounds need beside the counts.
N_LABELED: Final = "n_labeled"
N_UNLABELED: Final = "n_unlabeled"
N_CLASSES: Final = "n_classes"
N_CANDIDATES: Final = "n_candidates"

# Places at which reading the pool may stop; only where it may stop before the end.
N_LOOKS: Final = "n_looks"
LOOK_ROWS: Final = "look_rows"

# What a criterion makes of the evidence.
ESTIMATE: Final = "estimate"
LABEL_TERM: Final = "label_term"
DISAGREEMENT_TERM: Final = "disagreement_term"
DELTA_SHARE: Final = "delta_share"
DELTA: Final = "delta"
LABEL_SHARE: Final = "label_share"

# Who spent which share of delta: one entry for each event behind each read-out.
SPENDING: Final = "spending"
SPENT_BY: Final = "spent_by"
SPENT_ON: Final = "spent_on"
SPENT_DELTA: Final = "spent_delta"
DECLARED_DELTA: Final = "declared_delta"
DELTA_RESERVE: Final = "delta_reserve"

# The ledger of math assumptions behind `certified`.
ASSUMPTIONS: Final = "assumptions"
REASON: Final = "reason"

# The bound planner.
CERTIFICATE: Final = "certificate"
N_FOLDS: Final = "n_folds"
CERTIFY_SHARE: Final = "certify_share"
BOUND: Final = "bound"
CERTIFY_BOUND: Final = "certify_bound"

UNCOUNTED: Final = -1
"""Value of an integer that was not counted; 0 would look like a perfect fold."""

STATUS_DONE: Final = 0
STATUS_PRUNED: Final = 1
STATUS_FAILED: Final = 2
STATUS_MISSING: Final = 3

RESERVED: Final = frozenset(
    {
        FOLD, CRITERION, CANDIDATE, ASSUMPTION, REPEAT, HALF, WIDTH, REGULARIZATION,
        ROW, POOL_ROW, FOLD_ERRORS, FOLD_ROWS, TRAIN_ERRORS, TRAIN_ROWS,
        FULL_TRAIN_ERRORS, DISAGREEMENTS, POOL_ROWS, BEST_FOLD_DISAGREEMENTS,
        FOLD_DISAGREEMENTS, DIFFERING_FOLDS,
        LOO_ERRORS, FULL_TEST_ERRORS, HALF_TEST_ERRORS, TEST_ROWS, FOLD_LOSSES,
        LOO_LOSSES, GCV_LOSSES, EXTRA_LOSS, STATUS, MESSAGE,
        FIT_SECONDS, SCORE_SECONDS, FULL_FIT_SECONDS,
        N_LABELED, N_UNLABELED, N_CLASSES, N_CANDIDATES, ESTIMATE, LABEL_TERM,
        DISAGREEMENT_TERM, DELTA_SHARE, DELTA, LABEL_SHARE, SPENDING, SPENT_BY,
        SPENT_ON, SPENT_DELTA, DECLARED_DELTA, DELTA_RESERVE, ASSUMPTIONS, REASON,
        LOOK, N_LOOKS, LOOK_ROWS,
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
