"""What a draw of an audit counts, and what is known to be true of its models."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class AuditCounts:
    """Counts of some draws beside the true errors; the first axis is the draw."""

    fold_errors: Counts
    """Errors of the fold models, (draws, candidates, folds)."""
    fold_rows: Counts
    """Held-out rows, (draws, 1, folds)."""
    disagreements: Counts
    """Pool rows on which full and drawn fold model differ, (draws, candidates)."""
    fold_disagreements: Counts
    """The same for each fold model on the whole pool, (draws, candidates, folds)."""
    histogram: Counts
    """Pool rows on which 0 to k fold models differ, (draws, candidates, folds + 1)."""
    true_error: Floats
    """Error of the full model, (draws, candidates)."""
    pool_error: Floats
    """Its error on the rows of the pool, (draws, candidates)."""
    first_error: Floats
    """Error of the first fold's model, (draws, candidates)."""
    certify_errors: Counts
    """Errors of the model chosen without the certifying rows on these, (draws, 1)."""
    certify_rows: Counts
    """Certifying rows, (draws, 1)."""
    certify_disagreements: Counts
    """Pool rows on which it differs from the final model, (draws, 1)."""
    certified_error: Floats
    """Error of the final model, (draws, 1)."""

    @property
    def n_draws(self) -> int:
        """Draws."""
        return len(self.true_error)

    @property
    def n_candidates(self) -> int:
        """Candidates."""
        return int(self.true_error.shape[1])

    @property
    def n_folds(self) -> int:
        """Folds."""
        return int(self.fold_errors.shape[2])

    @property
    def n_unlabeled(self) -> int:
        """Pool rows; the same in every draw."""
        return int(self.histogram[0, 0].sum())


def join(parts: Sequence[AuditCounts]) -> AuditCounts:
    """Put the draws of several parts one after another."""
    return AuditCounts(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(AuditCounts)
        }
    )
