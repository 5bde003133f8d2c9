"""Options that a search chooses by itself, such as the certificate ``"auto"``.

The choice is a function of the numbers of rows, candidates and folds, and of delta,
which are known before a label is used. So it is fixed in advance, as A5 demands.

Never chosen are `select_then_certify`, which needs two searches on different rows with
a store each (`certify_rows=` of the estimator makes both), and with a pool
`nested_fold_model` and `nested_vote`, which are about other models than that of all
rows. The plan says what bounds the first two of them would give.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final, TypeVar

from dsel.checks import check_integer
from dsel.errors import GuaranteeWarning, warn
from dsel.results.rounding import at_least, at_most
from dsel.runtime.tasks import is_task
from dsel.searches.expected_terms import (
    CERTIFY_SHARE,
    FOLD_CERTIFICATES,
    GROWTH,
    HOLD_OUT_CERTIFICATES,
    DesignAssumptions,
    recommended_label_share,
)
from dsel.searches.plan_bound import MOST_NESTED_FOLDS, NESTED, READ_AS, terms_of
from dsel.searches.spec import SearchSpec

P = TypeVar("P", bound=SearchSpec)

AUTO: Final = "auto"
ERROR: Final = 0.1
"""Error rate that is expected where none is declared."""
DISAGREEMENT: Final = 0.02
"""Disagreement of the full model with a model of ten folds that is expected."""
FOLDS: Final = (3, 5, 10)
"""Numbers of folds that are compared where none is given."""
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
APART: Final = "select_then_certify"
LEAST: Final = 1e-12
"""Error rate at which no error is expected to be counted."""
MANY_ROWS: Final = 10**9
"""A pool of so many rows adds nothing to a bound."""
USELESS: Final = 0.5
"""A plan whose bound cannot be smaller gives a warning."""


def expected_bound(
    plan: SearchSpec,
    error: float = ERROR,
    disagreement: float = DISAGREEMENT,
    n_unlabeled: int | None = None,
) -> float:
    """Return the bound that a plan is expected to give, before a label is used.

    It is the average bound, not clipped, of the candidate with the largest part of
    delta; NaN where `plan_bound` does not know the certificate. `n_unlabeled` are the
    rows of another pool.
    """
    if n_unlabeled is None:
        n_unlabeled = 0 if plan.pool is None else plan.pool.n_rows
    name, k = plan.certificate.name, plan.scheme.n_folds
    share = 1 / plan.n_candidates if plan.prior is None else plan.prior.max()
    design = DesignAssumptions(
        len(plan.work.y),
        n_unlabeled,
        round(1 / share),
        plan.delta,
        error,
        disagreement,
        GROWTH,
    )
    if name in HOLD_OUT_CERTIFICATES:
        n_rows = len(plan.scheme.splits[0].test_rows)
        return sum(HOLD_OUT_CERTIFICATES[name](design, n_rows, plan.label_share))
    if name not in FOLD_CERTIFICATES or k < 2:  # a given division may have one fold
        return math.nan
    return sum(FOLD_CERTIFICATES[name](design, k, plan.label_share))


def is_certifiable(plan: SearchSpec) -> bool:
    """Whether a plan's bound is a guarantee, as far as is known before the run."""
    violated = any(each.is_violated for each in plan.assumptions)
    return plan.certificate.is_guarantee and not violated


def too_large(plan: SearchSpec) -> str:
    """Return why a plan's bound is useless whatever the labels are; else nothing."""
    least = expected_bound(plan, LEAST, LEAST)
    if not (is_certifiable(plan) and least > USELESS):
        return ""
    said = f"{plan.certificate.name} cannot be below {at_least(least)}, even where no "
    many = expected_bound(plan, LEAST, LEAST, n_unlabeled=MANY_ROWS)
    if plan.pool is not None and many <= USELESS:
        return (
            f"{said}models differ: the pool has too few rows ({plan.pool.n_rows:,}). "
            f"Take more, or certificate='best_fold_model', which needs no pool"
        )
    k, is_nested = plan.scheme.n_folds, plan.certificate.name in NESTED
    what = "" if is_nested else f"{plan.n_candidates:,} candidates and "
    way = "" if is_nested else f", or take fewer candidates, or certificate={AUTO!r}"
    return (
        f"{said}error is counted: {len(plan.work.y):,} labeled rows are few for {what}"
        f"{k} folds. Label more rows (dsel.plan_bound says how many){way}"
    )


def warned(plan: P) -> P:
    """Return a plan, after a warning where its bound is useless whatever happens."""
    # Audits and experiments plan searches too, but only to compare their bounds.
    if not is_task() and (doubt := too_large(plan)):
        warn(doubt, GuaranteeWarning)
    return plan


