"""Two candidates share a path only if they are the same, in every process."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from dsel.models.base import Candidate
from dsel.searches.paths import candidate_path, candidate_texts, exact_text

LONG = np.arange(5000.0)


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
    ],
)
def test_exact_text__differs_where_anything_does(one, other):
    assert exact_text(one) != exact_text(other)


def test_exact_text__does_not_depend_on_how_a_value_was_written():
    assert exact_text({"a": np.float64(0.5), "b": 1}) == exact_text({"b": 1, "a": 0.5})
    assert exact_text(SVC(C=np.int64(2))) == exact_text(SVC(C=2))


def test_candidate_texts__tells_lambdas_apart_by_their_order():
    functions = [lambda x: x, lambda x: -x]
    candidates = [
        Candidate(n, {"func": function}, FunctionTransformer(function))
        for n, function in enumerate(functions)
    ]
    assert len(set(candidate_texts(candidates).values())) == 2


def test_candidate_path__differs_by_family_kind_and_values():
    one, other = (Candidate(n, {"C": c}, SVC(C=c)) for n, c in enumerate([1.0, 2.0]))
    linear = Candidate(0, {"C": 1.0}, LinearSVC(C=1.0))
    paths = {
        candidate_path(
            family, candidate, candidate_texts([candidate])[candidate.number]
        )
        for family in ("svm", "other")
        for candidate in (one, other, linear)
    }
    assert len(paths) == 6


def test_candidate_path__is_the_same_in_another_process():
    script = (
        "from sklearn.svm import SVC\n"
        "from dsel.models.base import Candidate\n"
        "from dsel.searches.paths import candidate_path, candidate_texts\n"
        "one = Candidate(0, {}, SVC(C=2.0, kernel='linear'))\n"
        "print(candidate_path('svm', one, candidate_texts([one])[0]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    one = Candidate(0, {}, SVC(C=2.0, kernel="linear"))
    here = candidate_path("svm", one, candidate_texts([one])[0])
    assert done.stdout.strip() == here
