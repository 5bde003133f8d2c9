"""Hardoon, Hussain and Shawe-Taylor (2009): nonconformity against cross-validation.

Tables 1 to 3 and Figure 2: ten outer folds; of the other nine min(l / 5, 50) rows are
held out, on the rest 110 RBF machines are trained. Cross-validation and the largest
margin use the same training rows, and all three methods the same test rows.

`docs/project/papers.md` says what was found: the paper did not scale its features.
`reference/hardoon2009.json` has every number. `hardoon2009_numbers.py` has what is
printed.
"""

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr
from common import (
    FOLD_STREAM,
    HOLDOUT_STREAM,
    REPETITION,
    Experiment,
    Figure,
    counts_of,
    fold_errors,
    labeled_set,
    main,
    params_at,
    ranks,
)
from comparison import (
    OPEN,
    Comparison,
    compare_exact,
    compare_number,
    compare_order,
    mean_of,
)
from drawing import Lines, draw_lines
from hardoon2009_numbers import (
    DEPARTURES,
    ERRORS,
    METHODS,
    NORMS,
    OTHER_ROWS,
    PUBLISHED,
    PUBLISHED_GAPS,
    PUBLISHED_GRID,
    PUBLISHED_OVERALL,
    PUBLISHED_SECONDS_SAVED,
    PUBLISHED_SPEED_UP,
    SIZES,
    STEADIER,
)
from scipy.stats import spearmanr
from sklearn.svm import SVC

from dsel.bounds import threshold_bound
from dsel.errors import GuaranteeWarning
from dsel.nonconformity import NonconformityClassifier

N_FOLDS = 10
ALL_METHODS = (*METHODS, *NORMS)
"""What is run: the paper's, and two more norms of margins."""
MOST_COUNT = 51
"""Critical counts: 0 to the 50 rows that are held out at most."""
DELTA = 0.05
"""Of the bounds in Figure 2, which the paper does not name."""
CLOCK = "another machine and solver"
FEATURES = {"range": "features scaled to [-1, 1]", "raw": "raw features"}
"""The paper does not say which of both it has."""


@dataclass(frozen=True)
class Settings:
    """What pieces depend on besides set and outer fold."""

    seed: int = 0
    """Of outer folds, split and ties."""
    scalings: tuple[str, ...] = tuple(FEATURES)
    C: tuple[float, ...] = tuple(2.0**power for power in range(-5, 16, 2))
    """Table 2."""
    gamma: tuple[float, ...] = tuple(2.0**power for power in range(-15, 4, 2))
    """Table 2; libsvm's default grid, its signs are lost in our text of the paper."""


# The eight sets, cleaned as Table 1 says.

RECIPES = {
    "votes": ("votes", "republican"),
    "glass": ("glass", ""),
    "haberman": ("haberman", "1"),
    "bupa": ("bupa", "1"),
    "credit": ("crx", "+"),
    "pima": ("pima", "1"),
    "breast": ("breast_cancer_wisconsin", "malignant"),
    "ionosphere": ("ionosphere", "g"),
}
"""File of each set, and the label of its positive class."""


