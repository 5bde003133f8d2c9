"""The words of tests of a promise."""

import pytest

from dsel.results import MonitorReport
from dsel.results.monitoring import PromiseTest


@pytest.mark.parametrize("limit", [0.5, 0.05])
def test_monitor__has_one_word_for_below_above_and_refuted(limit):
    test = PromiseTest("error", "kept", "Error", "seen 10%", limit, 0.02, seen=0.1)
    report = MonitorReport(0.01, 300, 0, (test,))
    is_unclear = limit < 0.1
    assert str(report).splitlines()[1].split()[0] == ["Kept", "Unclear"][is_unclear]
    assert ("which chance may explain" in str(report)) == is_unclear
    assert not report.is_refuted
