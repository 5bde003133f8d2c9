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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import hardoon2009_numbers as paper
import numpy as np
import xarray as xr
from common import REPETITION, Experiment, Figure, counts_of, fold_errors, main
from comparison import Comparisons, mean_of
from drawing import draw_lines, empty
from scipy.stats import spearmanr
from sklearn.svm import SVC

from dsel.bounds import threshold_bound
from dsel.datasets import load_set
from dsel.errors import GuaranteeWarning
from dsel.nonconformity import NonconformityClassifier

FOLD_STREAM, HOLDOUT_STREAM = 0, 4
"""Of dsel's random numbers by row: which fold a row is in, and what is held out."""
N_FOLDS = 10
ALL_METHODS = (*paper.METHODS, *paper.NORMS)
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
    table = load_set(file, folder=folder)
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


def ranks(n_rows: int, stream: int, seed: int) -> np.ndarray:
    """Return a random order of rows, the one that dsel's own splits have."""
    key = np.array([seed, stream], dtype=np.uint64)
    order = np.argsort(np.random.Philox(key=key).random_raw(n_rows), kind="stable")
    return np.argsort(order)


# One piece: all methods on one outer fold.


def measure(table: Any, fold: int, settings: Settings, place: Any) -> dict[str, Any]:
    """Return what all methods do on one outer fold, over scalings."""
    _warm_up()
    X, y = table
    scaled = {"range": scale_to_range(X), "raw": X}
    found = [run_fold(scaled[each], y, fold, settings) for each in settings.scalings]
    piece = {name: np.array([each[name] for each in found]) for name in found[0]}
    return piece | {"size": np.array(size_of(table), dtype=float)}


@cache
def _warm_up() -> None:
    """Compile what is compiled on first use, so that no fold's seconds include it."""
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.tile([-1, 1], 30)
    by_cross_validation(X, y, Settings(C=(1.0,), gamma=(1.0,)))


def run_fold(
    X: np.ndarray, y: np.ndarray, fold: int, settings: Settings
) -> dict[str, Any]:
    """Return error and seconds of each method on one outer fold.

    Also, of the nonconformity choice, the test rows at every critical count, ``kept``
    and ``wrong``, and ``n_held``.
    """
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
    # Of the models that are trained already.
    for norm in (np.inf, *paper.NORMS.values()):
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
    C, gamma = np.unravel_index(best, (len(settings.C), len(settings.gamma)))
    return SVC(C=settings.C[C], gamma=settings.gamma[gamma]).fit(X, y)


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


def printed_error_bound(
    counts: Any, n_validation: int, *, n_models: int, delta: float
) -> np.ndarray:
    r"""Return Theorem 4.1 as printed, delta divided by the models, not clipped.

    It is :math:`c/n + 5.66 \sqrt{(\ln(en) + \ln(8K/\delta)) / n}`, a bound on the rate
    of errors with a large margin: 3.07 and more for n = 50 and 110 models. Proposition
    4.2 calls it a bound on the error, which it is not: the proof bounds the joint
    probability of an error and a margin, but the model and the margin are chosen at the
    test row. On labels that are noise (error .50) with 110 models and 10,000 validation
    rows it reports .26.
    """
    complexity = 1.0 + math.log(n_validation) + math.log(8.0 * n_models / delta)
    return np.asarray(counts) / n_validation + 5.66 * math.sqrt(
        complexity / n_validation
    )


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


@dataclass(frozen=True)
class Table3:
    """Errors, standard deviations and seconds, each of shape (3, sets, methods)."""

    ours: np.ndarray
    errors: np.ndarray
    """Standard errors of ours; those of seconds are not known."""
    printed: np.ndarray
    spread: np.ndarray
    """Standard errors of differences between ours and what is printed."""

    @classmethod
    def of(cls, runs: xr.Dataset) -> "Table3":
        """Return the table of one scaling, means over outer folds."""
        n = runs.sizes[REPETITION]
        here = runs.sel({"method": list(paper.METHODS)}).transpose(
            "data_set", "method", ...
        )
        std = here.error.std(REPETITION, ddof=1).values
        seconds = here.seconds.mean(REPETITION).values
        names = map(str, runs.data_set.values)
        printed = np.moveaxis([paper.PUBLISHED[name] for name in names], -1, 0)
        # Of n normal numbers the standard deviation has this relative error.
        relative = 1.0 / np.sqrt(2.0 * (max(n, 2) - 1))
        errors = np.array([std / np.sqrt(n), relative * std, np.nan * std])
        theirs = printed[1] * [[[1 / np.sqrt(10)]], [[1 / np.sqrt(18)]], [[np.nan]]]
        ours = np.array([here.error.mean(REPETITION).values, std, seconds])
        return cls(ours, errors, printed, np.hypot(errors, theirs))

    def mean(self, kept: np.ndarray, printed: Any) -> "Table3":
        """Return the line of means over some sets, beside the printed one."""
        n_kept = kept.sum() or math.nan
        errors, spread = (
            np.sqrt((each[:, kept] ** 2).sum(axis=1, keepdims=True)) / n_kept
            for each in (self.errors, self.spread)
        )
        ours = self.ours[:, kept].sum(axis=1, keepdims=True) / n_kept
        return Table3(ours, errors, np.transpose(printed)[:, np.newaxis], spread)


