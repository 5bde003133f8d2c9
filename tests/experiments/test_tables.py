import csv
import json
import re

import pytest

from dsel.experiments import EXPERIMENTS, run_experiment
from dsel.experiments.comparison import compare_number, compare_order
from dsel.experiments.tables import as_lines, as_page, write_tables

SUGIYAMA = EXPERIMENTS[-1]
FOUND = [
    compare_number(
        "Table 1", "a<b", "e", printed=0.1, ours=(0.3, 0.01), spread=0.02, n=20
    ),
    compare_order("Table 1", "b", "gap", ours=(0.25, float("nan")), n=20),
    compare_number(
        "Table 2", "b", "x", printed=1, ours=(2, 0), spread=1, n=20, why_open="?"
    ),
]


@pytest.fixture(scope="module")
def results():
    scale = SUGIYAMA.scale("small", sets=("sin",), repetitions=2)
    return run_experiment(SUGIYAMA, scale)


def test_as_lines__has_a_table_for_each_source():
    lines = list(as_lines(FOUND))
    assert lines[0] == "Table 1"
    assert lines[2].split() == ["a<b", "e", "0.1", "0.3", "0.01", "differs:",
                                "+10.0", "s.e."]  # fmt: skip
    assert lines[3].split() == ["b", "gap", ">", "0", "0.25", "agrees"]
    assert lines[-1].startswith("Agree with the paper: 1 of 3;")
    # One table for a source, wherever its lines stand.
    assert list(as_lines([*FOUND, FOUND[0]])).count("Table 1") == 1


def test_as_page__says_first_what_differs_and_loads_nothing(results):
    page = as_page(SUGIYAMA, results, FOUND)
    assert page.index("Agree with the paper: 1 of 3") < page.index("What differs")
    assert page.index("What differs") < page.index("<h2>Table 1</h2>")
    assert "a&lt;b" in page
    assert "2 repetitions on each of sin; seed 0." in page
    assert not re.findall(r"(?:src|href)=|<script|@import|url\(", page)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_as_page__tells_the_errors_of_the_paper(experiment, results):
    page = as_page(experiment, results, FOUND[1:])
    assert page.count("<li>") == len(experiment.errors) + len(experiment.departures)
    assert "What differs" not in page


def test_write_tables__machines_read_the_same(results, tmp_path):
    comparisons = SUGIYAMA.compare(results)
    table, told, *_ = write_tables(SUGIYAMA, results, comparisons, tmp_path)
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    read = json.loads(told.read_text(encoding="utf-8"))
    assert len(rows) == len(read["comparisons"]) == len(comparisons)
    assert read["repetitions"] == 2
    assert [row["ours"] for row in rows] == [str(each.ours) for each in comparisons]
