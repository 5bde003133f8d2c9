"""A scheduler that is already running, by its address or its scheduler file."""

import asyncio
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLError
from typing import TYPE_CHECKING, Any

from dsel.cluster.base import Tls, check_texts

if TYPE_CHECKING:
    from distributed import Client, Security

_ADDRESS = re.compile(r"(tcp|tls)://(\[[^]]+\]|[^:/\s]+):\d+")


@dataclass(frozen=True)
class Address:
    """A running scheduler at ``tcp://host:port`` or ``tls://host:port``.

    Examples
    --------
    >>> Address("tcp://10.0.0.1:8786").tls is None
    True
    """

    address: str
    """Where the scheduler listens for comms."""
    tls: Tls | None = None
    """Certificates; required by ``tls://``, refused by ``tcp://``."""

    def __post_init__(self) -> None:
        check_texts(self)
        found = _ADDRESS.fullmatch(self.address)
        if found is None:
            raise ValueError(
                "`address` must look like tcp://host:8786 or tls://host:8786, "
                f"got {self.address!r}."
            )
        if self.tls is not None and found[1] == "tcp":
            raise ValueError(
                f"`tls` was given but {self.address!r} is not encrypted; "
                "start the scheduler with certificates and use its tls:// address."
            )

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Return a client of it, or raise within about `timeout` seconds."""
        from distributed import Client, Security

        # Without certificates of ours those of Dask's own configuration count.
        security = self.tls.security() if self.tls else Security()
        has_context = _arguments(security).get("ssl_context")
        # Checked here: a client that fails for this reason hangs when it is closed.
        if self.address.startswith("tls") and has_context is None:
            raise ValueError(
                f"`address` {self.address!r} is encrypted and needs `tls`: "
                "the authority's certificate, yours, and its key."
            )
        self._check_answer(security, timeout)
        client: Client = stack.enter_context(
            Client(self.address, timeout=timeout, security=security)
        )
        return client

    def _check_answer(self, security: "Security", timeout: float) -> None:
        """Raise unless a scheduler answers; a client would wait for ever otherwise."""
        try:
            # In a thread of its own, since an event loop may be running in this one.
            with ThreadPoolExecutor(1) as thread:
                answer = _identity(self.address, security, timeout)
                thread.submit(asyncio.run, answer).result()
        except Exception as error:  # another protocol there raises many kinds of errors
            raise ConnectionError(
                f"no scheduler answered at {self.address} within {timeout:g} s; check "
                "that it runs, that the address and port are right, and whether it "
                "asks for TLS certificates."
            ) from error


def _arguments(security: "Security") -> dict[str, Any]:
    """Return a client's connection arguments, which takes reading its certificates."""
    try:
        found: dict[str, Any] = security.get_connection_args("client")
    except SSLError as error:
        raise ValueError(
            "`tls` must name the authority's certificate, yours, and the key that "
            f"belongs to yours; these files do not fit together: {error}"
        ) from error
    return found


async def _identity(address: str, security: "Security", timeout: float) -> None:
    """Wait for a scheduler's answer to the shortest request there is."""
    from distributed import rpc

    arguments = security.get_connection_args("client")
    async with rpc(address, connection_args=arguments, timeout=timeout) as scheduler:
        await asyncio.wait_for(scheduler.identity(), timeout)


@dataclass(frozen=True)
class SchedulerFile:
    """A running scheduler that wrote its address into a file both sides can read."""

    path: str
    """What was given as ``--scheduler-file`` to ``dask scheduler``."""
    tls: Tls | None = None
    """Certificates, where the scheduler wants them."""

    def __post_init__(self) -> None:
        check_texts(self)

    def open(self, stack: ExitStack, timeout: float) -> "Client":
        """Wait for the file for at most `timeout` seconds, then connect."""
        return Address(self._address(timeout), self.tls).open(stack, timeout)

    def _address(self, timeout: float) -> str:
        deadline = time.monotonic() + timeout
        while True:
            try:
                return str(json.loads(Path(self.path).read_text())["address"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                if time.monotonic() > deadline:
                    raise ConnectionError(
                        f"`path` {self.path!r} does not hold the address of a "
                        f"scheduler after {timeout:g} s; start one with: "
                        f"dask scheduler --scheduler-file {self.path}"
                    ) from error
            time.sleep(0.1)
