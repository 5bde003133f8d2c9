"""A stop prints commands that go on: what each of them meets next is decided, too."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dsel.cli.stops import MOST_WAYS, Stop, find_commands
from dsel.data.tables import read_table
from tests.shell import run, succeed

MODEL = ("--model", "logistic", "--grid", "C=1", "--quiet")


def customers(n_rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{seed}{row:04d}" for row in range(n_rows)],
            "age": rng.integers(18, 80, n_rows),
            "plan": rng.choice(["basic", "plus"], n_rows),
            "city": rng.choice(["Köln", "Ulm"], n_rows),
        }
    )
    return frame.assign(left=np.where(frame["age"] < 45, "Left", "stayed"))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Write a labeled table, and return rows without labels and what writes them."""
    monkeypatch.chdir(tmp_path)
    customers(200, 1).to_csv("l.csv", index=False)

    def write(name, dropped=()):
        frame = customers(600, 2).drop(columns=["left", *dropped])
        if name.endswith(".parquet"):
            frame.to_parquet(name)
        elif name.endswith(".jsonl"):
            frame.to_json(name, orient="records", lines=True)
        else:
            frame.to_csv(name, index=False)

    return write


def stop(*words):
    """Return the error of a command, and the words of those that it prints."""
    done = run(*words)
    assert done.exit_code in (1, 2), done.output
    lines = done.output.splitlines()
    commands = [line for line in lines if line.startswith(("Run: ", "Or: "))]
    [error] = [line for line in lines if line.startswith("Error: ")]
    return error, [line.partition(": dsel ")[2] for line in commands]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_select__takes_ids_that_only_the_labeled_table_has(tables, ending):
    tables(f"u.{ending}", ["customer_id"])
    done = succeed("select", "l.csv", "--target", "left", "--pool", f"u.{ending}",
                   "--id", "customer_id", *MODEL, "--out", "r")  # fmt: skip
    assert "the pool has no column 'customer_id' (--id)" in done.output
    without = succeed("select", "l.csv", "--target", "left", "--pool", f"u.{ending}",
                      "--drop", "customer_id", *MODEL)  # fmt: skip
    assert done.stdout.splitlines()[:2] == without.stdout.splitlines()[:2]
    succeed("predict", "r", "l.csv", "--out", "p.csv")
    assert pd.read_csv("p.csv")["customer_id"].is_unique


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_select__leaves_out_all_columns_that_the_pool_lacks(tables, ending):
    tables(f"u.{ending}", ["plan", "city"])
    words = ["select", "l.csv", "--target", "left", "--pool", f"u.{ending}", *MODEL]
    error, commands = stop(*words)
    assert "lacks the columns 'plan', 'city' of the labeled table" in error
    assert "customer_id" in error  # which was met first
    way = ["--id", "customer_id", "--drop", "plan,city"]
    assert commands == [shlex.join([*words, *way])]
    assert "Error at most" in succeed(*shlex.split(commands[0])).stdout


def test_select__decides_misspelled_names_and_all_behind_them_in_one_stop(tables):
    tables("u.csv")
    words = ["select", "l.csv", "--pool", "u.csv", *MODEL, "--loss"]
    error, commands = stop(*words, "recall:LEFT", "--target", "Left")
    assert error.count(" Also: ") == 2
    assert commands == [
        shlex.join([*words, "recall:Left", "--target", "left", "--id", "customer_id"])
    ]
    succeed(*shlex.split(commands[0]))
    for option, wrong, right in (
        ("--loss", "report:STAYED", "report:stayed"),
        (
            "--loss",
            "cost:Left>stayde=5,stayed>Left=1",
            "cost:Left>stayed=5,stayed>Left=1",
        ),
        ("--drop", "customer_id,citty", "customer_id,city"),
        ("--drop", "customer_id,note", "customer_id"),
        ("--id", "customer_ids", "customer_id"),
    ):
        words = ["select", "l.csv", "--target", "left", *MODEL]
        more = [] if "customer" in wrong else ["--id", "customer_id"]
        _, commands = stop(*words, option, wrong, *more)
        assert commands[0] == shlex.join([*words, option, right, *more])
        succeed(*shlex.split(commands[0]))


def test_select__swaps_tables_and_finds_the_target(tables):
    tables("u.csv")
    more = ["--id", "customer_id", *MODEL]
    right = shlex.join(["select", "l.csv", "--target", "left", "--pool", "u.csv"])
    swapped = ["select", "u.csv", "--target", "left", "--pool", "l.csv"]
    _, commands = stop(*swapped, *more)
    assert commands == [f"{right} {shlex.join(more)}"]
    error, commands = stop("select", "l.csv", "--pool", "u.csv", *more)
    assert "name the column of 'l.csv' that has the labels by --target" in error
    assert commands == [
        shlex.join(["select", "l.csv", "--pool", "u.csv", *more, "--target", "left"])
    ]


