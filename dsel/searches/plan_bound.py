"""The bound that each certificate is expected to give, before a label is used."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.checks import check_counts, check_integer, check_probability
from dsel.searches.assumptions import FEW_ROWS
from dsel.searches.expected_terms import (
    CERTIFY_SHARE,
    FOLD_CERTIFICATES,
    HOLD_OUT_CERTIFICATES,
    DesignAssumptions,
    Terms,
    fitted_growth,
    recommended_label_share,
)

CERTIFY_SHARES: Final = (0.1, 0.2, 0.3, 0.5)
"""Shares of the labeled rows that are tried as hold-out parts."""

MOST_ROWS: Final = 10**9
"""Most rows that are tried in the search for needed rows."""

NESTED: Final = ("nested", "nested_fold_model", "nested_vote")
"""Certificates of nested searches, which need three folds or more."""

MOST_NESTED_FOLDS: Final = 5
"""More are not recommended for them: ten folds have 45 pairs, each a fit."""

_OF_ANOTHER_ERROR = (
    "transductive",
    "holdout_bound",
    "best_fold_model",
    "nested_fold_model",
    "nested_vote",
)

_WITHOUT_POOL = ("best_fold_model", "holdout_bound", "nested_fold_model")

READ_AS: Final = {"best_fold": "best_fold_of_leader"}
"""Name of the certificate where its column in the table has another."""


def plan_bound(
    n_labeled: int,
    n_unlabeled: int,
    n_candidates: int,
    delta: float,
    expected_error: float,
    expected_disagreement: float | Mapping[int, float] = 0.02,
    *,
    disagreement_growth: float | None = None,
    n_folds: int | Sequence[int] = (2, 3, 5, 10),
    wanted_bound: float | None = None,
) -> xr.Dataset:
    """Return what each certificate would give on average, and recommend one.

    Parameters
    ----------
    n_labeled
        Labeled rows, at least 2.
    n_unlabeled
        Pool rows; with 0 only `holdout_bound`, `best_fold_model` and
        `nested_fold_model` give a bound.
    n_candidates
        Candidates that share delta, at least 1.
    delta
        Probability with which the bound may fail, in ``(0, 1)``.
    expected_error
        Error rate that the chosen model is expected to have, in ``(0, 1)``.
    expected_disagreement
        Rate at which the model of all rows is expected to differ from the model of one
        of ten folds, in ``(0, 1)``; with fewer folds it is larger. Or the rates of a
        pilot search, by number of folds: ``{10: 0.02, 3: 0.05}``.
    disagreement_growth
        Exponent, at least 0, by which this rate grows with (rows left out) / (rows
        trained on). With 0 the rate is the same for all folds and certificates;
        otherwise that of `nested` is a quarter larger, since its models may be of
        several candidates. None estimates it from a pilot with two or more numbers of
        folds, and takes 0.6 without one. The 0.6 and the quarter come from benchmarks.
    n_folds
        Numbers of folds to compare, each at least 2; or one.
    wanted_bound
        If given, the labeled rows and the pool rows that this bound needs are searched.

    Returns
    -------
    xarray.Dataset
        `bound`, `label_term` and `disagreement_term` over (`certificate`, `n_folds`),
        averaged over binomial counts, not clipped at 1. Certificates that hold out a
        part of the labeled rows have the same value for every number of folds, with a
        fifth held out; `certify_bound` over (`certificate`, `certify_share`) has their
        bounds for other parts. `label_share` is the part of delta for the label term.
        `recommended`, `recommended_n_folds` and `recommended_certify_share` (0 and NaN
        where they do not apply) name the smallest bound for the model of all rows; with
        no pool row, the smallest that needs none. Only those count whose models see two
        thirds of the labeled rows or more, since a choice made with fewer rows is often
        worse, and nested searches of at most five folds. With `wanted_bound` also
        `labels_needed` and `pool_rows_needed` over (`certificate`, `n_folds`), exact to
        1 %, each with all else the same; -1 where no number up to 1e9 is enough.

    Raises
    ------
    TypeError
        Where a number of rows or candidates is no integer.
    ValueError
        Where one is too small, or a probability lies outside ``(0, 1)``.

    See Also
    --------
    plan_search : The search that is planned for.
    audit : How often certificates fail.

    Notes
    -----
    The number of `best_fold` is that of the candidate of least cross-validation error,
    as ``criterion="cv_error", certificate="best_fold_of_leader"`` reports it; with
    another criterion the disagreement term's delta is divided among all candidates.
    None of these is recommended: `transductive` bounds the error on the pool's rows
    only, `holdout_bound`, `best_fold_model` and `nested_fold_model` that of a model
    trained without the part held out, and `nested_vote` that of a vote of several.

    Examples
    --------
    >>> plan = plan_bound(500, 100_000, 225, delta=0.01, expected_error=0.1)
    >>> round(float(plan.bound.sel(certificate="best_fold", n_folds=10)), 3)
    0.321
    >>> str(plan.recommended.values), int(plan.recommended_n_folds)
    ('nested', 5)
    """
    rate, growth = _checked_disagreement(expected_disagreement, disagreement_growth)
    design = DesignAssumptions(
        check_integer(n_labeled, "n_labeled", at_least=2),
        check_integer(n_unlabeled, "n_unlabeled", at_least=0),
        check_integer(n_candidates, "n_candidates", at_least=1),
        check_probability(delta, "delta"),
        check_probability(expected_error, "expected_error"),
        rate,
        growth,
    )
    given = check_counts(np.atleast_1d(n_folds), "n_folds").tolist()
    folds = list(dict.fromkeys(given))
    if not folds or min(folds) < 2:
        raise ValueError(f"`n_folds` must hold numbers >= 2, got {n_folds!r}.")
    plan = _recommend(_tabulate(design, folds))
    if wanted_bound is None:
        return plan
    return _add_needs(plan, design, check_probability(wanted_bound, "wanted_bound"))


def _checked_disagreement(
    expected: float | Mapping[int, float], growth: float | None
) -> tuple[float, float]:
    """Return the disagreement that ten folds have, and the power of its growth."""
    if growth is not None and not (growth >= 0 and math.isfinite(growth)):
        raise ValueError(f"`disagreement_growth` must be >= 0, got {growth!r}.")
    rates = expected if isinstance(expected, Mapping) else {10: expected}
    for n_folds, rate in rates.items():
        check_integer(n_folds, "expected_disagreement", at_least=2)
        check_probability(rate, "expected_disagreement")
    if not rates:
        raise ValueError("`expected_disagreement` must hold a rate, got none.")
    return fitted_growth(rates, growth)


def _label_share(certificate: str, n_unlabeled: int) -> float:
    # The paper divides delta into halves, and `cv_bound` is the paper's bound.
    return 0.5 if certificate == "cv_bound" else recommended_label_share(n_unlabeled)


def _fold_terms(design: DesignAssumptions, certificate: str, n_folds: int) -> Terms:
    if n_folds > design.n_labeled or (certificate in NESTED and n_folds < 3):
        return math.nan, math.nan
    gamma = _label_share(certificate, design.n_unlabeled)
    formula = FOLD_CERTIFICATES[READ_AS.get(certificate, certificate)]
    return formula(design, n_folds, gamma)


def _held_out_terms(design: DesignAssumptions, certificate: str, share: float) -> Terms:
    gamma = _label_share(certificate, design.n_unlabeled)
    n_rows = round(design.n_labeled * share)
    return HOLD_OUT_CERTIFICATES[certificate](design, n_rows, gamma)


def terms_of(design: DesignAssumptions, certificate: str, n_folds: int) -> Terms:
    """Return the average terms of any certificate."""
    if certificate in FOLD_CERTIFICATES:
        return _fold_terms(design, certificate, n_folds)
    return _held_out_terms(design, certificate, CERTIFY_SHARE)


def _tabulate(design: DesignAssumptions, folds: list[int]) -> xr.Dataset:
    every = (*FOLD_CERTIFICATES, *HOLD_OUT_CERTIFICATES)
    certificates = [name for name in every if name not in READ_AS.values()]
    terms = np.array([[terms_of(design, c, k) for k in folds] for c in certificates])
    held_out = np.full((len(certificates), len(CERTIFY_SHARES)), np.nan)
    for number, certificate in enumerate(certificates):
        if certificate in HOLD_OUT_CERTIFICATES:
            held_out[number] = [
                sum(_held_out_terms(design, certificate, share))
                for share in CERTIFY_SHARES
            ]
    shares = [_label_share(each, design.n_unlabeled) for each in certificates]
    table = (names.CERTIFICATE, names.N_FOLDS)
    return xr.Dataset(
        {
            names.BOUND: (table, terms.sum(axis=2)),
            names.LABEL_TERM: (table, terms[..., 0]),
            names.DISAGREEMENT_TERM: (table, terms[..., 1]),
            names.CERTIFY_BOUND: ((names.CERTIFICATE, names.CERTIFY_SHARE), held_out),
            names.LABEL_SHARE: (names.CERTIFICATE, shares),
            names.N_LABELED: design.n_labeled,
            names.N_UNLABELED: design.n_unlabeled,
            names.N_CANDIDATES: design.n_candidates,
            names.DELTA: design.delta,
            "expected_error": design.expected_error,
            "expected_disagreement": design.expected_disagreement,
            "disagreement_growth": design.growth,
        },
        coords={
            names.CERTIFICATE: certificates,
            names.N_FOLDS: folds,
            names.CERTIFY_SHARE: list(CERTIFY_SHARES),
        },
    )


def _recommend(plan: xr.Dataset) -> xr.Dataset:
    eligible = ~plan[names.CERTIFICATE].isin(_OF_ANOTHER_ERROR)
    if plan[names.N_UNLABELED] == 0:
        eligible = plan[names.CERTIFICATE].isin(_WITHOUT_POOL)
    in_folds = plan[names.CERTIFICATE].isin(list(FOLD_CERTIFICATES))
    # What fewer rows choose is often worse, which no term here says.
    wide, short = plan[names.N_FOLDS] >= 3, plan[names.CERTIFY_SHARE] <= 1 / 3
    nested = plan[names.CERTIFICATE].isin(NESTED)
    costly = nested & (plan[names.N_FOLDS] > MOST_NESTED_FOLDS)
    fit = eligible & in_folds & wide & ~costly
    by_folds = plan[names.BOUND].where(fit).fillna(np.inf)
    by_share = plan[names.CERTIFY_BOUND].where(eligible & short).fillna(np.inf)
    best_fold, best_share = by_folds.min(), by_share.min()
    if best_share <= best_fold:
        at = by_share.argmin(dim=[names.CERTIFICATE, names.CERTIFY_SHARE])
        number, folds = int(at[names.CERTIFICATE]), 0
        share = CERTIFY_SHARES[int(at[names.CERTIFY_SHARE])]
    else:
        at = by_folds.argmin(dim=[names.CERTIFICATE, names.N_FOLDS])
        number, share = int(at[names.CERTIFICATE]), math.nan
        folds = int(plan[names.N_FOLDS][int(at[names.N_FOLDS])])
    return plan.assign(
        recommended=str(plan[names.CERTIFICATE].values[number]),
        recommended_n_folds=folds,
        recommended_certify_share=share,
        recommended_bound=float(min(best_fold, best_share)),
    )


def _add_needs(
    plan: xr.Dataset, design: DesignAssumptions, wanted: float
) -> xr.Dataset:
    """Add how many labeled rows, or pool rows, each certificate needs."""
    needs = np.full((2, *plan[names.BOUND].shape), -1, dtype=np.int64)
    for i, certificate in enumerate(plan[names.CERTIFICATE].values):
        for j, k in enumerate(plan[names.N_FOLDS].values):
            if certificate in HOLD_OUT_CERTIFICATES and j > 0:
                needs[:, i, j] = needs[:, i, 0]
                continue
            for axis, field in enumerate(("n_labeled", "n_unlabeled")):
                needs[axis, i, j] = _smallest_enough(
                    design, field, str(certificate), int(k), wanted
                )
    table = (names.CERTIFICATE, names.N_FOLDS)
    return plan.assign(
        wanted_bound=wanted,
        labels_needed=(table, needs[0]),
        pool_rows_needed=(table, needs[1]),
    )


def _smallest_enough(
    design: DesignAssumptions, field: str, certificate: str, n_folds: int, wanted: float
) -> int:
    """Return the smallest number of rows that gives the bound, to 1 %, or -1."""

    def is_enough(rows: int) -> bool:
        changed = replace(design, **{field: rows})
        return sum(terms_of(changed, certificate, n_folds)) <= wanted

    if field == "n_unlabeled" and is_enough(0):
        return 0
    low, high = 1, 2 * FEW_ROWS
    if _floor(design, field, certificate, n_folds) >= wanted:
        return -1
    while not is_enough(high):
        if high == MOST_ROWS:
            return -1
        low, high = high, min(MOST_ROWS, 4 * high)
    while high > low * 1.01 + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _floor(
    design: DesignAssumptions, field: str, certificate: str, n_folds: int
) -> float:
    """Return the limit of the bound as the rows of one kind grow."""
    label, disagreement = terms_of(design, certificate, n_folds)
    if field == "n_labeled":
        return design.expected_error + disagreement
    left_out = 1 / n_folds if certificate in FOLD_CERTIFICATES else CERTIFY_SHARE
    return label + (design.disagreement(left_out) if disagreement else 0.0)
