"""Ctrl-C as a terminal sends it, to dsel and to the workers that it started."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from dsel.cli import signals
from dsel.cli.signals import Interruption, interruptible
from tests.clusters import environment, wait_until


def _members(session):
    """Processes of a session that still run."""
    return [
        process
        for process in psutil.process_iter(["status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and _session_of(process) == session
    ]


def _session_of(process):
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


@pytest.fixture(autouse=True)
def hears_signals():
    """Handle signals as a terminal's programs do, wherever the tests were started."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, how) for number, how in usual.items()}
    yield
    for number, how in before.items():
        signal.signal(number, how)


@pytest.fixture
def demo(tmp_path):
    options = ["--workers", "2", "--out", "results", "--log", "log.txt"]
    with (tmp_path / "output.txt").open("w") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", "dsel", "demo", *options], stdout=output,
            stderr=output, env=environment(), cwd=tmp_path, start_new_session=True,
        )  # fmt: skip
    yield started
    for process in _members(started.pid):
        process.kill()
    started.wait()


def _first_helper_starts(session, folder):
    return len(_members(session)) > 1


def _workers_start(session, folder):
    return sum("spawn_main" in " ".join(p.cmdline()) for p in _members(session)) == 2


def _first_fit_is_done(session, folder):
    log = folder / "log.txt"
    return log.exists() and " fit " in log.read_text()


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("moment", "number"),
    [
        (_workers_start, signal.SIGINT),
        (_workers_start, signal.SIGTERM),
        (_first_helper_starts, signal.SIGHUP),
        (_first_fit_is_done, signal.SIGINT),
        (_first_fit_is_done, signal.SIGTERM),
    ],
)
def test_command__ends_in_good_order_when_interrupted(demo, tmp_path, number, moment):
    wait_until(lambda: moment(demo.pid, tmp_path), 200, "the moment")
    # A terminal sends its signals to all processes; who ends a service sends it to one.
    to_one = number == signal.SIGTERM
    demo.send_signal(number) if to_one else os.killpg(demo.pid, number)

    assert demo.wait(timeout=120) == 128 + number
    said = (tmp_path / "output.txt").read_text()
    assert "run the same command again to go on" in said
    assert "Traceback" not in said
    assert "Warning" not in said
    wait_until(lambda: not _members(demo.pid), what="the end of all workers")


def test_command__is_interrupted_at_the_end_of_an_import(tmp_path):
    # At the place where Python drops exceptions and keeps the lock of all imports.
    (tmp_path / "imported.py").write_text(
        "import os, signal, weakref\n"
        "class Module: pass\n"
        "module = Module()\n"
        "said = weakref.ref(module, lambda _: os.kill(os.getpid(), signal.SIGTERM))\n"
        "del module\n"
        "print('whole')\n"
    )
    (tmp_path / "stopped.py").write_text(
        "from dsel.cli import group, main\n"
        "def importing(name):\n"
        "    import imported, time\n"
        "    time.sleep(60)\n"
        "group.import_module = importing\n"
        "main(['demo'])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "stopped"],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 128 + signal.SIGTERM
    assert ended.stdout == "whole\n"
    assert ended.stderr.strip() == signals.INTERRUPTED


def test_interruption__ends_with_its_exit_code_amid_an_exec_too(tmp_path):
    (tmp_path / "stopped.py").write_text(
        "import os, signal, sys\n"
        "from dsel.cli.signals import interruptible\n"
        "with interruptible() as interruption:\n"
        "    try:\n"
        "        exec('os.kill(os.getpid(), signal.SIGTERM)')\n"
        "    except KeyboardInterrupt:\n"
        "        code = interruption.end()\n"
        "sys.exit(code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "stopped"],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 128 + signal.SIGTERM
    assert ended.stderr == f"{signals.INTERRUPTED}\n"


def test_interruption__ends_at_once_when_asked_again(monkeypatch):
    codes = []
    monkeypatch.setattr(signals.os, "_exit", codes.append)
    handler = Interruption()
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        handler(signal.SIGTERM, None)
    assert codes == []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        handler(signal.SIGINT, None)
    assert codes == [128 + signal.SIGTERM]


def test_interruptible__puts_handlers_back_and_leaves_ignored_signals_alone():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as handler:
            assert signal.getsignal(signal.SIGINT) is handler
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_interruptible__does_nothing_outside_of_the_main_thread():
    seen = []

    def enter():
        with interruptible():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