def test_select__groups_rows_by_an_owner_that_the_pool_lacks(tables):
    frame = customers(200, 1).rename(columns={"customer_id": "client"})
    frame.assign(client=np.arange(200) // 3).to_csv("l.csv", index=False)
    tables("u.csv", ["customer_id"])
    words = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    error, commands = stop(*words)
    assert "If rows of one client belong together, write --groups client" in error
    assert commands == [
        shlex.join([*words, option, "client"]) for option in ("--groups", "--drop")
    ]
    assert "of a new group" in succeed(*shlex.split(commands[0])).stdout


def test_separator__that_is_in_no_header_is_to_be_left_out(tables):
    frame = customers(200, 1)[["age", "left"]]
    frame.to_csv("l.csv", index=False, sep=";")
    words = ["select", "l.csv", "--target", "left", *MODEL]
    error, commands = stop(*words, "--sep", ",")
    assert error.endswith(
        "it has 'age;left'; if ';' separates its values, leave --sep out."
    )
    assert commands == []  # nor is 'age;left' meant
    succeed(*words)


def test_encoding__holds_for_the_table_that_is_no_utf8(tables):
    frame = customers(200, 1)
    tables("u.csv")
    frame.to_csv("l.csv", index=False, encoding="latin-1")
    words = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    error, commands = stop(*words)
    assert "by --encoding, such as cp1252, which reads 'Köln' there" in error
    way = ["--encoding", "cp1252", "--id", "customer_id"]
    assert commands == [shlex.join([*words, *way])]
    done = succeed(*shlex.split(commands[0]))
    assert "no labeled row has" not in done.output
    # So it is if the pool is the one that is no UTF-8.
    frame.to_csv("l.csv", index=False)
    customers(600, 2).drop(columns="left").to_csv("u.csv", index=False,
                                                  encoding="latin-1")  # fmt: skip
    _, commands = stop(*words, "--id", "customer_id")
    assert succeed(*shlex.split(commands[0])).stdout == done.stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_new_tables__that_lack_columns_get_another_selection(tables, ending):
    tables("u.csv")
    tables(f"n.{ending}", ["plan", "city"])
    select = ["select", "l.csv", "--target", "left", "--pool", "u.csv", "--id",
              "customer_id", *MODEL, "--out"]  # fmt: skip
    succeed(*select, "r")
    new = f"n.{ending}"
    for words in (
        ["predict", "r", new, "--out", "p.csv"],
        ["monitor", "r", new],
        ["compare", "r", "r", "--pool", new, "--out", "c"],
    ):
        error, [commands] = stop(*words)
        assert "lacks the columns 'plan', 'city'" in error
        assert "another bound" in error
        first, then = commands.split(" && dsel ")
        assert first == shlex.join([*select, "r_2", "--drop", "plan,city"])
        changed = ["r_2" if word == "r" else word for word in words]
        assert then == shlex.join(changed)
    succeed(*shlex.split(first))
    assert run("monitor", "r_2", new).exit_code in (0, 3)
    succeed("predict", "r_2", new, "--out", "p.csv")
    _, commands = stop("predict", "r_2", new, "--id", "CUSTOMER_ID", "--out", "q.csv")
    assert commands == [f"predict r_2 {new} --id customer_id --out q.csv"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_gap__makes_numbers_of_texts_in_tables_with_types_too(tables, ending):
    def odd(n_rows, seed, word="unknown"):
        frame = customers(n_rows, seed).drop(columns="customer_id")
        amounts = np.random.default_rng(seed).normal(size=n_rows).round(3)
        frame["amount"] = np.where(np.arange(n_rows) % 50 == 3, word, amounts)
        return frame

    odd(200, 1).to_parquet("l.parquet")
    for word, name in (("unknown", "u"), ("", "v")):
        rows = odd(600, 2, word).drop(columns="left")
        rows.to_json("u.jsonl", orient="records", lines=True)
        rows.to_parquet(f"{name}.parquet")
        rows.to_csv(f"{name}.csv", index=False)
        rows.to_json(f"{name}.jsonl", orient="records", lines=True)
    words = ["select", "l.parquet", "--target", "left", *MODEL, "--pool"]
    error, commands = stop(*words, f"u.{ending}")
    assert (
        "all but 4 of its 200 values are numbers, but not 'unknown' in row 3" in error
    )
    way = ["--number", "amount", "--gap", "unknown"]
    assert commands == [
        shlex.join([*words, f"u.{ending}", *each])
        for each in (way, ["--drop", "amount"])
    ]
    done = succeed(*shlex.split(commands[0]), "--out", "r")
    assert done.stdout == succeed(*words, f"v.{ending}", *way).stdout
    succeed("predict", "r", f"u.{ending}", "--out", "p.csv")


def test_gap__that_is_a_number_is_one_in_every_format(tables):
    def visitors(n_rows, seed, gap):
        frame = customers(n_rows, seed).drop(columns="customer_id")
        visits = np.random.default_rng(seed).integers(0, 9, n_rows).astype(float)
        visits[::7] = gap
        return frame.assign(visits=visits)

    def write(rows, name):
        rows.to_csv(f"{name}.csv", index=False)
        rows.to_parquet(f"{name}.parquet")
        rows.to_json(f"{name}.jsonl", orient="records", lines=True)

    for name, gap in (("gap", np.nan), ("nines", -999)):
        write(visitors(200, 1, gap), f"l_{name}")
        rows = visitors(600, 2, gap).drop(columns="left")
        write(rows if name == "gap" else rows.astype({"visits": int}), f"u_{name}")
    options = ["--target", "left", *MODEL, "--pool"]
    expected = succeed("select", "l_gap.csv", *options, "u_gap.csv", "--out", "r")
    succeed("predict", "r", "u_gap.csv", "--out", "p.csv")
    bounds = expected.stdout[expected.stdout.index("Error at most") :]
    pairs = [("csv", "parquet"), ("parquet", "jsonl"), ("jsonl", "csv")]
    for number, (labeled, pool) in enumerate(pairs):
        words = ["select", f"l_nines.{labeled}", *options, f"u_nines.{pool}"]
        advised = "if -999 stands for a missing value, write --gap -999"
        assert advised in succeed(*words, "--plan").output
        out, file = f"r_{number}", f"p_{number}.csv"
        found = succeed(*words, "--out", out, "--gap", "-999")
        assert (
            bounds.replace("dsel predict r ", f"dsel predict {out} ").replace(
                "dsel report r\n", f"dsel report {out}\n"
            )
            == found.stdout[found.stdout.index("Error at most") :]
        )
        succeed("predict", out, f"u_nines.{labeled}", "--out", file)
        assert Path(file).read_text() == Path("p.csv").read_text()


def test_gap__that_is_a_number_is_one_in_arrays(tables):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 9, (800, 2)).astype(float)
    rows[::7, 1] = -999
    columns = pd.DataFrame(rows, columns=["a", "b"])
    columns[:200].assign(left=rows[:200, 0] > 4).to_csv("l.csv", index=False)
    columns[200:].to_csv("u.csv", index=False)
    succeed("pool", "build", "u.csv", "u.zarr")
    words = ["select", "l.csv", "--target", "left", *MODEL, "--gap", "-999", "--pool"]
    found = [succeed(*words, f"u.{kind}").stdout for kind in ("csv", "zarr")]
    assert found[0] == found[1]
    assert "a classifier distinguishes" not in found[1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_word_among_many_numbers__stops_select_as_it_does_in_the_pool(tables, ending):
    frame = customers(200, 1).drop(columns="customer_id").astype({"age": str})
    assert 20 < frame["age"].nunique() < 100  # there may be a column for each value
    frame.loc[7, "age"] = "forty"
    frame.to_csv("l.csv", index=False)
    frame.to_parquet("l.parquet")
    tables("u.csv", ["customer_id"])
    words = ["select", f"l.{ending}", "--target", "left", "--pool", "u.csv", *MODEL]
    error, commands = stop(*words)
    assert "all but 1 of its 200 values are numbers, but not 'forty' in " in error
    gap = ["--number", "age"] * (ending == "parquet") + ["--gap", "forty"]
    ways = (gap, ["--text", "age"], ["--drop", "age"])
    assert commands == [shlex.join([*words, *way]) for way in ways]
    assert "Error at most" in succeed(*shlex.split(commands[0])).stdout


def test_gap__is_the_first_way_where_only_words_are_no_numbers(tables):
    def amounts(n_rows, seed):
        values = np.random.default_rng(seed).normal(size=n_rows).round(3)
        return pd.Series(values).astype(str)

    def save(name, word="tbd", separator=",", change=str):
        for path, n_rows, seed in ((f"l_{name}", 200, 1), (f"u_{name}", 600, 2)):
            frame = customers(n_rows, seed).drop(columns="customer_id")
            frame["amount"] = amounts(n_rows, seed).map(change)
            frame.loc[::9, "amount"] = word
            frame = frame if path.startswith("l") else frame.drop(columns="left")
            frame.to_csv(f"{path}.csv", index=False, sep=separator)

    save("comma", "k.A.", ";", lambda text: text.replace(".", ","))
    save("dollar", change="${}".format)
    for name, way in (
        ("comma", ["--gap", "k.A."]),
        ("dollar", ["--number", "amount", "--gap", "tbd"]),
    ):
        words = ["select", f"l_{name}.csv", "--target", "left", "--pool",
                 f"u_{name}.csv", *MODEL]  # fmt: skip
        error, commands = stop(*words)
        assert f"{shlex.join(way)} reads it as " in error
        assert commands == [
            shlex.join([*words, *each]) for each in (way, ["--drop", "amount"])
        ]
        assert "Error at most" in succeed(*shlex.split(commands[0])).stdout


def test_commands__say_what_each_of_them_decides(tables):
    frame = customers(200, 1).assign(mail=lambda t: t["customer_id"] + "@x.de")
    frame["amount"] = [f"${1 + i % 50},{100 + i}.50" for i in range(200)]
    frame.loc[::20, "amount"] = "tbd"
    frame["seen"] = [f"{1 + i % 12:02d}/{1 + i // 17:02d}/2023" for i in range(200)]
    frame.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "left", *MODEL, "--id", "customer_id"]
    error, commands = stop(*words, "--text", "mail")
    assert "'02/01/2023' may be 2023-01-02 or 2023-02-01" in error  # not 01/01/2023
    lines = run(*words, "--text", "mail").stderr.splitlines()[1:]
    numbers = "read as numbers: 'amount'; a missing value: 'tbd'; 5/9/2023 is a "
    kept = "(no feature, but kept in predictions: 'mail'; "
    assert lines[1::2] == [
        f"{kept}{numbers}day of September)",
        f"{kept}{numbers}day of May)",
        f"{kept}used by no model: 'amount', 'seen')",
    ]
    # What is no feature is not read as one either.
    assert not any("--text" in command for command in commands)
    # A single way needs no comparison.
    frame.drop(columns=["amount", "seen"]).to_csv("l.csv", index=False)
    assert len(run(*words).stderr.splitlines()) == 2


def test_number__names_the_value_that_is_no_number(tables):
    frame = customers(200, 1).drop(columns="customer_id")
    frame["amount"] = [f"${i % 7},{100 + i}.50" for i in range(200)]
    frame.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "left", *MODEL]
    error, _ = stop(*words)
    assert "reads it as numbers once '$0,100.50' in line 2 is corrected" in error
    assert "Leave it out by --drop amount, or name a pipeline" in error
    error, commands = stop(*words, "--number", "amount")
    assert "has '$0,100.50' in line 2, and '$0,107.50', " in error
    assert "in other rows; it holds numbers with '$'" in error
    assert commands == [shlex.join([*words, "--drop", "amount"])]


