"""Loog (2015): semi-supervised discriminant analysis.

`experiment` has Tables 2 to 5, `protocol` what one repetition does, `tables` the
comparison, `numbers` what is printed.
"""

from dsel.experiments.loog2015.experiment import EXPERIMENT, Scale, learning_curve

__all__ = ["EXPERIMENT", "Scale", "learning_curve"]
