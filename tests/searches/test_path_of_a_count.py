"""The steps from a fit to a count, as `dsel.searches` lists them, are those taken."""

import re
import sys
import threading
from importlib import import_module

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import dsel
from dsel import searches

STEPS = re.findall(r"^(\d+)\. `([\w.]+)`", searches.__doc__, flags=re.MULTILINE)


def function_of(name):
    """Return the function that a step names: `module.function` or `module.Class.f`."""
    parts = name.split(".")
    at = next(
        i for i, part in enumerate(parts) if part[0].isupper() or i == len(parts) - 1
    )
    found = import_module("dsel.searches." + ".".join(parts[:at]))
    for part in parts[at:]:
        found = getattr(found, part)
    return found


@pytest.fixture(scope="module")
def called():
    """Code of every function that a small search calls, on any thread."""
    codes = set()

    def note(frame, event, argument):
        codes.add(frame.f_code)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    search = dsel.SemiSupervisedSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, cv=2, random_state=0, n_jobs=1
    )
    earlier = sys.getprofile(), threading.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        search.fit(X[:40], X[:40, 0] > 0, pool=X[40:])
    finally:
        sys.setprofile(earlier[0])
        threading.setprofile(earlier[1])
    return codes


def test_steps__are_numbered_and_at_most_twelve():
    numbers = [int(number) for number, _ in STEPS]
    assert numbers == list(range(1, len(STEPS) + 1))
    assert 1 <= len(STEPS) <= 12


@pytest.mark.parametrize("name", [name for _, name in STEPS])
def test_steps__name_functions_that_a_fit_calls(name, called):
    assert function_of(name).__code__ in called
