"""`dsel monitor` as a user has it: results, the table of the next month, a status."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import dsel
from tests.cli.test_predict import customers
from tests.shell import run, succeed

REFUTED = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a labeled table, a pool, the next month, and results."""
    folder = tmp_path_factory.mktemp("month")
    frame, labels = customers(1600)
    frame = frame.drop(columns="customer_id").assign(label=labels)
    frame[:300].to_csv(folder / "labeled.csv", index=False)
    frame[300:900].drop(columns="label").to_csv(folder / "pool.csv", index=False)
    frame[900:].to_csv(folder / "next.csv", index=False)
    frame[900:].to_parquet(folder / "next.parquet", index=False)
    older = frame[900:].assign(age=frame["age"] + 30).drop(columns="label")
    older.to_csv(folder / "older.csv", index=False)
    wrong = frame[900:].assign(label="good")
    wrong.to_csv(folder / "wrong.csv", index=False)
    succeed(
        "select", folder / "labeled.csv", "--target", "label",
        "--pool", folder / "pool.csv", "--model", "logistic", "--grid", "C=1,10",
        "--cv", 3, "--out", folder / "results", "--quiet",
    )  # fmt: skip
    return folder


def by_name(found):
    record = json.loads(found.stdout)
    return record, {test["name"]: test for test in record["report"]["tests"]}


@pytest.mark.parametrize("name", ["next.csv", "next.parquet"])
def test_monitor__keeps_what_holds(place, name):
    # The run knows its target; another column of labels needs the option.
    found = succeed("monitor", place / "results", place / name)
    asked = ("monitor", place / "results", place / name, "--target", "label")
    assert found.stdout == succeed(*asked).stdout
    assert found.stdout.startswith("Nothing is refuted by 700 new rows")
    assert found.stdout.count("\nKept ") == 4
    # In a pipe each statement is a line, which tools can search: none is wrapped.
    assert not any(line.startswith(" ") for line in found.stdout.splitlines())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("mark", ["", "-1", "NULL", "nan"])
def test_monitor__takes_what_a_search_refuses_as_a_class_for_no_label(
    place, tmp_path, mark, ending
):
    frame = pd.read_csv(place / "next.csv")
    frame["label"] = frame["label"].where(np.arange(len(frame)) % 2 == 0, mark)
    path = tmp_path / f"t.{ending}"
    (frame.to_csv if ending == "csv" else frame.to_parquet)(path, index=False)
    _, tests = by_name(succeed("monitor", place / "results", path, "--json"))
    assert tests["error of one_fold"]["n_rows"] == 350
    found = dsel.open_outcome(place / "results").monitor(
        frame.drop(columns="label"), frame["label"]
    )
    assert found.tests[2].n_rows == 350


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_monitor__counts_a_class_minus_one_of_two_numbers(tmp_path, ending):
    X = np.random.default_rng(0).normal(size=(400, 2)).round(3)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["y"] = np.where(X[:, 0] > 0, 1, -1)
    frame[:200].to_csv(tmp_path / "labeled.csv", index=False)
    path = tmp_path / f"t.{ending}"
    later = frame[200:]
    (later.to_csv if ending == "csv" else later.to_parquet)(path, index=False)
    succeed(
        "select", tmp_path / "labeled.csv", "--target", "y", "--model", "logistic",
        "--grid", "C=1", "--out", tmp_path / "results",
    )  # fmt: skip
    _, tests = by_name(succeed("monitor", tmp_path / "results", path, "--json"))
    assert tests["error of one_fold"]["n_rows"] == 200


@pytest.mark.parametrize("name", ["next.csv", "next.parquet"])
def test_monitor__of_groups_tests_one_row_of_each(tmp_path, name):
    frame, labels = customers(1200)
    frame = frame.drop(columns="customer_id").assign(label=labels)
    frame["shop"] = [f"s{n // 3}" for n in range(1200)]
    frame[:390].to_csv(tmp_path / "labeled.csv", index=False)
    later = frame[360:]  # ten of its groups were labeled
    later.to_csv(tmp_path / "next.csv", index=False)
    later.to_parquet(tmp_path / "next.parquet", index=False)
    succeed(
        "select", tmp_path / "labeled.csv", "--target", "label", "--groups", "shop",
        "--model", "logistic", "--grid", "C=1", "--out", tmp_path / "results",
    )  # fmt: skip
    predicted = succeed(
        "predict", tmp_path / "results", tmp_path / name, "--out", tmp_path / "p.csv"
    )
    assert f"{name}, once some of these rows have labels" in predicted.stdout
    asked = ("monitor", tmp_path / "results", tmp_path / name, "--target", "label")
    record, tests = by_name(run(*asked, "--groups", "shop", "--json"))
    assert tests["error of one_fold"]["n_rows"] == 270
    assert tests["error of one_fold"]["result"] == "kept"
    assert "30 rows of groups that were labeled" in " ".join(record["report"]["notes"])
    # The run knows its column; a table without it needs another one.
    assert succeed(*asked).stdout == succeed(*asked, "--groups", "shop").stdout
    later.drop(columns="shop").to_csv(tmp_path / "other.csv", index=False)
    text = " ".join(run(*asked[:2], tmp_path / "other.csv", *asked[3:]).output.split())
    assert "--groups names the column of their groups" in text
    words = (
        *asked[:2],
        tmp_path / "other.csv",
        "--target",
        "labels",
        "--groups",
        "shop",
    )
    message = " ".join(run(*words).output.split())
    assert "lacks the columns 'labels' (of --target), 'shop' (of --groups)" in message
    # With the target that is near, the group is missing still.
    assert "lacks the column 'shop' (of --groups); it has" in message


