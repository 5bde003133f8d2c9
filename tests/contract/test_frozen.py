"""Counts, choices and bounds are those of earlier commits, whatever moved inside."""

import json

import numpy as np
import pytest

from tests.contract.runs import FROZEN, RUNS

pytestmark = pytest.mark.contract


def compare(found, expected, where):
    """Compare whole: integers exactly, other numbers to 1e-7 of their size."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), where
        for key in expected:
            compare(found[key], expected[key], f"{where}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, pair in enumerate(zip(found, expected, strict=True)):
            compare(*pair, f"{where}/{place}")
    elif expected is None or isinstance(expected, str):
        assert found == expected, where
    else:
        rtol = 0 if float(expected).is_integer() else 1e-7
        assert np.isclose(found, expected, rtol=rtol, atol=1e-9, equal_nan=True), where


@pytest.mark.parametrize("name", RUNS)
def test_run__gives_the_frozen_numbers(name, request):
    if name.startswith("satimage"):
        request.getfixturevalue("data_dir")
    frozen = json.loads((FROZEN / f"{name}.json").read_text())
    compare(json.loads(json.dumps(RUNS[name]())), frozen, name)
