"""What the benchmarks share: seconds, memory, sides that take turns."""

import os
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import psutil


@contextmanager
def watch(client=None):
    """Give wall and processor seconds of a block, and how large a worker grew.

    With a client also how large this process, its driver, grew. Processor seconds are
    those of the processes of a client's workers, else of this process and of all that
    it has started.
    """
    pids = list(client.run(os.getpid).values()) if client else []
    found, over = SimpleNamespace(nbytes=0, driver_nbytes=0), threading.Event()

    def seconds_by_process():
        me = psutil.Process()
        watched = map(psutil.Process, pids) if pids else [
            me, *me.children(recursive=True)
        ]  # fmt: skip
        times = {each.pid: each.cpu_times() for each in watched}
        return {pid: each.user + each.system for pid, each in times.items()}

    def look():
        while not over.wait(0.02):
            sizes = [psutil.Process(pid).memory_info().rss for pid in pids]
            found.nbytes = max(found.nbytes, *sizes)
            driver = psutil.Process().memory_info().rss
            found.driver_nbytes = max(found.driver_nbytes, driver)

    if pids:
        threading.Thread(target=look, daemon=True).start()
    before, began = seconds_by_process(), time.perf_counter()
    yield found
    found.wall = time.perf_counter() - began
    found.cpu = sum(t - before.get(pid, 0.0) for pid, t in seconds_by_process().items())
    over.set()
    found.memory = f"largest worker {found.nbytes / 2**20:.0f} MiB"


def in_turn(sides, repeat):
    """Call each side in turn, with the turn; return its CPU and wall seconds."""
    found = {name: [] for name in sides}
    for turn in range(repeat):
        for name, side in sides.items():
            with watch() as seconds:
                side(turn)
            found[name].append((seconds.cpu, seconds.wall))
    return {name: np.array(each) for name, each in found.items()}