def load_table(name: str, folder: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Load a set: features of its complete rows, and labels +1, -1."""
    file, positive = RECIPES[name]
    table = labeled_set(file, folder)
    labels = table.classes[table.y]
    if name == "glass":  # float (classes 1 and 3) against non-float windows (2)
        rows = np.isin(labels, ["1", "2", "3"])
        return table.X[rows].astype(float), np.where(labels[rows] == "2", -1, 1)
    rows = ~np.isnan(table.X).any(axis=1)
    X, y = table.X[rows].astype(float), np.where(labels[rows] == positive, 1, -1)
    if name == "haberman":  # no feature vector that occurs with both labels
        groups = np.ravel(np.unique(X, axis=0, return_inverse=True)[1])
        n_positive = np.bincount(groups, weights=y > 0)
        pure = (n_positive == 0) | (n_positive == np.bincount(groups))
        X, y = X[pure[groups]], y[pure[groups]]
    return X, y


def size_of(table: tuple[np.ndarray, np.ndarray]) -> tuple[int, ...]:
    """Return rows, columns, positive and negative rows of a set, as Table 1 does."""
    X, y = table
    return (*X.shape, int((y > 0).sum()), int((y < 0).sum()))


def scale_to_range(X: np.ndarray) -> np.ndarray:
    """Scale every column to [-1, 1]; constant ones become -1."""
    low, high = X.min(axis=0), X.max(axis=0)
    return 2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0


# One piece: all methods on one outer fold.


def measure(table: Any, fold: int, settings: Settings, place: Any) -> dict[str, Any]:
    """Return what all methods do on one outer fold, over scalings."""
    del place
    _warm_up()
    X, y = table
    scaled = {"range": scale_to_range(X), "raw": X}
    found = [run_fold((scaled[each], y), fold, settings) for each in settings.scalings]
    piece = {name: np.array([each[name] for each in found]) for name in found[0]}
    return piece | {"size": np.array(size_of(table), dtype=float)}


@cache
def _warm_up() -> None:
    """Compile what is compiled on first use, so that no fold's seconds include it."""
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.tile([-1, 1], 30)
    by_cross_validation(X, y, Settings(C=(1.0,), gamma=(1.0,)))


def run_fold(table: Any, fold: int, settings: Settings) -> dict[str, Any]:
    """Return error and seconds of each method on one outer fold.

    Also, of the nonconformity choice, the test rows at every critical count, ``kept``
    and ``wrong``, and ``n_held``.
    """
    X, y = table
    outer = ranks(len(y), FOLD_STREAM, settings.seed) % N_FOLDS
    inside, outside = np.flatnonzero(outer != fold), np.flatnonzero(outer == fold)
    n_held = min(len(inside) // 5, 50)
    # The classifier makes this same split; the other methods train on its first part.
    held = ranks(len(inside), HOLDOUT_STREAM, settings.seed) < n_held
    train = inside[~held]
    grid = {"C": list(settings.C), "gamma": list(settings.gamma)}
    answers, seconds = [], []
    clock = time.perf_counter

    start = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # no model errs: ties decide
        chooser = NonconformityClassifier(
            SVC(), grid, validation_size=n_held, random_state=settings.seed
        ).fit(X[inside], y[inside])
    fitted = clock() - start
    answers.append(chooser.predict(X[outside]))
    seconds.append(clock() - start)
    start = clock()
    model = by_cross_validation(X[train], y[train], settings)
    answers.append(model.predict(X[outside]))
    seconds.append(clock() - start)
    for norm in (np.inf, *NORMS.values()):  # of the models that are trained already
        start = clock()
        scores = chooser.models_.scores(X[outside])
        answers.append(by_margins(scores[..., 1] - scores[..., 0], norm))
        seconds.append(fitted + clock() - start)
    wrong = [each != y[outside] for each in answers]
    counts = np.rint(chooser.critical_epsilon(X[outside]) * n_held).astype(int)
    return {
        "error": [float(each.mean()) for each in wrong],
        "seconds": seconds,
        "kept": np.bincount(counts, minlength=MOST_COUNT),
        "wrong": np.bincount(counts, wrong[0], minlength=MOST_COUNT),
        "n_held": float(n_held),
    }


def by_cross_validation(X: np.ndarray, y: np.ndarray, settings: Settings) -> SVC:
    """Choose by ten-fold cross-validation, exhaustively, and train on all rows."""
    grid = {"C": list(settings.C), "gamma": list(settings.gamma)}
    results = counts_of(SVC(), grid, X, y, cv=10, seed=settings.seed)
    best = int(np.argmin(fold_errors(results)))
    return SVC(**params_at(results, best)).fit(X, y)


def by_margins(scores: np.ndarray, norm: float) -> np.ndarray:
    """Return the labels +1, -1 of largest weight, from scores models x rows.

    A label's weight is the norm of the margins of the models that predict it; infinity
    takes the largest margin alone (SVM-L-infinity). Equal weights go to that one.
    """
    first = scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])]
    weights = [
        np.linalg.norm(np.where(side, np.abs(scores), 0.0), norm, axis=0)
        for side in (scores <= 0, scores > 0)
    ]
    tied = weights[0] == weights[1]
    return np.where(np.where(tied, first > 0, weights[1] > weights[0]), 1, -1)


