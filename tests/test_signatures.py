"""API pages name the types of arguments as the source does, and explain them."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import dsel
import dsel.typing
from dsel.search import Outcome

DOCS = Path(__file__).parents[1] / "docs"

pytest.importorskip("sphinx", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def signatures():
    spec = importlib.util.spec_from_file_location("signatures", DOCS / "signatures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("subject", "words", "returns"),
    [
        (dsel.certify, "X: RowsLike, y: LabelsLike, pool: PoolLike = None", "Outcome"),
        (dsel.open_pool, "(source: PoolLike, *,", "Pool"),
        (dsel.bounds.holdout_bound, ": ArrayLike", None),
        (
            dsel.SemiSupervisedSearchCV,
            "(estimator: Estimator | None, param_grid:",
            None,
        ),
        (dsel.results.Caveat, "effect: Effect", None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_signature__has_the_names_of_the_source(signatures, subject, words, returns):
    text, result = signatures.source_signature(subject)
    assert words in text
    assert returns is None or returns in result


PUBLIC = {
    f"{owner.__name__}.{name}": getattr(owner, name)
    for owner in (dsel, dsel.bounds, dsel.losses, dsel.least_squares, Outcome)
    for name in (getattr(owner, "__all__", None) or dir(owner))
    if not name.startswith("_") and callable(getattr(owner, name))
    if getattr(getattr(owner, name), "__module__", "").startswith("dsel")
}


@pytest.mark.parametrize("name", PUBLIC)
def test_help__shows_names_of_types_and_no_unions_of_numpy(name):
    shown = inspect.signature(PUBLIC[name])
    texts = [inspect.formatannotation(p.annotation) for p in shown.parameters.values()]
    assert "numpy._typing" not in "".join(texts)
    assert max(map(len, texts), default=0) <= 80


def test_signature__of_what_has_no_source_is_left_to_autodoc(signatures):
    assert signatures.source_signature(dict) is None


def test_types_page__says_what_every_alias_takes():
    page = (DOCS / "api/types.md").read_text("utf-8")
    block = page.partition("aliases:: dsel.typing")[2].partition("```")[0]
    named = re.findall(r"^   (\w+)$|dsel\.typing\.(\w+)", block, re.MULTILINE)
    assert sorted(map("".join, named)) == sorted(dsel.typing.__all__)
