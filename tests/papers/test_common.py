"""Pieces, random numbers, verdicts and tables of the scripts."""

import json
import math
import re
import subprocess
import sys
import time
from dataclasses import replace

import common
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from common import AGREES, DIFFERS, OPEN, SECONDS, Row, judge, mean_of

from dsel.data.row_random import derive_seed


def make_experiment(calls):
    def measure(loaded, number, settings, place):
        calls.append((loaded, number))
        rng = np.random.default_rng([settings.seed, number])
        found = {"number": rng.normal(), "curve": ("place", rng.normal(size=2))}
        return xr.Dataset(found, coords={"place": [10, 20]})

    def compare(results):
        yield Row("section 1", "one", "a <number>", *mean_of(results.number[0]))

    return common.Experiment(
        name="made", paper="Nobody (2000)", shows="nothing",
        sets=("one", "two"), repetitions=2, measure=measure, compare=compare,
        errors=("a & b",), departures=(),
    )  # fmt: skip


def test_run__measures_only_what_is_not_there(tmp_path):
    calls = []
    experiment = make_experiment(calls)
    first = common.run(experiment, sets=("one",), out=tmp_path)
    assert first.curve.dims == ("data_set", "repetition", "place")
    more = common.run(experiment, repetitions=3, out=tmp_path)
    every = [(name, n) for name in ("one", "two") for n in range(3)]
    assert sorted(calls) == every
    # Seconds of pieces that were there stay; those of another run differ.
    assert more.isel(data_set=[0], repetition=slice(2)).equals(first)
    again = common.run(experiment, repetitions=3)
    assert again.drop_vars(SECONDS).equals(more.drop_vars(SECONDS))


def test_run__keeps_no_pieces_of_another_seed_or_of_other_data(tmp_path):
    calls = []
    experiment = make_experiment(calls)
    common.run(experiment, sets=("one",), repetitions=1, out=tmp_path)
    with pytest.raises(ValueError, match="`out` holds pieces of other settings"):
        common.run(experiment, settings=common.Settings(seed=1), out=tmp_path)
    other = replace(experiment, load=lambda name, folder: f"another {name}")
    common.run(other, sets=("one",), repetitions=1, out=tmp_path)
    assert calls == [("one", 0), ("another one", 0)]


def test_write_tables__says_everything_and_escapes(tmp_path):
    experiment = make_experiment([])
    results = common.run(experiment)
    rows = common.compare_rows(experiment, results)
    files = common.write_tables(experiment, results, rows, tmp_path / "new")
    assert [file.name for file in files] == [
        "comparison.csv", "comparison.json", "comparison.html",
    ]  # fmt: skip
    page = files[2].read_text()
    assert "a &lt;number&gt;" in page
    assert "a &amp; b" in page
    assert json.loads(files[1].read_text())["comparisons"][0]["printed"] is None
    assert list(common.as_lines(rows))[-1].startswith("Agree with the paper")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sets", "tow"], "knows no 'tow'. There are one, two."),
        (["--repetitions", "3"], "3 is not in the range 1<=x<=2"),
        (["--data", "."], "benchmark sets are missing: haberman"),
        (["--help"], "made: Nobody (2000)\n    shows: nothing\n    sets: one, two\n"),
        (["--help"], "measured): one not measured; two not"),
    ],
)
def test_command__tells_in_a_line(options, words):
    experiment = replace(make_experiment([]), most_repetitions=2)
    if "--data" in options:
        experiment = replace(experiment, files={"one": "haberman", "two": "haberman"})
    found = CliRunner().invoke(common.command_of(experiment), options)
    assert (found.exit_code == 0) == ("--help" in options)
    assert words in found.output


def test_seed_of__is_that_of_dsel():
    assert common.seed_of(3, "dna", 0.1) == derive_seed(3, "dna", 0.1)


NUMBER = {"printed": 0.1, "spread": 0.0101}
ALIKE = "no standard error"


@pytest.mark.parametrize(
    ("ours", "error", "given", "n", "verdict", "why"),
    [
        # A printed number agrees up to the quantile of the repetitions.
        (0.13, 0.008, NUMBER, 10**6, AGREES, "s.e."),
        (0.07, 0.008, NUMBER, 10**6, AGREES, "s.e."),
        (0.131, 0.008, NUMBER, 10**6, DIFFERS, "s.e."),
        (0.141, 0.008, NUMBER, 10, AGREES, "s.e."),
        (0.142, 0.008, NUMBER, 10, DIFFERS, "s.e."),
        (0.142, 0.008, {**NUMBER, "n": 9}, 99, OPEN, "too few to say: 9 of at least"),
        (9.0, 0.1, {**NUMBER, "spread": math.nan}, 99, OPEN, ALIKE),
        (9.0, 0.1, {**NUMBER, "spread": 0.0}, 99, OPEN, ALIKE),
        (9.0, 0.1, {**NUMBER, "why": "other", "note": "so"}, 20, OPEN, "other; so"),
        (9.0, 0.1, {"printed": math.nan, "why": "not there"}, 20, OPEN, "not there"),
        # Identities are met to rounding, which has no standard error.
        (0.1 + 1e-16, 1e-18, {**NUMBER, "spread": 1e-18}, 20, AGREES, "equal"),
        (0.1, 0.0, {**NUMBER, "spread": 0.0}, 20, AGREES, "equal"),
        (0.1, math.nan, {**NUMBER, "spread": math.nan}, 1, OPEN, "too few"),
        (-1e-17, 1e-19, {}, 20, OPEN, "no difference within"),
        # A finding needs room for its standard error.
        (0.5, 0.1, {}, 20, AGREES, ""),
        (-0.5, 0.1, {}, 20, DIFFERS, ""),
        (0.3, 0.1, {}, 20, OPEN, "no difference within"),
        (1e-9, math.nan, {}, 20, AGREES, ""),
        # Whole numbers are equal or not, however few the repetitions.
        (8, math.nan, {"printed": 8}, 1, AGREES, ""),
        (7, math.nan, {"printed": 8}, 1, DIFFERS, ""),
    ],
)
def test_judge__gives_a_verdict_and_says_why(ours, error, given, n, verdict, why):
    found = judge(Row("Table 3", "votes", "error", ours, error, **given), n)
    assert found.verdict == verdict
    assert why in found.why


