"""What the formulas refuse, and in which words."""

import re

import numpy as np
import pytest

from dsel.bounds import (
    binomial_tail_inversion,
    nested_all_rows,
    nested_one_fold,
    upper_pool_rows,
)
from dsel.bounds.co_validation import (
    error_from_disagreement,
    pair_error_bound,
    row_disagreement,
)
from dsel.bounds.cross_validation import best_fold, cv_bound
from dsel.bounds.holdout import expected_holdout_bound
from dsel.bounds.nonconformity import threshold_bound

FOLDS = ([3, 1], 10)
REFUSED = [
    (binomial_tail_inversion, (11, 10), {}, "`n_errors` must be between 0 and 10"),
    (binomial_tail_inversion, (-1, 10), {}, "`n_errors` must not be negative"),
    (binomial_tail_inversion, (0.1, 10), {}, "pass the number of rows, not a rate"),
    (binomial_tail_inversion, (np.nan, 10), {}, "`n_errors` is NaN where nothing was"),
    (nested_one_fold, ([3, np.nan], 10), {}, "`fold_errors` is NaN where nothing was"),
    (binomial_tail_inversion, (1, 10), {"delta": 0.0}, "`delta` must be strictly"),
    (binomial_tail_inversion, (1, 10), {"delta": 1.0}, "`delta` must be strictly"),
    (binomial_tail_inversion, (1, 10), {"delta": [0.1, np.nan]}, "`delta` must be str"),
    (binomial_tail_inversion, (1, 10), {"delta": "small"}, "`delta` must hold numbers"),
    (binomial_tail_inversion, (1, 10), {"delta": 1e-291}, "divide it among fewer"),
    (expected_holdout_bound, (1.2, 10), {}, "`error_rate` must be in [0, 1]"),
    (expected_holdout_bound, (np.nan, 10), {}, "`error_rate` must be in"),
    (expected_holdout_bound, (0.1, -1), {}, "`n_rows` must be >= 0"),
    (expected_holdout_bound, (0.1, 2.5), {}, "`n_rows` must be an integer"),
    (cv_bound, (3, 10, 0, 10), {}, "folds on its last"),
    (cv_bound, (*FOLDS, 0.02, 10), {}, "`disagreements` must hold integer counts"),
    (best_fold, (*FOLDS, 0, 10), {"label_share": 1.0}, "`label_share` must be strict"),
    (nested_one_fold, ([3, 11], 10), {}, "`fold_errors` must be between 0 and 10"),
    (nested_all_rows, (*FOLDS, [4, 5, 6], 10), {}, "one count for each of 2 folds"),
    (upper_pool_rows, (100, -1), {"delta": None}, "`equal_rows` must not be neg"),
    (error_from_disagreement, (1.2,), {"n_classes": 2, "delta": None}, "rate in"),
    (error_from_disagreement, (0.2,), {"n_classes": 1, "delta": None}, "`n_classes` m"),
    (row_disagreement, ([[1, 0]],), {"delta": None}, "models >= 2"),
    (row_disagreement, ([[2, 0], [2, 1]],), {"delta": None}, "models >= 2"),
    (pair_error_bound, (11, 10), {}, "between 0 and 10"),
    (threshold_bound, (51, 50), {"n_models": 1}, "`counts` must be between 0 and"),
]  # fmt: skip


@pytest.mark.parametrize(("bound", "given", "options", "words"), REFUSED)
def test_bounds__refuse(bound, given, options, words):
    options = {"delta": 0.05} | options
    if options["delta"] is None:  # it has none
        del options["delta"]
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        bound(*given, **options)
