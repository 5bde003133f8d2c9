"""What section 4 of Kääriäinen (2005) says, and the same from our divisions."""

import math
from collections.abc import Mapping
from typing import Final

import xarray as xr
from scipy.stats import spearmanr

from dsel import names
from dsel.experiments.comparison import (
    Comparison,
    compare_number,
    compare_order,
    mean_of,
    share_of,
)
from dsel.experiments.pieces import REPETITION

SETS: Final = ("dna", "letter", "satimage", "segment", "shuttle", "usps")
CRITERIA: Final = ("cv_error", "cv_bound")
"""What chooses."""
SURFACES: Final = {
    "observed_error": "true_error",
    "cv_error": "cv_error",
    "cv_bound": "cv_bound",
}
"""What is kept of every candidate, by the criterion that gives it."""

CLOSE: Final = 0.01
"""How far from the smallest observed error a choice is called close to optimal."""

PUBLISHED: Final[Mapping[str, int]] = {"same": 3, "better": 1, "worse": 1, "equal": 1}
"""Section 4. Of six sets: on how many both choose the same model; on how many others
the bound's choice makes fewer, more, or as many errors on the pool."""

LABELS: Final[Mapping[str, str]] = {
    "same": "both choose the same model",
    "better": "the bound's choice is another, and better",
    "worse": "the bound's choice is another, and worse",
    "equal": "the bound's choice is another, as good",
}

ERRORS: Final = (
    "The grids of C and gamma are exchanged against their source, Hsu and Lin (2002); "
    "as printed they give absurd models (error .36 instead of .04 on dna).",
    "Both figures of the experiments are called Figure 4 in the text.",
    "usps is not among the sets of Hsu and Lin, from whom the problem is borrowed.",
)

DEPARTURES: Final = (
    "The grid is that of Hsu and Lin.",
    "The number of folds is not given; here 10.",
    "The scaling is not given; here to [-1, 1], the pool's rows included.",
    "Whether test parts of the sets were used is not given; here they are.",
    "The division is not known: it is repeated, and what is compared is how often.",
    "The rule for ties is not given; here the smallest C, then the smallest gamma.",
    "What close to optimal is, is not said; here within one percentage point of the "
    "smallest observed error of the 225 models.",
)


def pattern(results: xr.Dataset) -> xr.Dataset:
    """Return the paper's findings, as shares of the divisions of each set.

    Over data_set: ``same`` (both choose one model), and of all divisions those on which
    the bound's choice, another one, is ``better``, ``worse`` or ``equal`` on the pool;
    ``tied`` (another one, which both criteria like as well); ``below_one`` and
    ``holds``, of the bounds of the models chosen; the mean ``bound`` and
    ``observed_error`` of the bound's choice.
    """
    return _findings(results).mean(REPETITION)


def _findings(results: xr.Dataset) -> xr.Dataset:
    """Return what `pattern` averages, over data_set and repetition."""
    by_cv, by_bound = (results.sel(criterion=name) for name in CRITERIA)
    same = by_cv.candidate == by_bound.candidate
    difference = by_bound.observed_error - by_cv.observed_error
    found = {
        "same": same,
        "tied": ~same & results.tied.all(names.CRITERION),
        "better": ~same & (difference < 0),
        "worse": ~same & (difference > 0),
        "equal": ~same & (difference == 0),
        "below_one": by_bound.estimate < 1,
        "holds": by_bound.observed_error <= by_bound.estimate,
        "bound": by_bound.estimate,
        "observed_error": by_bound.observed_error,
    }
    return xr.Dataset(
        {
            name: each.drop_vars(names.CRITERION, errors="ignore")
            for name, each in found.items()
        }
    )


def compare(results: xr.Dataset) -> list[Comparison]:
    """Put the findings beside those of section 4."""
    found = _findings(results)
    by_cv = results.sel(criterion=CRITERIA[0])
    n = results.sizes[REPETITION]
    lines = []
    for name in found.data_set.values:
        each = found.sel(data_set=name)
        gaps = {
            "smallest 1 - bound": 1.0 - each.bound,
            "smallest bound - observed error": each.bound - each.observed_error,
        }
        for what, gap in gaps.items():
            ours = float(gap.min()), math.nan
            lines.append(compare_order("section 4", str(name), what, ours=ours, n=n))
    above = (by_cv.estimate > by_cv.observed_error).values
    for what, side in (("above", above), ("below", ~above)):
        ours = share_of(int(side.sum()), side.size)
        what = f"share of divisions: CV estimate {what} observed error"
        lines.append(compare_order("section 4", "all sets", what, ours=ours, n=n))
    lines += [_compare_share(found, name) for name in PUBLISHED]
    lines += _compare_regret(results)
    return lines + _compare_surfaces(results.surface)


