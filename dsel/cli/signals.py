"""How a signal ends a command: in good order, and at once when a second one comes."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

import click

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what schedulers, containers and systems send; a terminal that is closed."""

POLL_SECONDS: Final = 0.01
"""Until a signal that came during an import is looked at again."""

INTERRUPTED: Final = (
    "Interrupted. With --out all that was finished is kept: run the same command again "
    "to go on."
)


class Interrupted(KeyboardInterrupt):
    """Raised where a signal came.

    Once a KeyboardInterrupt itself has left an `exec`, such as the one by which a
    dataclass is made, Python ends the process by SIGINT whatever its exit code is; a
    subclass is not treated so.
    """


@dataclass
class Interruption:
    """Handler of signals that remembers which one came."""

    number: int | None = None
    """The first signal; None before any came."""

    @property
    def exit_code(self) -> int:
        """What shells give a process that a signal ended."""
        return 128 + (self.number or signal.SIGINT)

    def end(self) -> int:
        """Say that the command was interrupted, and return its exit code."""
        click.echo(INTERRUPTED, err=True)
        return self.exit_code

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, which closes what is open; at once the next time.

        During an import it waits for its end. An exception can leave the import system
        at a place where it is dropped and the lock of all imports stays held: threads
        that import later would wait for ever, and Python for them.
        """
        if number != signal.SIGALRM:
            if self.number is not None:
                os.write(2, f"{INTERRUPTED}\n".encode())
                os._exit(self.exit_code)
            self.number = number
        if not _imports(frame):
            raise Interrupted
        signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, POLL_SECONDS)


def _imports(frame: FrameType | None) -> bool:
    """Whether a frame, or one that called it, is of Python's import system."""
    while frame is not None and "<frozen importlib" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle `SIGNALS` inside of the block; only the main thread can do so."""
    handler = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield handler
        return
    before = {
        number: signal.signal(number, handler)
        for number in SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN  # as under `nohup`
    }
    try:
        yield handler
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
