"""Counts, choices and bounds are those of earlier commits, whatever moved inside.

A frozen key may go with the name that it is about; none may change.
"""

import ast
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.contract.runs import FROZEN, RUNS

pytestmark = pytest.mark.contract


def is_same(found, expected, key):
    """Compare whole: bounds to 1e-12, other numbers to 1e-7, integers so exactly."""
    if isinstance(expected, dict):
        found = [found[name] for name in expected]
        expected = [*expected.values()]
    one, other = (np.array(each, dtype=float) for each in (found, expected))
    near = 1e-12 if key.endswith("bound") else 1e-7
    return one.shape == other.shape and np.allclose(one, other, near, near, True)


@pytest.mark.parametrize("name", RUNS)
def test_run__gives_the_frozen_numbers(name, request):
    if name == "satimage":
        request.getfixturevalue("data_dir")
    frozen = json.loads((FROZEN / f"{name}.json").read_text())
    found = RUNS[name]()
    others = [key for key in frozen if not is_same(found[key], frozen[key], key)]
    assert others == []


def test_frozen__no_file_is_left_of_a_run_that_is_gone():
    assert sorted(path.stem for path in FROZEN.iterdir()) == sorted(RUNS)


def test_contract__imports_public_names_only():
    imported = [
        (node.module, alias.name)
        for path in Path(__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("dsel")
        for alias in node.names
    ]
    assert [
        (module, name)
        for module, name in imported
        if name not in import_module(module).__all__
    ] == []
