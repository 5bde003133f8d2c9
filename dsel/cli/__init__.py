"""The command line: one file for each command, loaded when it is called.

A command parses, calls one public function, and prints or saves what it returns. It
ends with a status of `exit_status.ExitStatus`.

To add a command: one file with a click command named `command`, and its line in
`group.COMMANDS`.
"""

from dsel.cli.group import main

__all__ = ["main"]
