"""The first cases of the fuzzers of this folder, which run thousands."""

import time

import pytest

from tests.chaos import fuzz_python
from tests.chaos.fuzz import fuzz


@pytest.mark.parametrize("part", range(4))
def test_main__of_odd_files_ends_with_one_line_or_what_is_right(part):
    n_done, failed = fuzz(range(25 * part, 25 * (part + 1)), seed=0)
    assert failed == []
    assert n_done > 2


def test_public_functions__of_wrong_arguments_end_or_refuse_them_in_one_line():
    until = time.monotonic() + 60.0
    ends, failed = fuzz_python.fuzz(range(400), seed=0, until=until)
    assert failed == []
    assert ends["refused"] > 10 * ends["failed"]


def test_fuzz__tells_a_raw_error_from_a_refusal():
    def raised(function, *args):
        with pytest.raises((ValueError, OSError), match="x") as info:
            function(*args)
        return fuzz_python.fault_of(info.value)

    assert raised(int, "x").startswith("raw ValueError")
    assert raised(fuzz_python.dsel.open_pool, "x/x") is None
