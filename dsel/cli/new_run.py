"""The command that selects again, where a table cannot be read for a stored model."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import click

from dsel.cli.options import split_options
from dsel.cli.stops import new_place, with_options
from dsel.data.columns import MissingColumnsError
from dsel.errors import NewFile, OtherCommands, UndecidedError, Way
from dsel.option_values import join_names
from dsel.results.run_tables import load_run_tables


@contextmanager
def offer_new_run(place: str) -> Iterator[None]:
    """Add to an error about columns the command that selects without them.

    `place` are the results of the model, as the words of the command name them.
    """
    try:
        yield
    except MissingColumnsError as error:
        if not error.missing:
            raise
        raise combine_missing_columns({place: error}) from error


def combine_missing_columns(
    errors: Mapping[str, MissingColumnsError],
) -> UndecidedError:
    """Return one error of those about the columns of the models at some places.

    A model needs all of its columns, and another one has another bound.
    """
    n_columns = sum(len(error.missing) for error in errors.values())
    what = "it" if n_columns == 1 else "them"
    texts = " ".join(map(str, errors.values()))
    models_need = "The model needs" if len(errors) == 1 else "The models need"
    files = [w for e in errors.values() for w in e.ways if isinstance(w, NewFile)]
    if any(error.lacks_most for error in errors.values()):
        return UndecidedError(f"{texts} {models_need} {what}.", *files)
    return UndecidedError(
        f"{texts} {models_need} {what}: add {what} to the table, or select again "
        f"without {what}. That makes another model with another bound, which holds if "
        f"this table alone, and no result that you have seen, is the reason.",
        *files,
        *select_again(errors),
    )


def select_again(errors: Mapping[str, MissingColumnsError]) -> list[Way]:
    """Return `dsel select` without columns, and the command with its results then."""
    commands = []
    then = split_options(click.get_current_context().obj)
    for place, error in errors.items():
        tables = None
        with suppress(OSError, TypeError, ValueError):  # a kept model is no run
            tables = load_run_tables(place)
        if tables is None or not tables.command:
            return []
        out = new_place(place)
        # A path below this folder is written as it is here.
        here = f"{os.getcwd()}{os.sep}"
        words = [word.removeprefix(here) for word in tables.command]
        change = [("--drop", join_names(error.missing)), ("--out", out)]
        commands.append(tuple(with_options(words, change)))
        then = with_options(then, error.corrections)
        then = [out if word == place else word for word in then]
    return [OtherCommands((*commands, tuple(then)))]
