"""A result in a list or at a prompt is one line that says what holds."""

import dataclasses

import pytest

import dsel
from dsel.results.renderings import Renderable
from dsel.rounded_texts import wrap_line


def _kinds(kind=Renderable):
    below = kind.__subclasses__()
    return below + [deeper for each in below for deeper in _kinds(each)]


@pytest.mark.parametrize("kind", list(filter(dataclasses.is_dataclass, _kinds())))
def test_repr__of_a_result_is_no_list_of_its_fields(kind):
    assert not kind.__dataclass_params__.repr


@pytest.mark.parametrize("width", range(30, 70))
def test_wrap_line__cuts_no_option_no_command_and_no_quotation(width):
    parts = (
        "--queries 50", "dsel predict runs/a NEW --out FILE", "`outcome.predict(x)`",
        "--baseline 'largest class'", "dsel plan-bound 400 --wanted 0.1",
    )  # fmt: skip
    for part in parts:
        text = f"The rows of this table may have a label: write {part}, or go on here."
        lines = wrap_line(text, 2, width).splitlines()
        assert any(part in line for line in lines)
        assert " ".join(map(str.strip, lines)) == text
        assert all(len(line) <= width for line in lines if part not in line)


def test_repr__of_a_result_is_its_print():
    values = dsel.results.BoundedValues((0.25,), (0.2,), (0.2,))
    report = dsel.results.ReportByValue(0.05, "a model", "site", ("x",), (9,), values)
    assert repr(report) == str(report)
    assert "BoundedValues" not in repr(report)
