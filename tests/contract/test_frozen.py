"""Counts, choices and bounds are those of earlier commits, whatever moved inside.

A frozen key may go with the name that it is about; none may change. What a run says
beside the frozen keys is not compared.
"""

import ast
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.contract.runs import FROZEN, RUNS

pytestmark = pytest.mark.contract


def differences(found, frozen):
    """Return the frozen keys whose numbers are others now, or are gone."""
    return [
        key
        for key, expected in frozen.items()
        if key not in found or not is_same(found[key], expected, key)
    ]


def is_same(found, expected, key):
    """Compare whole: integers exactly, bounds to 1e-12, other numbers to 1e-7."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            is_same(found[name], expected[name], key) for name in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            is_same(one, other, key) for one, other in zip(found, expected, strict=True)
        )
    if not isinstance(expected, float):
        return found == expected
    tolerance = 1e-12 if key.endswith("bound") else 1e-7
    return bool(
        np.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    )


@pytest.mark.parametrize("name", RUNS)
def test_run__gives_the_frozen_numbers(name, request):
    if name == "satimage":
        request.getfixturevalue("data_dir")
    frozen = json.loads((FROZEN / f"{name}.json").read_text())
    found = json.loads(json.dumps(RUNS[name]()))
    assert differences(found, frozen) == []


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
