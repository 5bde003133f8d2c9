"""The words of tests of a promise."""

import pytest

from dsel.results import MonitorReport
from dsel.results.monitoring import PromiseTest


@pytest.mark.parametrize("limit", [0.5, 0.05])
def test_monitor__has_one_word_for_below_above_and_refuted(limit):
    test = PromiseTest("error", "kept", "Error", "seen 10%", limit, 0.02, seen=0.1)
    report = MonitorReport(0.01, 300, 0, (test,))
    is_in_doubt = limit < 0.1
    line = str(report).splitlines()[1]
    assert line.startswith(["Kept      Error", "In doubt  Error"][is_in_doubt])
    assert ("chance may explain it" in line) == is_in_doubt
    assert not report.is_refuted


def test_report__of_values_never_seen_is_read_again():
    test = PromiseTest("rows", "kept", "The new rows are like the labeled rows", "p")
    report = MonitorReport(0.01, 300, 0, (test,), (), {"town": 3, "shop": 9})
    assert report.headline().endswith(
        "; at least 9 rows have values never seen, in columns 'town', 'shop'"
    )
    assert MonitorReport.from_json(report.to_json()) == report
