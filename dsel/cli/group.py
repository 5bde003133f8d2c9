"""The group of commands, with their errors, warnings and exit status."""

import logging
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from os.path import isdir
from threading import current_thread, main_thread
from typing import Any, Final

import click

from dsel.argument_words import keep_options
from dsel.checks import did_you_mean
from dsel.cli.exit_status import ExitStatus
from dsel.cli.options import CHECK, split_options
from dsel.cli.printing import say
from dsel.cli.stops import Commands, Stop, find_commands, print_commands
from dsel.cli.users_code import user_frames
from dsel.errors import (
    ClusterLostError,
    DselWarning,
    OtherCommands,
    UserCodeError,
    explain_store_errors,
    forget_frames,
    notes_of,
    short_text_of,
    ways_of,
)
from dsel.rounded_texts import hide_breaks, show_breaks

COMMANDS: Final = {
    "audit": "Count how often certificates fail where the truth is known.",
    "compare": "Find out whether a new model is better than an old one.",
    "demo": "Select an SVM for scikit-learn's digits, and bound its error.",
    "label": "Read labels of queried rows: a smaller bound, or the better model.",
    "monitor": "Test whether a bound is still about rows like those of a new table.",
    "plan-bound": "Print the bounds to expect, before any label is used.",
    "pool": "Convert a table to a pool of unlabeled rows, or describe a pool.",
    "predict": "Apply the model of a finished run to a table of any size.",
    "report": "Write a page about a finished run, with figures.",
    "select": "Choose a model from labeled rows and bound its error.",
}
"""Commands and their one-line help; each has a module of its own name."""