# Bounds: the paper's, which is none, and one that holds.


def threshold_bound_vc(
    counts: Any, n_validation: int, *, n_models: int, delta: float
) -> np.ndarray:
    r"""Return Theorem 4.1 as printed, delta divided by the models, not clipped.

    It is :math:`c/n + 5.66 \sqrt{(\ln(en) + \ln(8K/\delta)) / n}`, a bound on the rate
    of errors with a large margin: 3.07 and more for n = 50 and 110 models.
    """
    complexity = 1.0 + math.log(n_validation) + math.log(8.0 * n_models / delta)
    return np.asarray(counts) / n_validation + 5.66 * math.sqrt(
        complexity / n_validation
    )


def printed_error_bound(counts: Any, n_validation: int, **options: Any) -> np.ndarray:
    """Return the number that Proposition 4.2 calls a bound on the error; it is none.

    The proof bounds the joint probability of an error and a margin; but the model and
    the margin are chosen at the test row. On labels that are noise (error .50) with
    110 models and 10,000 validation rows it reports .26.
    """
    return threshold_bound_vc(counts, n_validation, **options)


def error_by_bound(runs: xr.Dataset, *, bound: Any) -> tuple[Any, Any]:
    """Return the distinct values of a bound, and the error among rows of at most each.

    `runs` are some outer folds of one set and scaling.
    """
    n_held = int(runs.n_held.values.flat[0])
    counts = np.arange(n_held + 1)
    kept, wrong = (
        each.sum(REPETITION).values[: n_held + 1] for each in (runs.kept, runs.wrong)
    )
    there = kept > 0
    n_models = runs.sizes["C"] * runs.sizes["gamma"]
    values = bound(counts[there], n_held, n_models=n_models, delta=DELTA)
    return values, np.cumsum(wrong)[there] / np.cumsum(kept)[there]


def summary(results: xr.Dataset) -> xr.Dataset:
    """Return what Table 3 prints, and whether it differs from ours.

    Means and standard deviations over outer folds, and seconds; ``published``, the
    printed error, ``standard_error`` of our mean, and ``spread``, the standard error of
    the difference between the two; ``published_std``, ``std_error`` and ``std_spread``
    the same of the standard deviations.
    """
    results = results.sel({"method": list(METHODS)})
    n = results.sizes[REPETITION]
    std = results.error.std(REPETITION, ddof=1)
    printed = np.array([PUBLISHED[str(name)] for name in results.data_set.values])
    error = std / np.sqrt(n)
    dims = ("data_set", "method")
    printed_std = xr.DataArray(printed[..., 1], dims=dims)
    # Of ten normal numbers the standard deviation has this relative error.
    relative = 1.0 / np.sqrt(2.0 * (max(n, 2) - 1))
    printed_error = printed_std / np.sqrt(2.0 * (10 - 1))
    return xr.Dataset(
        {
            "error": results.error.mean(REPETITION),
            "std": std,
            "seconds": results.seconds.mean(REPETITION),
            "published": (dims, printed[..., 0]),
            "published_std": printed_std,
            "published_seconds": (dims, printed[..., 2]),
            "standard_error": error,
            "spread": np.sqrt(error**2 + printed_std**2 / 10),
            "std_error": relative * std,
            "std_spread": np.sqrt((relative * std) ** 2 + printed_error**2),
        }
    )


