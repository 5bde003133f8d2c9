"""What a run found and kept in its journal."""

from dataclasses import dataclass

import numpy as np

from dsel.results.journal import open_journal
from dsel.searches.keeping import Notebook


@dataclass(frozen=True)
class Found:
    values: np.ndarray
    size: float
    is_good: bool


def test_notebook__gives_back_what_was_noted(tmp_path):
    found = Found(np.array([1.5, np.inf]), 2.5, is_good=True)
    with open_journal(tmp_path, {}) as journal:
        Notebook(journal).note("one", found)
    with open_journal(tmp_path, {}) as journal:
        again = Notebook(journal).find("one", Found)
        assert Notebook(journal).find("other", Found) is None
    np.testing.assert_array_equal(again.values, found.values)
    assert (again.size, bool(again.is_good)) == (2.5, True)


def test_notebook__without_a_journal_finds_nothing():
    book = Notebook(None)
    book.note("one", Found(np.zeros(1), 0.0, is_good=False))
    assert book.find("one", Found) is None
