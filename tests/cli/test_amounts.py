"""`--number`: columns of amounts, from the labeled table to predictions."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.shell import run, succeed

MODEL = ("--model", "logistic", "--grid", "C=1", "--quiet")


def amounts(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.uniform(100, 5000, n_rows)
    return values, pd.DataFrame(
        {
            "amount": [f"${value:,.2f}" for value in values],
            "rate": [f"{value:.1f}%" for value in rng.uniform(0, 99, n_rows)],
            "town": rng.choice(["Ulm", "Bonn"], n_rows),
        }
    )


def refused(*arguments):
    """Return the error and its commands, without what each of these decides."""
    done = run(*arguments)
    assert done.exit_code != 0, done.output
    lines = [line for line in done.output.splitlines() if not line.startswith("(")]
    return " ".join(" ".join(lines).split())


def test_number__is_the_way_out_and_holds_for_all_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, frame = amounts(300)
    label = np.where(values > 2000, "high", "low")
    frame.assign(label=label).to_csv("l.csv", index=False)
    values, new = amounts(500, 1)
    new.to_csv("u.csv", index=False)
    select = ("select", "l.csv", "--target", "label", *MODEL)
    stop = refused(*select, "--pool", "u.csv")
    way = re.findall(r"--number \w+", stop.partition(" Run: ")[0])
    assert way == ["--number amount", "--number rate"], stop
    assert " ".join(["Run: dsel", *select, "--pool", "u.csv", *way]) in stop
    assert stop.endswith(
        " ".join(["Or: dsel", *select, "--pool u.csv --drop amount,rate"])
    )
    options = " ".join(way).split()
    done = succeed(*select, "--pool", "u.csv", *options, "--out", "r")
    bound = float(re.search(r"at most ([\d.]+)%", done.output)[1])
    assert bound < 10  # the amount decides
    for name, like in (("a", ()), ("b", ("--like", "r"))):
        succeed("pool", "build", "u.csv", f"{name}.parquet", *like)
        again = succeed(*select, "--pool", f"{name}.parquet", *options)
        assert again.output == done.output
    succeed("pool", "build", "u.csv", "c.parquet", "--like", "l.csv", "--target",
            "label", *options, "--quiet")  # fmt: skip
    for source in ("u.csv", "c.parquet"):
        succeed("predict", "r", source, "--out", f"p-{source}.csv")
    predicted = pd.read_csv("p-u.csv.csv")
    assert predicted.equals(pd.read_csv("p-c.parquet.csv"))
    assert np.mean((values > 2000) == (predicted["label"] == "high")) > 0.9
    succeed("monitor", "r", "u.csv")
    compare = ("compare", "r", "r", "--out", "c")
    euros = new.assign(amount=new["amount"].str.replace("$", "€"))
    fractions = new.assign(rate=0.18)
    for number, table in enumerate((euros, fractions)):
        table.to_csv(f"w{number}.csv", index=False)
        table.to_parquet(f"w{number}.parquet")
    for number, words in enumerate(("with '$'", "with '%'")):
        for name in (f"w{number}.csv", f"w{number}.parquet"):
            assert words in refused("predict", "r", name, "--out", "x.csv")
            assert words in refused("monitor", "r", name)
            assert words in refused(*select, *options, "--pool", name)
            assert words in refused(*compare, "--pool", name)
    euros.assign(label=label.repeat(2)[:500]).to_csv("e.csv", index=False)
    other = ("select", "e.csv", *select[2:], *options)
    assert "as numbers with '$'" in refused(*other, "--baseline", "r")
    assert "name it" in refused("pool", "build", "u.csv", "d.parquet", *options)


def test_number__reads_targets_of_regressions_here_and_in_new_rows(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    values, frame = amounts(300)
    frame = frame.assign(x=values / 7)
    frame.to_csv("l.csv", index=False)
    select = ("select", "l.csv", "--target", "amount", "--drop", "rate,town")
    assert "--number amount reads it as numbers" in refused(*select)
    succeed(*select, "--number", "amount", "--model", "ridge", "--out", "r", "--quiet")
    values, frame = amounts(300, 1)
    frame.assign(x=values / 7).to_csv("new.csv", index=False)
    done = succeed("monitor", "r", "new.csv", "--target", "amount")
    assert re.search("Kept +90% of predictions are off by at most ", done.output)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_select__names_all_that_needs_a_decision_at_once(
    encoding, has_gaps, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    values, frame = amounts(300)
    frame["town"] = frame["town"].replace("Bonn", "Köln")
    frame["customer"] = [f"K{number:04d}" for number in range(300)]
    label = np.where(values > 2000, "1", "0")
    frame["label"] = np.where(np.arange(300) < 60, "NULL", label) if has_gaps else label
    frame.to_csv("l.csv", index=False, encoding=encoding)
    select = ("select", "l.csv", "--target", "label", *MODEL)
    stop = refused(*select)
    sentences = stop.partition(" Run: ")[0]
    options = re.findall(r"--number \w+|--id \w+|--unlabeled \w+", sentences)
    wanted = ["--id customer", "--number amount", "--number rate"]
    if has_gaps:
        wanted.append("--unlabeled NULL")
    assert sorted(options) == wanted, stop
    assert ("--encoding" in stop) == (encoding != "utf-8")
    assert "--drop customer (or" in stop  # not the amounts, which have another way
    commands = re.split(" (?:Run|Or): dsel ", stop)[1:]
    if has_gaps:
        assert "--unlabeled NULL --number amount --number rate" in commands[0]
    for command in commands:
        assert ("--encoding cp1252" in command) == (encoding != "utf-8")
        succeed(*command.split())
    if encoding != "utf-8":
        options.append(f"--encoding {encoding}")
    succeed(*select, *" ".join(options).split())