def compare(results: xr.Dataset) -> list[Comparison]:
    """Put Tables 1 to 3 and what the text says of them beside ours."""
    lines = [*_table_1(results), *_table_2(results)]
    found, n = summary(results), results.sizes[REPETITION]
    for scaling in map(str, results.scaling.values):
        part, runs = found.sel(scaling=scaling), results.sel(scaling=scaling)
        for name in map(str, part.data_set.values):
            where = f"{name}, {scaling}"
            rows = OTHER_ROWS if name == "votes" else ""
            lines += _table_3(part.sel(data_set=name), where, n=n, why_open=rows)
        lines += _last_lines(part, scaling, n=n)
        lines += _text(runs, part, scaling)
    return lines


def _table_1(results: xr.Dataset) -> list[Comparison]:
    """Compare the sizes of the sets: whole numbers agree or differ."""
    lines = []
    for name in map(str, results.data_set.values):
        for column, printed in zip(
            map(str, results.column.values), SIZES[name], strict=True
        ):
            ours = float(results["size"].sel(data_set=name, column=column)[0])
            why = ""
            if name == "votes" and column != "columns":
                why = OTHER_ROWS
            if name == "pima" and ours != printed:
                why = "a misprint: the set has 268 + 500 rows"
            lines.append(
                compare_exact(
                    "Table 1", name, column, printed=printed, ours=ours, why=why
                )
            )
    return lines


def _table_2(results: xr.Dataset) -> list[Comparison]:
    """Compare the grid: how many values, and exponents of the first and the last."""
    columns = ("values", "log2 of the smallest value", "log2 of the largest value")
    lines = []
    for name, numbers in PUBLISHED_GRID.items():
        powers = np.log2(results[name].values)
        found = (len(powers), powers.min(), powers.max())
        for what, printed, ours in zip(columns, numbers, found, strict=True):
            why = "" if ours == printed else "a smaller grid was run"
            lines.append(
                compare_exact(
                    "Table 2", name, what,
                    printed=float(printed), ours=float(ours), why=why,
                )
            )  # fmt: skip
    return lines


def _table_3(
    found: xr.Dataset, where: str, *, n: int, why_open: str = ""
) -> list[Comparison]:
    """Compare errors, standard deviations and seconds of a line, method by method."""
    lines = []
    for method in METHODS:
        cell = found.sel({"method": method})
        for what, of, why in (
            ("error", ("published", "error", "standard_error", "spread"), why_open),
            ("std", ("published_std", "std", "std_error", "std_spread"), why_open),
            ("seconds", ("published_seconds", "seconds", "", ""), why_open or CLOCK),
        ):
            printed, ours, error, spread = (
                float(cell[name]) if name else float("nan") for name in of
            )
            lines.append(
                compare_number(
                    "Table 3",
                    where,
                    f"{what}, {_label(method)}",
                    printed=printed,
                    ours=(ours, error),
                    spread=spread,
                    n=n,
                    why_open=why,
                )
            )
    return lines


def _last_lines(found: xr.Dataset, scaling: str, *, n: int) -> list[Comparison]:
    """Compare the means over all sets, and over those but Haberman."""
    lines = []
    for label, printed in PUBLISHED_OVERALL.items():
        names = [str(name) for name in found.data_set.values]
        kept = [each for each in names if label == "all sets" or each != "haberman"]
        part = found.sel(data_set=kept)
        errors = part[["standard_error", "spread", "std_error", "std_spread"]]
        columns = zip(
            ("published", "published_std", "published_seconds"),
            np.transpose(printed),
            strict=True,
        )
        line = part.mean("data_set")
        line = line.assign((errors**2).sum("data_set") ** 0.5 / max(len(kept), 1))
        line = line.assign({name: ("method", column) for name, column in columns})
        lines += _table_3(line, f"{label}, {scaling}", n=n, why_open=_partly(found))
    return lines


def _partly(found: xr.Dataset) -> str:
    """Return why means over sets cannot be compared; empty where they can."""
    whole = found.sizes["data_set"] == len(PUBLISHED)
    return "" if whole else "not all eight sets"


