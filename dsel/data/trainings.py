"""Trainings: named sets of training and test rows of the labeled table."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Training:
    """Rows that a model is trained on, and rows that its errors are counted on."""

    number: int
    """Place in the plan, from 0."""
    name: str
    """Such as ``fold-3``, ``full`` or ``repeat-7-half-1``; learner seeds hash it."""
    train_rows: NDArray[np.int64]
    """Sorted row numbers."""
    test_rows: NDArray[np.int64]
    """Sorted row numbers; empty where nothing was held out."""
