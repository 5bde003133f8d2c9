import json
import re
import shlex
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dsel import plan_bound
from dsel.search.planning.plan_bound import name_row
from tests.shell import run as run_command
from tests.shell import succeed

run = partial(run_command, "plan-bound")


def test_plan_bound__shows_every_certificate_and_a_hold_out_set():
    found = run(600, 100_000, "--candidates", 25, "--folds", 5)
    lines = (re.split("  +", line) for line in found.output.splitlines())
    rows = {name: numbers for name, *numbers in lines if "%" in "".join(numbers[:1])}
    assert rows["trained without a fold"] == ["14.4%", "14.4%", "0.0%"]
    assert rows["trained on all labels"] == ["17.9%", "14.4%", "3.5%"]
    assert rows["20% hold-out set"] == ["15.6%", "15.6%", "0.0%"]


def test_plan_bound__prints_the_table_alone_or_one_json_object():
    words = (600, 100_000, "--candidates", 25, "--folds", "2,5", "--wanted", 0.13)
    whole, short = (run(*words, *more).output for more in ((), ("--quiet",)))
    assert short.startswith("folds ")
    assert {*filter(None, short.splitlines())} < {*whole.splitlines()}
    assert len(short.splitlines()) < len(whole.splitlines()) - 5
    record = json.loads(run(*words, "--json").output)
    assert (record["kind"], record["n_unlabeled"]) == ("dsel plan-bound", 100_000)
    plan = plan_bound(600, 100_000, n_candidates=25, cv=[2, 5], error=0.1, wanted=0.13)
    for row in record["table"]:
        exact = plan.sel(certificate=row["certificate"], n_folds=row["n_folds"])
        assert row["bound"] == exact.bound
        assert (row["labels_needed"] or -1) == exact.labels_needed


def test_plan_bound__is_without_a_pool_by_default():
    text = run(300, "--candidates", 1).output
    assert text == run(300, 0, "--candidates", 1).output
    assert "300 labeled rows, no pool and 1 candidate, if the error is 10%:" in text
    default = "By default a search has 5 folds, and bounds the models 'trained without"
    assert default in text
    assert "By default" not in run(300, "--folds", "2,3").output
    assert "Guessed" not in text  # it is about the pool
    assert "differs from that of a fold on 3.3% of the rows with 5 folds" in (
        run(300, 2000, "--folds", 5).output
    )


def widest_table(text):
    # A pipe gets each statement in one line; only cells are aligned by blanks.
    lines = (line for line in text.splitlines() if not line.startswith("Note"))
    return max(len(line) for line in lines if "  " in line)


def test_plan_bound__has_tables_of_at_most_80_columns():
    for folds in ("2,3,5,10", "5"):
        words = ("--wanted", 0.2, "--folds", folds)
        assert widest_table(run(10**6, 10**9, *words).output) <= 80


def test_plan_bound__says_in_one_line_why_a_bound_cannot_be_had():
    text = " ".join(run(500, 10_000, "--wanted", 0.08).output.split())
    assert "A bound of 8% cannot be expected of a model that errs on 10% of" in text
    assert "never" not in text
    assert "labeled rows needed" not in text
    assert "No number" not in text


def test_plan_bound__says_how_many_labels_a_bound_needs():
    text = run(500, 10_000, "--wanted", 0.13).output
    assert "and rows needed for a bound of 13%:" in text
    assert "\nLabels needed:\nfolds " in text


def rows_of(text):
    """Return the numbers of each table in order, by the name of the row."""
    tables = []
    lines = (re.split("  +", line) for line in text.splitlines() if line)
    for name, *numbers in lines:
        if name == "folds":
            tables.append({})
        elif tables and numbers and numbers[0][0].isdigit():
            tables[-1].setdefault(name, numbers)
    return tables


def test_plan_bound__says_how_many_rows_a_tolerance_needs():
    words = ("--error-quantile", 0.9, "--candidates", 4, "--folds", "2,5")
    text = run(600, 10_000, *words).output
    plan = plan_bound(600, 10_000, n_candidates=4, error_quantile=0.9, cv=[2, 5])
    needed, quantiles = rows_of(text)
    names = ["one_fold", "all_rows", "holdout", "holdout_20_percent"]
    assert list(needed) == [name_row(name) for name in names]
    for name in names:
        shown = needed[name_row(name)]
        exact = plan.labels_needed.sel(certificate=name).values.tolist()
        assert shown == [f"{n:,}" for n in exact]
        exact = plan.residual_quantile.sel(certificate=name).values.tolist()
        assert quantiles[name_row(name)] == [f"{100 * q:.1f}%" for q in exact]
    assert widest_table(text) <= 80
    few = run(100, 0, *words).output
    assert "none" in few
    assert "all_rows" not in few


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((1, 10), 1, "N_LABELED must be"),
        ((500, 10, "--error", "0"), 2, "--error must be strictly"),
        ((500, 10, "--error-quantile", 0.9, "--error", 0.2), 1, "--error-quantile"),
        ((500, 10, "--error-quantile", 0.9, "--wanted", 0.2), 1, "--wanted"),
        ((500, 10, "--error-quantile", 90), 2, "--error-quantile"),
        ((500, 10, "--folds", "a"), 2, "'a' is no list of numbers such as 2,5,10"),
    ],
)
def test_plan_bound__refuses_in_one_line(words, code, message):
    found = run(*words)
    assert found.exit_code == code
    assert message in found.output


def test_plan_bound__takes_as_many_candidates_as_select_has_by_default():
    assert "and 10 candidates" in " ".join(run(500, 10_000).output.split())
    numbers = run(500, 10_000, "--error-quantile", 0.9).output
    assert "with 6 candidates" in " ".join(numbers.split())


def test_plan_bound__prints_an_error_for_which_a_bound_can_be_reached():
    words = ("plan-bound", "200", "5000", "--wanted", "0.08")
    text = " ".join(succeed(*words).output.split())
    command = f"dsel {' '.join(words)} --error 0.04"
    assert f"Next {command} for a model whose error is so small" in text
    reached = succeed(*command.split()[1:]).output
    assert "so small that this bound" not in reached
    assert "cannot be expected" not in reached


def test_select__prints_how_many_labels_are_needed_where_a_bound_says_little(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=70)
    labels = np.where(rng.random(70) < 0.3, rng.random(70) < 0.5, x > 0)
    frame = pd.DataFrame({"x": x, "label": np.where(labels, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = succeed("select", tmp_path / "t.csv", "--target", "label", "--model",
                   "logistic", "--grid", "C=0.01,1", "--delta", 0.001)  # fmt: skip
    text = " ".join(done.stdout.split())
    needed, wanted, command = re.search(
        r"Next about ([\d,]+) labels give a bound of (\d+)% on average: dsel "
        r"(plan-bound(?: [\d.]+| --[a-z]+)+)",
        text,
    ).groups()
    assert "says little" not in text
    assert float(command.split("--wanted ")[1].split()[0]) == int(wanted) / 100
    table = succeed(*shlex.split(command)).stdout.partition("Labels needed")[2]
    [row] = [line for line in table.splitlines() if line.startswith("trained without")]
    assert needed in row.split()