def test_judge__rarely_differs_where_the_law_is_the_same():
    rng, found = np.random.default_rng(0), []
    for mean, error in (mean_of(rng.normal(size=10)) for _ in range(4000)):
        row = Row("", "", "", mean, error, printed=0.0, spread=error)
        found.append(judge(row, 10).verdict)
    # 0.27 % of 4000 are 11; three standard errors alone would call 60 different.
    assert found.count(DIFFERS) < 25


def test_judge__of_many_lines_rarely_any_differs():
    rng, n_pages, n_lines = np.random.default_rng(0), 100, 200
    n_wrong, n_lone = 0, 0
    for _ in range(n_pages):
        numbers = rng.normal(size=(n_lines, 10))
        rows = [
            Row("", "", "", mean, error, printed=0.0, spread=error)
            for mean, error in map(mean_of, numbers)
        ]
        n_lone += any(judge(row, 10).verdict == DIFFERS for row in rows)
        n_wrong += any(judge(row, 10, n_lines).verdict == DIFFERS for row in rows)
    assert n_wrong <= 2  # of 100 pages .27 are expected
    assert n_lone > 20


def test_compare_rows__counts_lines_that_are_compared():
    def compare(results):
        for n in range(400):
            why = "" if n < 200 else "another table"
            yield Row("", str(n), "", 0.14, 0.01, printed=0.1, spread=0.01, why=why)

    experiment = replace(make_experiment([]), compare=compare)
    results = xr.Dataset(coords={"repetition": range(1000)})
    rows = common.compare_rows(experiment, results)
    assert rows[0].verdict == AGREES  # 4 standard errors, of 200 lines
    alone = judge(rows[0]._replace(why=""), 1000)
    assert alone.verdict == DIFFERS


def test_run__keeps_pieces_that_ended_before_the_first(tmp_path):
    def measure(loaded, number, settings, place):
        if number == 0:
            while not (tmp_path / "pieces" / "one-1.json").exists():
                time.sleep(0.05)
            raise RuntimeError("interrupted")
        return xr.Dataset({"number": 1.0})

    experiment = replace(make_experiment([]), measure=measure, in_processes=True)
    with pytest.raises(RuntimeError, match="interrupted"):
        common.run(experiment, sets=("one",), out=tmp_path, jobs=2)
    calls = []
    again = replace(make_experiment(calls), in_processes=False)
    common.run(again, sets=("one",), out=tmp_path)
    assert calls == [("one", 0)]


def test_share_of__is_never_sure():
    share, error = common.share_of(0, 20)
    assert (share, round(error, 3)) == (0.0, 0.034)


# How long pieces take.


