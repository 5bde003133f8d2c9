"""Tables 3 to 5 of Loog (2015) from repetitions, beside the printed numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel.data.row_random import hashed_seed
from dsel.experiments.comparison import (
    AGREES,
    DIFFERS,
    OPEN,
    Comparison,
    compare_number,
    mean_of,
    share_of,
    too_few,
)
from dsel.experiments.loog2015.claims import compare_text
from dsel.experiments.loog2015.numbers import (
    COMPARISON_COLUMNS,
    CONSTRAINED,
    CONSTRAINED_COLUMNS,
    DIFFERENT,
    LARGEST_LIKELIHOOD,
    LOG_LIKELIHOODS,
    MISCLASSIFIED,
    N_REPEATS,
    ROUNDED,
    SINGULAR,
)
from dsel.experiments.loog2015.protocol import METHODS, PARTS
from dsel.experiments.pieces import REPETITION

_SUPERVISED, _SEMI, _ORACLE, _CONSTRAINED = range(4)
"""Places in `METHODS`."""
_FLIPS_AT_ONCE = 1000

PAIRS: Final = (
    ("supervised", "semi"),
    ("semi", "oracle"),
    ("supervised", "oracle"),
    ("supervised", "constrained"),
    ("semi", "constrained"),
)
"""Methods whose means are compared by permutation."""

BESIDE: Final[Mapping[str, tuple[str, str]]] = {
    f"{method}_{part}": (pair, part)
    for method, pair in (("semi", "supervised-semi"), ("oracle", "semi-oracle"))
    for part in PARTS
}
"""Pair and part of the permutation test that is told beside a mean of Tables 3, 4."""
NO_DIFFERENCE: Final = (
    ("spectf", "error", "test", "supervised-semi"),
    ("optical", "log_likelihood", "test", "semi-oracle"),
    ("qsar", "log_likelihood", "test", "semi-oracle"),
)
"""Pairs that the paper finds equal, as far as its text was not lost: on shuttle,
spambase and skin the symbols of the pairs are gone."""
NOT_RUN: Final = "the paper does not run it"
LEVEL: Final = 0.05
"""Of the tests; the paper's is lost."""

Estimate = tuple[float, float]
"""A number and its Monte Carlo standard error."""


def comparison_table(results: xr.Dataset, measure: str) -> xr.Dataset:
    """Return Table 3 (``"log_likelihood"``) or 4 (``"error"``) beside the printed one.

    Over data_set and column: ``value``, its Monte Carlo ``standard_error``,
    ``published``, and ``spread``, the standard error of the difference (ours, the
    paper's by the same spread, and the rounding of the printed number). For the means
    there is also ``median``.
    """
    printed = LOG_LIKELIHOODS if measure == "log_likelihood" else MISCLASSIFIED
    higher = measure == "log_likelihood"
    found = [
        _comparisons(results[measure].sel(data_set=name).values, higher=higher)
        for name in results.data_set.values
    ]
    table = _beside(results, found, COMPARISON_COLUMNS, printed)
    medians = results[measure].median(REPETITION).isel(classifier=slice(0, 3))
    return table.assign(median=medians)


def constrained_table(results: xr.Dataset) -> xr.Dataset:
    """Return Table 5 beside the printed one, as `comparison_table` does."""
    found = []
    for name in results.data_set.values:
        here = results.sel(data_set=name)
        likelihoods, errors = here.log_likelihood.values, here.error.values
        means = [
            _mean(values[:, _CONSTRAINED, part])
            for values in (likelihoods, errors)
            for part in range(len(PARTS))
        ]
        pairs = (_CONSTRAINED, _SUPERVISED), (_SEMI, _CONSTRAINED)
        found.append(means + _wins(likelihoods, pairs) + _wins(-errors, pairs))
    return _beside(results, found, CONSTRAINED_COLUMNS, CONSTRAINED)


