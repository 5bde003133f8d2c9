"""Limits of how much more the models of all folds err than a baseline."""

from dsel import checks
from dsel.arrays import ArrayLike, Floats
from dsel.bounds.queried_differences import sign_test_limit
from dsel.bounds.shares import fold_deltas


def baseline_limits(
    baseline_right: ArrayLike,
    model_right: ArrayLike,
    fold_rows: ArrayLike,
    *,
    delta: float,
) -> Floats:
    r"""Upper limits of err(model) - err(baseline), for the models of all folds at once.

    On fold :math:`i` with :math:`n_i` rows, of which :math:`z^+_i` only the baseline
    predicts rightly and :math:`z^-_i` only the model, it is the limit of
    :func:`sign_test_limit` at :math:`w_i \delta`, with the shares :math:`w_i` of
    :func:`fold_shares`.

    Parameters
    ----------
    baseline_right, model_right
        Rows of each fold on which only the baseline is right, and only the model.
        Integers >= 0, shape (n_folds,).
    fold_rows
        Rows of each fold: one number, or shape (n_folds,).
    delta
        Probability with which any of the limits may fail, in ``(0, 1)``.

    Returns
    -------
    ndarray
        Limits in [-1, 1], shape (n_folds,); below 0 where the model is proved to err
        less than the baseline.

    Raises
    ------
    TypeError
        Where the counts are not integers.
    ValueError
        Where the counts exceed the rows or have more axes than that of the folds, or
        ``delta`` lies outside ``(0, 1)``.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the labeled rows, for every
    fold the error of its model less that of its baseline is at most the limit; so the
    fold may be picked after its counts were seen.
    Assumes: i.i.d. labeled rows in random folds. The model of a fold has seen nothing
    of its rows. Neither has the baseline of the fold: it is one model that was fixed
    before the labeled rows were seen, or a function of the rows outside of the fold.
    Source: given the rows outside of a fold, both models are fixed and its rows are
    independent, so that the limit of :func:`sign_test_limit` holds with every row of
    the fold in the place of the queried ones; then the union bound over folds.

    Examples
    --------
    >>> limits = baseline_limits([3, 9, 5], [25, 12, 20], 100, delta=0.05)
    >>> limits.round(3).tolist()
    [-0.067, 0.139, -0.015]
    """
    baseline, model = checks.broadcast(
        baseline_right=checks.check_counts(baseline_right, "baseline_right"),
        model_right=checks.check_counts(model_right, "model_right"),
    )
    decided, rows = checks.check_counts_of(
        baseline + model, fold_rows, "baseline_right + model_right", "fold_rows"
    )
    # Along any other axis each fold would get all of delta.
    checks.check_axes(decided, "baseline_right", 1, "one number for each fold")
    # Limits of all folds hold at once, so counts may decide which of them is read.
    deltas = fold_deltas(checks.check_probability(delta, "delta"), len(decided))
    return sign_test_limit(baseline, model, rows, delta=deltas)
