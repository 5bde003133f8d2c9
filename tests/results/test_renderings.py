"""A result in a list or at a prompt is one line that says what holds."""

import dataclasses

import pytest

import dsel
from dsel.results.renderings import Renderable


def _kinds(kind=Renderable):
    below = kind.__subclasses__()
    return below + [deeper for each in below for deeper in _kinds(each)]


@pytest.mark.parametrize("kind", list(filter(dataclasses.is_dataclass, _kinds())))
def test_repr__of_a_result_is_no_list_of_its_fields(kind):
    assert not kind.__dataclass_params__.repr


def test_repr__of_a_table_is_the_line_above_it():
    values = dsel.results.BoundedValues((0.25,), (0.2,), (0.2,))
    report = dsel.results.ReportByValue(0.05, "a model", "site", ("x",), (9,), values)
    assert repr(report).startswith(f"ReportByValue({report.headline()};")
    assert "BoundedValues" not in repr(report)