# ImportError: an extra is not installed.
FORESEEN: Final = (
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
TRACEBACK: Final = "--traceback"
WAYS_OF: Final = {
    option: f" {way}"
    for options, way in {
        "--confidence": "--delta 0.05 is 95% confidence.",
        "--alpha": "--delta is the probability that the bound fails.",
        "--labels --label --y": "--target names the column of the labels.",
        "--folds --n-folds --cv-folds": "--cv is the number of folds.",
        "--unlabeled-rows": "--pool names the rows without labels.",
        "--output": "--out names the place of the results.",
        "--random-state": "--seed is the seed of all random draws.",
        "--n-jobs --jobs --threads --cores": "All processors are used; --workers "
        "starts processes.",
        "--test --test-size --test-set --holdout": "No rows are set aside: each of the "
        "folds (--cv) tests a model.",
        "--params --param-grid": "--grid has the values of parameters.",
        "--models --estimator --classifier": "--model names the models.",
        "--scoring --metric": "--loss names what is ranked and bounded.",
        "--separator --delimiter": "--sep is the separator of text files.",
        "--na-values --missing": "--gap names words for missing values.",
        "--key --index": "--id names columns that identify rows.",
    }.items()
    for option in options.split()
}
"""What a command has for options of other programs."""
WAYS_IN: Final = {
    "plan-bound --groups": " Of rows in groups N_LABELED is the number of groups."
}
"""What one command has for options of others."""
SHOWS: Final = "Print the full traceback of an error before its message."


class HelpFormatter(click.HelpFormatter):
    """Writer of help whose lines end in no option and no command."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(hide_breaks(text))

    def write_dl(
        self,
        rows: Iterable[tuple[str, str]],
        col_max: int = 30,
        col_spacing: int = 2,
    ) -> None:
        """Write a list of options or commands."""
        hidden = [(name, hide_breaks(text)) for name, text in rows]
        super().write_dl(hidden, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return what was written."""
        return show_breaks(super().getvalue())


class Context(click.Context):
    """Context of a command, whose help is written by `HelpFormatter`."""

    formatter_class = HelpFormatter


class SuggestingGroup(click.Group):
    """Group of commands; the error of a name that is none of them suggests one."""

    context_class = Context

    def suggest(self, ctx: click.Context, args: Sequence[str]) -> str:
        """Return the end of the message that there is no command ``args[0]``."""
        return did_you_mean(args[0], self.list_commands(ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error of another name gets a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = error.format_message().rstrip(".")
            raise click.UsageError(f"{text}{self.suggest(ctx, args)}", ctx) from error


class LazyGroup(SuggestingGroup):
    """Group that imports the options of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return one command."""
        if name not in COMMANDS:
            return None
        command: click.Command
        command = import_module(
            f"dsel.cli.commands.{name.replace('-', '_')}_command"
        ).command
        return _complete(command)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the meaning of each exit status."""
        with formatter.section("Exit status"):
            formatter.write_dl([(str(int(s)), s.meaning) for s in ExitStatus])

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; an expected error becomes one line and an exit code."""
        options["standalone_mode"] = False
        if current_thread() is main_thread():  # `kill` and `timeout` end it as Ctrl-C
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        words = [*(args[0] if args else options.get("args") or sys.argv[1:])]
        options["obj"] = words  # commands make other commands of these words
        shows = TRACEBACK in words
        # When a read fails, asyncio logs the other reads, for which zarr does not wait.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                with (
                    explain_store_errors("an object store"),
                    _unwrap_interrupts(),
                    keep_options(),
                ):
                    code = super().main(*args, **options)
            except click.exceptions.NoArgsIsHelpError as error:
                click.echo(error.format_message(), err=True)  # the help alone
                code = error.exit_code
            except click.ClickException as error:
                _show_traceback(error, shows)
                context = error.ctx if isinstance(error, click.UsageError) else None
                if context is not None:  # the words of the command were not understood
                    hint = f"Try '{context.command_path} --help' for help."
                    click.echo(f"{context.get_usage()}\n{hint}\n", err=True)
                way = ""
                if isinstance(error, click.NoSuchOption):
                    way = _way_of_option(error) or _offer_arguments(error, words)
                elif isinstance(error, click.MissingParameter):
                    way = f" {getattr(error.param, 'help', None) or ''}".rstrip()
                _say_stop(error, f"{error.format_message()}{way}", words)
                code = error.exit_code
            except (KeyboardInterrupt, click.Abort):
                say(f"Interrupted.{_describe_stored_work(words)}", err=True)
                code = ExitStatus.INTERRUPTED
            except FORESEEN as error:
                _show_traceback(error, shows)
                _say_stop(error, _line_of(error), words)
                is_lost = isinstance(error, ClusterLostError)
                code = ExitStatus.CLUSTER_LOST if is_lost else ExitStatus.FAILED
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _unwrap_interrupts() -> Iterator[None]:
    """Raise a KeyboardInterrupt that came while a class was made as what it is.

    Before version 3.12 Python raises "Error calling __set_name__" in the place of any
    exception there, and imports make hundreds of classes.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def _way_of_option(error: click.NoSuchOption) -> str:
    """Return what the command has for an option of other programs, "" if nothing."""
    context = error.ctx
    if context is None:
        return ""
    way = WAYS_OF.get(error.option_name, "")
    known = {name for param in context.command.params for name in param.opts}
    if {*re.findall("--[a-z]+", way)} - known:
        way = ""
    return WAYS_IN.get(f"{context.info_name} {error.option_name}", way)


def _offer_arguments(error: click.NoSuchOption, words: Sequence[str]) -> str:
    """Return which arguments were written as options; "" if none was.

    The error gets the command with their values in their places.
    """
    context = error.ctx
    parameters = [] if context is None else context.command.params
    arguments = [p for p in parameters if isinstance(p, click.Argument)]
    positional, values = split_options(words), dict[str, str]()
    for argument in arguments:
        option = f"--{str(argument.name).removeprefix('n_')}"
        if option in positional[:-1] and not any(option in p.opts for p in parameters):
            place = positional.index(option)
            values[argument.human_readable_name] = positional[place + 1]
            del positional[place : place + 2]
    if context is None or not values:
        return ""
    is_first = arguments[0].human_readable_name in values
    place = len(context.command_path.split()) - 1 if is_first else len(positional)
    command = (*positional[:place], *values.values(), *positional[place:])
    error.ways = (OtherCommands((command,)),)  # type: ignore[attr-defined]
    verb = "is" if len(values) == 1 else "are"
    return f" {' and '.join(values)} {verb} written without an option."


def _describe_stored_work(words: Sequence[str]) -> str:
    """Return what an interrupt leaves of a command; "" where nothing is to be said."""
    # Other commands have no parts to continue from.
    if not {"select", "demo"} & {*words[:2]}:
        return ""
    words = split_options(words)
    if "--out" not in words:
        way = "with --out the same command would go on where it ended."
        return f" Nothing is stored: {way}"
    out = "".join(words[words.index("--out") + 1 :][:1])
    # A folder is made when the run begins, after all tables are read.
    if "://" in out or isdir(out):
        return " All finished work is stored: run the same command again to continue."
    return " Nothing is stored yet: no fit had begun."


def _line_of(error: Exception) -> str:
    """Return the message of an error in one line, without a number of the system."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = text.removeprefix(f"[Errno {error.errno}] ")
    return text


def _check(words: Sequence[str]) -> Stop | None:
    """Return what stops a command before its work begins; None if nothing does."""
    try:
        with (
            keep_options(),
            main.make_context("dsel", [*words], obj=[*words]) as context,
        ):
            context.meta[CHECK] = True
            main.invoke(context)
    except click.NoSuchOption:  # a way of another command
        return Stop("", ())
    except click.ClickException as error:
        return Stop(error.format_message(), ways_of(error))
    except FORESEEN as error:
        return Stop(_line_of(error), ways_of(error), short_text_of(error))
    except Exception:  # the command does not continue after any error
        return Stop("", ())
    return None


def _say_stop(error: Exception, text: str, words: Sequence[str]) -> None:
    """Print an error, what stops its ways, and the commands that go on."""
    commands = Commands([], [])
    ways = ways_of(error)
    if ways:
        forget_frames(error)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            commands = find_commands(words, ways, _check)
    # A later error may be about the same column, and says more of it.
    behind = " Also: ".join(["", *commands.also])
    if behind and text[-1:] not in (".", "?", ")"):
        text += "."
    doubts = [note for note in notes_of(error) if note not in behind]
    if commands.lines and (in_short := short_text_of(error)):
        text, doubts = in_short, []
    doubtful = "".join(f" Also, {note}." for note in doubts)
    say(f"Error: {text}{doubtful}{behind}", err=True)
    print_commands(commands, words)


def _complete(command: click.Command) -> click.Command:
    """Add --traceback, and dsel's way to write help, to a command and those below."""
    command.context_class = Context
    if not any(TRACEBACK in parameter.opts for parameter in command.params):
        command.params.append(
            click.Option([TRACEBACK], is_flag=True, expose_value=False, help=SHOWS)
        )
    for below in getattr(command, "commands", {}).values():
        _complete(below)
    return command


def _show_traceback(error: BaseException, is_whole: bool) -> None:
    """Print the traceback of an error: all of it, or the part in the user's code."""
    if is_whole:
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    elif isinstance(error, UserCodeError) and error.__cause__ is not None:
        cause = error.__cause__
        lines = traceback.format_list(user_frames(cause))
        if isinstance(cause, SyntaxError):  # no frame has its line
            lines += traceback.format_exception_only(cause)[:-1]
        click.echo("Traceback (most recent call last):", err=True)
        click.echo("".join(lines).rstrip(), err=True)


def _show_warning(
    message: object, category: Any, filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Print a warning in one line, with file and line unless it is dsel's own."""
    text = " ".join(str(message).split())
    if not issubclass(category, DselWarning):
        text += f" ({category.__name__} of {filename}:{lineno})"
    say(f"Warning: {text}", err=True)


@click.group(cls=LazyGroup)
@click.version_option(package_name="dsel")
@click.option(TRACEBACK, is_flag=True, expose_value=False, help=SHOWS)
def main() -> None:
    """Choose a model and say how wrong it can be, from few labels and a pool."""