def test_gap__is_the_first_way_where_the_pool_has_numbers(tables):
    frame = customers(200, 1).drop(columns="customer_id").astype({"age": object})
    frame.loc[::12, "age"] = "unknown"
    frame.to_csv("l.csv", index=False)
    customers(600, 2).drop(columns=["left", "customer_id"]).to_parquet("u.parquet")
    words = ["select", "l.csv", "--target", "left", "--pool", "u.parquet", *MODEL]
    error, commands = stop(*words)
    assert "but not 'unknown' in line 2; --gap unknown reads it as a gap" in error
    ways = (["--gap", "unknown"], ["--drop", "age"])
    assert commands == [shlex.join([*words, *way]) for way in ways]
    assert "Error at most" in succeed(*shlex.split(commands[0])).stdout


@pytest.mark.parametrize(
    ("form", "gap", "ways"),
    [
        ("%d.%m.%Y", "unknown", (["--gap", "unknown"], ["--drop", "Claim date"])),
        ("%Y-%m-%d", "not yet", (["--gap", "not yet"], ["--drop", "Claim date"])),
        ("%Y-%m-%d %H:%M", "open", (["--gap", "open"], ["--drop", "Claim date"])),
        ("%Y-%m-%d", "2023-02-30", (["--drop", "Claim date"],)),  # a slip, no gap
    ],
)
def test_gap__of_dates_is_the_first_way(tables, form, gap, ways):
    days = pd.date_range("2023-01-01", periods=200, freq="37h")
    frame = customers(200, 1).drop(columns="customer_id")
    frame["Claim date"] = days.strftime(form).where(frame.index % 9 > 0, gap)
    frame.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "left", *MODEL]
    error, commands = stop(*words)
    assert f"looks like dates, but {gap!r} in line 2 is none" in error
    assert commands == [shlex.join([*words, *way]) for way in ways]
    assert "Error at most" in succeed(*shlex.split(commands[0])).stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Nothing is stored: with --out the same"),
        (("--out=there",), "All finished work is stored: run the same"),
        (("--out", "r"), "Nothing is stored yet: no fit had begun."),
    ],
)
def test_interrupt__says_what_is_stored(tables, monkeypatch, words, text):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    Path("there").mkdir()
    Path("there", "dsel.json").touch()  # results
    for name in ("select", "monitor"):
        monkeypatch.setattr(f"dsel.cli.run_{name}.run", interrupt)
    stopped = run("select", "l.csv", "--target", "left", *words)
    assert f"Interrupted. {text}" in " ".join(stopped.output.split())
    assert stopped.exit_code == 130
    assert run("monitor", "there", "l.csv").output.strip() == "Interrupted."


