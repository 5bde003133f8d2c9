"""Rows that repeat refute independence only where independent draws cannot."""

import numpy as np
import pytest

from dsel.bounds.duplicates import copies_refute_independence, lower_rate_limits

POPULATIONS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(50, size=n),
    "as many values as rows": lambda rng, n: rng.integers(n, size=n),
    "one value in half of the rows": lambda rng, n: np.where(
        rng.random(n) < 0.5, 0.5, rng.normal(size=n)
    ),
    "long tail": lambda rng, n: rng.zipf(1.5, size=n),
    "half of few, half of many": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.integers(n // 4, size=n), rng.normal(size=n)
    ),
    "bootstrap": lambda rng, n: rng.choice(rng.normal(size=n), n),
}


def times(values):
    return np.unique(values, return_counts=True)[1]


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("n_rows", [50, 1_000])
def test_copies__raise_no_more_false_alarms_than_their_level(name, n_rows):
    rng = np.random.default_rng(0)
    draws = [POPULATIONS[name](rng, n_rows) for _ in range(200)]
    n_alarms = sum(copies_refute_independence(times(values), 0.05) for values in draws)
    assert n_alarms <= 20  # of more, P < 0.002 if 10 are expected


@pytest.mark.parametrize(
    ("n_rows", "n_times", "share"), [(300, 2, 1.0), (800, 2, 0.6), (10_000, 2, 0.25),
                                     (800, 5, 1.0), (8_000, 10, 1.0)],
)  # fmt: skip
def test_copies__of_each_record_are_found(n_rows, n_times, share):
    n_copied = round(n_rows * share / n_times)
    each = np.r_[np.full(n_copied, n_times), np.ones(n_rows - n_copied * n_times)]
    assert copies_refute_independence(each, 1e-6)


def test_lower_rate_limits__are_unknown_without_rows_alone():
    limits = lower_rate_limits([0, 0, 2], [0, 0, 2], [0, 5, 2], 0.05)
    assert np.isnan(limits).tolist() == [True, False, False]
    assert limits[1:].tolist() == [0.0, 0.0]
