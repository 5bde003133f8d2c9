"""Summaries of predictions, whatever blocks they are made of."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dsel.search.outcomes import prediction_summary
from dsel.search.outcomes.prediction_summary import merge_summaries, summarize


def summary_of(values, name, sizes):
    """Return the merged summary of blocks of these sizes."""
    ends = np.cumsum([0, *sizes])
    blocks = [
        summarize(pd.Series(values[start:stop], name=name), np.arange(start, stop))
        for start, stop in pairwise(ends)
    ]
    return reduce(merge_summaries, blocks)


def test_summarize__lists_the_largest_classes_first_and_counts_the_others():
    values = [*"a" * 3, *"b" * 5, *"cdefg"]
    for sizes in ([13], [4, 9], [1] * 13):
        summary = summary_of(values, "label", [*sizes, 0])
        assert summary.line == "5 b, 3 a, 1 c, 1 d, 1 e and 2 more classes"
        assert sum(summary.record.values()) == 13
    assert summary_of(values[:12], "label", [12]).line.endswith(" and 1 more class")


def test_summarize__has_the_median_and_the_range_of_numbers():
    values = [12.0, 8400.2, np.nan, 1104.0, 900.0, 2000.0]
    for sizes in ([6], [2, 4], [2, 1, 3]):
        summary = summary_of(values, "prediction", sizes)
        assert summary.line == "median 1,100, from 12 to 8,400"
    assert summarize(pd.Series([], dtype=float, name="value"), np.arange(0)) is None


@pytest.mark.parametrize("sizes", [[1000, 9000], [5000, 5000], [100] * 100])
def test_summarize__samples_the_same_rows_of_any_blocks(monkeypatch, sizes):
    monkeypatch.setattr(prediction_summary, "MOST_SAMPLED", 500)
    values = np.random.default_rng(0).normal(size=10_000)
    expected = summary_of(values, "prediction", [10_000])
    got = summary_of(values, "prediction", sizes)
    assert got.record == expected.record
    assert len(got.sample[-1]) == 500
    assert abs(got.record["median"] - np.median(values)) < 0.15
