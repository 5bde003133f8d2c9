"""The first cases of `python -m tests.chaos.fuzz`, which runs thousands."""

import pytest

from tests.chaos.fuzz import fuzz


@pytest.mark.parametrize("tenth", range(10))
def test_main__of_spoilt_files_ends_with_one_line_or_what_is_right(tenth):
    n_done, failed = fuzz(range(30 * tenth, 30 * (tenth + 1)), seed=0)
    assert failed == []
    assert n_done > 3
