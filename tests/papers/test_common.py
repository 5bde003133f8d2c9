"""Pieces, random numbers, comparisons and tables of the scripts."""

import json
import math
from dataclasses import dataclass, replace

import common
import comparison
import numpy as np
import pytest
from click.testing import CliRunner
from comparison import AGREES, DIFFERS, OPEN, compare_number, compare_order, mean_of

from dsel.data.row_random import hashed_seed
from dsel.data.splits import holdout_split, random_folds

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
        where = str(results.data_set.values[0])
        return [compare_order("section 1", where, "a <number>", ours=ours, n=10)]

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
    assert calls == [
        ("one", 0),
        ("one", 1),
        ("one", 2),
        *[("two", n) for n in range(3)],
    ]
    assert more.isel(data_set=[0], repetition=slice(2)).equals(first)
    assert common.run(experiment, repetitions=3).equals(more)


def test_run__refuses_pieces_of_another_seed(tmp_path):
    experiment = make_experiment([])
    common.run(experiment, out=tmp_path)
    with pytest.raises(ValueError, match="`out` holds pieces of other settings"):
        common.run(experiment, settings=Settings(seed=1), out=tmp_path)


def test_run__measures_again_where_data_have_changed(tmp_path):
    calls = []
    experiment = make_experiment(calls)
    common.run(experiment, sets=("one",), repetitions=1, out=tmp_path)
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
        (["--sets", "tow"], "Did you mean 'two'?"),
        (["--repetitions", "3"], "at most 2"),
        (["--data", "."], "benchmark sets are missing: haberman"),
        (["--sets", "one"], "nothing-like-it, which is not installed"),
    ],
)
def test_command__refuses_in_a_line(options, words):
    experiment = replace(make_experiment([]), most_repetitions=2)
    if "--data" in options:
        experiment = replace(experiment, files={"one": "haberman", "two": "haberman"})
    if "one" in options:
        experiment = replace(experiment, modules={"one": "nothing-like-it"})
    found = CliRunner().invoke(common.command_of(experiment), options)
    assert found.exit_code != 0
    assert words in found.output


def test_command__says_what_is_shown_and_how_long_it_takes():
    found = CliRunner().invoke(common.command_of(make_experiment([])), ["--help"])
    for words in ("made: Nobody (2000)", "shows: nothing", "takes no time"):
        assert words in found.output


def test_ranks__are_those_of_the_splits_of_dsel():
    folds = common.ranks(41, common.FOLD_STREAM, 7) % 10
    np.testing.assert_array_equal(folds, random_folds(41, 10, seed=7))
    held = np.flatnonzero(common.ranks(41, common.HOLDOUT_STREAM, 7) < 9)
    np.testing.assert_array_equal(held, holdout_split(41, 9, seed=7).test_rows)
    assert common.seed_of(3, "dna", 0.1) == hashed_seed(3, "dna", 0.1)


@pytest.mark.parametrize(
    ("ours", "n", "verdict"),
    [(0.13, 10**6, AGREES), (0.07, 10**6, AGREES), (0.131, 10**6, DIFFERS),
     (0.141, 10, AGREES), (0.142, 10, DIFFERS)],
)  # fmt: skip
def test_compare_number__agrees_up_to_the_quantile_of_the_repetitions(ours, n, verdict):
    found = compare_number(*CELL, printed=0.1, ours=(ours, 0.008), spread=0.0101, n=n)
    assert found.verdict == verdict
    assert found.why.endswith("s.e.")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"spread": math.nan, "n": 99}, "no standard error"),
        ({"spread": 0.0, "n": 99}, "no standard error"),
        ({"spread": 0.1, "n": 9}, "too few to say: 9 of at least 10"),
        ({"spread": 0.1, "n": 20, "why_open": "other data"}, "other data"),
    ],
)
def test_compare_number__says_why_it_is_not_compared(given, why):
    found = compare_number(*CELL, printed=0.1, ours=(9.0, 0.1), **given)
    assert found.verdict == OPEN
    assert why in found.why


def test_compare_number__rarely_differs_where_the_law_is_the_same():
    rng = np.random.default_rng(0)
    drawn = [mean_of(rng.normal(size=10)) for _ in range(4000)]
    verdicts = [
        compare_number(*CELL, printed=0.0, ours=each, spread=each[1], n=10).verdict
        for each in drawn
    ]
    # 0.27 % of 4000 are 11; three standard errors alone would call 60 different.
    assert verdicts.count(DIFFERS) < 25


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((0.5, 0.1), AGREES), ((-0.5, 0.1), DIFFERS), ((0.3, 0.1), OPEN),
     ((1e-9, math.nan), AGREES)],
)  # fmt: skip
def test_compare_order__needs_room_for_its_standard_error(ours, verdict):
    assert compare_order(*CELL, ours=ours, n=20).verdict == verdict


def test_share_of__is_never_sure():
    share, error = comparison.share_of(0, 20)
    assert (share, round(error, 3)) == (0.0, 0.034)