class MadeUpClock:
    """A clock that stands still until somebody works."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    monotonic = __call__

    def work(self, seconds):
        self.now += seconds


def make_slow_experiment(calls, clock):
    """Return an experiment each of whose pieces takes longer than the one before."""

    def measure(loaded, number, settings, place):
        calls.append(0.5 * (len(calls) + 1))
        clock.work(calls[-1])
        return xr.Dataset({"number": 1.0})

    return replace(make_experiment([]), measure=measure)


def test_run__measures_processor_seconds_and_sums_them_over_resumed_runs(tmp_path):
    calls, texts, clock = [], [], MadeUpClock()
    experiment = make_slow_experiment(calls, clock)
    given = {"out": tmp_path, "clock": clock, "report": texts.append}
    common.run(experiment, repetitions=1, **given)
    assert texts[:-1] == ["1 of 2 pieces (one)", "2 of 2 pieces (two)"]
    texts.clear()
    results = common.run(experiment, repetitions=3, **given)
    # By repetition, then by set: the first repetitions are those of the first run.
    measured = results[SECONDS].transpose().values.ravel()[[0, 1, 2, 4, 3, 5]]
    assert measured.tolist() == calls
    assert texts[0] == "3 of 6 pieces (one)"
    assert texts[1] == "4 of 6 pieces (one)"  # nothing is known of the other set
    assert re.fullmatch(r"5 of 6 pieces \(two\), about \d\.\d seconds left", texts[2])
    assert texts[-2] == "6 of 6 pieces (two)"
    assert texts[-1] == (
        f"6 of 6 pieces: {common.as_time(results[SECONDS].sum())} of processors, "
        f"{common.as_time(results[SECONDS][:, 1:].sum())} of them in this run"
    )
    texts.clear()
    common.run(experiment, repetitions=3, **given)
    assert len(texts) == 1  # nothing is measured again
    assert "0.0 seconds of them in this run" in texts[0]


def test_run__processes_of_a_piece_count_and_so_do_those_that_ended(tmp_path):
    busy = "import time\nwhile time.process_time() < 0.3: pass"

    def measure(loaded, number, settings, place):
        subprocess.run([sys.executable, "-c", busy], check=True)
        return xr.Dataset({"number": 1.0})

    experiment = replace(make_experiment([]), measure=measure)
    results = common.run(experiment, sets=("one",), repetitions=1)
    assert results[SECONDS].item() >= 0.28  # the clock of the system has ticks


def interrupted_run(tmp_path, texts, *, kill=False):
    """Interrupt a piece that keeps a search; return the results of the next run."""

    clock = MadeUpClock()

    def measure(loaded, number, settings, place):
        clock.work(0.5)
        if not place.exists():
            place.mkdir(parents=True)
            raise KeyboardInterrupt
        return xr.Dataset({"number": 1.0})

    experiment = replace(make_experiment([]), measure=measure)
    given = {"sets": ("one",), "repetitions": 1, "out": tmp_path, "clock": clock}
    with pytest.raises(KeyboardInterrupt):
        common.run(experiment, **given)
    if kill:  # a killed process could not have written its seconds
        (tmp_path / "searches" / "one-0" / "seconds").unlink()
    return common.run(experiment, **given, report=texts.append)


def test_run__an_interrupted_piece_has_the_seconds_of_both_runs(tmp_path):
    seconds = interrupted_run(tmp_path, [])[SECONDS]
    assert seconds.item() == 1.0


def test_run__says_that_the_seconds_of_a_killed_piece_are_not_known(tmp_path):
    texts = []
    results = interrupted_run(tmp_path, texts, kill=True)
    assert np.isnan(results[SECONDS]).all()
    assert "0 of 1 pieces" in texts[-1]
    assert "those of the others are not known" in texts[-1]
    rows = common.compare_rows(make_experiment([]), results)
    written = common.as_json(make_experiment([]), results, rows)
    assert written[SECONDS] == {"one": [None]}


def test_time_left__weighs_sets_by_what_is_recorded(monkeypatch, tmp_path):
    file = tmp_path / "seconds.json"
    file.write_text(json.dumps({"experiments": {"made": {"sets": {
        "one": [0.1, 0.05], "two": [0.1, 499.0, 501.0],
    }}}}))  # fmt: skip
    monkeypatch.setattr(common, "SECONDS_FILE", file)
    texts, clock = [], MadeUpClock()
    monkeypatch.setattr(common, "time", clock)
    common.run(make_slow_experiment([], clock), clock=clock, report=texts.append)
    assert texts[1].startswith("2 of 4 pieces (one), about ")
    assert texts[1].endswith(" minutes left")  # the last piece takes most of it
    experiment = make_experiment([])
    assert common.list_seconds(experiment) == "one 0.1, 0.05 (2); two 0.1, 500 (3)"
    assert common.expect_seconds(experiment) == pytest.approx(0.1 + 0.05 + 0.1 + 500.0)


def test_record__writes_what_was_measured_and_help_reads_it(monkeypatch, tmp_path):
    file = tmp_path / "seconds.json"
    file.write_text('{"experiments": {}}')
    monkeypatch.setattr(common, "SECONDS_FILE", file)

    def measure(loaded, number, settings, place):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        return xr.Dataset({"number": 1.0})

    experiment = replace(make_experiment([]), measure=measure)
    for options in (["--sets", "one"], ["--sets", "two", "--repetitions", "1"]):
        command = common.command_of(experiment)
        done = CliRunner().invoke(command, ["--record", *options])
        assert done.exit_code == 0, done.output
    recorded = common.recorded_seconds("made")
    assert {name: len(seconds) for name, seconds in recorded.items()} == {
        "one": 2, "two": 1,
    }  # fmt: skip
    assert math.isnan(common.expect_seconds(experiment))  # one piece says too little
    text = CliRunner().invoke(common.command_of(experiment), ["--help"]).output
    text = " ".join(text.split())
    assert common.list_seconds(experiment) in text
    assert re.search(r"one \d+\.\d+, \d+\.\d+ \(2\); two \d+\.\d+ \(1\)", text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 seconds"), (9.96, "10.0 seconds"), (89.9, "90 seconds"),
        (90, "1.5 minutes"), (5399, "90 minutes"), (9000, "2.5 hours"),
    ],
)  # fmt: skip
def test_as_time__takes_the_unit_that_fits(seconds, text):
    assert common.as_time(seconds) == text