def agreement(surface: xr.DataArray) -> xr.Dataset:
    """Return how bound and observed error go together, over the candidates.

    ``smallest_gap`` and ``median_gap`` between bound and observed error; ``bound_rank``
    and ``cv_rank``, the rank correlations of bound and of CV estimate with the observed
    error, ``gap_rank`` that of the gap; ``nearer``, by how much the CV estimate is
    nearer to the observed error, on average.
    """
    flat = surface.stack(candidate=("C", "gamma"))
    observed, cv, bound = (flat.sel(number=name, drop=True) for name in SURFACES)
    gap = bound - observed

    def rank_correlation(values: xr.DataArray) -> xr.DataArray:
        found: xr.DataArray = xr.apply_ufunc(
            lambda one, other: spearmanr(one, other).statistic,
            values,
            observed,
            input_core_dims=[["candidate"], ["candidate"]],
            vectorize=True,
        )
        return found

    return xr.Dataset(
        {
            "smallest_gap": gap.min("candidate"),
            "median_gap": gap.median("candidate"),
            "bound_rank": rank_correlation(bound),
            "cv_rank": rank_correlation(cv),
            "gap_rank": rank_correlation(gap),
            "nearer": (abs(gap) - abs(cv - observed)).mean("candidate"),
        }
    )


def _compare_surfaces(surface: xr.DataArray) -> list[Comparison]:
    """Hold all candidates to what section 4 says of Figure 1."""
    found, n = agreement(surface), surface.sizes[REPETITION]
    means = {
        "rank correlation of bound and observed error": "bound_rank",
        "rank correlation of bound - observed error and observed error": "gap_rank",
        "|bound - observed error| - |CV estimate - observed error|": "nearer",
        "median of bound - observed error": "median_gap",
    }
    lines = []
    for name in map(str, found.data_set.values):
        each = found.sel(data_set=name)
        least = float(each.smallest_gap.min()), math.nan
        what = "smallest bound - observed error of any candidate"
        lines.append(compare_order("Figure 1", name, what, ours=least, n=n))
        lines += [
            compare_order("Figure 1", name, what, ours=mean_of(each[key]), n=n)
            for what, key in means.items()
        ]
    return lines


def _compare_regret(results: xr.Dataset) -> list[Comparison]:
    """Hold both choices to what section 4 says: they are close to the best model."""
    best = results.surface.sel(number="observed_error").min(("C", "gamma"))
    lines, n = [], results.sizes[REPETITION]
    for name in map(str, results.data_set.values):
        for criterion, chosen in zip(CRITERIA, ("CV", "the bound"), strict=True):
            error = results.observed_error.sel(data_set=name, criterion=criterion)
            room = CLOSE - (error - best.sel(data_set=name))
            what = f"{CLOSE} - (observed error of {chosen}'s choice - smallest one)"
            lines.append(
                compare_order("section 4", name, what, ours=mean_of(room), n=n)
            )
    return lines


def _compare_share(findings: xr.Dataset, name: str) -> Comparison:
    """Compare a share of divisions, averaged over sets, with a count of six."""
    found = findings[name].values
    n_sets, n = found.shape
    shares = [share_of(int(row.sum()), n) for row in found]
    ours = mean_of([share for share, _ in shares])[0]
    variance = sum(error**2 for _, error in shares)
    # The paper has one division of each set: its count varies like ours, n times more.
    return compare_number(
        "section 4",
        "all sets",
        f"share of divisions: {LABELS[name]}",
        printed=PUBLISHED[name] / len(SETS),
        ours=(ours, math.sqrt(variance) / n_sets),
        spread=math.sqrt(variance * (1 + n)) / n_sets,
        n=n,
        why_open="" if n_sets == len(SETS) else "the paper's is of all six sets",
    )
