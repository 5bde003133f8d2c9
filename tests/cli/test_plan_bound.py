from functools import partial

import pytest

from tests.cli.test_select import run as run_command

run = partial(run_command, "plan-bound")


def test_plan_bound__shows_every_certificate_and_a_hold_out_set():
    found = run(600, 100_000, "--candidates", 25, "--folds", 5)
    lines = map(str.split, filter(None, found.output.splitlines()))
    rows = {name: numbers for name, *numbers in lines if "%" in "".join(numbers[:1])}
    assert rows["one_fold"] == ["14.4%"]
    assert rows["all_rows"] == ["17.9%"]
    assert rows["held_out_fifth"] == ["15.6%"]


def test_plan_bound__fits_80_columns():
    assert max(map(len, run(10**6, 10**9, "--wanted", 0.2).output.splitlines())) <= 80


def test_plan_bound__says_in_one_line_why_a_bound_cannot_be_had():
    text = " ".join(run(500, 10_000, "--wanted", 0.08).output.split())
    assert "No certificate gives 0.08: the model is assumed to err on 0.1" in text
    assert "never" not in text
    assert "labeled rows needed" not in text
    assert "No number" not in text


def test_plan_bound__says_how_many_labels_a_bound_needs():
    text = run(500, 10_000, "--wanted", 0.13).output
    assert "For a bound of 0.13, labeled rows needed:" in text


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((1, 10), 1, "`n_labeled`"),
        ((500, 10, "--error", "0"), 1, "`error`"),
        ((500, 10, "--folds", "a"), 2, "'a' is no list of numbers such as 2,5,10"),
    ],
)
def test_plan_bound__refuses_in_one_line(words, code, message):
    found = run(*words)
    assert found.exit_code == code
    assert message in found.output
