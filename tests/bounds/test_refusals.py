"""What the formulas refuse, and in which words."""

import re

import numpy as np
import pytest

from dsel.bounds import (
    baseline_limits,
    binomial_tail_inversion,
    deviation_limit,
    nested_all_rows,
    nested_one_fold,
    queried_all_rows,
    queried_difference,
    upper_pool_rows,
)
from dsel.bounds.class_counts import (
    added_false_predictions,
    added_misses,
    counted_mean_limit,
)
from dsel.bounds.cross_validation import best_fold, cv_bound
from dsel.bounds.disagreement import (
    error_from_disagreement,
    pair_error_bound,
    row_disagreement,
)
from dsel.bounds.duplicates import lower_rate_limits
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
    (upper_pool_rows, (100, -1), {"delta": None}, "`n_duplicates` must not be neg"),
    (upper_pool_rows, (100, 101), {"delta": None}, "`n_duplicates` must be between 0"),
    (upper_pool_rows, (100, 9, 10), {"delta": None}, "`counted_duplicates` must be be"),
    (queried_difference, (1.5, 9, 50), {}, "`mean_limit` must be in [-1, 1]"),
    (queried_difference, (-1.5, 9, 50), {}, "`mean_limit` must be in [-1, 1]"),
    (baseline_limits, ([[1] * 5], [[9] * 5], 50), {}, "`baseline_right` must be one n"),
    (baseline_limits, (1, [[9] * 5], 50), {}, "got shape (1, 5)"),
    (baseline_limits, ([1], [9], [[50] * 5]), {}, "got shape (1, 5)"),
    (baseline_limits, (1, 9, 50), {}, "one number for each fold, got shape ()"),
    (baseline_limits, ([30], [21], 50), {}, "`baseline_right + model_right` must be"),
    (baseline_limits, ([3, 1], [2, 1, 1], 50), {}, "must fit the other counts"),
    (queried_difference, (3.0, 10, 100), {}, "`mean_limit` must be in [-1, 1], got 3"),
    (queried_difference, (np.nan, 10, 100), {}, "`mean_limit` must be in [-1, 1], got"),
    (queried_difference, ([0.1, 0.2], [1, 2, 3], 100), {}, "`mean_limit` must fit"),
    (queried_difference, (0.1, 60, 100), {"n_duplicates": 50}, "between 0 and 50"),
    (queried_all_rows, (1.5, 0.1, 60, 100), {}, "`fold_limit` must be in [0, 1]"),
    (deviation_limit, ([1, 1], [3.0, 2.0], 9), {"level": 0.5}, "`edges` must rise"),
    (deviation_limit, ([1, 1], [0.0, np.nan], 9), {"level": 0.5}, "`edges` must be in"),
    (deviation_limit, ([1], 3.0, 9), {"level": 0.5}, "`edges` must be numbers that ri"),
    (deviation_limit, ([1], [3.0], [9, 9]), {"level": 0.5}, "and `n_rows` one or as m"),
    (deviation_limit, ([1], [3.0], 9), {"level": 1.5}, "`level` must be in [0, 1]"),
    (deviation_limit, ([1], [3.0], 9), {"level": [0.5]}, "`level` must be one number"),
    (counted_mean_limit, ([1, 2], [0, 1.5]), {}, "`values` must be in [0, 1], got 1.5"),
    (counted_mean_limit, ([1, 2], [0, 0.5, 1]), {}, "the shapes (2,) and (3,)"),
    (counted_mean_limit, ([1, 2], [0, 1]), {"duplicates": [0, 3]}, "between 0 and 2"),
    (counted_mean_limit, ([1, 2], [0, 1]), {"delta": [0.1] * 2}, "`delta` must be one"),
    (added_misses, ([3], 100, 90, 80), {}, "`class_rows` must be between 0 and 80"),
    (added_misses, (3, 100, 80, 90), {}, "`left` must be one number for each fold"),
    (added_false_predictions, (0.2, [[9] * 5], 99, 9, 99, 1, 9), {},
     "got shape (1, 5)"),
    (added_false_predictions, ([0.2], 9, 99, 99, 9, 1, 9), {},
     "`second_predictions` must be"),
    (added_misses, ([101], 100, 80, 90), {}, "`left` must be between 0 and 100"),
    (lower_rate_limits, ([3], [4], 100), {}, "`counted_duplicates` must be between"),
    (lower_rate_limits, ([3], [1], 2), {}, "`counts` must be between 0 and 2"),
    (expected_holdout_bound, ([0.1, 0.2], 10), {}, "`error_rate` must be one number"),
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
