"""Pages of the gallery show what scripts print, and no progress of their runs."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
RUN = """
import itertools, runpy, sys, time
from dsel.runtime.progress import row_progress

if sys.argv[1:]:
    runpy.run_path(sys.argv[1])
seconds = itertools.count(step=100.0)  # so that a run takes long
time.monotonic = lambda: next(seconds)
with row_progress(None) as show:
    show(1, 10)
    show(9, 10)
"""


def written(*arguments):
    """Return what a long run writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        check=True, capture_output=True, cwd=DOCS, text=True,
    )  # fmt: skip
    return done.stderr


def test_conf__silences_the_progress_of_scripts():
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    assert "Writing rows: 9 of 10 rows" in written()
    assert written("conf.py") == ""