def test_monitor__ends_with_3_where_something_is_refuted(place):
    found = run(
        "monitor", place / "results", place / "wrong.csv", "--target", "label", "--json"
    )
    assert found.exit_code == REFUTED, found.output
    record, tests = by_name(found)
    assert (record["kind"], record["version"]) == ("dsel monitor", 1)
    assert record["refuted"] == ["error of one_fold", "error of all_rows"]
    assert tests["rows"]["result"] == "kept"
    assert tests["error of one_fold"]["at_least"] > tests["error of one_fold"]["limit"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("wrong.csv", "run dsel select on the labeled rows of this table alone"),
        ("older.csv", "label some of these rows, and run dsel select on them alone"),
    ],
)
def test_monitor__next_step_mixes_no_old_rows_with_the_new_ones(place, name, step):
    text = run("monitor", place / "results", place / name).stdout
    assert (
        f"Next      {step}: together with the old rows they are no random sample"
        in text
    )


def test_monitor__gives_up_no_labels_where_the_bounds_are_kept(place, tmp_path):
    older = pd.read_csv(place / "older.csv")
    predicted = tmp_path / "p.csv"
    run("predict", place / "results", place / "older.csv", "--out", predicted)
    older["label"] = pd.read_csv(predicted)["label"]
    older.to_csv(tmp_path / "labels.csv", index=False)
    text = run("monitor", place / "results", tmp_path / "labels.csv").stdout
    assert "Next      find out what changed; the labels of these rows refute" in text
    assert "run dsel select on the labeled rows of this table" not in text


def test_monitor__names_the_columns_that_changed(place):
    found = run("monitor", place / "results", place / "older.csv", "--quiet")
    assert found.exit_code == REFUTED, found.output
    assert found.stdout.count("\n") == 1
    assert (
        "a true statement is refuted by chance in at most 1% of reports" in found.stdout
    )
    found = run("monitor", place / "results", place / "older.csv", "--json")
    _, tests = by_name(found)
    assert tests["rows"]["columns"] == ["age"]
    before, after = (
        pd.read_csv(place / name)["age"].median()
        for name in ("labeled.csv", "older.csv")
    )
    assert (
        f"(age: median {before:.3g} then, {after:.3g} now)" in tests["rows"]["reason"]
    )
    assert tests["error of one_fold"]["result"] == "cannot be tested"
    why = "the new rows have no labels; --target names their column"
    assert tests["error of one_fold"]["reason"] == why


def test_monitor__says_where_the_labeled_rows_are_not_known(place, tmp_path):
    new = place / "next.csv"
    moved = tmp_path / "moved.csv"
    (place / "labeled.csv").rename(moved)
    try:
        found = run("monitor", place / "results", new, "--json")
        _, tests = by_name(found)
        assert tests["rows"]["result"] == "cannot be tested"
        assert "--labeled" in tests["rows"]["reason"]
        found = run("monitor", place / "results", new, "--labeled", moved, "--json")
        assert by_name(found)[1]["rows"]["result"] == "kept"
        pd.read_csv(moved)[:100].to_csv(tmp_path / "part.csv", index=False)
        found = run(
            "monitor", place / "results", new, "--labeled", tmp_path / "part.csv"
        )
        assert "has 100 rows with a label, and the search had 300" in found.stderr
    finally:
        moved.rename(place / "labeled.csv")


REFUSALS = [
    (["--target", "nope"], "next.csv lacks column nope"),
    (["--target", "lable"], "did you mean label?"),
    (["--target", "city"], "none of the classes bad, good"),
]


@pytest.mark.parametrize(("options", "words"), REFUSALS)
def test_monitor__refuses_in_one_line(place, options, words):
    found = run("monitor", place / "results", place / "next.csv", *options)
    assert found.exit_code == 1
    error, *commands = found.stderr.splitlines()
    assert error.startswith("Error: ")
    assert all(word in error.replace("'", "") for word in words.split())
    # Of another column it says what it is called.
    assert len(commands) == ("did you mean" in words)
    for line in commands:
        assert line.endswith(" --target label")
        assert run(*shlex.split(line)[2:]).exit_code in (0, 3)


