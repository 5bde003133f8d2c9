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
show("predict", "--help")

# %%
# Is the promise still kept?
# --------------------------

show("monitor", "--help")

# %%
# Is the new model better?
# ------------------------

show("compare", "--help")
show("label", "--help")

# %%
# Before the first label
# ----------------------

show("plan-bound", "--help")
show("plan-bound", "500", "100000", "--candidates", "25")

# %%
# Pools
# -----

show("pool", "build", "--help")

# %%
# Reports, audits and a demonstration
# -----------------------------------

show("report", "--help")
show("audit", "--help")
show("demo", "--help")
