"""The command line: one file for each command, loaded when it is called.

A command parses, calls one public function, and prints or saves what it returns. Exit
codes: 0 done, 1 failed (one line says why), 2 not understood, 3 interrupted or the
cluster was lost (with ``--out``, the same command goes on).

To add a command: one file with a click command named `command`, and its line here.
"""

from dsel.cli.group import main

__all__ = ["main"]
