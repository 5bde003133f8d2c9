"""The group of commands."""

import sys
from importlib import import_module
from typing import Final

import click

COMMANDS: Final = {
    "demo": "Select an SVM for scikit-learn's digits, and say what is guaranteed.",
    "select": "Choose a model from labeled rows and a pool, with an error bound.",
}
"""Commands and their one-line help; each has a module of its own name."""


class LazyGroup(click.Group):
    """Imports a command when it is called: `dsel --help` takes no second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"dsel.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup)
@click.version_option(package_name="dsel")
def group() -> None:
    """Choose a model and say how wrong it can be, from few labels and a pool."""


def main() -> None:
    """Run the command line; every foreseen error is one line and an exit code."""
    try:
        code = group.main(prog_name="dsel", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo(
            "Interrupted. What was finished is in --out, if that was given: "
            "run the same command to go on.",
            err=True,
        )
        code = 3
    except (ValueError, TypeError, OSError, RuntimeError, NotImplementedError) as error:
        click.echo(f"Error: {error}", err=True)
        code = 3 if type(error).__name__ == "ClusterLostError" else 1
    sys.exit(code if isinstance(code, int) else 0)
