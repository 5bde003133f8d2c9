"""Disks that are full: a small one that is mounted, or a limit of this process."""

import os
import resource
import subprocess
from contextlib import contextmanager, suppress


def why_no_mount():
    """Return why no disk can be mounted here; "" where one can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "only root can mount a small disk"
    return ""


@contextmanager
def small_disk(folder, mebibytes):
    """Mount a disk of so many MiB; raises CalledProcessError where that is not allowed.

    It is unmounted at the end, whatever is on it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={mebibytes}m"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
        check=True,
        capture_output=True,
    )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def room_for(folder, nbytes):
    """Fill a small disk up to so many bytes."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(2**12))
    os.truncate(filler, max(0, filler.stat().st_size - nbytes))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def files_of_at_most(nbytes):
    """Refuse longer files to this process, as a quota does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