def test_id__may_be_the_index_of_a_data_frame(tables):
    tables("u.csv", ["customer_id"])
    customers(200, 1).set_index("customer_id").to_parquet("l.parquet")
    words = ["select", "l.parquet", "--target", "left", "--pool", "u.csv", *MODEL]
    assert "name it by --id or --groups customer_id" in succeed(*words).output
    done = succeed(*words, "--id", "customer_id")
    assert "their ids differ" in done.output
    assert "pool has no column 'customer_id' (--id)" in done.output


def test_dates__in_several_formats_are_named_with_their_lines(tables):
    days = pd.date_range("2021-01-01", periods=200, freq="3D")
    texts = np.where(
        np.arange(200) % 3 > 0, days.strftime("%d/%m/%Y"), days.strftime("%Y-%m-%d")
    )
    frame = customers(200, 1).drop(columns="customer_id").assign(seen=texts)
    frame.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "left", *MODEL]
    error, commands = stop(*words)
    assert "such as '2021-01-01' in line 2 and '04/01/2021' in line 3, and is" in error
    ways = (["--dayfirst"], ["--drop", "seen"])
    assert commands == [shlex.join([*words, *way]) for way in ways]
    read = read_table("l.csv", target="left", day_first=True)
    assert (read.X["seen"] == days).all()
    frame.loc[5, "seen"] = "Jan 16, 2021"
    frame.to_csv("l.csv", index=False)
    error, commands = stop(*words)
    assert "and 'Jan 16, 2021' in line 7" in error
    assert commands == [shlex.join([*words, "--drop", "seen"])]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e-999"])
def test_json__holds_no_number_that_becomes_another(tables, number):
    frame = customers(200, 1).drop(columns="customer_id")
    lines = frame.to_json(orient="records", lines=True).splitlines()
    lines[4] = f'{{"age": {number}, "plan": "plus", "city": "Ulm", "left": "Left"}}'
    Path("l.jsonl").write_text("\n".join(lines))
    error, _ = stop("select", "l.jsonl", "--target", "left", *MODEL)
    assert f"line 5: {number} is too large, or too near to 0" in error


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_select__takes_a_word_of_the_pool_for_a_gap_or_drops_its_column(tables, ending):
    frame = customers(600, 2).drop(columns="left").astype({"age": str})
    frame.loc[[3, 9], "age"] = "pending"
    frame.loc[5, "age"] = "tbd"
    if ending == "csv":
        frame.to_csv("u.csv", index=False)
    else:
        frame.to_parquet("u.parquet")
    words = ["select", "l.csv", "--target", "left", "--pool", f"u.{ending}", "--id",
             "customer_id", *MODEL]  # fmt: skip
    error, commands = stop(*words)
    assert "has 'pending' in " in error
    assert "and 'tbd' in other rows" in error
    assert commands == [
        shlex.join([*words, "--gap", "pending", "--gap", "tbd"]),
        shlex.join([*words, "--drop", "age"]),  # which needs no gap word
    ]
    for command in commands:
        assert "Error at most" in succeed(*shlex.split(command)).stdout


def test_select__says_what_is_next_where_the_pool_is_another_population(tables):
    frame = customers(600, 2).drop(columns="left")
    frame.assign(age=frame["age"] + 40).to_csv("u.csv", index=False)
    done = run("select", "l.csv", "--target", "left", "--pool", "u.csv", "--id",
               "customer_id", *MODEL[:-1], "--out", "r")  # fmt: skip
    assert done.exit_code == 3
    text = " ".join(done.output.split())
    assert "most by column age" in text
    assert "Next the same command with --drop age, if this is only a row " in text
    assert "was no ground for this, so that these labeled rows may be" in text
    assert "Next label a random sample of the pool, some 300 rows" in text
    assert "docs/using/not_independent.md, Shift" in text
    assert "dsel predict" not in text


