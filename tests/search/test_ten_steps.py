"""The path that is written down is the one that a default fit goes."""

import pkgutil
import re
import sys
import threading
from pathlib import Path

import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel.search

PAGE = Path(__file__).parents[2] / "docs/project/inside.md"
STEPS = re.findall(r"^\d+\. `([\w.]+)`", dsel.search.__doc__, re.MULTILINE)


@pytest.fixture(scope="module")
def entered():
    """Steps in the order in which a fit with defaults enters them, here or in tasks."""
    codes = {pkgutil.resolve_name(f"dsel.search.{s}").__code__: s for s in STEPS}
    steps = []

    def enter(frame, event, _):
        step = codes.get(frame.f_code)
        if event == "call" and step is not None and step not in steps:
            steps.append(step)

    X, y = load_digits(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(SVC(), {"gamma": [1e-3, 1e-2]})
    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        search.fit(X[:200], y[:200], pool=X[200:])
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
    return steps


def test_docstring__has_the_ten_steps_of_a_default_fit(entered):
    assert len(STEPS) == 10
    assert entered == STEPS


def test_page__has_the_same_steps(entered):
    text = PAGE.read_text()
    assert re.findall(r"^\d+\. \*\*[^*]+\*\* `([\w.]+)`", text, re.MULTILINE) == entered
