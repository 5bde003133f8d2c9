"""Co-validation: error estimates from the disagreement of models on unlabeled rows.

`covalidate` halves the labeled rows at random, many times, trains every candidate on
both halves and compares the two models on the pool. It uses the plan, the driver and
the store of all searches.

Vocabulary: a *repeat* is one halving, its *halves* are two splits; *disagreement* is a
rate over pool rows. No number of co-validation is an error bound. To add an estimate,
add a criterion of the counts.
"""

from dsel.checks import explain_public
from dsel.co_validation.active_learning import learn_actively, sample_uncertain
from dsel.co_validation.covalidate import covalidate, plan_covalidation
from dsel.co_validation.row_disagreement import most_disputed, write_row_disagreement

__all__ = [
    "covalidate",
    "learn_actively",
    "most_disputed",
    "plan_covalidation",
    "sample_uncertain",
    "write_row_disagreement",
]

explain_public(globals())