def _text(runs: xr.Dataset, found: xr.Dataset, scaling: str) -> list[Comparison]:
    """Compare what section 5 says: speed, gaps between methods, and Figure 2."""
    n, where = runs.sizes[REPETITION], f"all sets, {scaling}"
    mean = runs.seconds.mean([REPETITION, "data_set"])
    own, crossed, largest = (float(mean.sel({"method": each})) for each in METHODS)
    of_seconds = (
        ("cross validation / nonconformity", PUBLISHED_SPEED_UP, crossed / own),
        ("nonconformity - L-infinity", PUBLISHED_SECONDS_SAVED, own - largest),
    )
    lines = [
        compare_number(
            "section 5", where, f"seconds, {what}", printed=printed,
            ours=(ours, np.nan), spread=np.nan, n=n, why_open=CLOCK,
        )
        for what, printed, ours in of_seconds
    ]  # fmt: skip
    lines += [_compare_gap(runs, found, scaling, *each) for each in PUBLISHED_GAPS]
    for name in map(str, runs.data_set.values):
        here, place = runs.sel(data_set=name), f"{name}, {scaling}"
        sign = -1.0 if name == "credit" else 1.0  # the text's exception
        pair = (
            "nonconformity - L-infinity" if sign < 0 else "L-infinity - nonconformity"
        )
        gap = here.error.sel({"method": METHODS[2]}) - here.error.sel(
            {"method": METHODS[0]}
        )
        ours = mean_of(sign * gap.values)
        lines.append(
            compare_order("section 5", place, f"error, {pair}", ours=ours, n=n)
        )
        if name in STEADIER:
            cell = found.sel(data_set=name)
            std, error = (
                cell[key].sel({"method": list(METHODS[:2])})
                for key in ("std", "std_error")
            )
            ours = float(std[1] - std[0]), float(np.hypot(*error.values))
            what = "std, cross validation - nonconformity"
            lines.append(compare_order("section 5", place, what, ours=ours, n=n))
        ranks = _rank_correlations(here)
        what = "rank correlation of bound and error of rows up to it, by split"
        lines.append(compare_order("Figure 2", place, what, ours=mean_of(ranks), n=n))
    return [_opened(each) for each in lines]


def _compare_gap(
    runs: xr.Dataset,
    found: xr.Dataset,
    scaling: str,
    label: str,
    first: str,
    second: str,
    what: str,
    printed: float,
) -> Comparison:
    """Compare the mean gap of two methods over sets with the printed one."""
    names = [str(name) for name in runs.data_set.values]
    kept = [each for each in names if label == "all sets" or each != "haberman"]
    if what == "error":
        errors = runs.error.sel(data_set=kept)
        gap = errors.sel({"method": first}) - errors.sel({"method": second})
        ours = mean_of(gap.mean("data_set").values)
    else:
        part = found.sel({"data_set": kept, "method": [first, second]})
        mean = part["std"].mean("data_set")
        error = float((part.std_error**2).sum() ** 0.5) / max(len(kept), 1)
        ours = float(mean[0] - mean[1]), error
    return compare_number(
        "section 5",
        f"{label}, {scaling}",
        f"{what}, {_label(first)} - {_label(second)}",
        printed=printed,
        ours=ours,
        spread=float(np.sqrt(2.0) * ours[1]),
        n=runs.sizes[REPETITION],
        why_open=_partly(found),
    )


def _rank_correlations(here: xr.Dataset) -> list[float]:
    """Return how the error rises with the bound, by split; 0 where it is constant."""
    curves = [
        error_by_bound(here.isel({REPETITION: [split]}), bound=printed_error_bound)
        for split in range(here.sizes[REPETITION])
    ]
    return [
        float(spearmanr(bounds, errors).statistic) if np.ptp(errors) > 0.0 else 0.0
        for bounds, errors in curves
    ]


