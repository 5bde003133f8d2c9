"""What a run found and stored."""

from dataclasses import dataclass

import numpy as np

from dsel.searches.checkpoint import Checkpoint, open_checkpoint


@dataclass(frozen=True)
class Found:
    values: np.ndarray
    size: float
    is_good: bool


def test_checkpoint__gives_back_what_was_kept(tmp_path):
    found = Found(np.array([1.5, np.inf]), 2.5, is_good=True)
    with open_checkpoint(tmp_path, {}) as checkpoint:
        checkpoint.keep("one", found)
    with open_checkpoint(tmp_path, {}) as checkpoint:
        again = checkpoint.find("one", Found)
        assert checkpoint.find("other", Found) is None
    np.testing.assert_array_equal(again.values, found.values)
    assert (again.size, bool(again.is_good)) == (2.5, True)


def test_checkpoint__without_a_place_finds_nothing():
    checkpoint = Checkpoint()
    checkpoint.keep("one", Found(np.zeros(1), 0.0, is_good=False))
    assert checkpoint.find("one", Found) is None
