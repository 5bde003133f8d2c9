"""Cluster configurations from YAML and from the options of a command."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import yaml

from dsel.cluster.base import ClusterConfig, Tls
from dsel.cluster.local import Local
from dsel.cluster.running import Address, SchedulerFile
from dsel.cluster.started import DaskCluster

KINDS: Final[Mapping[str, type[Any]]] = {
    "address": Address,
    "local": Local,
    "scheduler-file": SchedulerFile,
}
"""Names of the ways to get workers, as YAML has them."""
CLASS: Final = "class"
"""Key of a cluster class; others are its arguments, or fields of `DaskCluster`."""


def read_config(path: str | Path) -> ClusterConfig:
    """Read a cluster configuration from a YAML file.

    Parameters
    ----------
    path
        File with one key, the kind of the cluster, and its fields below it; or with
        the key ``class``, and the arguments of that class as further keys.

    Returns
    -------
    ClusterConfig
        The configuration, validated.

    Raises
    ------
    FileNotFoundError
        Where the file does not exist.
    ValueError
        Where it is no YAML, or names a kind or field that does not exist.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"`path` {str(path)!r} is no YAML: {error}") from error
    return parse_config(content)


def parse_config(content: Any) -> ClusterConfig:
    """Make a cluster configuration of nested mappings.

    Parameters
    ----------
    content
        A mapping with one key, the kind, and a mapping of its fields; or ``{class:
        dask_jobqueue.SLURMCluster, ...}`` with the arguments of any cluster class of
        Dask, and the fields of `DaskCluster` except its name and options.

    Returns
    -------
    ClusterConfig
        The configuration, validated.

    Raises
    ------
    ValueError
        Where the kind or a field does not exist, or a field is missing.

    Examples
    --------
    >>> parse_config({"local": {"workers": 2}})
    Local(workers=2, memory='auto')
    >>> parse_config({"local": {"worker": 2}})
    Traceback (most recent call last):
    ...
    ValueError: `local` has no field 'worker' but: memory, workers.
    """
    if isinstance(content, Mapping) and CLASS in content:
        return _of_class(content)
    if not isinstance(content, Mapping) or len(content) != 1:
        raise ValueError(
            "a cluster configuration must have exactly one key, "
            f"one of {', '.join(KINDS)}, or the key `class`; got {content!r}."
        )
    kind, values = next(iter(content.items()))
    if kind not in KINDS:
        raise ValueError(_unknown("a cluster configuration", "kind", kind, KINDS))
    config: ClusterConfig = _make(KINDS[kind], _with_tls(_mapping(values, kind)), kind)
    return config


def choose_config(
    scheduler: str | None, *, workers: int | None = None, tls: Tls | None = None
) -> ClusterConfig | None:
    """Make a cluster configuration of the options of a command.

    Parameters
    ----------
    scheduler
        Address of a running scheduler, path of a scheduler file (``.json``) or of a
        configuration (``.yaml``); None for workers on this machine.
    workers
        Worker processes on this machine, >= 1; only without `scheduler`.
    tls
        Certificates for an address or a scheduler file.

    Returns
    -------
    ClusterConfig or None
        None where no option is given: local threads.

    Raises
    ------
    ValueError
        Where the options exclude each other.

    Examples
    --------
    >>> choose_config(None, workers=2)
    Local(workers=2, memory='auto')
    >>> choose_config("tcp://10.0.0.1:8786")
    Address(address='tcp://10.0.0.1:8786', tls=None)
    """
    if scheduler is None:
        if tls is not None:
            raise ValueError(
                "`tls` needs `scheduler`; local workers make their own certificates."
            )
        return None if workers is None else Local(workers=workers)
    if workers is not None:
        raise ValueError(
            f"`workers` starts processes here, but `scheduler` {scheduler!r} brings "
            "its own; give one of the two."
        )
    if scheduler.endswith((".yaml", ".yml")):
        if tls is not None:
            raise ValueError(f"`tls` belongs into {scheduler!r}, under the key `tls`.")
        return read_config(scheduler)
    if scheduler.endswith(".json"):
        return SchedulerFile(scheduler, tls)
    return Address(scheduler, tls)


def _of_class(content: Mapping[str, Any]) -> DaskCluster:
    """Divide the keys into fields of ours and arguments of the class."""
    values = _with_tls(content)
    own = {field.name for field in fields(DaskCluster)} - {"class_name", "options"}
    given = {name: values.pop(name) for name in own & values.keys()}
    return DaskCluster(values.pop(CLASS), values, **given)


def _with_tls(values: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(values)
    if made.get("tls") is not None:
        made["tls"] = _make(Tls, _mapping(made["tls"], "tls"), "tls")
    return made


def _mapping(values: Any, kind: str) -> Mapping[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ValueError(f"`{kind}` must be a mapping of its fields, got {values!r}.")
    return values


def _make(kind: type[Any], values: Mapping[str, Any], name: str) -> Any:
    known = {field.name: field for field in fields(kind)}
    for key in values:
        if key not in known:
            raise ValueError(_unknown(f"`{name}`", "field", key, known))
    for key, field in known.items():
        optional = field.default is not MISSING or field.default_factory is not MISSING
        if not optional and key not in values:
            raise ValueError(f"`{name}` needs the field `{key}`.")
    return kind(**values)


def _unknown(owner: str, what: str, name: Any, known: Mapping[str, Any]) -> str:
    return f"{owner} has no {what} {name!r} but: {', '.join(sorted(known))}."