def compare(results: xr.Dataset) -> Comparisons:
    """Put Tables 1 to 3 and what the text says of them beside ours."""
    lines, names = Comparisons(results.sizes[REPETITION]), list(results.data_set.values)
    for name in map(str, names):
        for column, printed in zip(
            map(str, results.column.values), paper.SIZES[name], strict=True
        ):
            ours = float(results["size"].sel(data_set=name, column=column)[0])
            why = ""
            if name == "votes" and column != "columns":
                why = paper.OTHER_ROWS
            if name == "pima" and ours != printed:
                why = "a misprint: the set has 268 + 500 rows"
            lines.exact("Table 1", name, column, printed=printed, ours=ours, why=why)
    for name, numbers in paper.PUBLISHED_GRID.items():
        powers = np.log2(results[name].values)
        for what, printed, ours in zip(
            ("values", "log2 of the smallest value", "log2 of the largest value"),
            map(float, numbers),
            map(float, (len(powers), powers.min(), powers.max())),
            strict=True,
        ):
            why = "" if ours == printed else "a smaller grid was run"
            lines.exact("Table 2", name, what, printed=printed, ours=ours, why=why)
    partly = "" if len(names) == len(paper.PUBLISHED) else "not all eight sets"
    # Table 3 has two lines of means, with and without one set.
    others = np.array([name != "haberman" for name in names])
    kept = {"all sets": np.full(len(names), True), "without Haberman": others}
    for scaling in map(str, results.scaling.values):
        runs = results.sel(scaling=scaling)
        table = Table3.of(runs)
        for place, name in enumerate(map(str, names)):
            why = paper.OTHER_ROWS if name == "votes" else ""
            _table_3(lines, table, place, f"{name}, {scaling}", why)
        for label, printed in paper.PUBLISHED_OVERALL.items():
            mean = table.mean(kept[label], printed)
            _table_3(lines, mean, 0, f"{label}, {scaling}", partly)
        seconds = runs.seconds.mean([REPETITION, "data_set"])
        own, crossed, largest = (
            float(seconds.sel({"method": m})) for m in paper.METHODS
        )
        for what, printed, ours in (
            (
                "cross validation / nonconformity",
                paper.PUBLISHED_SPEED_UP,
                crossed / own,
            ),
            (
                "nonconformity - L-infinity",
                paper.PUBLISHED_SECONDS_SAVED,
                own - largest,
            ),
        ):
            lines.number(
                "section 5", f"all sets, {scaling}", f"seconds, {what}",
                printed=printed, ours=(ours, np.nan), spread=np.nan, why=CLOCK,
            )  # fmt: skip
        for label, first, second, what, printed in paper.PUBLISHED_GAPS:
            ours = _gap(runs, table, kept[label], first, second, what)
            lines.number(
                "section 5", f"{label}, {scaling}",
                f"{what}, {_label(first)} - {_label(second)}",
                printed=printed, ours=ours, spread=float(np.sqrt(2.0) * ours[1]),
                why=partly,
            )  # fmt: skip
        for place, name in enumerate(map(str, names)):
            _claims(lines, runs.sel(data_set=name), table, place, f"{name}, {scaling}")
    return lines


def _table_3(
    lines: Comparisons, table: Table3, place: int, where: str, why: str
) -> None:
    """Compare a line of the table, method by method."""
    for column, method in enumerate(paper.METHODS):
        for row, what in enumerate(("error", "std", "seconds")):
            at = row, place, column
            lines.number(
                "Table 3", where, f"{what}, {_label(method)}",
                printed=float(table.printed[at]),
                ours=(table.ours[at], table.errors[at]), spread=float(table.spread[at]),
                why=why or CLOCK * (what == "seconds"),
            )  # fmt: skip


