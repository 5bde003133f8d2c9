"""Rows drawn for queries among the pool rows on which both models differ.

This is a bottom-s sketch (Cohen and Kaplan, 2007): each row has a random word, and the
rows with the s smallest words are kept. The union of two sketches, cut to s, is the
sketch of the union. Therefore neither slices nor their order change the drawn rows.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dsel.data.query_rows import query_words, smallest_words


@dataclass(frozen=True)
class DrawnRows:
    """Rows with the smallest words so far, with the predictions of both models.

    Examples
    --------
    >>> rows, codes = np.arange(100), np.zeros(100, np.int64)
    >>> whole = DrawnRows.draw(7, rows, codes, codes + 1, 5)
    >>> parts = [DrawnRows.draw(7, part, part * 0, part * 0 + 1, 5)
    ...          for part in (rows[60:], rows[:60])]
    >>> parts[0].merge(parts[1], 5) == whole
    True
    """

    words: tuple[int, ...] = ()
    """Random words of the rows, ascending."""
    rows: tuple[int, ...] = ()
    """Global row numbers."""
    one_fold: tuple[int, ...] = ()
    """Class codes that the model of the deployed fold predicts."""
    all_rows: tuple[int, ...] = ()
    """Class codes that the model of all rows predicts."""

    @classmethod
    def draw(
        cls,
        seed: int,
        rows: NDArray[np.int64],
        one_fold: NDArray[np.int64],
        all_rows: NDArray[np.int64],
        n_queries: int,
    ) -> Self:
        """Draw some of the rows, in ascending order, with their predictions."""
        words = query_words(seed, rows)
        kept = smallest_words(words, rows, n_queries)
        columns = (words, rows, one_fold, all_rows)
        return cls(*(tuple(column[kept].tolist()) for column in columns))

    def merge(self, other: "DrawnRows", n_queries: int) -> "DrawnRows":
        """Return the rows with the smallest words in both sketches."""
        if not other.rows:
            return self
        # The smallest words of two sets are among the smallest of each, so blocks may
        # be joined in any order: the draw is that from the whole pool.
        columns = [
            (*getattr(self, field.name), *getattr(other, field.name))
            for field in fields(self)
        ]
        words, rows = np.array(columns[0], np.uint64), np.array(columns[1], np.int64)
        kept = smallest_words(words, rows, n_queries).tolist()
        return DrawnRows(*(tuple(column[n] for n in kept) for column in columns))
