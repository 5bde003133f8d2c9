"""Two candidates share a path only if they are the same, in every process."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from dsel.candidates import candidate_key, candidate_texts
from dsel.data.identity import exact_text
from dsel.families.family import Candidate

LONG = np.arange(5000.0)
TWO = ([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        (True, 1),
        (None, "None"),
        (["a", "b"], ["a', 'b"]),
        (LONG, LONG + (LONG == 2500)),
        (SVC(C=1), SVC(C=2)),
        (SVC(), DecisionTreeClassifier()),
        (make_pipeline(StandardScaler(), SVC()), make_pipeline(SVC())),
        (make_pipeline(SVC(C=1)), make_pipeline(SVC(C=2))),
        (slice(0, 1), slice(0, 2)),
        (partial(np.add, 1), partial(np.add, 2)),
        (lambda x: x, lambda x: -x),
        (pd.Series([1.0, 2.0]), pd.Series([1.0, 3.0])),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
        (np.datetime64(5, "ns"), 5),
        (np.random.RandomState(1), np.random.RandomState(2)),
        (FrozenEstimator(SVC().fit(*TWO)), FrozenEstimator(SVC(C=9).fit(*TWO))),
        (StandardScaler(), StandardScaler().set_output(transform="pandas")),
    ],
)
def test_exact_text__differs_where_anything_does(one, other):
    assert exact_text(one) != exact_text(other)


def test_exact_text__does_not_depend_on_how_a_value_was_written():
    assert exact_text({"a": np.float64(0.5), "b": 1}) == exact_text({"b": 1, "a": 0.5})
    assert exact_text(SVC(C=np.int64(2))) == exact_text(SVC(C=2))


def key_of(family, estimator, **params):
    one = Candidate(0, params, estimator)
    return candidate_key(family, one, candidate_texts([one])[0])


def test_candidate_key__differs_by_family_kind_and_values():
    made = [(SVC(C=1.0), 1.0), (SVC(C=2.0), 2.0), (LinearSVC(C=1.0), 1.0)]
    keys = {key_of(family, each, C=C) for family in "ab" for each, C in made}
    assert len(keys) == 6


OWN = """
import numpy as np
from sklearn.base import BaseEstimator
from dsel.data.identity import exact_text
NAMES = {"a", "b", "c", "d"}
def helper(x):
    return own(x) if x in {"u", "v", "w"} else len(NAMES)
def own(x):
    return helper(x) + 1
class Own(BaseEstimator):
    def __init__(self, function=own):
        super().__init__()
        self.function = function
    def fit(self, X, y):
        return Own(lambda x: x + STEP)
print(exact_text([Own(), own, np.random.default_rng(3)]))
"""


def text_of(script, seed="1", **changed):
    """Return what a script prints in a process of its own."""
    environment = os.environ | {"PYTHONHASHSEED": seed, **changed}
    return subprocess.check_output(
        [sys.executable, "-c", script], text=True, env=environment
    ).strip()


def test_exact_text__of_own_code_is_the_same_wherever_it_stands():
    script = OWN.replace("STEP", "1")
    text = text_of(script)
    assert text == text_of("\n\n# moved\n" + script, "2")
    assert text != text_of(OWN.replace("STEP", "2"))


def test_exact_text__changes_with_a_module_of_ones_own(tmp_path):
    script = (
        "from dsel.data.identity import exact_text; import own_module as m; "
        "print(exact_text([m.function, m.Class()]))"
    )
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    changed = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    found = set()
    for by in (1, 2, 1):
        source = f"def function(x):\n    return {by} * x\nclass Class:\n    pass\n"
        (tmp_path / "own_module.py").write_text(source)
        found.add(text_of(script, **changed))
    assert len(found) == 2
