"""An S3-compatible server on loopback, as a process of its own."""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager

from tests.clusters import wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@contextmanager
def object_store(folder):
    """Start a server with the bucket `dsel`; give the environment that reaches it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "store.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    try:
        wait_until(lambda: _answers(port), 60, "the object store")
        variables = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            import s3fs

            s3fs.S3FileSystem(skip_instance_cache=True).mkdir("dsel")
            yield variables
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
    finally:
        server.kill()
        server.wait()


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
