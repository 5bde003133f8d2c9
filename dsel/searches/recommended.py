"""What is taken where a search is asked to choose its own certificate: `auto`.

It is a function of the numbers of rows, of candidates and of folds, and of delta, which
are there before a label is used. So it is fixed in advance, as A5 demands.
"""

from dataclasses import dataclass
from typing import Any, Final

from dsel import names
from dsel.checks import check_integer
from dsel.results.rounding import at_most
from dsel.searches.expected_terms import recommended_label_share
from dsel.searches.plan_bound import NESTED, plan_bound

AUTO: Final = "auto"
ERROR: Final = 0.1
"""Error rate that is expected where none is declared."""
DISAGREEMENT: Final = 0.02
"""Disagreement of the models of ten folds, likewise."""
MOST_NESTED_FOLDS: Final = 5  # ten folds have 45 pairs
_CRITERIA: Final = {
    "nested": "cv_error",
    "best_fold": "cv_error",
    "cv_bound": "cv_bound",
}
_WITHOUT_POOL: Final = {
    "nested_fold_model": "cv_error",
    "best_fold_model": "best_fold_model",
    "holdout_bound": "holdout_bound",
}
_READ_AS: Final = {"best_fold": "best_fold_of_leader"}
"""Name of the certificate where its column in the table has another."""


@dataclass(frozen=True)
class Taken:
    """Options of a search, those that were left open included."""

    criterion: str | None
    certificate: str | None
    cv: Any
    label_share: float
    remarks: tuple[str, ...] = ()
    """What `auto` has taken, and what the others would have given."""


def taken(
    criterion: str | None,
    certificate: str | None,
    cv: Any,
    label_share: float | None,
    *,
    sizes: tuple[int, int, int],
    delta: float,
) -> Taken:
    """Return the options of a search with what was left open.

    Parameters
    ----------
    criterion, certificate, cv, label_share
        As `plan_search` takes them.
    sizes
        Labeled rows, counted rows of the pool (0 without one), and candidates.
    delta
        Probability with which the certificate may fail.

    Raises
    ------
    ValueError
        Where `auto` is to rank by a criterion of the user's, or by other folds than
        random ones.
    """
    remarks: tuple[str, ...] = ()
    is_auto = AUTO in (criterion, certificate)
    if is_auto:
        if {criterion, certificate} - {None, AUTO, "cv_error"}:
            raise ValueError(
                f"`certificate` 'auto' takes criterion and certificate that are "
                f"expected to give the smallest bound, but criterion is {criterion!r} "
                f"and certificate {certificate!r}; leave `criterion` out."
            )
        if hasattr(cv, "split"):
            raise ValueError(
                f"`cv` must be a number of random folds for certificate 'auto', got "
                f"{cv!r}; name the certificate, such as 'cv_bound'."
            )
        criterion, certificate, cv, remark = _smallest(sizes, delta, cv)
        remarks = (remark,)
    nested = {criterion, certificate} & set(NESTED)
    if cv is None:
        cv = 3 if nested else 10
    if label_share is None:
        of_pool = recommended_label_share(sizes[1])
        label_share = of_pool if is_auto or nested else 0.5
    return Taken(criterion, certificate, cv, label_share, remarks)


def _smallest(
    sizes: tuple[int, int, int], delta: float, cv: Any
) -> tuple[str, str, int, str]:
    """Return criterion, certificate, folds, and a line that says what others give."""
    folds = (3, 5, 10) if cv is None else (check_integer(cv, "cv", at_least=2),)
    known = _CRITERIA if sizes[1] else _WITHOUT_POOL
    plan = plan_bound(*sizes, delta, ERROR, DISAGREEMENT, n_folds=folds)
    best: list[tuple[float, str, int]] = []
    for name in known:
        bounds = plan[names.BOUND].sel({names.CERTIFICATE: name})
        few = MOST_NESTED_FOLDS if name in NESTED and cv is None else max(folds)
        found = [
            (float(bounds.sel({names.N_FOLDS: k})), name, k) for k in folds if k <= few
        ]
        best += sorted(each for each in found if each[0] == each[0])[:1]  # NaN: none
    (_, name, n_folds), *_ = best = sorted(best)
    shown = [
        f"{_READ_AS.get(each, each)} with {k} folds {at_most(bound)}"
        for bound, each, k in best
    ]
    remark = (
        f"certificate='auto' takes the smallest bound expected at an error of "
        f"{ERROR:g}, where models of ten folds differ on {DISAGREEMENT:g}: "
        f"{'; '.join(shown)}"
    )
    return known[name], _READ_AS.get(name, name), n_folds, remark
