"""What an experiment is: what is measured, and what it is compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import xarray as xr

from dsel.datasets import check_files
from dsel.experiments.comparison import Comparison

Piece = Mapping[str, Any]
"""What one repetition on one set measured: numbers and arrays by name."""


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, drawn from what was measured."""

    name: str
    """Of its file, such as ``figure-1-dna``."""
    caption: str
    """What is shown, and by what it differs from the paper's."""
    draw: Callable[[Any], None]
    """Takes an empty `matplotlib.figure.Figure` or ``SubFigure``, for all panels."""
    width: float = 9.0
    """Inches."""
    height: float = 3.4


def made_up(name: str, *, folder: Any = None) -> str:
    """Return the name: how an experiment on made-up data loads a set."""
    del folder
    return name


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper, to be run piece by piece."""

    name: str
    """Value of NAME in `dsel reproduce`."""
    paper: str
    """Authors, year and title."""
    shows: str
    """Tables and figures that are compared."""
    duration: str
    """About how long the paper's size takes on two cores."""
    scales: Mapping[str, Any]
    """How much is run, by name; ``paper`` is as much as in the paper. Each is a frozen
    dataclass with `sets` (names of data sets), `repetitions` on each (more of them
    change none of the first), `seed` (of everything) and what else there is to say."""
    files: Mapping[str, str]
    """File of each set, without its ending; empty where data are made up."""
    measured: Mapping[str, tuple[str, ...]]
    """Dimensions of everything in a piece."""
    axes: Callable[[Any], Mapping[str, Sequence[Any]]]
    """Takes a scale; coordinates of these dimensions."""
    load: Callable[..., Any]
    """Takes the name of a set and ``folder=``; what all pieces of the set need."""
    measure: Callable[[Any, Sequence[int], Any], Sequence[Piece]]
    """Takes what was loaded, numbers of repetitions and a scale; one piece for each."""
    compare: Callable[[xr.Dataset], Sequence[Comparison]]
    errors: Sequence[str]
    """Errors of the paper that matter here."""
    departures: Sequence[str]
    """What the paper leaves open or we have otherwise, and what is done here."""
    figures: Callable[[xr.Dataset], Sequence[Figure]] = lambda _: ()
    modules: Mapping[str, str] = field(default_factory=dict)
    """Module of the extra ``papers`` that a set needs to be loaded, where it does."""
    block: int = 1
    """Repetitions that one task measures, as they share work or are short."""
    spreads: bool = False
    """Whether a piece is measured in this process, and may use all workers."""
    is_search: bool = False
    """Whether a piece is one search: `measure` then takes ``out=``, its place."""
    most_repetitions: int | None = None

    def scale(self, scale: Any = "paper", **changes: Any) -> Any:
        """Return a scale of that name, or the one given, with other sets and so on.

        `changes` are fields by name; None changes nothing. Raises ValueError where
        there are no such sets, or not as many repetitions.
        """
        begun = self.scales[scale] if isinstance(scale, str) else scale
        wanted = {name: each for name, each in changes.items() if each is not None}
        found = replace(begun, **wanted)
        self._check(found)
        return found

    def check_files(self, scale: Any, *, folder: str | Path | None = None) -> None:
        """Raise where files or modules that sets of a scale need are missing.

        FileNotFoundError: benchmark sets, in the folder or in ``DSEL_DATA``;
        ModuleNotFoundError: a module of the extra ``papers``.
        """
        if self.files:
            check_files([self.files[name] for name in scale.sets], folder=folder)
        for name in scale.sets:
            module = self.modules.get(name)
            if module and find_spec(module) is None:
                raise ModuleNotFoundError(
                    f"the set {name} needs {module}, which is not installed; "
                    "pip install 'dsel[papers]', or name other `sets`."
                )

    def _check(self, scale: Any) -> None:
        known = self.scales["paper"].sets
        unknown = [name for name in scale.sets if name not in known]
        if unknown or not scale.sets:
            raise ValueError(
                f"`sets` must be among {', '.join(known)}; got "
                f"{', '.join(map(repr, unknown)) or 'none'}."
            )
        if len(set(scale.sets)) < len(scale.sets):
            raise ValueError(f"`sets` must differ, got {', '.join(scale.sets)}.")
        most = self.most_repetitions or scale.repetitions
        if not 1 <= scale.repetitions <= most:
            allowed = "at least 1" if most == scale.repetitions else f"1 to {most}"
            raise ValueError(
                f"`repetitions` must be {allowed}, got {scale.repetitions}."
            )
