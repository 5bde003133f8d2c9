"""
Command line
============

What each command says about itself, as this version prints it.
"""

# %%
# The commands
# ------------

import os

from click.testing import CliRunner

from dsel.cli import main

os.environ["COLUMNS"] = "88"


def show(*arguments):
    """Print what ``dsel ...`` prints."""
    print("$ dsel " + " ".join(arguments))
    print(CliRunner().invoke(main, list(arguments), prog_name="dsel").output)


show("--help")

# %%
# The main job
# ------------

show("select", "--help")

# %%
# Before the first label
# ----------------------

show("plan-bound", "--help")
show("plan-bound", "500", "100000", "--delta", "0.01")

# %%
# Pools
# -----

show("pool", "build", "--help")

# %%
# Reports, papers, audits
# -----------------------

show("report", "--help")
show("audit", "--help")

# %%
# Exit codes: 0 done, 1 failed (one line says why), 2 not understood, 3 the cluster was
# lost, 128 + the number of the signal that ended it. After a lost cluster or a signal
# the same command goes on, if it has ``--out``.
