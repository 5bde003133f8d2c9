"""An S3-compatible server on loopback, as a process of its own."""

import gc
import os
import socket
import subprocess
import sys
import warnings
from contextlib import contextmanager

from tests.clusters import free_port, wait_until

BUCKET = "s3://dsel"
SECRET = "nothing-to-be-seen"


@contextmanager
def object_store(folder):
    """Start a server with one bucket; give the storage options that reach it."""
    from s3fs import S3FileSystem

    port = free_port()
    with (folder / "store.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    options = {
        "key": "nobody",
        "secret": SECRET,
        "endpoint_url": f"http://127.0.0.1:{port}",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    try:
        wait_until(lambda: _answers(port), 120, "the object store")
        S3FileSystem(**options).mkdir(BUCKET)
        yield options
    finally:
        with warnings.catch_warnings():
            # s3fs closes sessions of asynchronous file systems only when collected.
            warnings.simplefilter("ignore", ResourceWarning)
            S3FileSystem.clear_instance_cache()
            gc.collect()
        server.kill()
        server.wait()


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