def way(option, value="x"):
    return [(option, value)]


def check_for(*options):
    """Return a check that stops where a command lacks one of these, the first first."""

    def check(words):
        missing = [option for option in options if option not in words]
        if not missing:
            return None
        return Stop(f"{words[-1]} lacks {missing[0]}", (way(missing[0]),))

    return check


def test_find_commands__returns_the_stops_that_its_commands_decide():
    check = check_for("--id", "--drop", "--nan")
    also, lines = find_commands(["select", "t"], [way("--id")], check)
    assert also == ["x lacks --drop", "x lacks --nan"]
    assert lines == ["dsel select t --id x --drop x --nan x"]


def test_find_commands__returns_the_next_stop_alone_if_no_way_goes_on():
    def check(words):
        return Stop(f"stop {len(words)}", () if len(words) > 5 else (way("--drop"),))

    ways = [way("--id"), way("--nan")]
    assert find_commands(["select", "t"], ways, check) == (["stop 4"], [])
    assert find_commands(["select", "t"], ways, lambda words: Stop("", ())) == ([], [])


def test_find_commands__returns_a_stop_of_several_ways_once():
    ways = [way("--id", value) for value in ("one", "other")]
    also, lines = find_commands(["select", "t"], ways, check_for("--drop"))
    assert also == ["one lacks --drop"]
    assert lines == [
        "dsel select t --id one --drop x",
        "dsel select t --id other --drop x",
    ]


def test_find_commands__tries_each_way_once_and_no_more_than_the_most():
    tried = []
    ways = [way("--id", str(n % 30)) for n in range(60)]
    find_commands(["select", "t"], ways[:5] * 2, tried.append)
    assert len(tried) == 5
    find_commands(["select", "t"], ways, tried.append)
    assert len(tried) == 5 + MOST_WAYS


def test_pool_build__leaves_out_columns_that_the_source_lacks(tables):
    tables("u.csv", ["plan", "customer_id"])
    words = ["pool", "build", "u.csv", "p.parquet", "--like", "l.csv", "--target",
             "left", "--quiet"]  # fmt: skip
    error, commands = stop(*words)
    assert "lacks the columns 'customer_id', 'plan' of the labeled table" in error
    assert commands == [shlex.join([*words, "--drop", "customer_id,plan"])]
    succeed(*shlex.split(commands[0]))
    select = ["select", "l.csv", "--target", "left", "--id", "customer_id", *MODEL,
              "--drop", "plan", "--out", "r"]  # fmt: skip
    succeed(*select)
    done = succeed("pool", "build", "u.csv", "q.parquet", "--like", "r")
    assert "the pool has no column 'customer_id' (--id)" in done.output


def test_commands__write_tables_of_other_programs_and_go_on_with_these(tables):
    pytest.importorskip("openpyxl")
    frame = customers(200, 1).assign(zip=lambda t: t["customer_id"].str[-4:])
    frame["left"] = frame["left"].replace({"Left": "None"})
    frame.to_json("l.json", orient="records")
    pool = customers(600, 2).drop(columns="left")
    pool["zip"] = pool["customer_id"].str[-4:]
    pool.to_excel("it's new.xlsx", index=False)
    words = ["l.json", "--target", "left", "--pool", "it's new.xlsx", *MODEL]
    done = run("select", *words)
    assert done.exit_code == 1
    assert "write its rows one a line" in done.stderr
    assert "is a spreadsheet" in done.stderr
    line = done.stderr.splitlines()[-1]
    *writing, command = line.removeprefix("Run: ").split(" && ")
    for each in writing:
        subprocess.run([sys.executable, *shlex.split(each)[1:]], check=True)
    assert pd.read_json("l.jsonl", lines=True, dtype=False).equals(frame)
    read = pd.read_csv("it's new.csv", dtype=str)
    assert read.equals(pool.astype(str))
    program, *words = shlex.split(command)
    assert (program, words[1], words[5]) == ("dsel", "l.jsonl", "it's new.csv")
    done = succeed(*words)
    assert "Error at most" in done.stdout


def run_line(line):
    """Run the commands of a line that a stop printed; return the last one's result."""
    *writing, command = line.partition(": ")[2].split(" && ")
    for each in writing:
        subprocess.run([sys.executable, *shlex.split(each)[1:]], check=True)
    return run(*shlex.split(command)[1:])


def test_columns_in_another_spelling__are_renamed_in_another_file(tables):
    customers(200, 1).rename(columns={"plan": "plan_name"}).to_csv("l.csv", index=False)
    pool = customers(600, 2).drop(columns="left")
    pool = pool.rename(columns={"plan": "Plan Name", "city": "CITY"})
    pool.to_csv("u.csv", index=False)
    pool.to_parquet("u.parquet")
    options = ["--target", "left", "--id", "customer_id", *MODEL]
    for ending in ("csv", "parquet"):
        stopped = run("select", "l.csv", "--pool", f"u.{ending}", *options)
        assert "'plan_name' is 'Plan Name' there, 'city' is 'CITY' th" in stopped.stderr
        done = run_line(stopped.stderr.splitlines()[1])
        assert done.exit_code == 0, done.output
        assert Path(f"u_renamed.{ending}").exists()
    Path("u_renamed.csv").unlink()
    succeed("select", "l.csv", *options, "--out", "r")
    for words in (
        ["predict", "r", "u.csv", "--out", "p.csv"],
        ["pool", "build", "u.csv", "p.zarr", "--like", "r"],
        ["monitor", "r", "u.csv"],
    ):
        assert run(*words).stderr.count("u_renamed.csv") == 2, words


