"""What is kept of an error that a learner raised."""

import pytest

from dsel.families.family import FitCounts, FitId

LONG = "X has gaps in column 3. Drop its rows. " + "Or take another learner, " * 12


@pytest.mark.parametrize(
    ("raised", "kept"),
    [
        ("no\nnumber", "ValueError: no number"),
        (LONG, "ValueError: X has gaps in column 3. Drop its rows."),
        ("x" * 400, "ValueError: " + "x" * 288 + "..."),
    ],
)
def test_message__of_an_error_ends_with_a_sentence(raised, kept):
    counts = FitCounts.empty(1, 1)
    counts.record_error(0, 0, ValueError(raised))
    assert counts.messages[FitId(0, 0)].text == kept