@dataclass(frozen=True)
class Taken:
    """Options of a search, after those that the user left open were chosen."""

    criterion: str
    certificate: str | None
    cv: Any
    label_share: float
    remarks: tuple[str, ...] = ()
    """What ``"auto"`` has chosen, and the expected bounds of the others."""


def taken(
    criterion: str | None,
    certificate: str | None,
    cv: Any,
    label_share: float | None,
    *,
    sizes: tuple[int, int, int],
    delta: float,
    is_special: bool = False,
) -> Taken:
    """Return the options of a search, after choosing those that were left open.

    `sizes` are labeled rows, counted rows of the pool (0 without one), and candidates.
    ``"auto"`` applies where it is named, and where there is a pool and neither
    criterion nor certificate is named, unless `is_special`: the search has other
    options that ``"auto"`` does not know.

    Raises ValueError where ``"auto"`` comes with another criterion than ``"cv_error"``,
    or with other folds than random ones.
    """
    remarks: tuple[str, ...] = ()
    is_plain = cv is None or isinstance(cv, Integral)
    if criterion is None and certificate is None and sizes[1]:
        criterion = AUTO if is_plain and not is_special else None
    is_auto = AUTO in (criterion, certificate)
    if is_auto:
        if {criterion, certificate} - {None, AUTO, "cv_error"}:
            raise ValueError(
                f"`certificate` 'auto' chooses criterion and certificate itself, but "
                f"criterion is {criterion!r} and certificate is {certificate!r}; leave "
                f"`criterion` out."
            )
        if hasattr(cv, "split"):
            raise ValueError(
                f"`cv` must be a number of random folds for certificate 'auto', got "
                f"{cv!r}; name the certificate, such as 'cv_bound'."
            )
        criterion, certificate, cv, remarks = _smallest(sizes, delta, cv)
    nested = {criterion, certificate} & set(NESTED)
    if cv is None:
        cv = 3 if nested else 10
    if label_share is None:
        of_pool = recommended_label_share(sizes[1])
        label_share = of_pool if is_auto or nested else 0.5
    # The leader by cross-validation error is the one candidate that it is about.
    by_error = nested or certificate == "best_fold_of_leader" or not sizes[1]
    usual = "cv_error" if by_error else "cv_bound"
    return Taken(criterion or usual, certificate, cv, label_share, remarks)


def _smallest(
    sizes: tuple[int, int, int], delta: float, cv: Any
) -> tuple[str, str, int, tuple[str, ...]]:
    """Return criterion, certificate, folds, and lines that say what others give."""
    tried = FOLDS if cv is None else (check_integer(cv, "cv", at_least=2),)
    folds = [k for k in tried if k <= sizes[0]] or tried[-1:]
    design = DesignAssumptions(*sizes, delta, ERROR, DISAGREEMENT, GROWTH)

    def smallest(name: str) -> tuple[float, str, int]:
        """Return the smallest bound of a certificate, and by how many folds."""
        few = [k for k in folds if name not in NESTED or k <= MOST_NESTED_FOLDS]
        found = [(sum(terms_of(design, name, k)), name, k) for k in few]
        finite = [each for each in found if math.isfinite(each[0])]
        return min(finite, default=(math.inf, name, folds[-1]))

    known = _CRITERIA if sizes[1] else _WITHOUT_POOL
    ranked = sorted(map(smallest, known))
    _, name, n_folds = ranked[0]
    remarks = [
        f"certificate='auto' takes the smallest bound, as expected at an error of "
        f"{ERROR:g} where models of ten folds differ on {DISAGREEMENT:g} of the rows: "
        f"{_listed(ranked)}"
    ]
    if sizes[1]:
        other, (apart, _, _) = smallest("nested_fold_model"), smallest(APART)
        remarks.append(
            f"'auto' never takes these two: {_listed([other])} (for a model that was "
            f"trained on fewer rows); {APART} with certify_rows={CERTIFY_SHARE:g}: "
            f"{at_most(apart)} (needs two searches)"
        )
    remarks.append(
        f"for another grid with the same `out`, which needs the same folds, give "
        f"certificate={READ_AS.get(name, name)!r} and cv={n_folds}"
    )
    return known[name], READ_AS.get(name, name), n_folds, tuple(remarks)


def _listed(found: Iterable[tuple[float, str, int]]) -> str:
    return "; ".join(
        f"{READ_AS.get(name, name)} with {n_folds} folds: {at_most(bound)}"
        for bound, name, n_folds in found
    )