def test_a_column_with_a_similar_name__is_renamed_first(tables):
    frame = customers(200, 1).rename(columns={"age": "spend"})
    frame.to_csv("l.csv", index=False)
    new = customers(600, 2).drop(columns="left").rename(columns={"age": "Spend_EUR"})
    new.to_csv("u.csv", index=False)
    new[["customer_id"]].assign(rooms=3).to_csv("flats.csv", index=False)
    select = ["select", "l.csv", "--target", "left", "--id", "customer_id", *MODEL]
    succeed(*select, "--out", "r")
    for words, way in (
        (["predict", "r", "u.csv", "--out", "p.csv"], "--out r_2"),
        (["monitor", "r", "u.csv"], "--out r_2"),
        ([*select, "--pool", "u.csv"], "--drop spend"),
    ):
        error, *lines = run(*words).stderr.splitlines()
        assert "did you mean 'Spend_EUR'?" in error
        assert "only if it is the same measurement" in error
        assert "'spend' is 'Spend_EUR' there" in error
        assert ("no result that you have seen" in error) == ("r_2" in way)
        lines = [line for line in lines if not line.startswith("(")]
        assert [line.partition(" ")[0] for line in lines] == ["Run:", "Or:"]
        assert "u_renamed.csv" in lines[0]
        assert way in lines[1]
    done = run("monitor", "r", "flats.csv")
    assert "lacks the columns 'spend', 'plan', 'city'" in done.stderr
    assert "learn" not in done.stderr


@pytest.mark.parametrize("name", ["customer_id", "nr", "income"])
def test_select__names_the_identifier_by_which_a_pool_differs(tables, name):
    rng = np.random.default_rng(3)
    numbers = np.arange(800) * 3 + (name == "customer_id") * rng.integers(0, 2, 800)
    if name == "income":
        numbers = numbers + rng.integers(0, 2, 800)
    frame = customers(200, 1).drop(columns="customer_id")
    frame.assign(**{name: numbers[:200]}).to_csv("l.csv", index=False)
    pool = customers(600, 2).drop(columns=["left", "customer_id"])
    pool.assign(**{name: numbers[200:]}).to_csv("u.csv", index=False)
    words = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    is_key = () if name == "income" else ("--number", name)  # else it stops before
    done = run(*words, *is_key, "--out", "r")
    assert done.exit_code == 3
    assert f"most by column {name}" in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("Run: ")]
    if name == "income":  # a number that is no identifier is not left out
        assert not lines
        return
    before, after = lines  # of the run, which has the same column
    assert before == f"Run: {shlex.join(['dsel', *words])} --out r --id {name}"
    assert after == f"Run: {shlex.join(['dsel', *words])} --out r_2 --id {name}"
    assert "Error at most" in run_line(after).stdout


def test_free_text__is_kept_by_the_pipeline_of_the_page(tables, monkeypatch):
    rng = np.random.default_rng(5)
    words = ["good", "fine", "slow", "nice", "cold"]

    def write(frame, name):
        texts = [" ".join(rng.choice(words, 5)) for _ in range(len(frame))]
        ends = np.where(frame["age"] < 45, " late", " soon")
        frame = frame[["age", "plan", "left"]].assign(note=texts + pd.Series(ends))
        frame["age"] = 50  # so that the text alone says it
        frame.loc[7, "note"] = None
        frame.to_csv(name, index=False)

    write(customers(200, 1), "l.csv")
    write(customers(600, 2), "u.csv")
    select = ["select", "l.csv", "--target", "left", "--pool", "u.csv", "--quiet"]
    error, commands = stop(*select)
    assert "counts the words of 'note' may err less: docs/using/tables.md, " in error
    assert commands == [shlex.join([*select, "--drop", "note"])]
    page = (Path(__file__).parents[2] / "docs/using/tables.md").read_text("utf-8")
    section = page.split("## Free text")[1].split("\n## ")[0]
    code = section.split("```python")[1].split("```")[0]
    Path("text_model.py").write_text(code)
    monkeypatch.syspath_prepend(Path.cwd())
    done = succeed(*select, "--model", "text_model:model", "--out", "r",
                   "--grid", "logisticregression__C=1,10")  # fmt: skip
    assert float(re.search(r"at most ([0-9.]+)%", done.stdout)[1]) < 10
    succeed("predict", "r", "u.csv", "--out", "p.csv")


@pytest.mark.parametrize(
    ("n_words", "ways"),
    [(4, ["--drop"]), (1, ["--groups", "--drop"]), (2, ["--groups", "--drop"])],
)
def test_texts_named_subject__are_groups_unless_they_are_sentences(
    tables, n_words, ways
):
    texts = [
        " ".join([f"w{row % 150}", *["open"] * (n_words - 1)]) for row in range(200)
    ]
    for seed, name in ((1, "l.csv"), (2, "u.csv")):
        frame = customers(200, seed).assign(subject=texts)
        frame.drop(columns="customer_id").to_csv(name, index=False)
    select = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    error, commands = stop(*select)
    assert "150 different texts in 200 rows" in error
    assert ("belong together" in error) == ("--groups" in ways)
    assert commands == [shlex.join([*select, way, "subject"]) for way in ways]


