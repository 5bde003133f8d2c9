"""How commands print a statement."""

import sys

import click

from dsel.rounded_texts import terminal_width, wrap_line


def say(text: str, *, indent: int = 2, err: bool = False) -> None:
    """Print a statement, wrapped at words where a terminal shows it.

    A file or a pipe gets one line, which tools can search.
    """
    if (sys.stderr if err else sys.stdout).isatty():
        text = wrap_line(text, indent, terminal_width(sys.stderr if err else None))
    click.echo(text, err=err)
