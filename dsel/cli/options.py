"""Options that commands share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from distributed import Client

Command = Callable[..., Any]


def cluster_options(command: Command) -> Command:
    """Add ``--scheduler``, ``--workers``, ``--cluster`` and the TLS files."""
    for option in (
        click.option("--tls-key", help="Private key of this client, a PEM file."),
        click.option("--tls-cert", help="Certificate of this client, a PEM file."),
        click.option("--tls-ca", help="Certificate authority, a PEM file."),
        click.option("--cluster", help="YAML file that describes a cluster."),
        click.option("--workers", type=int, help="Local worker processes to start."),
        click.option(
            "--scheduler",
            help="Address of a running scheduler, or its scheduler file; without it "
            "workers are started here.",
        ),
    ):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add ``--json`` and ``--quiet``."""
    for option in (
        click.option("--quiet", is_flag=True, help="No progress display."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    ):
        command = option(command)
    return command


@contextmanager
def connected(options: dict[str, Any]) -> "Iterator[Client]":
    """Give the client that the options of `cluster_options` describe."""
    from dsel.cluster import Local, Tls, choose_config, connect, read_config

    files = [options[name] for name in ("tls_ca", "tls_cert", "tls_key")]
    if any(files) and not all(files):
        raise click.UsageError("--tls-ca, --tls-cert and --tls-key belong together.")
    if options["cluster"] and (options["scheduler"] or options["workers"]):
        raise click.UsageError("--cluster stands alone: it says all about workers.")
    tls = Tls(*files) if all(files) else None
    config = (
        read_config(options["cluster"])
        if options["cluster"]
        else choose_config(options["scheduler"], workers=options["workers"], tls=tls)
    )
    with connect(config or Local()) as client:
        yield client
