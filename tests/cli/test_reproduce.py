import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from zarr.storage import LocalStore

from dsel.cli import main
from dsel.experiments import EXPERIMENTS
from dsel.results.journal import open_journal, read_fingerprint
from tests.experiments.small_sets import write_set

RUN = ("reproduce", "loog2015", "--sets", "banknote", "--workers", "1")


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_reproduce__lists_what_can_be_reproduced():
    found = run("reproduce")
    assert found.exit_code == 0, found.output
    for experiment in EXPERIMENTS:
        assert f"\n{experiment.name}\n" in f"\n{found.output}"
    assert "UCI: Letter Recognition" in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hardon2009"], "Did you mean 'hardoon2009'?"),
        (["nothing"], "There are hardoon2009, kaariainen2005"),
        (["kaariainen2005", "--sets", "dna,segmet"], "Did you mean 'segment'?"),
        (["--seed", "1"], "--seed needs NAME"),
        (["--workers", "1", "--json"], "--workers, --json needs NAME"),
        (["hardoon2009", "--repetitions", "11"], "must be 1 to 10, got 11"),
        (["hardoon2009", "--repetitions", "0"], "0 is not in the range"),
        (["loog2015", "--sets", "low,low"], "`sets` must differ"),
        (["loog2015", "--out", "s3://bucket/x"], "--out must be a folder"),
        (["loog2015", "--data", "no-such-folder"], "'no-such-folder' does not exist"),
        (["loog2015", "--sets", "low"], "lrs (UCI: Low Resolution Spectrometer"),
        (
            ["sugiyama", "--cluster", __file__, "--workers", "1"],
            "--cluster stands alone",
        ),
    ],
)
def test_reproduce__bad_input_is_one_line_and_an_exit_code(
    arguments, message, monkeypatch
):
    monkeypatch.delenv("DSEL_DATA", raising=False)
    found = run("reproduce", *arguments)
    assert found.exit_code in (1, 2)
    assert message in found.output
    assert "Traceback" not in found.output


@pytest.mark.cluster
def test_reproduce__prints_and_writes_the_tables(tmp_path):
    write_set(tmp_path, "banknote", n=120)
    out = tmp_path / "out"
    given = (*RUN, "--data", tmp_path, "--out", out, "--quiet", "--repetitions", 3)
    found = run(*given)
    assert found.exit_code == 0, found.output
    assert "Table 4" in found.output
    assert f"Wrote {out / 'comparison.html'}" in found.output
    again = run(*given, "--json")
    written = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert json.loads(again.stdout) == written


@pytest.mark.cluster
def test_reproduce__another_experiment_in_the_same_place_is_refused(tmp_path):
    small = ("--sets", "sin", "--repetitions", 1, "--workers", 1, "--quiet")
    assert run("reproduce", "sugiyama", *small, "--out", tmp_path).exit_code == 0
    write_set(tmp_path, "banknote", n=120)
    found = run(*RUN, "--data", tmp_path, "--out", tmp_path, "--quiet")
    assert found.exit_code == 1
    assert 'experiment: "sugiyama" in the store, "loog2015" now' in found.output


def kept(place):
    """Return the pieces that are on disk; none before there is a store."""
    if not (place / "journal").exists():
        return {}
    only_read = LocalStore(place, read_only=True)
    with open_journal(only_read, read_fingerprint(place)) as journal:
        return journal.read()


@pytest.mark.cluster
def test_reproduce__goes_on_after_a_kill(tmp_path):
    write_set(tmp_path, "banknote", n=120)
    out = tmp_path / "out"
    given = ["--data", str(tmp_path), "--out", str(out), "--repetitions", "400"]
    command = [sys.executable, "-m", "dsel", *RUN, *given, "--quiet"]
    with subprocess.Popen(command, start_new_session=True) as process:
        deadline = time.monotonic() + 200
        while len(kept(out)) < 20:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)

    before = kept(out)
    assert 20 <= len(before) < 400
    found = run(*RUN, *given, "--quiet")
    assert found.exit_code == 0, found.output
    after = kept(out)
    assert len(after) == 400
    for key, piece in before.items():
        assert piece["seconds"] == after[key]["seconds"]  # not measured again
