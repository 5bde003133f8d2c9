"""Old name of `dsel.losses.protocols`, whose names it has; each of them warns."""

from dsel.losses import protocols
from dsel.old_names import read_old_module

__getattr__ = read_old_module(__name__, protocols)
