"""What the plan knows of the ledger A1 to A6: checked, declared or violated."""

from dsel.results import Assumption
from dsel.results.schema import CHECKED, DECLARED, VIOLATED
from dsel.searches.signs import Signs


def plan_ledger(
    signs: Signs,
    *,
    random_folds: str | None,
    has_pool: bool,
    pool_is_fitted: bool,
    breaks_independence: str = "",
    shuffled: bool = False,
) -> tuple[Assumption, ...]:
    """Return the ledger of a plan.

    Parameters
    ----------
    signs
        What was seen in the labeled rows and the estimators.
    random_folds
        None where the folds are plain random ones, else what they are instead.
    has_pool
        Whether models are compared on a pool.
    pool_is_fitted
        Whether learners see the fitting part of the pool (never the counted part).
    breaks_independence
        Why a fold's model may depend on its held-out rows, if it is known to.
    shuffled
        Whether the first pool rows are read for a random part of them.
    """
    folds = (
        Assumption("A2", CHECKED, "plain random folds from the seed")
        if random_folds is None
        else Assumption(
            "A2", VIOLATED, f"the folds are not plain random: {random_folds}"
        )
    )
    order = "the pool's rows stand in random order" if shuffled else ""
    drawn = _joined("rows were drawn at random", order, signs.copies)
    return (
        Assumption("A1", DECLARED, drawn),
        folds,
        _independence(signs, breaks_independence),
        _apart(signs, has_pool, pool_is_fitted),
        Assumption("A5", DECLARED, "the grid, delta and the seed came before the data"),
        Assumption("A6", CHECKED, "row words of the seed, whatever the rows hold"),
    )


def _independence(signs: Signs, dependence: str) -> Assumption:
    if broken := _joined(dependence, signs.scaling, signs.weights_of_all):
        return Assumption("A3", VIOLATED, broken)
    inside = "all preprocessing is inside the estimator, fitted per fold"
    return Assumption(
        "A3", DECLARED, _joined(inside, signs.given_weights, signs.preparation)
    )


def _apart(signs: Signs, has_pool: bool, pool_is_fitted: bool) -> Assumption:
    """Return A4: what was done to the rows before they came here cannot be seen."""
    if not has_pool:
        return Assumption("A4", CHECKED, "there is no pool")
    apart = (
        "learners see a part of the pool that is not counted"
        if pool_is_fitted
        else "no learner of this search sees the pool"
    )
    before = "no scaler, PCA or other step was fitted on counted pool rows beforehand"
    return Assumption("A4", DECLARED, _joined(apart, before, signs.frozen))


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