def test_a_file_without_an_ending__is_copied_to_one_that_has_it(tables):
    tables("u.parquet", ["customer_id"])
    Path("l.csv").rename("labeled.data")
    Path("u.parquet").rename("u")
    words = ["labeled.data", "--target", "left", "--pool", "u", "--id", "customer_id"]
    line = run("select", *words, *MODEL).stderr.splitlines()[-1]
    done = run_line(line)
    assert done.exit_code == 0, done.output
    assert {"labeled.data", "labeled.csv", "u", "u.parquet"} == {*os.listdir()}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_values_in_another_spelling__are_respelled_in_another_file(tables, ending):
    labeled, pool = customers(200, 1), customers(600, 2).drop(columns="left")
    labeled["zip"] = labeled["city"].map({"Köln": "04711", "Ulm": "01067"})
    pool["zip"] = pool["city"].map({"Köln": "4711", "Ulm": "1067"})
    pool["plan"] = pool["plan"].str.upper()
    labeled.to_csv("l.csv", index=False)
    if ending == "csv":
        pool.to_csv("u.csv", index=False)
    else:
        pool.to_parquet("u.parquet")
    words = ["select", "l.csv", "--target", "left", "--pool", f"u.{ending}", "--id",
             "customer_id", *MODEL]  # fmt: skip
    _, *lines = run(*words).stderr.splitlines()
    assert [line.partition(" ")[0] for line in lines[::2]] == ["Run:", "Or:"]
    assert lines[1] == "(the same rows, in another file)"
    assert lines[2].endswith("--drop plan,zip")
    done = run_line(lines[0])
    assert done.exit_code == 0, done.output
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    written = read(f"u_respelled.{ending}", **{"dtype": str} if ending == "csv" else {})
    assert {*written["zip"]} == {"04711", "01067"}
    assert {*written["plan"]} == {"basic", "plus"}


def test_a_value_with_two_spellings_in_the_labeled_table__is_not_respelled(tables):
    labeled, pool = customers(200, 1), customers(600, 2).drop(columns="left")
    labeled.loc[labeled.index[labeled["plan"] == "basic"][:8], "plan"] = "Basic"
    n_rows = labeled["plan"].value_counts()
    pool["plan"] = pool["plan"].replace({"basic": "BASIC"})
    labeled.to_csv("l.csv", index=False)
    pool.to_csv("u.csv", index=False)
    words = ["select", "l.csv", "--target", "left", "--id", "customer_id", *MODEL]
    error, commands = stop(*words, "--pool", "u.csv")
    assert "labeled rows have 'Basic' and 'basic'" in error
    assert "Which spelling of 'plan' is meant, only you know" in error
    assert commands == [shlex.join([*words, "--pool", "u.csv", "--drop", "plan"])]
    said = " ".join(succeed(*words).output.split())
    assert f"'plan' has 'Basic' (8 rows) and 'basic' ({n_rows['basic']} rows), " in said


def test_pool__with_a_wrong_value_names_its_own_row(tables):
    numbers = customers(200, 1)[["age", "left"]].assign(weight=1.5)
    numbers.to_csv("l.csv", index=False)
    pool = numbers[["age", "weight"]][:100].copy()
    pool.loc[7, "weight"] = np.inf
    pool.to_parquet("u.parquet")
    error, _ = stop("select", "l.csv", "--target", "left", "--pool", "u.parquet")
    assert "row 7, column 'weight' is inf" in error
    assert "line" not in error


