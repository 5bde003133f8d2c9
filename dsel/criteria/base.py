"""Old name of `dsel.criteria.criterion`, whose names it has; each of them warns."""

from dsel.criteria import criterion
from dsel.old_names import read_old_module

__getattr__ = read_old_module(__name__, criterion)
