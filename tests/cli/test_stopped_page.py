"""The page "My command stopped" has messages that commands print."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.shell import OWN_CODE, run, succeed

PAGE = (Path(__file__).parents[2] / "docs/using/stopped.md").read_text("utf-8")
SHELL, PYTHON = PAGE.split("## In Python")
SELECT = "select s.csv --target left --model logistic --grid C=1"
STOPS = {
    "there is nothing at": "select t.csv --target left",
    "--target must be a column of": "select s.csv --target Left",
    "remove the lines above it": "select title.csv --target left",
    "it is no UTF-8": "select latin.csv --target left",
    "holds NUMBER different texts": "select texts.csv --target left",
    "another value in nearly every row": "select keys.csv --target left",
    "is named as keys are, and holds": "select nr.csv --target left",
    "is read as text: all of its values are numbers written as text":
        "select amounts.csv --target left",
    "values are numbers, but not": "select pending.csv --target left",
    "looks like dates, but": "select undated.csv --target left",
    "may be YEAR-09-05 or YEAR-05-09": "select dates.csv --target left",
    "may be classes or measurements": "select codes.csv --target code",
    "may be identifiers": "select texts.csv --target note",
    "marks rows without a label": "select minus.csv --target left",
    "if these rows have no label": "select null.csv --target left",
    "must hold at least two classes": "select one.csv --target left",
    "lacks the column": f"{SELECT} --pool narrow.csv",
    "it holds numbers": f"{SELECT} --pool pending.csv",
    "it holds dates": "predict dated narrow_dates.csv --out p.csv",
    "has other spellings than the labeled table": f"{SELECT} --pool spelled.csv",
    "looks like the number of a row in each file":
        "select nr.csv --target left --id nr --pool nr_pool.csv",
    "types that are not trusted": "predict own s.csv --out p.csv",
    "must leave at least 4 labeled rows to every fold": "select few.csv --target left",
    "must have at least NUMBER groups": f"{SELECT} --groups town",
    "compares two models on unlabeled rows, but there is no --pool":
        f"{SELECT} --deploy all_rows",
    "holds another plan": f"{SELECT} --drop town --out run",
    "must be free": "predict run s.csv --out s.csv",
    "writes rows to label; name a folder by --out": f"{SELECT} --queries 50",
    "no rows are to be labeled": "label run",
    "no promise was tested": "monitor run s.csv",
    "it is the probability that a bound fails": f"{SELECT} --delta 95",
    "--loss must be": f"{SELECT} --loss recall",
    "which is not a class": f"{SELECT} --loss recall:maybe",
    "predicts classes, but": "select s.csv --target age --model logistic",
    "--grid sets": "select s.csv --target left --model logistic --grid D=1,2",
    "cannot be imported": "select s.csv --target left --model nothing:model",
}  # fmt: skip
"""Messages of the page, and a command that each of them ends."""
WARNINGS = (
    "`a classifier distinguishes labeled rows from pool rows, most by column`",
    "`so these may be groups`",
    "`if rows of one NAME belong together`",
    "`labeled rows have another labeled row as their nearest one`",
    "`labeled rows equal rows of other folds`",
    "`stands for a missing value`",
    "`differ by blanks or case only`",
)
"""Messages of runs that ended, which other tests have."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write tables, each with one fault, and results of a run."""
    folder, rng, n = tmp_path_factory.mktemp("stops"), np.random.default_rng(0), 120
    age = rng.normal(45, 10, n).round(3)
    town = rng.choice(["Bonn", "Kiel"], n)
    good = pd.DataFrame({"age": age, "town": town, "left": "no"})
    good.loc[age > 45, "left"] = "yes"
    days = [f"{1 + i % 12:02d}/{1 + i // 12:02d}/2023" for i in range(n)]
    dated = good.assign(seen=pd.date_range("2023-01-01", periods=n).astype(str))
    tables = {
        "s": good,
        "texts": good.assign(note=[f"K{i:04d}" for i in range(n)]),
        "keys": good.assign(**{k: [f"{k}{i:04d}" for i in range(n)] for k in "abcd"}),
        "amounts": good.assign(price=[f"${v:,.2f}" for v in age * 100]),
        "dates": good.assign(seen=days),
        "codes": good.assign(code=[i % 37 for i in range(n)]),
        "minus": good.assign(left=["-1", "3", "4"] * 40),
        "null": good.replace({"left": {"no": "NULL", "yes": "true"}}),
        "one": good.assign(left="yes"),
        "narrow": good[["age"]],
        "pending": good.astype({"age": str}).replace({"age": {str(age[7]): "pending"}}),
        "spelled": good.replace({"town": {"Bonn": "BONN"}}),
        "nr": good.assign(nr=range(n)),
        "nr_pool": good[::-1].assign(nr=range(n)),
        "few": good.head(8),
        "dated": dated,
        "undated": dated.assign(seen=dated["seen"].where(age > 35, "not yet")),
        "narrow_dates": dated.assign(seen="unknown"),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    text = good.replace({"town": {"Bonn": "Köln"}}).to_csv(index=False)
    (folder / "latin.csv").write_bytes(text.encode("latin-1"))
    (folder / "title.csv").write_text(f"Customers\n{good.to_csv(index=False)}")
    (folder / "mine.py").write_text(OWN_CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        succeed(*SELECT.split(), "--out", "run")
        succeed(*SELECT.replace("s.csv", "dated.csv").split(), "--out", "dated")
        succeed("select", "s.csv", "--target", "left", "--drop", "town",
                "--model", "mine:pipeline", "--out", "own")  # fmt: skip
        yield folder


@pytest.mark.parametrize("words", STOPS)
@pytest.mark.filterwarnings("ignore")
def test_page__has_the_words_of_a_message(words, folder):
    done = run(*STOPS[words].split())
    assert done.exit_code in (1, 2), done.output
    wanted = re.sub("NUMBER|YEAR", r"[0-9,]+", words.replace(".", r"\."))
    wanted = wanted.replace("-09-05", "-..-..").replace("-05-09", "-..-..")
    assert re.search(wanted, " ".join(done.output.split())), done.output
    assert words.replace("YEAR", "2023") in SHELL


def test_select__into_a_place_of_another_plan_names_a_free_one(folder):
    error, command = run(*STOPS["holds another plan"].split()).output.splitlines()
    assert "holds another plan" in error
    assert command == f"Run: dsel {SELECT} --drop town --out run_2"


def test_page__has_no_message_that_no_command_prints():
    rows = re.findall(r"^\| (`.+?) \|", SHELL, re.MULTILINE)
    rows = [row for row in rows if row not in WARNINGS]
    listed = {words for row in rows for words in re.findall("`(.+?)`", row)}
    assert listed == {words.replace("YEAR", "2023") for words in STOPS}
