"""A plan's identity holds the code of what a user has added, and exact numbers."""

import importlib
import re
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import dsel
from dsel.criteria import CRITERIA
from dsel.data.identity import is_of_dsel
from dsel.families.assignment import FAMILIES
from dsel.kernels import KERNELS
from dsel.search.design.certificate_methods import METHODS
from dsel.search.design.search_options import SearchOptions
from dsel.search.planning.plan_inputs import CallerSettings
from dsel.search.planning.plan_search import plan_with_options

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
CODE = """
from dataclasses import dataclass, replace
from dsel.criteria import CRITERIA
from dsel.kernels import Kernel
from dsel.losses.protocols import Loss
from dsel.losses import balanced
from dsel.search.design.certificate_methods import HOLDOUT_METHOD

@dataclass(frozen=True)
class Own(type(balanced())):
    def score(self, rows, predictions):
        return super().score(rows, predictions) + min(0, NUMBER)

    def __repr__(self):
        return "own()"

@dataclass(frozen=True)
class OwnKernel(Kernel):
    base = "products"

    def values(self, base):
        return base * NUMBER

    def rounding(self, base_error, base_size):
        return 0 * base_error, NUMBER * base_error

def formula(counts, settings):
    return CRITERIA["holdout"].formula(counts, settings) if NUMBER else None

loss = Own()
criterion = replace(CRITERIA["holdout"], name="own", formula=formula)
method = replace(HOLDOUT_METHOD, name="own", ranks_by="own")
make_kernel = lambda svc, gamma: OwnKernel()
"""


TREE = DecisionTreeClassifier(random_state=0)


def plan(learner=TREE, name="max_depth", grid=None, **options):
    grid = grid or {name: [1, 2]}
    return dsel.plan_search(learner, grid, X, Y, random_state=0, **options)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return a function that imports the user's module with a number in its code."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(number):
        (tmp_path / "own_code_of_plan.py").write_text(
            CODE.replace("NUMBER", str(number))
        )
        sys.modules.pop("own_code_of_plan", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_code_of_plan")

    yield load
    sys.modules.pop("own_code_of_plan", None)


def plan_with(module, what, monkeypatch):
    if what == "loss":
        return plan(loss=module.loss)
    if what == "kernel":
        monkeypatch.setitem(KERNELS, "own", module.make_kernel)
        return plan(make_pipeline(SVC(kernel="own")), "svc__C")
    monkeypatch.setitem(CRITERIA, "own", module.criterion)
    monkeypatch.setitem(METHODS, "own", module.method)
    return plan(certificate="own")


@pytest.mark.parametrize("what", ["loss", "kernel", "criterion"])
def test_identity__changes_with_the_code_that_counts(what, own, monkeypatch):
    first, again, edited = (
        plan_with(own(number), what, monkeypatch).facts.identity for number in (1, 1, 2)
    )
    assert first == again
    assert {name for name in first if first[name] != edited[name]} == {"own_code"}


def test_identity__of_what_dsel_has_names_no_code():
    """So that stores of earlier versions are recognized."""
    assert "own_code" not in plan(loss=dsel.losses.balanced()).facts.identity
    for part in (*CRITERIA.values(), *METHODS.values(), *FAMILIES):
        assert is_of_dsel(part)


def test_identity__has_all_digits_of_delta():
    texts = [
        plan(delta=delta).facts.identity["certificate"]
        for delta in (0.05, 0.0500000001)
    ]
    assert texts[0].endswith("delta=0.05")
    assert texts[1].endswith("delta=0.0500000001")


class Unpicklable:
    """A parameter that is copied, and cannot be pickled."""

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("no")


class TreeWithObject(DecisionTreeClassifier):
    """A tree with a parameter that may be any object."""

    def __init__(self, held=None):
        super().__init__(random_state=0)
        self.held = held


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([None, 1.0], ""),
        ([None, Unpicklable()], "1 candidate holds what .* counts it again"),
        ([Unpicklable(), Unpicklable()], "2 candidates hold what .* counts them again"),
    ],
)
def test_notes__are_about_candidates_that_another_run_cannot_recognize(values, words):
    made = plan(TreeWithObject(), grid={"held": values})
    texts = [text for text in made.remarks if "cannot be pickled" in text]
    assert len(texts) == bool(words)
    assert re.search(words, "".join(texts))


def test_with_leave_one_out__equals_the_plan_of_a_caller_that_wants_these_errors():
    options = {"certificate": "cv_bound", "random_state": 0}
    grid, facts = {"max_depth": [1, 2]}, CallerSettings(leave_one_out=True)
    wanted = plan_with_options(
        TREE, grid, X, Y, X[:30] + 0.01, SearchOptions(**options), facts
    )
    added = dsel.plan_search(TREE, grid, X, Y, X[:30] + 0.01, **options)
    added = added.with_leave_one_out()
    schemes = added.search.scheme, wanted.search.scheme
    assert schemes[0].leave_one_out_number == schemes[1].leave_one_out_number
    assert str(added) == str(wanted)
    assert added.facts == wanted.facts
    assert added.search.fits_range() == wanted.search.fits_range()
