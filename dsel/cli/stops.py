"""The commands that go on after a stop, each of which was tried.

An error may have ways: options that decide what a table leaves open. Each way makes a
command, and that is checked up to where its work would begin. So it is found, in one
stop, what the command meets next, and a command that stops again is not printed. Where
a way writes a file, a trial of it is written to a temporary folder.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final, NamedTuple

import click

from dsel.cli.options import LISTS, REPEATED, split_options
from dsel.cli.printing import say
from dsel.errors import (
    Correction,
    NewFile,
    OtherCommands,
    ShellOptions,
    Way,
    with_ways,
)
from dsel.option_values import join_names, names_in

MOST_WAYS: Final = 10
"""Most ways that are tried after one stop: each may read the tables, once for each of
its commands."""
MOST_LINES: Final = 3
"""Most commands that are printed below an error: more are not read."""
MOST_STOPS: Final = 5
"""Most stops, one behind the other, that one command decides."""


MOST_PLACES: Final = 1000
"""Most results next to one another whose names differ by a number."""
NO_FEATURES: Final = ("--drop", "--groups", "--id")
"""Options that name columns which are no features."""
MEANINGS: Final = {
    "--class": "a class of the target: {}",
    "--dayfirst": "5/9/2023 is a day of September",
    "--drop": "used by no model: {}",
    "--gap": "a missing value: {}",
    "--groups": "rows of one {} belong together, and the bound is for new ones, from "
    "labeled rows alone: no pool is read",
    "--id": "no feature, but kept in predictions: {}",
    "--monthfirst": "5/9/2023 is a day of May",
    "--number": "read as numbers: {}",
    "--target": "{} has the labels",
    "--task classification": "the target has classes",
    "--task regression": "the target is a number",
    "--text": "read as text: {}",
    "--unlabeled": "no label: rows whose target is {}",
}
"""What an option, or its value, decides about the rows or a column of a table."""


PYTHON: Final = "python -c "
"""Beginning of a line that writes a file."""
ANOTHER_FILE: Final = "the same rows, in another file"


class Stop(NamedTuple):
    """An error without its traceback, which would hold the tables in memory."""

    text: str
    ways: tuple[Way, ...]
    in_short: str = ""
    """What is said of it where a command decides it; "" for the text."""


class Commands(NamedTuple):
    """Commands that go on, and what else they decide."""

    also: list[str]
    """Texts of the stops behind the first one that these commands decide. If none goes
    on: at most one text, that of the next stop."""
    lines: list[str]

    def meanings(self, words: Sequence[str]) -> list[str]:
        """Return what each line decides that the words of the command leave open."""
        known = {*_decisions(split_options(words))}
        return [
            "; ".join(
                [
                    *[ANOTHER_FILE] * line.startswith(PYTHON),
                    *(
                        MEANINGS[option].format(", ".join(map(repr, names)))
                        for option, names in _new_names(
                            shlex.split(line), known
                        ).items()
                    ),
                ]
            )
            for line in self.lines
        ]


def _new_names(
    words: Sequence[str], known: set[tuple[str, str]]
) -> dict[str, list[str]]:
    """Return the names that options of `MEANINGS` have, without those that are known.

    Names are in the order of the words.
    """
    names = dict[str, list[str]]()
    for option, name in _decisions(words):
        with_value = f"{option} {name}"
        key = with_value if with_value in MEANINGS else option
        if key in MEANINGS and (option, name) not in known:
            names.setdefault(key, []).append(name)
    return names


@dataclass(eq=False)
class WaySearch:
    """A search, depth first, for the commands that go on after a stop."""

    check: Callable[[Sequence[str]], Stop | None]
    tried: set[tuple[tuple[str, ...], ...]]
    """Words of the commands of each way that was tried, and of the one that stopped."""
    folder: str
    """Folder for trials of new files."""
    words: Sequence[str] = ()
    """Words of the command that stopped first."""
    places: dict[str, str] = field(init=False, default_factory=dict)
    """Beginnings of the paths of trials, and those of the files they stand for."""
    sources: dict[str, str] = field(init=False, default_factory=dict)
    """Paths of trials, and of the tables that they are made of: a message names no file
    that is not written yet."""
    lines: dict[str, None] = field(init=False, default_factory=dict)
    """Lines for the shell that go on, in the order in which they were found."""
    stops: list[tuple[Stop, bool]] = field(init=False, default_factory=list)
    """Each stop that was met, in order, and whether a way behind it goes on that keeps
    the decision before it: another way has no such stop."""

    def follow(
        self,
        words: Sequence[str],
        ways: Sequence[Way],
        n_stops: int,
        before: tuple[str, ...] = (),
    ) -> bool:
        """Try all ways of a stop; return whether one goes on.

        A command may stop `n_stops` times more, where the ways are followed as well.
        `before` are lines for the shell that write the files which it names.
        """
        results = []
        for way in ways:
            lines = before
            if isinstance(way, NewFile):
                if (trial := self._write_trial(way)) is None:
                    results.append(False)
                    continue
                is_old = {word: is_same_path(word, way.old) for word in words}
                changed = [trial if is_old[word] else word for word in words]
                # A file that is read by default is named now.
                commands = [changed if any(is_old.values()) else [*words, trial]]
                lines = (*before, self._without_trials(python_line(way.code)))
            elif isinstance(way, OtherCommands):
                commands = [*map(list, way.words)]
            else:
                commands = [with_options(words, way)]
            results.append(self._goes_on(commands, n_stops, lines))
        return any(results)

    def _write_trial(self, way: NewFile) -> str | None:
        """Run the code of a new file, and return where it wrote; None if it failed."""
        name = os.path.basename(way.new)
        real = self._without_trials(way.new).removesuffix(name)
        if repr(real)[1:-1] != real:  # its text would be different in the code
            return None
        trial = f"{mkdtemp(dir=self.folder)}{os.sep}"
        self.places[trial] = real
        path = f"{trial}{name}"
        code = way.code.replace(repr(way.new), repr(path))
        self.sources[path] = self._in_sources(way.old)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        return path if done.returncode == 0 and os.path.exists(path) else None

    def _without_trials(self, text: str) -> str:
        """Return a text with the paths of files in the place of those of trials."""
        for trial, real in self.places.items():
            text = text.replace(trial, real)
        return text

    def _in_sources(self, text: str) -> str:
        """Return a text with the tables from which trials are made in their place."""
        for trial, source in self.sources.items():
            text = text.replace(trial, source)
        return text

    def _goes_on(
        self, commands: list[list[str]], n_stops: int, before: tuple[str, ...]
    ) -> bool:
        """Return whether the commands of a way go on, at once or behind other stops."""
        key = tuple(map(tuple, commands))
        if key in self.tried or len(self.tried) > MOST_WAYS:
            return False
        self.tried.add(key)
        checked = commands[:-1] or commands  # others need the results of these
        stop = next(filter(None, map(self.check, checked)), None)
        if stop is None:
            words = [[*map(self._without_trials, command)] for command in commands]
            lines = [shlex.join(["dsel", *command]) for command in words]
            self.lines[" && ".join([*before, *lines])] = None
            return True
        if len(commands) > 1:  # it stops another command, and says nothing of this one
            return False
        number, n_lines = len(self.stops), len(self.lines)
        stop = stop._replace(
            text=self._in_sources(stop.text), in_short=self._in_sources(stop.in_short)
        )
        self.stops.append((stop, False))
        if not n_stops:
            return False
        goes_on = self.follow(commands[0], stop.ways, n_stops - 1, before)
        readings = _readings(commands[0]) - _readings(self.words)
        lines = [*self.lines][n_lines:]
        is_kept = any(readings <= _readings(shlex.split(line)) for line in lines)
        self.stops[number] = stop, is_kept
        return goes_on

    def needed_lines(self) -> list[str]:
        """Return the lines without those that differ from another by more gap words.

        A gap word is not needed where the only column that has it is left out.
        """
        decided = {line: {*_decisions(shlex.split(line))} for line in self.lines}
        return [
            line
            for line, options in decided.items()
            if not any(
                others < options and {name for name, _ in options - others} == {"--gap"}
                for others in decided.values()
            )
        ]

    def texts(self) -> list[str]:
        """Return the texts of `Commands.also`."""
        if not self.lines:
            return [stop.text for stop, _ in self.stops[:1] if stop.text]
        decided = [stop for stop, is_decided in self.stops if is_decided]
        # Other rows of the table have the same stop in other numbers.
        by_ways = {
            repr(stop.ways or stop.text): stop.in_short or stop.text
            for stop in decided[::-1]
        }
        return [*by_ways.values()][::-1]


def find_commands(
    words: Sequence[str],
    ways: Sequence[Way],
    check: Callable[[Sequence[str]], Stop | None],
) -> Commands:
    """Return the commands of all ways that go on, the first way's first.

    With them come the texts of the stops that they decide. If none goes on, there is no
    command, and the text of the first stop that was met, unless it has none.

    Parameters
    ----------
    words
        Words of the command that stopped.
    ways
        The ways of its stop.
    check
        Function that returns the next stop of a command, None where its work could
        begin.
    """
    with TemporaryDirectory() as folder:
        split_words = split_options(words)
        search = WaySearch(check, {(tuple(split_words),)}, folder, split_words)
        by_way = dict[str, int]()
        for number, way in enumerate(ways):
            search.follow(words, [way], MOST_STOPS - 1)
            by_way |= {line: number for line in search.lines if line not in by_way}
        # The first line of each way comes before the second line of any.
        ranks = dict[str, tuple[int, int]]()
        for line in search.needed_lines():
            number = by_way[line]
            before = sum(way == number for _, way in ranks.values())
            ranks[line] = before, number
        lines = sorted(ranks, key=ranks.__getitem__)[:MOST_LINES]
        return Commands(search.texts(), lines)


def _readings(words: Sequence[str]) -> set[tuple[str, str]]:
    """Return the columns that options of commands read as numbers, or as texts."""
    return {d for d in _decisions(words) if d[0] in ("--number", "--text")}


def _decisions(words: Sequence[str]) -> dict[tuple[str, str], None]:
    """Return all options of commands, of those with a list each of its names."""
    decisions = dict[tuple[str, str], None]()
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if not word.startswith("--"):
            continue
        value = "" if following.startswith("--") else following
        names = names_in(value) if word in LISTS else (value,)
        decisions |= {(word, name): None for name in names}
    return decisions


def is_same_path(word: str, path: str) -> bool:
    """Return whether a word of a command is the path of a file."""
    return word == path or os.path.abspath(word) == os.path.abspath(path)


def python_line(code: str) -> str:
    """Return the line for the shell that runs some code.

    In double quotes it can be read, unless the shell would change it there.
    """
    is_plain = not {*code} & {*'"$`\\!'}
    return f'{PYTHON}"{code}"' if is_plain else f"{PYTHON}{shlex.quote(code)}"


def with_options(words: Sequence[str], options: ShellOptions) -> list[str]:
    """Return the words of a command with other options."""
    changed = split_options(words)
    for change in options:
        if isinstance(change, Correction):
            _correct(changed, change)
            continue
        option, value = change
        for name in names_in(value) if option in NO_FEATURES else ():
            for reading in ("--number", "--text"):  # which are about features
                _correct(changed, Correction(reading, name, None))
        if option in LISTS and option in REPEATED:
            value = join_names([value])
        if option not in changed or option in REPEATED:
            changed += [option, value] if value else [option]
            continue
        place = changed.index(option) + 1
        is_list = option in LISTS
        changed[place] = f"{changed[place]},{value}" if is_list else value
    return changed


def without_option(words: Sequence[str], option: str) -> list[str]:
    """Return the words of a command without an option and its values."""
    changed = split_options(words)
    while option in changed:
        del changed[(place := changed.index(option)) : place + 2]
    return changed


def print_commands(commands: Commands, words: Sequence[str]) -> None:
    """Print commands that go on from one with these words, and what each decides."""
    meanings = commands.meanings(words)
    for number, (line, meaning) in enumerate(
        zip(commands.lines, meanings, strict=True)
    ):
        # The command is one line and not wrapped, so that it can be pasted.
        click.echo(f"{'Or' if number else 'Run'}: {line}", err=True)
        if meaning and len(meanings) > 1:
            say(f"({meaning})", err=True)


def new_place(place: str) -> str:
    """Return a place next to results that has none yet."""
    place = place.rstrip("/")
    names = (f"{place}_{number}" for number in range(2, MOST_PLACES))
    return next(name for name in names if not os.path.exists(name))


def _correct(words: list[str], change: Correction) -> None:
    """Correct the value of an option among the words of a command, if it is there."""
    for place, word in enumerate(words[:-1]):
        if word != change.option:
            continue
        value = words[place + 1]
        names = names_in(value) if change.option in LISTS else (value,)
        if change.old not in names:
            continue
        changed = [change.new if name == change.old else name for name in names]
        kept = list(dict.fromkeys(name for name in changed if name is not None))
        if kept:
            is_list = change.option in LISTS
            words[place + 1] = join_names(kept) if is_list else kept[0]
        else:
            del words[place : place + 2]
        return


def undecided_words(text: str, *ways: Way) -> click.UsageError:
    """Return the error of click about words that lack one, with ways to add it."""
    return with_ways(click.UsageError(text), *ways)