# Blanks around a value of a text file do not count.
@pytest.mark.parametrize(
    ("label", "ending"), [("Good", "csv"), ("Good", "parquet"), (" good", "parquet")]
)
def test_monitor__refuses_labels_of_another_case(place, tmp_path, label, ending):
    frame = pd.read_parquet(place / "next.parquet")
    frame.loc[frame["label"] == "good", "label"] = label
    new = tmp_path / f"n.{ending}"
    getattr(frame, f"to_{ending}")(new, index=False)
    found = run("monitor", place / "results", new, "--target", "label")
    assert found.exit_code == 1
    words = f"has {label!r}, which is no class; did you mean 'good'?"
    assert words in " ".join(found.stderr.split())


def test_monitor__does_not_understand_a_missing_table(place):
    words = ("--labeled", "nowhere.csv")
    found = run("monitor", place / "results", place / "next.csv", *words)
    assert found.exit_code == 2
    assert "nowhere.csv" in found.stderr


def test_monitor__refuses_a_place_without_results(place, tmp_path):
    found = run("monitor", tmp_path, place / "next.csv")
    assert found.exit_code == 1
    assert found.stderr.count("\n") == 1


def test_monitor__says_which_values_no_labeled_row_has(place, tmp_path):
    frame = pd.read_csv(place / "next.csv")
    frame.loc[[2, 5], "city"] = "Mars"
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = run("monitor", place / "results", tmp_path / "new.csv")
    text = " ".join(found.output.split())
    assert "in 2 rows column 'city' has values that no labeled row has" in text
    quiet = run("monitor", place / "results", tmp_path / "new.csv", "--quiet").stdout
    ends = "; 2 rows have values never seen, in column 'city'"
    assert " ".join(quiet.split()).endswith(ends)


@pytest.mark.parametrize("options", [(), ("--quiet",), ("--json",)])
def test_monitor__fails_where_nothing_can_be_tested(tmp_path, place, options):
    succeed(
        "select", place / "labeled.csv", "--target", "label", "--model", "logistic",
        "--grid", "C=1", "--cv", 3, "--out", tmp_path / "results", "--quiet",
    )  # fmt: skip
    found = run("monitor", tmp_path / "results", place / "labeled.csv", *options)
    assert found.exit_code == 1, found.output
    assert "no promise was tested" in " ".join(found.stderr.split())
    # One line for one reason, which the error repeats only where no line has it.
    reason = "all of these rows equal labeled rows"
    assert found.stdout.count(f": {reason}") == (not options)
    assert (reason in found.stderr) == ("--quiet" in options)
    assert "pass rows that were not labeled." in " ".join(found.stderr.split())


def test_monitor__proposes_only_options_that_help(tmp_path):
    amounts = pd.DataFrame({
        "weight": np.linspace(1, 9, 60),
        "shop": [f"s{n // 3}" for n in range(60)],
        "cost": np.linspace(10, 90, 60) + np.arange(60) % 7,
    })  # fmt: skip
    # The shell refuses a search that can certify nothing, and Python notes it.
    plan = dsel.plan_search(
        Ridge(), {"alpha": [1.0]}, amounts[["weight"]], amounts["cost"],
        groups=amounts["shop"], random_state=0,
    )  # fmt: skip
    plan.run(out=tmp_path / "results")
    later = amounts.drop(columns=["cost", "shop"]) + 0.01
    later.to_csv(tmp_path / "next.csv", index=False)
    # No limit was certified, so neither labels nor keys of groups test anything.
    found = run("monitor", tmp_path / "results", tmp_path / "next.csv")
    assert found.exit_code == 1
    assert ": no limit was certified" in found.stdout
    assert found.stderr == "Error: no promise was tested.\n"


def test_monitor__says_why_a_run_promises_nothing(tmp_path, rng):
    def rows(n_rows, first):
        weight = rng.normal(size=n_rows)
        customer = first + np.arange(n_rows) // 3
        cost = 3 * weight + rng.normal(size=n_rows)
        return pd.DataFrame({"customer": customer, "weight": weight, "cost": cost})

    rows(180, 1000).to_csv(tmp_path / "labeled.csv", index=False)
    for name, first in (("pool.csv", 5000), ("next.csv", 9000)):
        rows(300, first).drop(columns="cost").to_csv(tmp_path / name, index=False)
    run(
        "select", tmp_path / "labeled.csv", "--target", "cost", "--model", "ridge",
        "--grid", "alpha=1", "--pool", tmp_path / "pool.csv",
        "--out", tmp_path / "results",
    )  # fmt: skip
    found = run("monitor", tmp_path / "results", tmp_path / "next.csv")
    assert found.exit_code == REFUTED, found.output
    reason = ": it is no guarantee: A1 is violated (independent draws from one"
    assert reason in found.stdout
    assert "Next      read why the bounds of this run are no guarantee" in found.stdout
    assert found.stdout.count("\nNext ") == 2
