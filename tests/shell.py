"""Commands of the shell, run in this process."""

from click.testing import CliRunner

from dsel.cli import main


def run(*arguments):
    """Run ``dsel ARGUMENTS``, of any types; return the exit status and the output."""
    return CliRunner().invoke(main, list(map(str, arguments)))