def compare(results: xr.Dataset) -> list[Comparison]:
    """Put Tables 3 to 5, and what the text says of them, beside the printed ones."""
    tables = {
        "Table 3": comparison_table(results, "log_likelihood"),
        "Table 4": comparison_table(results, "error"),
        "Table 5": constrained_table(results),
    }
    tests = permutation_tests(results)
    of_table = {"Table 3": tests.log_likelihood, "Table 4": tests.error}
    lines = []
    for source, table in tables.items():
        for name in table.data_set.values:
            for column in map(str, table.column.values):
                cell = table.sel(data_set=name, column=column)
                printed = float(cell.published)
                line = compare_number(
                    source,
                    str(name),
                    column.replace("_", " "),
                    printed=printed,
                    ours=(float(cell.value), float(cell.standard_error)),
                    spread=float(cell.spread),
                    n=results.sizes[REPETITION],
                    why_open=_why_open(source, str(name), printed),
                )
                if source in of_table and column in BESIDE:
                    pair, part = BESIDE[column]
                    where = {"data_set": name, "pair": pair, "part": part}
                    line = _marked(line, float(of_table[source].sel(where)), pair)
                lines.append(line)
        lines.append(_not_available(source, table.sizes["column"]))
    lines += _exceptions(tests, n=results.sizes[REPETITION])
    return lines + compare_text(results, tables) + _rivals(results)


def _rivals(results: xr.Dataset) -> list[Comparison]:
    """Return test errors and likelihoods of the methods that the paper does not run."""
    lines = []
    for name in map(str, results.data_set.values):
        for method in METHODS[_CONSTRAINED + 1 :]:
            cell = results.sel(data_set=name, classifier=method, part="test")
            for measure in ("error", "log_likelihood"):
                value, error = map(float, mean_of(cell[measure].values))
                what = f"test {measure}, {method}".replace("_", " ")
                numbers = (math.nan, value, error)
                lines.append(Comparison("rivals", name, what, *numbers, OPEN, NOT_RUN))
    return lines


def _marked(line: Comparison, p_value: float, pair: str) -> Comparison:
    """Return the line, marked where the two means are not told apart."""
    if p_value <= LEVEL:
        return line
    why = f"{pair.replace('-', ' and ')} do not differ, p = {p_value:.2g}"
    return replace(line, why="; ".join(filter(None, (line.why, why))))


def _not_available(source: str, n_columns: int) -> Comparison:
    """Return that a set of the paper has no numbers here."""
    what, why = "numbers that are compared", f"other data: {DIFFERENT['miniboone']}"
    numbers = (float(n_columns), 0.0, math.nan)
    return Comparison(source, "miniboone", what, *numbers, OPEN, why)


def _exceptions(tests: xr.Dataset, *, n: int) -> list[Comparison]:
    """Compare the pairs that the paper finds equal with the tests."""
    lines = []
    for name, measure, part, pair in NO_DIFFERENCE:
        if name not in tests.data_set.values:
            continue
        p_value = float(tests[measure].sel(data_set=name, part=part, pair=pair))
        what = f"p-value - {LEVEL:g}: {measure.replace('_', ' ')}, {part}, {pair}"
        is_equal = p_value > LEVEL
        few = too_few(n)
        if is_equal and n < N_REPEATS:  # few repetitions tell nothing apart
            few = f"too few to say: {n} of the paper's {N_REPEATS}"
        verdict = OPEN if few else AGREES if is_equal else DIFFERS
        numbers = (None, p_value - LEVEL, math.nan)
        why = few or "the paper finds no difference; its level is lost"
        lines.append(
            Comparison("permutation tests", name, what, *numbers, verdict, why)
        )
    return lines


def _why_open(source: str, name: str, printed: float) -> str:
    """Return why a printed number cannot be compared; empty where it can."""
    if name in DIFFERENT:
        return f"other data: {DIFFERENT[name]}"
    if name in SINGULAR and printed < -LARGEST_LIKELIHOOD:
        return "set by rounding: singular covariances"
    if source == "Table 5" and name in ROUNDED:
        return "set by rounding: the root of singular covariances"
    return ""


def _wins(
    better: NDArray[np.float64], pairs: Sequence[tuple[int, int]]
) -> list[Estimate]:
    """Return in how many repetitions the first method of each pair is the better."""
    return [
        _per_cent(better[:, first, part] > better[:, second, part])
        for part in range(len(PARTS))
        for first, second in pairs
    ]


def _comparisons(values: NDArray[np.float64], *, higher: bool) -> list[Estimate]:
    """Return the twelve numbers of a row, from repeats x methods x parts."""
    sign = 1.0 if higher else -1.0
    better = sign * values
    parts = range(len(PARTS))
    means = [
        _mean(values[:, method, part])
        for part in parts
        for method in (_SUPERVISED, _SEMI, _ORACLE)
    ]
    wins = _wins(better, ((_SEMI, _SUPERVISED), (_ORACLE, _SEMI)))
    gains = [
        _ratio(
            better[:, _SEMI, part] - better[:, _SUPERVISED, part],
            better[:, _ORACLE, part] - better[:, _SUPERVISED, part],
        )
        for part in parts
    ]
    return means + wins + gains


