"""The group of commands, with their errors, warnings and exit status."""

import logging
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any, Final

import click

from dsel.checks import did_you_mean
from dsel.cli.exit_status import ExitStatus
from dsel.cli.printing import say
from dsel.cli.users_code import user_frames
from dsel.errors import (
    ClusterLostError,
    DselWarning,
    ShellOptions,
    UserCodeError,
    reaching,
    ways_of,
)

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
REPEATED: Final = (
    "--class", "--grid", "--loss", "--number", "--text", "--trust", "--unlabeled"
)  # fmt: skip
"""Options that may be given several times."""
WAYS_OF: Final = {
    "--confidence": " --delta 0.05 is 95% confidence.",
    "--alpha": " --delta is the probability that the bound fails.",
    "--labels": " --target names the column of the labels.",
    "--label": " --target names the column of the labels.",
    "--folds": " --cv is the number of folds.",
    "--unlabeled-rows": " --pool names the rows without labels.",
    "--output": " --out names the place of the results.",
}
"""What other programs call options of `dsel select`, and what these are here."""
SHOWS: Final = "Print the full traceback of an error before its message."


class LazyGroup(click.Group):
    """Group that imports the options of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return one command."""
        if name not in COMMANDS:
            return None
        command: click.Command
        command = import_module(f"dsel.cli.commands.{name.replace('-', '_')}").command
        return _with_traceback(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a misspelled one gets a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = error.format_message().rstrip(".")
            raise click.UsageError(
                f"{text}{did_you_mean(args[0], COMMANDS)}", ctx
            ) from error

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
        options["obj"] = words  # of which commands make others
        shows = TRACEBACK in words
        # When a read fails, asyncio logs the other reads, for which zarr does not wait.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                with reaching("an object store"):
                    code = super().main(*args, **options)
            except click.exceptions.NoArgsIsHelpError as error:
                click.echo(error.format_message(), err=True)  # the help alone
                code = error.exit_code
            except click.ClickException as error:
                _show_traceback(error, shows)
                context = error.ctx if isinstance(error, click.UsageError) else None
                if context is not None:  # the words were not understood
                    hint = f"Try '{context.command_path} --help' for help."
                    click.echo(f"{context.get_usage()}\n{hint}\n", err=True)
                way = ""
                if isinstance(error, click.NoSuchOption):
                    way = WAYS_OF.get(error.option_name, "")
                say(f"Error: {error.format_message()}{way}", err=True)
                code = error.exit_code
            except (KeyboardInterrupt, click.Abort):
                say(
                    "Interrupted. With --out all finished work is stored: run the same "
                    "command again to continue.",
                    err=True,
                )
                code = ExitStatus.INTERRUPTED
            except FORESEEN as error:
                _show_traceback(error, shows)
                commands = [with_options(words, way) for way in ways_of(error)]
                first, *others = commands or [""]
                run = f" Run: {first}" if first else ""
                say(f"Error: {_line_of(error)}{run}", err=True)
                for command in others:
                    say(f"Or: {command}", err=True)
                is_lost = isinstance(error, ClusterLostError)
                code = ExitStatus.CLUSTER_LOST if is_lost else ExitStatus.FAILED
        sys.exit(code if isinstance(code, int) else 0)


def _line_of(error: Exception) -> str:
    """Return the message of an error in one line, without a number of the system."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = text.removeprefix(f"[Errno {error.errno}] ")
    return text


def with_options(words: Sequence[str], options: ShellOptions) -> str:
    """Return a command with other options, as a shell takes it."""
    changed = [*map(str, words)]
    for option, value in options:
        if option not in changed or option in REPEATED:
            changed += [option, value] if value else [option]
            continue
        place = changed.index(option) + 1
        is_list = option in ("--drop", "--id")
        changed[place] = f"{changed[place]},{value}" if is_list else value
    return shlex.join(["dsel", *changed])


def _with_traceback(command: click.Command) -> click.Command:
    """Add the option --traceback to a command and to its subcommands."""
    if not any(TRACEBACK in parameter.opts for parameter in command.params):
        command.params.append(
            click.Option([TRACEBACK], is_flag=True, expose_value=False, help=SHOWS)
        )
    for below in getattr(command, "commands", {}).values():
        _with_traceback(below)
    return command


def _show_traceback(error: BaseException, is_whole: bool) -> None:
    """Print the traceback of an error: all of it, or the part in the user's code."""
    if is_whole:
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    elif isinstance(error, UserCodeError) and error.__cause__ is not None:
        cause = error.__cause__
        lines = traceback.format_list(user_frames(cause))
        if isinstance(cause, SyntaxError):  # its line is in no frame
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
