"""One writer at a time, on any store and whatever the clocks say.

The lock is a small record: who holds it, and a beat that the holder keeps counting up.
Of several that take it at the same moment the last has it, which the others see at
their first `check`. On the holder's own machine a dead process is seen at once. From
elsewhere the beat is watched for a while on the watcher's own clock: no two clocks are
ever compared.
"""

import os
import socket
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import zarr

from dsel.errors import StoreBusyError

GROUP: Final = "lock"
BEAT_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 0.05
"""How much later others may write who saw the lock free when we did."""

_held: set[str] = set()  # tokens of this process


@dataclass
class WriterLock:
    """The right to write to a store; call `beat` at least every `BEAT_SECONDS`."""

    root: zarr.Group
    """Root group of the store."""
    patience: float = PATIENCE_SECONDS
    """Seconds without a beat after which a holder elsewhere counts as dead."""
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells this holder from all others."""
    beats: int = 0
    """How often `beat` was called."""
    settles_at: float = 0.0
    """When nobody can take it any more who saw it free, by `time.monotonic`."""

    def acquire(self) -> None:
        """Take the lock, or raise StoreBusyError where a live process has it.

        Nothing may be changed before the first `check`, which may be much later.
        """
        holder = self._read()
        if holder and not self._is_dead(holder):
            raise StoreBusyError(_busy(self.root, holder))
        _held.add(self.token)
        self._write()
        self.settles_at = time.monotonic() + SETTLE_SECONDS

    def check(self) -> None:
        """Raise StoreBusyError unless the lock is still ours, and has settled."""
        time.sleep(max(0.0, self.settles_at - time.monotonic()))
        holder = self._read()
        if holder.get("token") != self.token:
            raise StoreBusyError(_busy(self.root, holder) if holder else self._lost)

    @property
    def _lost(self) -> str:
        return (
            f"the lock of {self.root.store} was removed while this run had it, so it "
            f"writes no more there; see that no other run does, then run the same "
            f"command again to go on with what is stored."
        )

    def beat(self) -> None:
        """Show that the holder is alive."""
        self.check()
        self.beats += 1
        self._write()

    def release(self) -> None:
        """Give the lock back, if it is still ours."""
        _held.discard(self.token)  # even where the place takes no word of it
        if self._read().get("token") == self.token:
            self._put({})

    def _is_dead(self, holder: dict[str, Any]) -> bool:
        if holder.get("machine") == machine():
            let_go = (
                holder.get("pid") == os.getpid() and holder.get("token") not in _held
            )
            return let_go or not is_alive(holder.get("pid"), holder.get("started"))
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            time.sleep(min(BEAT_SECONDS, self.patience) / 4)
            if self._read() != holder:
                return False
        return True

    def _read(self) -> dict[str, Any]:
        try:
            return dict(self.root[GROUP].attrs)
        except KeyError:
            return {}

    def _write(self) -> None:
        self._put(
            {
                "token": self.token,
                "machine": machine(),
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "started": started(os.getpid()),
                "beat": self.beats,
            }
        )

    def _put(self, record: dict[str, Any]) -> None:
        try:
            group = self.root[GROUP]
        except KeyError:
            group = self.root.require_group(GROUP)
        group.attrs.put(record)


def machine() -> str:
    """Return a name that only processes which see each other's numbers share."""
    parts = [socket.gethostname()]
    boot = Path("/proc/sys/kernel/random/boot_id")
    if boot.exists():
        parts += [boot.read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return "/".join(parts)


def started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks.

    Empty where unknown, and where it ended but nobody has asked how.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def is_alive(pid: Any, since: Any) -> bool:
    """Return whether the process of this number still is the one that started then."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return bool(started(pid) == since)


def _busy(root: zarr.Group, holder: dict[str, Any]) -> str:
    return (
        f"{root.store} is being written by process {holder.get('pid')} on "
        f"{holder.get('host')}; wait until it has ended, or choose another `out`."
    )
