"""How a pool is divided among tasks."""

from typing import Any

import numpy as np

from dsel.data.base import Span

SPANS = 64  # spans of a pool of medium size: enough for tens of workers
SPAN_ROWS = (8_192, 2**20)  # fewest and most rows of a span


def count_spans(pool: Any) -> tuple[Span, ...]:
    """Divide a pool into spans: a function of the pool alone, as the store needs."""
    fewest, most = SPAN_ROWS
    return tuple(pool.spans(int(np.clip(-(-pool.n_rows // SPANS), fewest, most))))
