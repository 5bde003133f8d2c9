"""A Dask `Client` for a run; nothing else in dsel creates one.

`connect` starts worker processes on this machine, reaches a scheduler that is running,
or starts any cluster class of another package. It compares the versions of the packages
that decide a result on all workers, and closes at its end what it has started. Any
other `distributed.Client` does as well: a run takes the current one.

To use another kind of cluster, pass the name of its class. The pages of `deploy/` list
the options that matter: one thread for each worker, BLAS with one thread, HTTP ports on
loopback.
"""

import asyncio
import json
import logging
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dask.config

from dsel import checks
from dsel.runtime.clients import count_threads
from dsel.runtime.versions import check_versions
from dsel.runtime.workers import STARTED
from dsel.typing import Options

if TYPE_CHECKING:
    from distributed import Client, Security

__all__ = ["connect"]
checks.offer_public(globals())

LOOPBACK_HTTP: Final = "127.0.0.1:0"
"""Address of dashboards. `None` and `":0"` would open them to everyone."""
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)
"""Environment of a worker: Dask runs one task per process, and each task one thread."""
FREED_MEMORY: Final = dict.fromkeys(
    ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**25)
)
"""Environment in which glibc keeps freed memory, 32 MiB at most, for the next chunk of
a pool: with Dask's defaults the system has to clear new pages for every chunk. With
huge pages, too, fits of SVMs would take 5 to 20% longer.
"""
# Tasks wait for ever by default after the last worker has left.
SETTINGS: Final = {"distributed.scheduler.no-workers-timeout": "60s"}
"""Dask's settings for schedulers that run in this process."""
LOCAL_SETTINGS: Final = {
    # Dask pauses a worker that uses 80% of its limit. With a small limit the
    # imports alone take that much, and the worker would never run a task.
    "distributed.worker.memory.pause": False,
    # With the default of 15 s a worker that dies while it restarts may never be
    # replaced.
    "distributed.deploy.lost-worker-timeout": "24h",
    # While the machine sleeps, workers that are alive send no heartbeat. The scheduler
    # learns of a dead worker from the closed connection.
    "distributed.scheduler.worker-ttl": None,
}
"""Dask's settings for worker processes on this machine."""
ADDRESS: Final = re.compile(r"(tcp|tls)://(\[[^]]+\]|[^:/\s]+):\d+")
TLS_FILES: Final = ("ca.pem", "cert.pem", "key.pem")


