"""The command line: one file for each command, loaded when it is called.

A command parses, calls one public function, and prints or saves what it returns. Exit
codes: 0 done, 1 failed (one line says why), 2 not understood, 3 the cluster was lost,
130 interrupted. After a lost cluster or an interruption the same command goes on, if it
has ``--out``. `dsel monitor` ends with 3 also where a promise is refuted.

To add a command: one file with a click command named `command`, and its line in
`group.COMMANDS`.
"""

from dsel.cli.group import main

__all__ = ["main"]
