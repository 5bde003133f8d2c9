"""What Madani et al. (2004) say of their experiments, from ours."""

from typing import Any, Final

import numpy as np
import xarray as xr

from dsel.experiments.comparison import (
    Comparison,
    compare_number,
    compare_order,
    mean_of,
    share_of,
)
from dsel.experiments.madani2004.numbers import LABELS, PUBLISHED
from dsel.experiments.madani2004.sets import PROBLEMS
from dsel.experiments.pieces import REPETITION

CHOOSERS: Final = ("max_dt_e", "two_fold_cv", "loo_error", "max_cv_dt_e")
"""Criteria that choose the degree."""


def chosen_errors(results: xr.Dataset) -> xr.Dataset:
    """Return the true error at the degree that each criterion chooses.

    Parameters
    ----------
    results
        Of `dsel.experiments.madani2004.SELECTION`. Ties go to the smallest degree, for
        maxDtE to the lower training error first.

    Returns
    -------
    xarray.Dataset
        One variable a criterion over data_set, n_labeled and repetition, and ``best``,
        the smallest true error of any degree.
    """
    truth = results.true_error
    found: dict[str, Any] = {"best": truth.min("degree")}
    for name in CHOOSERS:
        values = results[name]
        tied = values == values.min("degree")
        second = results.train_error if name == "max_dt_e" else xr.zeros_like(values)
        place = second.where(tied, np.inf).argmin("degree")
        chosen = truth.broadcast_like(results.max_dt_e).isel(degree=place)
        found[name] = chosen.drop_vars("degree")
    return xr.Dataset(found)


def win_loss_tie(
    errors: xr.Dataset, first: str, second: str, *, standard_errors: float = 0.0
) -> tuple[int, int, int]:
    """Count sets and sizes at which the first criterion has the lower mean error.

    Parameters
    ----------
    errors
        From `chosen_errors`.
    first, second
        Names of criteria.
    standard_errors
        Mean differences within so many of their standard errors are ties; 0 counts
        exact ties only.

    Returns
    -------
    wins, losses, ties
        Of the first criterion.
    """
    difference = errors[first] - errors[second]
    mean = difference.mean(REPETITION)
    spread = difference.std(REPETITION, ddof=1) / np.sqrt(difference.sizes[REPETITION])
    # Means of equal errors differ by rounding only.
    tie = np.abs(mean) <= np.maximum(standard_errors * spread, 1e-12)
    wins, losses = int((~tie & (mean < 0)).sum()), int((~tie & (mean > 0)).sum())
    return wins, losses, int(tie.sum())


def findings(estimation: xr.Dataset) -> xr.Dataset:
    """Return what the paper says of its estimates, measured.

    Parameters
    ----------
    estimation
        Of `dsel.experiments.madani2004.ESTIMATION`.

    Returns
    -------
    xarray.Dataset
        Means over trials and the ratios of Figure 2, and two claims as truth values:
        with random rows ``is_below_half_error`` (maxDtE below the error of half
        models), with picked ones ``is_nearer`` (disE nearer to the true error than
        2cvE).
    """
    mean = estimation.mean(REPETITION)
    far_cv = mean.two_fold_cv - mean.true_error
    far_dis = mean.dis_error - mean.true_error
    return mean.assign(
        is_below_half_error=mean.max_dt_e <= mean.half_true_error,
        is_nearer=np.abs(far_dis) < np.abs(far_cv),
        figure_2a=far_cv / far_dis,
        figure_2b=mean.dis_error / mean.true_error,
        figure_2c=mean.dis_error / mean.half_true_error,
    )


def compare_estimates(results: xr.Dataset) -> list[Comparison]:
    """Hold the estimates to what section 3.1 says of them.

    Parameters
    ----------
    results
        Of `dsel.experiments.madani2004.ESTIMATION`.
    """
    cells = results.stack(cell=("data_set", "n_labeled"))
    picked, drawn = (cells.sel(sampling=each) for each in ("active", "random"))
    claims = {
        ("Figure 1(a)", "1/2trueE - maxDtE, random rows"): (
            drawn.half_true_error - drawn.max_dt_e
        ),
        ("Figure 1(b)", "disE - trueE, picked rows"): (
            picked.dis_error - picked.true_error
        ),
        ("Figure 2(a)", "|2cvE - trueE| - |disE - trueE|, picked rows"): (
            _miss(picked, "two_fold_cv") - _miss(picked, "dis_error")
        ),
    }
    return [
        compare_order(
            source, f"{name}, {n} rows", what, ours=mean_of(gap.sel(cell=(name, n)))
        )
        for (source, what), gap in claims.items()
        for name, n in gap.cell.values
    ]


def _miss(estimates: xr.Dataset, name: str) -> xr.DataArray:
    """Return how far trials lie from the truth on the side on which their mean lies."""
    distance = estimates[name] - estimates.true_error
    signed: xr.DataArray = distance * np.sign(distance.mean(REPETITION))
    return signed


def compare_choices(results: xr.Dataset) -> list[Comparison]:
    """Put the record of the criteria beside that of section 3.2.

    Parameters
    ----------
    results
        Of `dsel.experiments.madani2004.SELECTION`.
    """
    errors = chosen_errors(results)
    partly = results.sizes["data_set"] < len(PROBLEMS)
    why_open = "the paper's is of all eight sets" if partly else ""
    lines = []
    for (first, second), record in PUBLISHED.items():
        pair = f"{LABELS[first]} v {LABELS[second]}"
        ours = win_loss_tie(errors, first, second)
        for what, printed, count in zip(
            ("wins", "losses", "ties"), record, ours, strict=True
        ):
            share = share_of(count, sum(ours))
            lines.append(
                compare_number(
                    "section 3.2",
                    pair,
                    f"share of {what}",
                    printed=printed / sum(record),
                    ours=share,
                    spread=share[1] * np.sqrt(1 + sum(ours) / sum(record)),
                    why_open=why_open,
                )
            )
        lines.append(_compare_lead(pair, ours))
    return lines


def _compare_lead(pair: str, record: tuple[int, int, int]) -> Comparison:
    """Hold the record to the order that the paper finds: more wins than losses."""
    wins, losses, _ = record
    n = sum(record)
    lead = (wins - losses) / n
    error = np.sqrt(max((wins + losses) / n - lead**2, 1 / n) / n)
    what = "share of wins - share of losses"
    return compare_order("section 3.2", pair, what, ours=(lead, error))
