"""A run that was killed goes on from its `out` and ends in the same cube."""

import json
import os
import re
import signal
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import Client

import dsel
from tests.clusters import environment, running_cluster, wait_until
from tests.contract.runs import (
    CERTIFICATES,
    K_NEAREST,
    ROOT,
    counts_of,
    digits,
    job,
    plan_search,
    run_search,
)

pytestmark = pytest.mark.contract


def n_files(place):
    return sum(len(files) for _, _, files in os.walk(place))


def lines(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def killed_later(kind, log, out, count, place, more):
    """Kill a job once there is more than now; return whether it was still running."""
    code = "import sys; from tests.contract.runs import job; job(*sys.argv[1:])"
    command, before = [sys.executable, "-c", code, kind, log, out], count(place)
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), start_new_session=True
    )
    wait_until(lambda: process.poll() is not None or count(place) > before + more)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["SVC", "tree"])
def test_run__killed_again_and_again_ends_in_the_same_counts(kind, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    # Trees: before anything is kept, then in the middle of the fits.
    count, place, n = (n_files, out, (2,)) if kind == "SVC" else (lines, log, (0, 20))
    killed = [killed_later(kind, log, out, count, place, more) for more in n]
    assert killed[0]
    resumed, whole = job(kind, log, out), job(kind, tmp_path / "other")
    assert counts_of(resumed) == counts_of(whole)
    assert dsel.open_results(out)["status"].equals(resumed.results["status"])


def test_run__what_was_finished_is_not_fitted_again(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    first, n = job("tree", log, out), lines(log)
    again = job("tree", log, out)
    assert counts_of(again) == counts_of(first)
    assert again.choice == first.choice
    assert lines(log) == n > 0


@pytest.mark.parametrize("certificate", CERTIFICATES)
@pytest.mark.parametrize("is_url", [False, True])
def test_run__with_out_is_the_run_without(certificate, is_url, tmp_path):
    rows = (*K_NEAREST, *digits(200))
    options = {"certificate": certificate, "cv": 3}
    out = f"memory://contract/{certificate}" if is_url else tmp_path / "out"
    kept = run_search(*rows, out=out, **options)
    assert counts_of(kept) == counts_of(run_search(*rows, **options))
    assert run_search(*rows, out=out, **options).choice == kept.choice
    assert dsel.select(dsel.open_results(out)) == kept.choice


@pytest.mark.cluster
def test_run__a_worker_that_is_killed_changes_no_count(tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    with (
        running_cluster(tmp_path) as cluster,
        Client(cluster.address, set_as_default=False) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        running = thread.submit(job, "tree", log, out, client)
        wait_until(lambda: lines(log) > 5 or running.done(), what="some fits")
        cluster.kill("worker-0")
        cluster.start_worker("worker-2")
        counts = counts_of(running.result(timeout=120))
    assert counts == counts_of(job("tree", tmp_path / "other"))


@pytest.mark.parametrize("body", [b'{"said": {}, "datasets": {}, "models": {}}', b"[]"])
def test_run__refuses_an_outcome_that_it_did_not_write(body, tmp_path):
    """One whose checksum is right: a torn one is refused beside."""
    rows = (*K_NEAREST, *digits(100))
    run_search(*rows, cv=2, out=tmp_path)
    (tmp_path / "outcome.json").write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    with pytest.raises(
        ValueError, match=r"outcome.* not what dsel wrote there; (bring|rest)"
    ):
        run_search(*rows, cv=2, out=tmp_path)


@pytest.mark.parametrize(
    "record",
    [["fit", {}], ["fit/", {}], ["", {}], ["slice", []], ["fit/{what}/{key}", []]],
)
def test_run__refuses_a_record_that_no_run_has_written(record, tmp_path):
    def stop(progress):
        if progress.fits_done:
            raise KeyboardInterrupt

    rows = (*K_NEAREST, *digits(100))
    with pytest.raises(KeyboardInterrupt):
        plan_search(*rows, cv=2).run(out=tmp_path, on_progress=stop)
    [*_, last] = sorted(
        path for path in tmp_path.rglob("*.json") if path.stat().st_size
    )
    head, line, *_ = last.read_bytes().partition(b"\n")[2].splitlines()
    _, what, key = json.loads(line)[0].split("/")[:3]
    record = [record[0].format(what=what, key=key), record[1]]
    body = b"\n".join([head, json.dumps(record).encode()])
    last.write_bytes(b"%08x\n" % zlib.crc32(body) + body)  # a right checksum
    with pytest.raises(ValueError, match=r"^`out` .* holds a record that no run of th"):
        run_search(*rows, cv=2, out=tmp_path)


def test_interrupt__says_what_is_kept_and_how_the_run_goes_on(tmp_path, capsys):
    def stop(progress):
        if progress.fits_done >= 2:
            raise KeyboardInterrupt

    plan = plan_search(*K_NEAREST, *digits(100), cv=2, random_state=5)
    for out, words in (
        (None, "it had no `out`: with out='results'"),
        (tmp_path / "out", f"kept in `out` {tmp_path / 'out'}: the same call with "
         "random_state=5 goes on from there."),
    ):  # fmt: skip
        with pytest.raises(KeyboardInterrupt) as caught:
            plan.run(out=out, on_progress=stop, n_jobs=1)
        [note] = caught.value.__notes__
        assert words in note
    assert "Continues" not in capsys.readouterr().err
    most = plan.search.fits_range()[1]
    assert plan.run(out=tmp_path / "out").choice == plan.run().choice
    lines = re.findall("Continues: .*", capsys.readouterr().err)
    assert len(lines) == 1
    kept = re.fullmatch(
        rf"Continues: ([0-9]+) of up to {most} fits were kept in the results", lines[0]
    )
    assert kept is not None
    assert 2 <= int(kept[1]) < most