def _gap(
    runs: xr.Dataset, table: Table3, kept: Any, first: str, second: str, what: str
) -> tuple[Any, Any]:
    """Return the mean gap of two methods over sets, and its standard error."""
    if what == "error":
        errors = runs.error.isel(data_set=np.flatnonzero(kept))
        gap = errors.sel({"method": first}) - errors.sel({"method": second})
        return mean_of(gap.mean("data_set").values)
    pair, n_kept = (
        [paper.METHODS.index(first), paper.METHODS.index(second)],
        kept.sum() or math.nan,
    )
    std, errors = table.ours[1][kept][:, pair], table.errors[1][kept][:, pair]
    means = std.sum(axis=0) / n_kept
    return means[0] - means[1], np.sqrt((errors**2).sum()) / n_kept


def _claims(
    lines: Comparisons, here: xr.Dataset, table: Table3, place: int, where: str
) -> None:
    """Compare what section 5 says of a set: gaps between methods, and Figure 2."""
    name = str(here.data_set.values)
    why = paper.OTHER_ROWS if name == "votes" else ""
    own, largest = (
        here.error.sel({"method": paper.METHODS[at]}).values for at in (0, 2)
    )
    pair, gap = "L-infinity - nonconformity", largest - own
    if name == "credit":  # the text's exception
        pair, gap = "nonconformity - L-infinity", own - largest
    lines.order("section 5", where, f"error, {pair}", mean_of(gap), why=why)
    if name in paper.STEADIER:
        std, error = table.ours[1, place], table.errors[1, place]
        ours = std[1] - std[0], np.hypot(error[0], error[1])
        what = "std, cross validation - nonconformity"
        lines.order("section 5", where, what, ours, why=why)
    # How the error rises with the bound, by split; 0 where it is constant.
    found = []
    for split in range(here.sizes[REPETITION]):
        part = here.isel({REPETITION: [split]})
        bounds, errors = error_by_bound(part, bound=printed_error_bound)
        varies = np.ptp(errors) > 0.0
        found.append(float(spearmanr(bounds, errors).statistic) if varies else 0.0)
    what = "rank correlation of bound and error of rows up to it, by split"
    lines.order("Figure 2", where, what, mean_of(found), why=why)


def _label(method: str) -> str:
    return method.replace("_", " ")


def figures(results: xr.Dataset) -> Iterator[Figure]:
    """Yield Figure 2 of every set and scaling, and the errors of all methods."""
    bounds: dict[str, Callable[..., Any]] = {
        "bound as printed": printed_error_bound,
        "bound on errors beyond the margin": threshold_bound,
    }
    for scaling in map(str, results.scaling.values):
        here = results.sel(scaling=scaling)
        for name in map(str, here.data_set.values):
            every, drawing = here.sel(data_set=name), empty(height=3.2)
            runs = {"one split": every.isel({REPETITION: [0]}), "all splits": every}
            for ax, label in zip(drawing.subplots(1, 2), bounds, strict=True):
                curves = {
                    title: error_by_bound(each, bound=bounds[label])
                    for title, each in runs.items()
                }
                draw_lines(ax, name, label, "error of rows of at most this", curves)
                # Some sets have one bound for all rows, and so one point.
                ax.set_ylim(0.0, 1.1 * ax.get_ylim()[1])
            yield Figure(
                f"figure-2-{name}-{scaling}",
                f"Figure 2, {name}, {FEATURES[scaling]}: error among test rows of at "
                f"most each bound; the paper shows one split of Bupa, the first here. "
                f"The printed number is no bound on this error; the other one bounds "
                f"errors of each model beyond the row's margin (delta = {DELTA:g}).",
                drawing,
            )
        mean, error = mean_of(here.error.transpose(REPETITION, ...).values)
        places = np.arange(here.sizes["data_set"], dtype=float)
        methods = [_label(str(each)) for each in here.method.values]
        shift = 0.12 * (np.arange(len(methods)) - (len(methods) - 1) / 2)
        drawing = empty(height=3.6)
        ax = drawing.add_subplot()
        draw_lines(
            ax, "errors over the outer folds", "", "error",
            {each: (places + shift[k], mean[:, k]) for k, each in enumerate(methods)},
            errors={each: error[:, k] for k, each in enumerate(methods)},
            unconnected=True,
        )  # fmt: skip
        ax.set_xticks(places, list(map(str, here.data_set.values)))
        yield Figure(
            f"errors-{scaling}",
            f"Errors of all methods, {FEATURES[scaling]}, with standard errors; "
            f"margin l1 and margin l2 are not in the paper.",
            drawing,
        )


EXPERIMENT = Experiment(
    name="hardoon2009",
    paper="Hardoon, Hussain and Shawe-Taylor (2009), nonconformity of all models",
    shows="Tables 1 to 3 and Figure 2: three ways to choose among 110 SVMs",
    duration="about half an hour",
    sets=tuple(paper.SIZES),
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
    errors=paper.ERRORS,
    departures=paper.DEPARTURES,
)

if __name__ == "__main__":
    main(EXPERIMENT)
