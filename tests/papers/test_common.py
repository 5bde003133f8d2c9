"""Pieces, random numbers, comparisons and tables of the scripts."""

import json
import math
from dataclasses import dataclass, replace

import common
import comparison
import numpy as np
import pytest
from click.testing import CliRunner
from comparison import AGREES, DIFFERS, OPEN, Comparisons, mean_of

from dsel.data.row_random import hashed_seed

CELL = ("Table 3", "votes", "error")


@dataclass(frozen=True)
class Settings:
    seed: int = 0


def make_experiment(calls):
    def measure(loaded, number, settings, place):
        calls.append((loaded, number))
        rng = np.random.default_rng([settings.seed, number])
        return {"number": rng.normal(), "curve": rng.normal(size=2)}

    def compare(results):
        ours = mean_of(results.number.values[0])
        lines = Comparisons(10)
        lines.order("section 1", str(results.data_set.values[0]), "a <number>", ours)
        return lines

    return common.Experiment(
        name="made", paper="Nobody (2000)", shows="nothing", duration="no time",
        sets=("one", "two"), repetitions=2, settings=Settings(),
        measured={"number": (), "curve": ("place",)},
        axes=lambda settings: {"place": (10, 20)},
        measure=measure, compare=compare, errors=("a & b",), departures=(),
    )  # fmt: skip


def test_run__measures_only_what_is_not_there(tmp_path):
    calls = []
    experiment = make_experiment(calls)
    first = common.run(experiment, sets=("one",), out=tmp_path)
    assert first.curve.dims == ("data_set", "repetition", "place")
    more = common.run(experiment, repetitions=3, out=tmp_path)
    every = [(name, n) for name in ("one", "two") for n in range(3)]
    assert sorted(calls) == every
    assert more.isel(data_set=[0], repetition=slice(2)).equals(first)
    assert common.run(experiment, repetitions=3).equals(more)


def test_run__keeps_no_pieces_of_another_seed_or_of_other_data(tmp_path):
    calls = []
    experiment = make_experiment(calls)
    common.run(experiment, sets=("one",), repetitions=1, out=tmp_path)
    with pytest.raises(ValueError, match="`out` holds pieces of other settings"):
        common.run(experiment, settings=Settings(seed=1), out=tmp_path)
    other = replace(experiment, load=lambda name, folder: f"another {name}")
    common.run(other, sets=("one",), repetitions=1, out=tmp_path)
    assert calls == [("one", 0), ("another one", 0)]


def test_write_tables__says_everything_and_escapes(tmp_path):
    experiment = make_experiment([])
    results = common.run(experiment)
    lines = experiment.compare(results)
    files = common.write_tables(experiment, results, lines, tmp_path / "new")
    assert [file.name for file in files] == [
        "comparison.csv", "comparison.json", "comparison.html",
    ]  # fmt: skip
    page = files[2].read_text()
    assert "a &lt;number&gt;" in page
    assert "a &amp; b" in page
    assert json.loads(files[1].read_text())["comparisons"][0]["printed"] is None
    assert list(common.as_lines(lines))[-1].startswith("Agree with the paper")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sets", "tow"], "knows no 'tow'. There are one, two."),
        (["--repetitions", "3"], "at most 2"),
        (["--data", "."], "benchmark sets are missing: haberman"),
    ],
)
def test_command__refuses_in_a_line(options, words):
    experiment = replace(make_experiment([]), most_repetitions=2)
    if "--data" in options:
        experiment = replace(experiment, files={"one": "haberman", "two": "haberman"})
    found = CliRunner().invoke(common.command_of(experiment), options)
    assert found.exit_code != 0
    assert words in found.output


def test_command__says_what_is_shown_and_how_long_it_takes():
    found = CliRunner().invoke(common.command_of(make_experiment([])), ["--help"])
    for words in ("made: Nobody (2000)", "shows: nothing", "takes no time"):
        assert words in found.output


def test_seed_of__is_that_of_dsel():
    assert common.seed_of(3, "dna", 0.1) == hashed_seed(3, "dna", 0.1)


def number(n, ours=(9.0, 0.1), spread=0.1, **options):
    lines = Comparisons(n)
    lines.number(*CELL, printed=0.1, ours=ours, spread=spread, **options)
    return lines[0]


@pytest.mark.parametrize(
    ("ours", "n", "verdict"),
    [(0.13, 10**6, AGREES), (0.07, 10**6, AGREES), (0.131, 10**6, DIFFERS),
     (0.141, 10, AGREES), (0.142, 10, DIFFERS)],
)  # fmt: skip
def test_number__agrees_up_to_the_quantile_of_the_repetitions(ours, n, verdict):
    found = number(n, ours=(ours, 0.008), spread=0.0101)
    assert found.verdict == verdict
    assert found.why.endswith("s.e.")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"spread": math.nan, "n": 99}, "no standard error"),
        ({"spread": 0.0, "n": 99}, "no standard error"),
        ({"n": 9}, "too few to say: 9 of at least 10"),
        ({"n": 20, "why": "other data"}, "other data"),
    ],
)
def test_number__says_why_it_is_not_compared(given, why):
    found = number(**given)
    assert found.verdict == OPEN
    assert why in found.why


def test_number__rarely_differs_where_the_law_is_the_same():
    rng, lines = np.random.default_rng(0), Comparisons(10)
    for ours in (mean_of(rng.normal(size=10)) for _ in range(4000)):
        lines.number(*CELL, printed=0.0, ours=ours, spread=ours[1])
    # 0.27 % of 4000 are 11; three standard errors alone would call 60 different.
    assert [each.verdict for each in lines].count(DIFFERS) < 25


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((0.5, 0.1), AGREES), ((-0.5, 0.1), DIFFERS), ((0.3, 0.1), OPEN),
     ((1e-9, math.nan), AGREES)],
)  # fmt: skip
def test_order__needs_room_for_its_standard_error(ours, verdict):
    lines = Comparisons(20)
    lines.order(*CELL, ours)
    assert lines[0].verdict == verdict


def test_share_of__is_never_sure():
    share, error = comparison.share_of(0, 20)
    assert (share, round(error, 3)) == (0.0, 0.034)
