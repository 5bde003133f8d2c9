"""Runs an experiment piece by piece: each is kept as soon as it is measured."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import joblib
import numpy as np
import xarray as xr

from dsel.experiments.base import Experiment, Piece
from dsel.runtime.clients import resolve_client
from dsel.runtime.submission import completed, make_executor
from dsel.runtime.tasks import Task, as_task
from dsel.searches.checkpoint import Checkpoint, open_checkpoint

DATA_SET: Final = "data_set"
REPETITION: Final = "repetition"


@dataclass(frozen=True)
class _Work:
    """What all pieces of a set need; enters the cluster once."""

    measure: Callable[..., Sequence[Piece]]
    loaded: Any
    scale: Any
    searches: str = ""
    """Folder in which each search keeps what it counts; "" where pieces are none."""


def run_experiment(
    experiment: Experiment,
    scale: Any = "paper",
    *,
    folder: str | Path | None = None,
    client: Any = None,
    out: Any = None,
    on_piece: Callable[[], None] = lambda: None,
) -> xr.Dataset:
    """Measure all pieces of an experiment that are not there yet.

    Parameters
    ----------
    experiment
        One of `dsel.experiments.EXPERIMENTS`.
    scale
        A name of its scales, or a scale.
    folder
        Folder of the benchmark sets; None takes ``DSEL_DATA``.
    client
        A `distributed.Client`; None means the current one, else local threads.
    out
        Directory or URL where each piece is kept as it comes, and what searches count.
        A run of the same experiment and seed goes on from it, also with more sets or
        repetitions; pieces of a set that has changed since are measured again.
    on_piece
        Called for every piece once it is there.

    Returns
    -------
    xarray.Dataset
        What is measured, over data_set, repetition and the dimensions of a piece.

    Raises
    ------
    FileNotFoundError
        Where benchmark sets are missing.
    ModuleNotFoundError
        Where a set needs a module of the extra ``papers``.
    StoreMismatchError
        Where `out` holds another experiment, or this one with another seed.
    ClusterLostError
        Where the scheduler or all workers are gone.
    """
    plan = experiment.scale(scale)
    experiment.check_files(plan, folder=folder)
    client = resolve_client(client)
    with ExitStack() as stack:
        stack.enter_context(as_task())  # its searches show nothing of their own
        if client is not None:
            stack.enter_context(client.as_current())  # for pieces that spread
        store = stack.enter_context(
            open_checkpoint(out, _fingerprint(experiment, plan))
        )
        rows = []
        for name in plan.sets:
            loaded = experiment.load(name, folder=folder)
            content, searches = joblib.hash(loaded), ""
            if experiment.is_search and isinstance(out, str | Path):
                searches = f"{str(out).rstrip('/')}/searches/{name}-{content}"
            work = _Work(experiment.measure, loaded, plan, searches)
            key = f"{name}/{content}"
            rows.append(_run_set(experiment, work, key, store, client, on_piece))
    return _assemble(experiment, plan, rows)


def _fingerprint(experiment: Experiment, scale: Any) -> dict[str, Any]:
    """Return what pieces depend on, without which sets and how many repetitions."""
    settings = asdict(scale)
    for name in ("sets", "repetitions"):
        del settings[name]
    measured = {name: list(dims) for name, dims in experiment.measured.items()}
    return {"experiment": experiment.name, "measured": measured, **settings}


def _run_set(
    experiment: Experiment,
    work: _Work,
    key: str,
    store: Checkpoint,
    client: Any,
    on_piece: Callable[[], None],
) -> list[Piece]:
    """Return the pieces of one set in order; their keys begin with `key`."""
    keys = [f"{key}/{number}" for number in range(work.scale.repetitions)]
    records = store.read()
    pieces = {key: records[key] for key in keys if key in records}
    for _ in pieces:
        on_piece()
    missing = [number for number, key in enumerate(keys) if key not in pieces]
    blocks = [
        missing[start : start + experiment.block]
        for start in range(0, len(missing), experiment.block)
    ]
    run = _one_by_one if experiment.spreads else _as_tasks
    for block, found in run(work, blocks, client):
        for number, piece in zip(block, found, strict=True):
            store.append(keys[number], piece)
            pieces[keys[number]] = piece
            on_piece()
    return [pieces[key] for key in keys]


_Measured = Iterator[tuple[list[int], Sequence[Piece]]]


def _one_by_one(work: _Work, blocks: Sequence[list[int]], client: Any) -> _Measured:
    """Measure in this process: the searches of a piece use the current client."""
    del client
    for block in blocks:
        # A division of a large set takes hours, and may be interrupted.
        kept = {"out": f"{work.searches}/{block[0]}"} if work.searches else {}
        yield block, work.measure(work.loaded, block, work.scale, **kept)


def _as_tasks(work: _Work, blocks: Sequence[list[int]], client: Any) -> _Measured:
    """Measure each block in a task."""
    if not blocks:
        return
    by_key = {f"pieces-{block[0]}": block for block in blocks}
    tasks = [Task(key, _measure, (block,)) for key, block in by_key.items()]
    with closing(make_executor(work, client)) as executor:
        for finished in completed(executor, tasks):
            yield by_key[finished.key], finished.result()


def _measure(
    work: _Work, payloads: Sequence[Any], numbers: Sequence[int]
) -> tuple[Sequence[Piece], None]:
    """Measure some repetitions: the body of a task."""
    del payloads
    return work.measure(work.loaded, numbers, work.scale), None


def _assemble(
    experiment: Experiment, scale: Any, rows: Sequence[Sequence[Piece]]
) -> xr.Dataset:
    """Put the pieces of sets x repetitions together."""
    variables = {
        name: (
            (DATA_SET, REPETITION, *dims),
            np.array([[piece[name] for piece in row] for row in rows]),
        )
        for name, dims in experiment.measured.items()
    }
    return xr.Dataset(
        variables,
        coords={
            DATA_SET: list(scale.sets),
            REPETITION: np.arange(scale.repetitions),
            **{name: list(each) for name, each in experiment.axes(scale).items()},
        },
        attrs={
            "experiment": experiment.name,
            "seed": scale.seed,
            "departures": "; ".join(experiment.departures),
        },
    )
