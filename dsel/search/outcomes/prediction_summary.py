"""Summaries of predictions, which are merged block by block: one line for a reader."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from dsel.arrays import Integers
from dsel.data.query_rows import merge_smallest, smallest_rows
from dsel.data.row_random import SHIFT_STREAM, row_random_at
from dsel.rounded_texts import short_number

LABEL: Final = "label"
"""Column of predictions that has classes."""
MOST_CLASSES: Final = 5
MOST_SAMPLED: Final = 2**14
"""Most predicted numbers of which the median is taken: a random sample of them stands
for those of a larger table, which may not fit in memory."""


@dataclass(frozen=True)
class ClassSummary:
    """How many rows are predicted as each class."""

    counts: Counter[str]

    @classmethod
    def of(cls, predicted: pd.Series) -> Self:
        """Return the summary of the labels of some rows."""
        counts = predicted.value_counts()
        return cls(Counter({str(k): n for k, n in counts.to_dict().items() if n}))

    def merge(self, later: Self) -> Self:
        """Return the summary of the rows of both."""
        return type(self)(self.counts + later.counts)

    @property
    def record(self) -> dict[str, int]:
        """The counts by class, the largest first, whatever the blocks were."""
        return dict(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def line(self) -> str:
        """The largest counts."""
        parts = [f"{n:,} {name}" for name, n in self.record.items()]
        n_more = len(parts) - MOST_CLASSES
        classes = "class" if n_more == 1 else "classes"
        more = f" and {n_more} more {classes}" if n_more > 0 else ""
        return f"{', '.join(parts[:MOST_CLASSES])}{more}"


@dataclass(frozen=True)
class NumberSummary:
    """The range of predicted numbers, and a random sample of them for their median."""

    least: float
    largest: float
    sample: list[Any]
    """Random words, row numbers and values."""

    @classmethod
    def of(cls, predicted: pd.Series, row_numbers: Integers) -> Self:
        """Return the summary of the numbers of some rows."""
        words = row_random_at(0, SHIFT_STREAM, row_numbers)
        values = predicted.to_numpy(np.float64)
        sample = smallest_rows([words, row_numbers, values], MOST_SAMPLED)
        return cls(float(np.min(values)), float(np.max(values)), sample)

    def merge(self, later: Self) -> Self:
        """Return the summary of the rows of both."""
        return type(self)(
            min(self.least, later.least),
            max(self.largest, later.largest),
            merge_smallest(self.sample, later.sample, MOST_SAMPLED),
        )

    @property
    def record(self) -> dict[str, float]:
        """Median, smallest and largest number."""
        median = float(np.median(self.sample[-1]))
        return {"median": median, "min": self.least, "max": self.largest}

    @property
    def line(self) -> str:
        """Median and range, rounded."""
        median, least, largest = map(short_number, self.record.values())
        return f"median {median}, from {least} to {largest}"


def summarize(predicted: pd.Series, row_numbers: Integers) -> Any:
    """Return the summary of labels, or of numbers but for NaN; None without one."""
    is_known = predicted.notna().to_numpy()
    predicted, row_numbers = predicted[is_known], row_numbers[is_known]
    if predicted.empty:
        return None
    if predicted.name != LABEL and predicted.dtype.kind in "biuf":
        return NumberSummary.of(predicted, row_numbers)
    return ClassSummary.of(predicted)


def merge_summaries(some: Any, later: Any) -> Any:
    """Return the summary of the rows of both; each may be None."""
    return some.merge(later) if some and later else some or later