def _mean(values: NDArray[np.float64]) -> Estimate:
    # Log-likelihoods may reach -1e15: fsum keeps the small ones.
    mean = math.fsum(values) / len(values)
    return mean, float(values.std(ddof=1) / np.sqrt(len(values)))


def _per_cent(wins: NDArray[np.bool_]) -> Estimate:
    share, error = share_of(int(wins.sum()), len(wins))
    return 100.0 * share, 100.0 * error


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> Estimate:
    """Return the ratio of the averages; NaN where the lower one is 0."""
    mean_above, mean_below = math.fsum(above), math.fsum(below)
    if mean_below == 0.0:
        return np.nan, np.nan
    ratio = mean_above / mean_below
    rest = above - ratio * below
    error = rest.std(ddof=1) * np.sqrt(len(rest)) / abs(mean_below)
    return ratio, float(error)


def _beside(
    results: xr.Dataset,
    found: list[list[Estimate]],
    columns: tuple[str, ...],
    printed: Mapping[str, tuple[float, ...]],
) -> xr.Dataset:
    estimates = np.array(found)
    names = [str(name) for name in results.data_set.values]
    published = np.array([printed[name] for name in names])
    ours = estimates[..., 1]
    theirs = ours * np.sqrt(results.sizes[REPETITION] / N_REPEATS)
    rounding = np.vectorize(_last_digit)(published) / np.sqrt(12.0)
    spread = np.sqrt(ours**2 + theirs**2 + rounding**2)
    dims = ("data_set", "column")
    return xr.Dataset(
        {
            "value": (dims, estimates[..., 0]),
            "standard_error": (dims, ours),
            "published": (dims, published),
            "spread": (dims, spread),
        },
        coords={"data_set": names, "column": list(columns)},
    )


def _last_digit(value: float) -> float:
    """Return the unit of the last of three printed digits, .001 for small numbers."""
    if abs(value) < 1.0:
        return 1e-3
    return 10.0 ** (math.floor(math.log10(abs(value))) - 2)


def permutation_tests(
    results: xr.Dataset, *, n_flips: int = 10_000, seed: int = 0
) -> xr.Dataset:
    """Return p-values of equal means, by flipping signs of paired differences.

    Those of ``log_likelihood`` and ``error`` are over data_set, pair and part, and at
    least ``1 / (n_flips + 1)``.
    """
    names = [f"{first}-{second}" for first, second in PAIRS]
    tests = {}
    for measure in ("log_likelihood", "error"):
        values = np.stack(
            [
                (
                    results[measure].sel(classifier=first)
                    - results[measure].sel(classifier=second)
                ).values
                for first, second in PAIRS
            ],
            axis=-1,
        )
        # data_set, repeat, part, pair -> p-values over data_set, part, pair
        found = [
            _sign_flip_p_values(differences, n_flips, hashed_seed(seed, measure, place))
            for place, differences in enumerate(values)
        ]
        tests[measure] = (("data_set", "part", "pair"), np.array(found))
    coords = {
        "data_set": results.data_set.values,
        "part": list(PARTS),
        "pair": names,
    }
    return xr.Dataset(tests, coords=coords, attrs={"n_flips": n_flips, "seed": seed})


def _sign_flip_p_values(
    differences: NDArray[np.float64], n_flips: int, seed: int
) -> NDArray[np.float64]:
    """Return two-sided p-values of each column of repeats x columns."""
    shape = differences.shape[1:]
    columns = differences.reshape(len(differences), -1)
    observed = np.abs(columns.sum(axis=0)) * (1.0 - 1e-12)
    rng = np.random.default_rng(seed)
    n_larger = np.zeros(columns.shape[1], dtype=np.int64)
    for start in range(0, n_flips, _FLIPS_AT_ONCE):
        size = (min(_FLIPS_AT_ONCE, n_flips - start), len(columns))
        signs = 2.0 * rng.integers(0, 2, size=size) - 1.0
        n_larger += (np.abs(signs @ columns) >= observed).sum(axis=0)
    return ((n_larger + 1) / (n_flips + 1)).reshape(shape)
