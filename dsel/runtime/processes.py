"""A process that this one starts, and speaks to through a pipe.

What is unpickled came through this pipe, from a process of the same user that this one
started or that started it, never from a file or a network.
"""

import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

import cloudpickle

IDLE_SECONDS: Final = 120.0  # after which an unused process ends and frees its memory
POLL_SECONDS: Final = 0.5


class OtherProcess:
    """A process of this user that runs a function of a module."""

    def __init__(self, module: str, function: str) -> None:
        self._pipe, theirs = Pipe()
        handle = theirs.fileno()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {module} import {function}; {function}({handle})"
        )
        self._process = subprocess.Popen(
            # The tracker would warn of semaphores that a killed process has left.
            [sys.executable, "-W", "ignore:resource_tracker:UserWarning", "-c", code],
            pass_fds=[handle],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach only the process that waits
        )
        theirs.close()
        self.end = weakref.finalize(self, _end, self._process, self._pipe)

    def is_alive(self) -> bool:
        """Whether the process can be asked."""
        return self.end.alive and self._process.poll() is None

    def ask(self, message: Any, seconds: float) -> Any:
        """Send a message and return the answer; raise it where it is an error.

        Raises TimeoutError where it takes longer than `seconds`, and the process is
        gone then; ChildProcessError where the process died, as of too much memory.
        """
        with suppress(BrokenPipeError):  # the answer says how it ended
            self._pipe.send_bytes(cloudpickle.dumps(message))
        found = self._answer(seconds)
        if isinstance(found, BaseException):
            raise found
        return found

    def _answer(self, seconds: float) -> Any:
        waited = 0.0
        while waited < seconds:
            began = time.monotonic()
            try:
                if self._pipe.poll(min(POLL_SECONDS, seconds - waited)):
                    return cloudpickle.loads(self._pipe.recv_bytes())
            except (EOFError, OSError) as error:
                self.end()
                raise ChildProcessError(
                    f"the process of the fit ended with code {self._process.returncode}"
                ) from error
            # Time during which the machine slept, and the fit with it, does not count.
            waited += min(2 * POLL_SECONDS, time.monotonic() - began)
        self.end()
        raise TimeoutError(f"nothing came back within {seconds:g} s")


def _end(process: "subprocess.Popen[bytes]", pipe: Connection) -> None:
    with suppress(ProcessLookupError):  # with what it has started
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    pipe.close()
