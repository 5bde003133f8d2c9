"""Trainings: named sets of training and test rows of the labeled table."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

FULL: Final = "full"
"""Name of the training on all labeled rows."""
LEAVE_ONE_OUT: Final = "leave-one-out"
"""Name of the training that holds out every row in turn."""


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


def trainings_token(trainings: Iterable[Training]) -> str:
    """Return a hash of names and rows, for fingerprints."""
    digest = blake2b(digest_size=12)
    for training in trainings:
        digest.update(training.name.encode())
        digest.update(training.train_rows.tobytes())
        digest.update(training.test_rows.tobytes())
    return digest.hexdigest()
