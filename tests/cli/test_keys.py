"""Columns of whole numbers that are keys of records, or of customers with several."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.shell import run, succeed

MODEL = ("--target", "label", "--model", "logistic", "--grid", "C=1", "--quiet")
RNG = np.random.default_rng(0)


def write(path, **columns):
    n = len(next(iter(columns.values())))
    frame = pd.DataFrame({"x": RNG.normal(size=n), **columns})
    labels = np.where(frame["x"] + RNG.normal(0, 0.3, n) > 0, "yes", "no")
    frame.assign(label=labels).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["Nr", "id", "customer_no", "Auftragsnummer"])
def test_select__stops_at_numbers_that_are_named_as_keys_are(tmp_path, name):
    path = write(tmp_path / "t.csv", **{name: 1000 + RNG.permutation(300)})
    done = run("select", path, *MODEL)
    assert done.exit_code == 1
    error, *commands = done.output.splitlines()
    assert f"'{name}' is named as keys are, and holds 300 different whole" in error
    assert "MODULE:OBJECT" not in error  # no pipeline makes a measurement of a key
    words = shlex.join(["dsel", "select", str(path), *MODEL])
    assert commands[::2] == [
        f"Run: {words} --id {name}",
        f"Or: {words} --number {name}",
    ]
    for command in commands[::2]:
        succeed(*shlex.split(command)[2:])


@pytest.mark.parametrize("first", [0, 300])
def test_select__tests_whether_row_numbers_go_on_in_the_pool(tmp_path, first):
    path = write(tmp_path / "t.csv", id=np.arange(300))
    ids = RNG.permutation(np.arange(300)) if first == 0 else np.arange(first, 2000)
    pool = pd.DataFrame({"x": RNG.normal(size=len(ids)), "id": ids})
    pool.to_csv(tmp_path / "pool.csv", index=False)
    said = run("select", path, *MODEL, "--pool", tmp_path / "pool.csv").output
    assert "--id id, which keeps it in predictions" in said
    is_violated = "A1 is violated (independent draws from one population)" in said
    assert is_violated == (first > 0)
    assert ("most by column id" in said) == (first > 0)


def test_select__asks_whether_rows_of_one_number_belong_together(tmp_path):
    path = write(tmp_path / "t.csv", customer=RNG.permutation(np.arange(400) // 3))
    error, *commands = run("select", path, *MODEL).output.splitlines()
    assert "If rows of one customer belong together, write --groups customer: " in error
    ends = [command.partition(" --quiet ")[2] for command in commands[::2]]
    assert ends == ["--groups customer", "--drop customer", "--number customer"]
    command = shlex.split(commands[0])[2:]
    assert "on a random row of a new group" in succeed(*command).stdout


@pytest.mark.parametrize(
    "columns",
    [
        {"customer_no": RNG.choice(5000, 300, replace=False) + 0.5},  # measured
        {"patients": RNG.choice(5000, 300, replace=False)},  # a count
        {"income": RNG.choice(5000, 300, replace=False)},
        {"room_no": RNG.integers(1, 40, 300)},  # few, which may be categories
    ],
)
def test_select__takes_other_numbers_as_features(tmp_path, columns):
    path = write(tmp_path / "t.csv", **columns)
    assert "holds" not in succeed("select", path, *MODEL).output


def test_select__notes_whole_numbers_that_rise_from_row_to_row(tmp_path):
    steps = RNG.integers(1, 9, 300)
    path = write(tmp_path / "t.csv", seen=np.cumsum(steps), left=-np.cumsum(steps))
    text = " ".join(succeed("select", path, *MODEL).output.split())
    for name, direction in (("seen", "rise"), ("left", "fall")):
        note = f"column '{name}' holds whole numbers that {direction} from row to row"
        assert f"{note}, as keys and times do; unless it is a measurement, name" in text


def test_select__reads_amounts_next_to_a_key(tmp_path):
    amounts = {
        name: [f"€{value:,.2f}" for value in RNG.normal(900, 90, 300)]
        for name in ("fee", "rent")
    }
    path = write(tmp_path / "t.csv", Nr=np.arange(300), **amounts)
    commands = run("select", path, *MODEL).output.splitlines()[1::2]
    ends = [command.partition(" --quiet ")[2] for command in commands]
    both = "--number fee --number rent"
    assert ends == [f"{both} --id Nr", f"{both} --number Nr", "--drop fee,rent --id Nr"]


def test_select__offers_a_target_of_amounts_as_numbers(tmp_path):
    frame = pd.DataFrame({"x": RNG.normal(size=300)})
    frame["price"] = [f"€{1000 + 300 * x:,.2f}" for x in frame["x"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("select", tmp_path / "t.csv", "--target", "price", "--model", "ridge")
    commands = run(*words).output.splitlines()[1:]
    assert commands[0].startswith("Run: ")
    assert "--number price" in commands[0]
    assert "predictions are off by" in succeed(*shlex.split(commands[0])[2:]).stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plan__begins_with_keys_that_go_on_in_the_pool(tmp_path, ending):
    path = write(tmp_path / "t.csv", id=np.arange(1, 301))
    pool = pd.DataFrame({"x": RNG.normal(size=900), "id": np.arange(301, 1201)})
    place = tmp_path / f"pool.{ending}"
    if ending == "csv":
        pool.to_csv(place, index=False)
    else:
        pool.to_parquet(place)
    words = ["select", path, *MODEL[:-1], "--pool", place, "--plan"]
    done = succeed(*words)
    first, *commands = done.stderr.splitlines()
    assert first.startswith("NOT CERTIFIED: in most pool rows column 'id' has values")
    assert "A1 is violated (independent draws from one population)" in first
    assert [line.partition("--plan ")[2] for line in commands[::2]] == [
        "--id id",
        "--drop id",
    ]
    assert done.stdout.splitlines()[1].startswith("  NOT CERTIFIED  column 'id'")
    other = succeed(*shlex.split(commands[0])[2:])
    assert "NOT CERTIFIED" not in other.output


def test_plan__begins_with_dates_that_the_labeled_rows_do_not_reach(tmp_path):
    days = pd.date_range("2023-01-01", periods=300).strftime("%Y-%m-%d")
    path = write(tmp_path / "t.csv", opened=days)
    later = pd.date_range("2026-01-01", periods=400).strftime("%Y-%m-%d")
    pool = pd.DataFrame({"x": RNG.normal(size=400), "opened": later})
    pool.to_csv(tmp_path / "pool.csv", index=False)
    words = ["select", path, *MODEL[:-1], "--pool", tmp_path / "pool.csv", "--plan"]
    content = json.loads(succeed(*words, "--json").stdout)
    assert "--drop opened" in content["plan"]["NOT CERTIFIED"]
    assert content["plan"]["search"].startswith("Plan of 1 candidate")


def test_plan__warns_of_groups_that_differ_by_case_with_the_line_that_mends_them(
    tmp_path,
):
    keys = [f"{'Kk'[n % 7 == 0]}{n // 4}" for n in range(300)]
    path = write(tmp_path / "t.csv", customer=keys)
    done = succeed("select", path, *MODEL[:-1], "--groups", "customer", "--plan")
    note, _, line = done.stderr.splitlines()
    assert note.startswith("Note: groups 'K0' and 'k0' differ only by case")
    write_line, command = line.split(" && ")
    subprocess.run([sys.executable, *shlex.split(write_line)[1:]], check=True)
    assert "differ only" not in succeed(*shlex.split(command)[1:]).output
