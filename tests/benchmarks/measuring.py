"""What the benchmarks share: seconds, memory, sides that take turns, two workers."""

import os
import threading
import time
from contextlib import contextmanager

import numpy as np
import psutil
from distributed import Client, LocalCluster


class Watch:
    """Wall and processor seconds of a block, and how large a worker grew.

    Processor seconds are those of the processes of a client's workers, else of this
    process and of all that it has started.
    """

    def __init__(self, client=None):
        self._pids = list(client.run(os.getpid).values()) if client else []
        self._over = threading.Event()
        self.nbytes = 0

    def _used(self):
        me = psutil.Process()
        watched = map(psutil.Process, self._pids) if self._pids else [
            me, *me.children(recursive=True)
        ]  # fmt: skip
        times = {each.pid: each.cpu_times() for each in watched}
        return {pid: each.user + each.system for pid, each in times.items()}

    def _look(self):
        while not self._over.wait(0.02):
            sizes = [psutil.Process(pid).memory_info().rss for pid in self._pids]
            self.nbytes = max(self.nbytes, *sizes)

    def __enter__(self):
        if self._pids:
            self._thread = threading.Thread(target=self._look)
            self._thread.start()
        self._before, self.wall = self._used(), time.perf_counter()
        return self

    def __exit__(self, *error):
        self.wall = time.perf_counter() - self.wall
        after = self._used()
        self.cpu = sum(t - self._before.get(pid, 0.0) for pid, t in after.items())
        if self._pids:
            self._over.set()
            self._thread.join()

    @property
    def mebibytes(self):
        return f"largest worker {self.nbytes / 2**20:.0f} MiB"


def in_turn(sides, repetitions):
    """Run each side, a function by name, in turn; return CPU and wall seconds of each.

    A side is called with the number of the turn, and may return by how much its seconds
    are to be scaled. One that has fewer batches than repetitions is a pair of the
    function and this number.
    """
    found = {name: [] for name in sides}
    for turn in range(repetitions):
        for name, side in sides.items():
            function, most = side if isinstance(side, tuple) else (side, repetitions)
            if turn < most:
                with Watch() as watch:
                    scale = function(turn)
                scale = scale if isinstance(scale, float) else 1.0
                found[name].append((watch.cpu * scale, watch.wall * scale))
    return {name: np.array(each) for name, each in found.items()}


@contextmanager
def two_workers(memory_limit="auto"):
    """A client of two processes as Dask starts them; not the current client."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
