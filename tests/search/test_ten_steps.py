"""The path that is written down is the one that a default fit goes."""

import pkgutil
import re
from inspect import unwrap
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel.search
from tests.benchmarks.house import trace_functions

PAGE = Path(__file__).parents[2] / "docs/project/inside.md"
STEPS = re.findall(r"^\d+\. `([\w.]+)`", dsel.search.__doc__, re.MULTILINE)


X, Y = load_digits(return_X_y=True)
ROWS = X[:200], Y[:200], X[200:]


def taken_steps(call):
    """Return the names of the ten steps that a call takes, in their order."""
    steps = {name: pkgutil.resolve_name(f"dsel.search.{name}") for name in STEPS}
    codes = {unwrap(step).__code__: name for name, step in steps.items()}
    return [codes[each] for each in trace_functions(call) if each in codes]


def test_docstring__has_the_ten_steps_of_a_default_fit():
    search = dsel.SemiSupervisedSearchCV(SVC(), {"gamma": [1e-3, 1e-2]})
    assert len(STEPS) == 10
    assert taken_steps(lambda: search.fit(*ROWS)) == STEPS


def test_page__points_to_the_ten_steps_and_has_no_list_of_its_own():
    text = PAGE.read_text()
    [section] = re.findall(
        r"^## The default `fit` in ten steps\n(.*?)^## ", text, re.M | re.S
    )
    [place] = re.findall(r"\]\(([./\w]+__init__\.py)\)", section)
    assert (PAGE.parent / place).resolve() == Path(dsel.search.__file__).resolve()
    assert not re.findall(r"^\d+\. ", section, re.M)


def test_certify__takes_the_same_steps_but_that_of_the_class_and_that_of_a_worker():
    taken = taken_steps(lambda: dsel.certify(SVC(gamma=1e-3), *ROWS))
    assert taken == [*STEPS[1:5], *STEPS[6:]]


def test_docstring_and_page__name_what_exists():
    text = PAGE.read_text() + dsel.search.__doc__
    packages = "|".join(
        module.name for module in pkgutil.iter_modules(dsel.search.__path__)
    )
    named = set(re.findall(rf"`((?:{packages})\.[\w.]+)`", text))
    assert len(named) > 10
    for name in named:
        pkgutil.resolve_name(f"dsel.search.{name}")
