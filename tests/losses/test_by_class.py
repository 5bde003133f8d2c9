"""The bound to expect of a hold-out set, for losses by class."""

import numpy as np
import pytest

from dsel import losses
from dsel.losses.by_class import ClassTable
from dsel.losses.protocols import FoldCounts

CLASSES = ("a", "b", "c")
TABLES = {
    "a rare class": [[27, 2, 1, 0], [3, 300, 4, 0], [0, 5, 258, 0], [0, 0, 0, 0]],
    "few rows": [[18, 6, 1, 0], [9, 30, 4, 1], [0, 12, 20, 1], [0, 0, 0, 0]],
}
LOSSES = [
    losses.recall("a"),
    losses.precision("a"),
    losses.balanced(),
    losses.cost([[0, 5, 5], [5, 0, 0], [5, 0, 0]], CLASSES),
    losses.cost([[0, 9, 9], [1, 0, 1], [1, 4, 0]], CLASSES),
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_expected_holdout__is_the_average_of_simulated_hold_out_sets(loss, table):
    counts, delta = np.array(TABLES[table]), 0.05
    table_of_plan = ClassTable(CLASSES, (0, 1, 2))
    loss = loss.of_table(loss.named_classes(CLASSES), table_of_plan)
    n = counts.sum()
    # Folds divide the rows as they may: only their sum counts.
    folds = FoldCounts(
        np.stack([counts // 3, counts - counts // 3]), np.array([n // 3, n - n // 3])
    )
    draws = np.random.default_rng(3).multinomial(n // 5, counts.ravel() / n, 400)
    limits = [
        loss.limits(FoldCounts(drawn.reshape(1, 4, 4), np.array([n // 5])), delta)[0]
        for drawn in draws
    ]
    error = np.std(limits) / np.sqrt(len(limits))
    expected = loss.expected_holdout(folds, delta)
    assert expected == pytest.approx(np.mean(limits), abs=4 * error)
    # As a function of the average table, which it was, it would be another number.
    if repr(loss) == "recall('a')":
        part = FoldCounts(np.rint(counts / 5)[np.newaxis], np.array([n // 5]))
        assert abs(loss.limits(part, delta)[0] - expected) > 0.02
