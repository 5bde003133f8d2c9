"""The first cases of `python -m tests.chaos.fuzz`, which runs thousands."""

import pytest

from tests.chaos.fuzz import fuzz


@pytest.mark.parametrize("part", range(4))
def test_main__of_odd_files_ends_with_one_line_or_what_is_right(part):
    n_done, failed = fuzz(range(25 * part, 25 * (part + 1)), seed=0)
    assert failed == []
    assert n_done > 2
