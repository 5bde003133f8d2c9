"""The command line: for each command a file of options, and a file of its work.

A command parses, calls one public function, and prints or saves what it returns. It
ends with a status of `exit_status.ExitStatus`.

To add a command, write its options as a click command named `command` in a file of
`commands`, which imports nothing heavy, and its function `run` in a file here, such as
`run_select.py`, which is imported when the command runs; and add a line to
`group.COMMANDS`.
"""

from dsel.cli.group import main

__all__ = ["main"]