def _opened(line: Comparison) -> Comparison:
    """Return a line of the text, not compared where it is of other rows."""
    if not line.where.startswith("votes"):
        return line
    return replace(line, verdict=OPEN, why=OTHER_ROWS)


def _label(method: str) -> str:
    return method.replace("_", " ")


def figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return Figure 2 of every set and scaling, and the errors of all methods."""
    found = []
    for scaling in map(str, results.scaling.values):
        here = results.sel(scaling=scaling)
        found += [
            Figure(
                f"figure-2-{name}-{scaling}",
                f"Figure 2, {name}, {FEATURES[scaling]}: error among test rows of at "
                f"most each bound; the paper shows one split of Bupa, the first here. "
                f"The printed number is no bound on this error; the other one bounds "
                f"errors of each model beyond the row's margin (delta = {DELTA:g}).",
                partial(_draw_figure_2, here.sel(data_set=name), name),
                height=3.2,
            )
            for name in map(str, results.data_set.values)
        ]
        found.append(
            Figure(
                f"errors-{scaling}",
                f"Errors of all methods, {FEATURES[scaling]}, with standard errors; "
                f"margin l1 and margin l2 are not in the paper.",
                partial(_draw_errors, here),
                height=3.6,
            )
        )
    return found


def _draw_figure_2(here: xr.Dataset, name: str, drawing: Any) -> None:
    first, axes = here.isel({REPETITION: slice(0, 1)}), drawing.subplots(1, 2)
    bounds = {
        "bound as printed": printed_error_bound,
        "bound on errors beyond the margin": threshold_bound,
    }
    for ax, (label, bound) in zip(axes, bounds.items(), strict=True):
        curves = {
            "one split": error_by_bound(first, bound=bound),
            "all splits": error_by_bound(here, bound=bound),
        }
        lines = Lines(name, label, "error of rows of at most this", curves)
        draw_lines(lines, ax)
        # Some sets have one bound for all rows, and so one point.
        ax.set_ylim(0.0, 1.1 * ax.get_ylim()[1])


def _draw_errors(here: xr.Dataset, drawing: Any) -> None:
    mean, error = mean_of(here.error.transpose(REPETITION, ...).values)
    places = np.arange(here.sizes["data_set"], dtype=float)
    names = list(map(str, here.data_set.values))
    methods = list(map(str, here.method.values))
    ax = drawing.add_subplot()
    shift = 0.12 * (np.arange(len(methods)) - (len(methods) - 1) / 2)
    lines = Lines(
        "errors over the outer folds",
        "",
        "error",
        {
            _label(method): (places + shift[k], mean[:, k])
            for k, method in enumerate(methods)
        },
        errors={_label(method): error[:, k] for k, method in enumerate(methods)},
        unconnected=True,
    )
    draw_lines(lines, ax)
    ax.set_xticks(places, names)


EXPERIMENT = Experiment(
    name="hardoon2009",
    paper="Hardoon, Hussain and Shawe-Taylor (2009), nonconformity of all models",
    shows="Tables 1 to 3 and Figure 2: three ways to choose among 110 SVMs",
    duration="about half an hour",
    sets=tuple(SIZES),
    repetitions=N_FOLDS,
    most_repetitions=N_FOLDS,
    settings=Settings(),
    files={name: file for name, (file, _) in RECIPES.items()},
    load=load_table,
    measured={
        **dict.fromkeys(("error", "seconds"), ("scaling", "method")),
        **dict.fromkeys(("kept", "wrong"), ("scaling", "count")),
        "n_held": ("scaling",),
        "size": ("column",),
    },
    axes=lambda settings: {
        "scaling": settings.scalings,
        "method": ALL_METHODS,
        "count": range(MOST_COUNT),
        "column": ("rows", "columns", "positive rows", "negative rows"),
        "C": settings.C,
        "gamma": settings.gamma,
    },
    measure=measure,
    compare=compare,
    figures=figures,
    errors=ERRORS,
    departures=DEPARTURES,
)

if __name__ == "__main__":
    main(EXPERIMENT)
