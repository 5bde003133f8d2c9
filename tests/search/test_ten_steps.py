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


def test_docstring_and_page__have_the_ten_steps_of_a_default_fit():
    steps = {name: pkgutil.resolve_name(f"dsel.search.{name}") for name in STEPS}
    codes = {unwrap(step).__code__: name for name, step in steps.items()}
    X, y = load_digits(return_X_y=True)
    search = dsel.SemiSupervisedSearchCV(SVC(), {"gamma": [1e-3, 1e-2]})
    found = trace_functions(lambda: search.fit(X[:200], y[:200], pool=X[200:]))
    on_page = re.findall(r"^\d+\. \*\*[^*]+\*\* `([\w.]+)`", PAGE.read_text(), re.M)
    assert len(STEPS) == 10
    assert [codes[each] for each in found if each in codes] == STEPS == on_page


def test_docstring_and_page__name_what_exists():
    text = PAGE.read_text() + dsel.search.__doc__
    packages = "|".join(
        module.name for module in pkgutil.iter_modules(dsel.search.__path__)
    )
    named = set(re.findall(rf"`((?:{packages})\.[\w.]+)`", text))
    assert len(named) > 10
    for name in named:
        pkgutil.resolve_name(f"dsel.search.{name}")