@contextmanager
def connect(
    scheduler: str | Path | Mapping[str, Any] | None = None,
    *,
    workers: int | None = None,
    memory: str = "auto",
    tls: str | Path | None = None,
    timeout: float = 10.0,
) -> "Iterator[Client]":
    """Open a client, for a ``with`` block.

    The client is the current one inside of the block, so that `plan.run()` and `fit`
    find it. Processes that were started for it end with the block, and the environment
    and Dask's settings are restored. A script that starts workers on its own machine
    needs ``if __name__ == "__main__":``, since they are processes that import it.

    Parameters
    ----------
    scheduler
        Address of a running scheduler, ``tcp://host:8786`` or ``tls://host:8786``; path
        of the file that it has written (``.json``); path of a YAML file or a mapping
        with ``address`` and perhaps ``tls``, or with ``class``, the name of a cluster
        class such as ``dask_jobqueue.SLURMCluster``, and its arguments. Four more keys
        are no arguments of the class: ``workers`` for `scale`, or ``adapt``, a
        mapping, for `adapt`; ``patience``, seconds until the first worker must have
        joined, 600 by default; ``tls``. None starts workers on this machine.
    workers
        Processes on this machine, >= 1; None means one for each core. They have one
        thread each, listen on loopback, and ask for a key that is made as they start,
        so that other users of this machine cannot connect.
    memory
        Limit of each of these processes, such as "4 GiB"; "auto" divides the machine's.
    tls
        Folder with ``ca.pem``, ``cert.pem`` and ``key.pem``, for a ``tls://`` address.
        Without it those of Dask's configuration are used.
    timeout
        Seconds within which a running scheduler must answer.

    Yields
    ------
    distributed.Client
        A connected client; the versions of its workers were compared with ours.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    FileNotFoundError
        If a file does not exist.
    ModuleNotFoundError
        If a cluster class needs a package that is not installed.
    ValueError
        If an argument is none of these, or two exclude each other.
    VersionMismatchError
        If a worker has another version of a package that affects results.

    Examples
    --------
    >>> with connect(workers=1) as client:       # doctest: +SKIP
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    # The import adds defaults to Dask's configuration, which `set` must not remove.
    import distributed  # noqa: F401

    if scheduler is not None and workers is not None:
        raise ValueError(
            f"`workers` starts processes here, but `scheduler` {scheduler!r} brings "
            "its own; give one of the two."
        )
    timeout = checks.check_positive(timeout, "timeout")
    if tls is not None:
        checks.check_path(tls, "tls")
    if isinstance(scheduler, str | Path):
        scheduler = checks.check_path(scheduler, "scheduler")
    elif scheduler is not None and not isinstance(scheduler, Mapping):
        raise TypeError(
            f"`scheduler` must be an address, the path of a file or a mapping, got "
            f"{checks.show(scheduler)}."
        )
    if isinstance(scheduler, str) and scheduler.endswith((".yaml", ".yml")):
        if not Path(scheduler).is_file():
            raise FileNotFoundError(f"`scheduler` {scheduler!r} does not exist.")
        try:  # with YAML's safe loader
            scheduler = dict(*dask.config.collect_yaml([scheduler]))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`scheduler` {scheduler!r} is no YAML of a mapping: "
                f"{' '.join(str(error).split())}"
            ) from error
    if isinstance(scheduler, Mapping):
        checks.check_strings([*scheduler], "scheduler")  # names of arguments
    if isinstance(scheduler, Mapping) and "class" not in scheduler:
        if "address" not in scheduler or scheduler.keys() - {"address", "tls"}:
            raise ValueError(
                "`scheduler` must have the key `class` and the arguments of that "
                "class, or `address` and perhaps `tls`, got the keys "
                f"{', '.join(map(str, scheduler))}."
            )
        tls = scheduler.get("tls", tls)
        scheduler = checks.check_string(scheduler["address"], "address")
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        if isinstance(scheduler, str):
            client = _connect_client(scheduler, tls, timeout, stack)
        else:
            if scheduler is None:
                cluster, patience = _start_here(workers, memory, stack), 600.0
            else:
                stack.enter_context(_environment(ONE_THREAD))
                cluster, patience = _start_class(dict(scheduler), stack)
            client = stack.enter_context(cluster.get_client())
            client.wait_for_workers(1, timeout=patience)
            STARTED.add(client)
        check_versions(client)
        yield client


def _start_here(workers: int | None, memory: Any, stack: ExitStack) -> Any:
    """Start worker processes on this machine."""
    from dask.utils import parse_bytes
    from distributed import LocalCluster, Security

    if workers is not None:
        checks.check_integer(workers, "workers", at_least=1)
    try:
        is_amount = isinstance(memory, str) and (
            memory == "auto" or parse_bytes(memory) > 0
        )
    except ValueError:
        is_amount = False
    if not is_amount:
        raise ValueError(
            f'`memory` must be an amount such as "4 GiB", got {checks.show(memory)}.'
        )
    stack.enter_context(_environment(ONE_THREAD | FREED_MEMORY))
    stack.enter_context(dask.config.set(LOCAL_SETTINGS))
    # Ctrl-C and SIGHUP wait, since Dask cannot close a cluster whose start was
    # interrupted. Workers, and those that replace them later, are started by a thread
    # that begins here. They inherit that both signals, which a terminal sends to all
    # processes, are blocked: this process ends them instead, without their tracebacks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        # Starting Python's resource tracker unblocks SIGINT, so it is started first.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        return stack.enter_context(
            LocalCluster(
                n_workers=workers or count_threads(),
                threads_per_worker=1,
                memory_limit=memory,
                host="127.0.0.1",
                # Every account on this machine can connect to loopback.
                security=Security.temporary(),
                silence_logs=logging.CRITICAL,
                dashboard_address=LOOPBACK_HTTP,
                worker_dashboard_address=LOOPBACK_HTTP,
            )
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_class(options: dict[str, Any], stack: ExitStack) -> tuple[Any, float]:
    """Start a cluster; return it, and the seconds to wait for its first worker."""
    name = options.pop("class")
    if not isinstance(name, str) or not name.strip(".") or name.startswith("."):
        raise ValueError(
            f"`class` must be the full name of a cluster class, such as "
            f"dask_jobqueue.SLURMCluster, got {checks.show(name)}."
        )
    module, _, last = name.rpartition(".")
    try:
        # Importing a module runs its code: the author of the file is trusted.
        start: Any = getattr(import_module(module or "builtins"), last, None)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"`class` {name!r} needs the package {missing.name!r}; install it, for "
            f"example with: pip install {module.partition('.')[0]}"
        ) from missing
    # No `isinstance`: the cluster of dask-gateway is no `distributed.deploy.Cluster`.
    is_class, methods = isinstance(start, type), ("scale", "adapt")
    if not (is_class and all(hasattr(start, method) for method in methods)):
        raise ValueError(
            "`class` must be a cluster of Dask, such as dask_jobqueue.SLURMCluster, "
            f"got {checks.show(name)}."
        )
    workers, adapt = options.pop("workers", None), options.pop("adapt", None)
    patience, tls = options.pop("patience", 600), options.pop("tls", None)
    if workers is not None and adapt is not None:
        raise ValueError(
            f"`workers` is a fixed number, but `adapt` is {adapt!r}; give one of them."
        )
    if workers is not None:
        checks.check_integer(workers, "workers", at_least=1)
    if adapt is not None and not isinstance(adapt, Mapping):
        raise TypeError(
            f"`adapt` must be a mapping of the arguments of its `adapt`, such as "
            f"{{minimum: 1, maximum: 10}}, got {checks.show(adapt)}."
        )
    checks.check_strings([*(adapt or ())], "adapt")
    checks.check_positive(patience, "patience")
    if tls is not None:
        options |= {"protocol": "tls://", "security": _security(tls)}
    with _explain_arguments(name, options):
        cluster = stack.enter_context(start(**options))
    if workers is not None:
        cluster.scale(workers)
    if adapt is not None:
        with _explain_arguments(f"adapt of {name}", adapt):
            cluster.adapt(**adapt)
    return cluster, patience


@contextmanager
def _explain_arguments(name: str, options: Options) -> Iterator[None]:
    """Turn errors of starting a cluster into one ValueError with the arguments."""
    try:
        yield
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:  # an error of the nanny itself has no reason
            cause = cause.__cause__
        raise ValueError(
            f"`scheduler` names {name}, which does not take the arguments "
            f"{checks.show(dict(options))}: {' '.join(str(cause).split())}"
        ) from error


def _connect_client(
    scheduler: str, tls: str | Path | None, timeout: float, stack: ExitStack
) -> "Client":
    """Return a client of a scheduler that answers within `timeout` seconds."""
    from distributed import Client, Security, rpc

    deadline = time.monotonic() + timeout
    address = None if scheduler.endswith(".json") else scheduler
    while address is None:  # the file may not be written yet
        try:
            address = str(json.loads(Path(scheduler).read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if time.monotonic() > deadline:
                raise ConnectionError(
                    f"`scheduler` {scheduler!r} does not hold the address of a "
                    f"scheduler after {timeout:g} s; start one with: "
                    f"dask scheduler --scheduler-file {scheduler}"
                ) from error
            time.sleep(0.1)
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        raise ValueError(
            "`scheduler` must look like tcp://host:8786 or tls://host:8786, or be the "
            f"path of a .json or .yaml file, got {checks.show(address)}."
        )
    if tls is not None and parts[1] == "tcp":
        raise ValueError(
            f"`tls` was given but {address!r} is not encrypted; start the scheduler "
            "with certificates and use its tls:// address."
        )
    security = Security() if tls is None else _security(tls)
    arguments = security.get_connection_args("client")
    # This is checked here, since a client that fails for this reason hangs when it is
    # closed.
    if parts[1] == "tls" and arguments.get("ssl_context") is None:
        raise ValueError(
            f"`scheduler` {address!r} is encrypted and needs `tls`, a folder with "
            f"{', '.join(TLS_FILES)}."
        )

    async def answer() -> None:  # a short request; a client would wait forever
        async with rpc(address, connection_args=arguments, timeout=timeout) as there:
            await asyncio.wait_for(there.identity(), timeout)

    try:
        # This needs a thread of its own, since an event loop may be running in this
        # one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, answer()).result()
    except Exception as error:  # a server with another protocol may cause any error
        raise ConnectionError(
            f"no scheduler answered at {address} (`scheduler`) within {timeout:g} s; "
            f"check that it runs, that the address and port are right, and whether it "
            f"requires TLS certificates."
        ) from error
    client: Client = stack.enter_context(
        Client(address, timeout=timeout, security=security)
    )
    return client


def _security(folder: str | Path) -> "Security":
    """Return the certificates of a folder, for client, scheduler and workers."""
    from ssl import SSLError

    from distributed import Security

    files = [Path(checks.check_path(folder, "tls")) / name for name in TLS_FILES]
    needs = f"`tls` must be a folder with {', '.join(TLS_FILES)}"
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"{needs}, but {path} does not exist.")
    ca, certificate, key = map(str, files)
    roles = ("client", "scheduler", "worker")
    security = Security(
        tls_ca_file=ca,
        **{f"tls_{role}_cert": certificate for role in roles},
        **{f"tls_{role}_key": key for role in roles},
        require_encryption=True,
    )
    try:
        security.get_connection_args("client")  # reads the files
    except SSLError as error:
        raise ValueError(
            f"{needs} that fit together: the authority's certificate, yours, and the "
            f"key of yours; {error}"
        ) from error
    return security


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that are started here; restore them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
