"""Options that commands share."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import reduce
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
import yaml

from dsel.checks import check_url

if TYPE_CHECKING:
    from distributed import Client

Command = Callable[..., Any]


def _adding(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        return reduce(lambda found, option: option(found), options, command)

    return add


cluster_options = _adding(
    click.option("--performance-report", help="Write Dask's report, an HTML file."),
    click.option("--log", help="Append a line for each finished task to a file."),
    click.option("--tls-key", help="Private key of this client, a PEM file."),
    click.option("--tls-cert", help="Certificate of this client, a PEM file."),
    click.option("--tls-ca", help="Certificate authority, a PEM file."),
    click.option(
        "--cluster",
        type=click.Path(exists=True, dir_okay=False),
        help="YAML file that describes a cluster.",
    ),
    click.option("--workers", type=int, help="Local worker processes to start."),
    click.option(
        "--scheduler",
        help="Address of a running scheduler, or its scheduler file; without it "
        "workers are started here.",
    ),
)
"""Adds what says where tasks run, and what is recorded of it."""


store_options = _adding(
    click.option(
        "--storage-options",
        type=click.Path(exists=True, dir_okay=False),
        help="YAML file of what fsspec needs for URLs, such as keys; what it holds "
        "is never stored.",
    ),
    click.option(
        "--out", help="Keep results there; the same command goes on from them."
    ),
)
"""Adds what says where results are kept, and how places at URLs are reached."""


def store_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `store_options` as `execute` takes them.

    Raises what `check_url` does where `out` is a URL that will not do: before workers
    start.
    """
    out, reach = options["out"], storage_options(options)
    if out is not None and "://" in out:
        check_url(out, "out")
    return {"out": out, "storage_options": reach}


def storage_options(options: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the file of ``--storage-options`` holds; None without one."""
    if options["storage_options"] is None:
        return None
    try:
        with open(options["storage_options"], encoding="utf-8") as file:
            found = yaml.safe_load(file)
    except yaml.YAMLError:
        found = None  # the error would show the line, and the line may be a key
    if not isinstance(found, dict):
        raise click.UsageError(
            "--storage-options must name a YAML file of names and values."
        )
    return found


output_options = _adding(
    click.option("--quiet", is_flag=True, help="No progress display."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)


def is_verbose(options: dict[str, Any]) -> bool:
    """Whether the options of `output_options` leave progress to be shown."""
    return not (options["quiet"] or options["as_json"])


def numbers(text: str, kind: Callable[[str], Any], option: str) -> list[Any]:
    """Return the numbers that an option lists, separated by commas."""
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        example = "2,5,10" if kind is int else "0.1,0.5"
        raise click.BadParameter(
            f"{text!r} is no list of numbers such as {example}.", param_hint=option
        ) from None


@contextmanager
def connected(options: dict[str, Any]) -> "Iterator[Client]":
    """Give the client that the options of `cluster_options` describe."""
    from distributed import performance_report

    from dsel.cluster import Local, Tls, choose_config, connect, read_config

    if options["performance_report"] and find_spec("bokeh") is None:
        raise click.UsageError(
            "--performance-report needs bokeh; install it with: "
            "pip install 'dsel[metrics]'"
        )
    files = [options[name] for name in ("tls_ca", "tls_cert", "tls_key")]
    if any(files) and not all(files):
        raise click.UsageError("--tls-ca, --tls-cert and --tls-key belong together.")
    others = [options["scheduler"], options["workers"], *files]
    if options["cluster"] and any(each is not None for each in others):
        raise click.UsageError(
            "--cluster stands alone: its file says all about workers, and names their "
            "certificates under `tls`."
        )
    tls = Tls(*files) if all(files) else None
    config = (
        read_config(options["cluster"])
        if options["cluster"]
        else choose_config(options["scheduler"], workers=options["workers"], tls=tls)
    )
    with ExitStack() as stack:
        # What distributed logs of a lost scheduler is left to our own line about it.
        stack.enter_context(_level("distributed.client", logging.CRITICAL))
        client = stack.enter_context(connect(config or Local()))
        if options["performance_report"]:
            report = performance_report(options["performance_report"])
            stack.enter_context(report)
        if options["log"]:
            stack.enter_context(_logged(options["log"]))
        yield client


@contextmanager
def _level(name: str, level: int) -> Iterator[logging.Logger]:
    """Set the level of a logger inside of the block."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield logger
    finally:
        logger.setLevel(before)


@contextmanager
def _logged(path: str) -> Iterator[None]:
    """Append a line for each finished task to a file."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    with closing(handler), _level("dsel", logging.INFO) as logger:
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