@pytest.mark.parametrize("option", ["--number", "--report-by", "--text", "--target"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_select__offers_the_column_that_an_option_means(tables, option, ending):
    frame = customers(200, 1).drop(columns=["left", "customer_id"])
    frame["income"] = np.random.default_rng(0).normal(900, 100, 200).round(2)
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", index=False)
    meant = {"--number": "income", "--target": "income"}.get(option, "plan")
    others = [] if option == "--target" else ["--target", "income"]
    words = ["select", f"t.{ending}", *others, option, f"{meant}s", "--model", "ridge"]
    error, commands = stop(*words)
    assert f"; did you mean '{meant}'?" in error
    corrected = [meant if word == f"{meant}s" else word for word in words]
    # 200 rows are too few for a report of each plan by five folds.
    few = " --cv 3" if option == "--report-by" else ""
    assert commands[0] == shlex.join(corrected) + few


def test_select__offers_queries_with_a_folder_and_groups_without_queries(tables):
    tables("u.csv", ["customer_id"])
    words = ["select", "l.csv", "--target", "left", "--id", "customer_id", "--pool",
             "u.csv", *MODEL, "--queries", "50"]  # fmt: skip
    error, commands = stop(*words)
    assert "writes rows to label; name a folder by --out" in error
    assert commands == [shlex.join([*words, "--out", "results"])]
    Path("results").mkdir()
    assert stop(*words)[1] == [shlex.join([*words, "--out", "results_2"])]
    frame = customers(200, 1).assign(customer_id=np.arange(200) // 4)
    frame.to_csv("g.csv", index=False)
    words = ["select", "g.csv", "--target", "left", "--groups", "customer_id", "--out",
             "r", *MODEL]  # fmt: skip
    error, commands = stop(*words, "--pool", "u.csv", "--queries", "50")
    assert "those of pool rows are not known; leave --queries out" in error
    assert "--groups out" not in error
    assert commands == [shlex.join([*words, "--pool", "u.csv"])]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict__asks_for_the_right_table_where_most_columns_are_missing(
    tables, ending
):
    select = ["select", "l.csv", "--target", "left", "--id", "customer_id", *MODEL]
    succeed(*select, "--out", "r")
    tables(f"other.{ending}", ["age", "plan", "city"])
    for words in (
        ["predict", "r", f"other.{ending}", "--out", "p.csv"],
        ["monitor", "r", f"other.{ending}"],
        [*select, "--pool", f"other.{ending}"],
    ):
        error, commands = stop(*words)
        assert "lacks the columns 'age', 'plan', 'city' of the labeled table" in error
        assert "Is this the right table?" in error
        assert commands == []
    tables(f"narrow.{ending}", ["plan"])
    error, commands = stop("predict", "r", f"narrow.{ending}", "--out", "p.csv")
    assert "right table" not in error
    assert len(commands) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_monitor__names_a_misspelled_target_of_numbers_once(tables, ending):
    frame = customers(200, 1).drop(columns=["left", "customer_id"])
    frame["cost"] = np.random.default_rng(0).normal(900, 100, 200).round(2)
    frame.to_csv("t.csv", index=False)
    frame.sample(80, random_state=0).to_csv("next.csv", index=False)
    pd.read_csv("next.csv").to_parquet("next.parquet")
    succeed("select", "t.csv", "--target", "cost", "--model", "ridge", "--grid",
            "alpha=1", "--out", "r", "--quiet")  # fmt: skip
    error, commands = stop("monitor", "r", f"next.{ending}", "--target", "costs")
    assert "lacks the column 'costs' (of --target); it has" in error
    assert "did you mean 'cost'?" in error
    assert commands == [f"monitor r next.{ending} --target cost"]


def messy(n_rows, seed, n_customers):
    """Return rows of which each column needs a decision, but `x` and `left`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    days = [str(day) for day in rng.integers(0, 300, n_rows)]
    frame = pd.DataFrame(
        {
            "ticket_id": [f"T{seed}{row:05d}" for row in range(n_rows)],
            "customer_id": [f"C{key}" for key in rng.integers(0, n_customers, n_rows)],
            "amount": [f"${1000 * abs(value) + 5:,.2f}" for value in x],
            "days": np.where(np.arange(n_rows) % 40 == 7, "pending", days),
            "opened": [f"{1 + row % 12}/{1 + row % 11}/2024" for row in range(n_rows)],
            "comment": [f"please call back about {row} now" for row in range(n_rows)],
            "x": x.round(3),
        }
    )
    return frame.assign(left=np.where(x > 0, "yes", "no"))


@pytest.mark.parametrize(
    ("n_customers", "ways"),
    [
        (4000, ["--dayfirst {}", "--dayfirst --groups customer_id", "--monthfirst {}"]),
        (
            150,
            [
                "--dayfirst --groups customer_id",
                "--dayfirst {dropped}",
                "--monthfirst --groups customer_id",
            ],
        ),
    ],
)
def test_many_columns__are_decided_by_the_first_command(
    tmp_path, monkeypatch, n_customers, ways
):
    monkeypatch.chdir(tmp_path)
    messy(400, 1, n_customers).to_csv("l.csv", index=False)
    messy(900, 2, n_customers).drop(columns="left").to_csv("u.csv", index=False)
    words = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    error, commands = stop(*words)
    assert len(error) < 540
    assert error.startswith("Error: 6 columns need a decision: 'ticket_id'")
    assert "'days': all but 10 of its 400 values are numbers, but not 'pend" in error
    both, one = "--drop comment --id ticket_id,customer_id", "--id ticket_id"
    dropped = f"--drop customer_id,comment {one}"
    assert commands == [
        shlex.join([*words, "--number", "amount", "--gap", "pending", *way.split()])
        for way in (
            way.format(both, dropped=dropped)
            if "{" in way
            else f"{way} --drop comment {one}"
            for way in ways
        )
    ]
    succeed(*shlex.split(commands[0]))


def test_spellings__of_categories_come_with_the_line_that_writes_one(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = customers(200, 1).drop(columns="customer_id")
    frame.loc[::9, "plan"] = frame.loc[::9, "plan"].str.upper()
    frame.to_csv("l.csv", index=False)
    words = ["select", "l.csv", "--target", "left", *MODEL]
    done = succeed(*words)
    *_, line = done.stderr.splitlines()
    write, _, command = line.partition(" && dsel ")
    assert command == shlex.join(["select", "l_respelled.csv", *words[2:]])
    assert "differ by blanks or case only" in " ".join(done.stderr.split())
    _, _, code = shlex.split(write)
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {*pd.read_csv("l_respelled.csv")["plan"]} == {"basic", "plus"}
    assert succeed(*shlex.split(command)).stderr == ""


def test_spellings__are_written_alike_in_both_tables_by_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, n_rows in (("l.csv", 200), ("u.csv", 600)):
        frame = customers(n_rows, n_rows).drop(columns="customer_id")
        frame.loc[::9, "plan"] = frame.loc[::9, "plan"].str.upper()
        frame.to_csv(name, index=False)
    words = ["select", "l.csv", "--target", "left", "--pool", "u.csv", *MODEL]
    *writes, command = succeed(*words, "--plan").stderr.splitlines()[-1].split(" && ")
    for line in writes:
        subprocess.run([sys.executable, *shlex.split(line)[1:]], check=True)
    assert {*pd.read_csv("u_respelled.csv")["plan"]} == {"basic", "plus"}
    assert "BASIC" not in succeed(*shlex.split(command)[1:]).output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--loss", "cost:fraud>ok=50"],
            "--loss cost:fraud>ok=50 lacks the cost of ok>fraud: .* Run: dsel select "
            ".*--loss 'cost:fraud>ok=50,ok>fraud=1'",
        ),
        (["--grid", "c=1,2"], "--grid sets 'c', .* did you mean 'C'[?]"),
    ],
)
def test_select__says_which_part_of_a_loss_or_a_grid_is_wrong(tmp_path, options, words):
    rows = np.arange(60)
    frame = pd.DataFrame({"x": np.cos(rows), "y": np.where(rows % 3, "ok", "fraud")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    stopped = run("select", tmp_path / "t.csv", "--target", "y", *options)
    assert stopped.exit_code != 0
    assert re.search(words, " ".join(stopped.output.split()))
