"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

"Perform simulations using Gaussian kernel models and quadratically constrained least
squares, and optimize the width and the regularization by cross-validation. Analyze the
results when changing the target function, the number of samples and the noise level."
The slides print no numbers. What must show: estimates follow the true error plus the
noise's variance, and their minimisers are nearly as good as the best candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from common import REPETITION, Experiment, Figure, main, seed_of
from comparison import Comparisons, mean_of
from drawing import draw_lines, empty

from dsel.least_squares import LeastSquaresSearch

DOMAIN = 3.0
"""Inputs are uniform on [-3, 3]."""
DENSE = DOMAIN * (2.0 * (np.arange(1000) + 0.5) / 1000 - 1.0)[:, np.newaxis]
"""Points on which the true error G is integrated: midpoints of a fine partition."""
ORACLE = "true"
"""The choice by the true error itself, which is known for made-up data only."""
LABELS = {
    "loo": "leave-one-out",
    "kfold": "mean over folds",
    "gcv": "GCV",
    "holdout": "one fold",
}
"""What each estimate is called, in the order in which all panels draw them."""
ESTIMATES = ("loo", "gcv", "kfold", "holdout")
CHOSEN = ("width", "regularization", "error")
"""What is kept of a choice; its error is the true G."""
CLAIMS = {
    "holdout": ("slide 83", "hold-out by the first fold"),
    "loo": ("slide 84", "leave-one-out"),
    "kfold": ("slide 85", "hold-out, mean over all folds"),
}
"""Estimates that are said to be almost unbiased up to the noise: where, and names."""
STEADIER = (
    ("slide 83", "holdout", "hold-out less that of its mean over all folds"),
    ("slide 85", "loo", "leave-one-out less that of hold-out, mean over all folds"),
)
"""Estimates than which k-fold is said to be more stable: where, and in words."""
CLOSE = 1e-9
"""Relative difference up to which the closed form equals refits."""
TARGETS = {
    "sin": lambda x: np.sin(2.0 * x),
    "sinc": np.sinc,
    "step": lambda x: np.where(x > 0.0, 1.0, 0.0),
}


@dataclass(frozen=True)
class Settings:
    """What pieces depend on besides target and repetition."""

    seed: int = 0
    sizes: tuple[int, ...] = (20, 50, 100, 200)
    """Numbers of samples, n."""
    noises: tuple[float, ...] = (0.05, 0.1, 0.3)
    """Standard deviations of the noise, sigma."""
    widths: tuple[float, ...] = tuple(np.geomspace(0.05, 5.0, 11).tolist())
    regularizations: tuple[float, ...] = tuple(np.geomspace(1e-6, 1e2, 17).tolist())
    penalty: str = "coefficients"
    """Of the slides; ``"rkhs"`` is kernel ridge regression."""


def measure(target: str, repeat: int, settings: Settings, place: Any) -> dict[str, Any]:
    """Return the choices and estimates of a repeat, over n_samples and noise first."""
    cells = [
        [_cell(target, repeat, n, noise, settings) for noise in settings.noises]
        for n in settings.sizes
    ]
    piece = {
        name: np.array([[cell[name] for cell in row] for row in cells])
        for name in cells[0][0]
    }
    # Refits are slow: on the smallest samples only.
    return piece | {"closed_form_gap": piece["closed_form_gap"][0]}


def _cell(
    target: str, repeat: int, n: int, noise: float, settings: Settings
) -> dict[str, Any]:
    seed = seed_of(settings.seed, "sugiyama", target, n, noise, repeat)
    rng = np.random.default_rng(seed)
    X, y = draw(target, n, noise, rng)
    cube = search_once(target, X, y, settings, rng)
    truth = cube.extra_loss_mean.values
    surfaces = [cube.estimate.sel(criterion=name).values for name in ESTIMATES]
    surfaces.append(truth)
    places = [np.unravel_index(np.nanargmin(each), each.shape) for each in surfaces]
    widths, lams = (
        [values[at[axis]] for at in places]
        for axis, values in enumerate((settings.widths, settings.regularizations))
    )
    gap = np.nan
    if n == settings.sizes[0]:
        refitted = loss_of_refits(X, y, widths[0], lams[0])
        gap = abs(surfaces[0][places[0]] / refitted - 1.0)
    return {
        "chosen_width": widths,
        "chosen_regularization": lams,
        "chosen_error": [truth[at] for at in places],
        "estimate": np.array(surfaces),
        "holdout_spread": by_fold(cube).std("fold", ddof=1).values,
        "closed_form_gap": gap,
    }


def draw(
    target: str, n_samples: int, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, shape (n_samples, 1), and noisy targets."""
    X = rng.uniform(-DOMAIN, DOMAIN, (n_samples, 1))
    return X, TARGETS[target](X[:, 0]) + noise * rng.standard_normal(n_samples)


def search_once(
    target: str, X: np.ndarray, y: np.ndarray, settings: Settings, rng: Any
) -> xr.Dataset:
    """Return the cube of one data set; its extra-sample estimate is the true G."""
    search = LeastSquaresSearch(
        settings.widths,
        settings.regularizations,
        penalty=settings.penalty,
        cv=10,
        random_state=rng,
        n_jobs=1,
    )
    # Without noise in its targets the extra sample gives G, not G + sigma^2.
    truth = TARGETS[target](DENSE[:, 0])
    return search.plan(X, y, DENSE, truth).run(n_jobs=1)


def by_fold(cube: xr.Dataset) -> xr.DataArray:
    """Return the estimate by each fold alone; their mean is that of ``kfold``."""
    return cube.fold_loss_sum / cube.fold_rows


def loss_of_refits(X: np.ndarray, y: np.ndarray, width: float, lam: float) -> float:
    """Return the leave-one-out loss of n refits, whose basis functions all stay."""
    basis = np.exp(-((X - X.T) ** 2) / (2.0 * width**2))
    rows = np.vstack([basis, np.sqrt(lam) * np.eye(len(y))])
    targets = np.append(y, np.zeros(len(y)))
    losses = []
    for row in range(len(y)):
        alpha = np.linalg.lstsq(np.delete(rows, row, 0), np.delete(targets, row))[0]
        losses.append((basis[row] @ alpha - y[row]) ** 2)
    return float(np.mean(losses))


def compare(results: xr.Dataset) -> Comparisons:
    """Hold the estimates to what the slides say, for the candidate of least mean G."""
    lines = Comparisons(results.sizes[REPETITION])
    what = f"{CLOSE:g} - |closed form / refits - 1|, largest"
    for name, gaps in results.closed_form_gap.groupby("data_set"):
        where = f"{name}, n = {results.n_samples.values[0]}"
        ours = CLOSE - float(gaps.max()), np.nan
        lines.order("closed form of LOOCV", where, what, ours)
    cells = results.estimate.stack(
        cell=("data_set", "n_samples", "noise"),
        candidate=("width", "regularization"),
    )
    for target, size, noise in cells.cell.values:
        each = cells.sel(cell=(target, size, noise))
        truth = each.sel(criterion=ORACLE)
        best = int(truth.mean(REPETITION).argmin("candidate"))
        where = f"{target}, n = {size}, sigma = {noise:g}"
        gaps = {
            name: (each.sel(criterion=name) - truth).isel(candidate=best) - noise**2
            for name in CLAIMS
        }
        for name, (source, label) in CLAIMS.items():
            ours, what = mean_of(gaps[name]), f"mean of {label} - G - sigma^2"
            lines.number(source, where, what, printed=0.0, ours=ours, spread=ours[1])
        for source, name, what in STEADIER:
            ours = mean_of(gaps[name] ** 2 - gaps["kfold"] ** 2)
            lines.order(source, where, f"squared error of {what}", ours)
    return lines


def figures(results: xr.Dataset) -> Iterator[Figure]:
    """Yield curves and errors of choices, the choices, and spreads, by noise level."""
    size = results.n_samples.values[-1]
    for noise in results.noise.values.tolist():
        at = f"noise {noise:g}"
        for name, panels, caption in (
            ("homework", (draw_curves, partial(draw_choices, what="error")),
             f"Estimates against the truth at n = {size}, and the true error of the "
             f"choices, {at}."),
            ("choices", [partial(draw_choices, what=each) for each in CHOSEN[:2]],
             f"Width and regularization that each estimate chooses, medians, {at}."),
            ("spread", (draw_spreads, draw_biases), f"Hold-out at n = {size}: how much "
             f"it depends on the fold j, and its distance from G + sigma^2, {at}."),
        ):  # fmt: skip
            targets = results.data_set.values
            drawing = empty(height=2.9 * len(targets))
            axes = drawing.subplots(len(targets), 2, squeeze=False)
            for row, target in zip(axes, targets, strict=True):
                for ax, draw_panel in zip(row, panels, strict=True):
                    draw_panel(ax, results.sel(noise=noise, data_set=target))
            yield Figure(f"{name}-noise-{noise:g}", caption, drawing)


def draw_curves(ax: Any, shown: xr.Dataset) -> None:
    """Draw estimates and truth along the regularizations, at the best width."""
    surface, best = _at_best_width(shown)
    mean = surface.mean(REPETITION)
    lams = mean["regularization"].values
    # Estimates less the variance may be negative, which no logarithm shows.
    truth = "true G + noise variance"
    curves = {truth: (lams, (mean.sel(criterion=ORACLE) + shown.noise**2).values)}
    for name in ("loo", "kfold", "gcv"):
        curves[LABELS[name]] = (lams, mean.sel(criterion=name).values)
    target, size = shown.data_set.item(), shown.n_samples.values[-1]
    draw_lines(
        ax, f"{target}, n = {size}, width {best:.2g}", "regularization",
        "squared error, mean of repeats", curves, logarithmic="xy", dashed=(truth,),
    )  # fmt: skip


def draw_choices(ax: Any, shown: xr.Dataset, what: str) -> None:
    """Draw means of the choices' true errors, or medians of what is chosen."""
    values, best = shown[f"chosen_{what}"], "best candidate"
    middle, title, label = values.median(REPETITION), f"chosen {what}", what
    if what == "error":
        middle, title, label = values.mean(REPETITION), "true G of the choice", "true G"
    label = f"{label}, {'mean' if what == 'error' else 'median'} of repeats"
    labels = {best: ORACLE, **{label: name for name, label in LABELS.items()}}
    curves = {
        label: (middle.n_samples.values, middle.sel(criterion=name).values)
        for label, name in labels.items()
    }
    draw_lines(
        ax, f"{shown.data_set.item()}: {title}", "samples", label, curves,
        logarithmic="xy", dashed=(best,),
    )  # fmt: skip


def draw_spreads(ax: Any, shown: xr.Dataset) -> None:
    """Draw the standard deviation of hold-out over the folds, and of their mean."""
    surface, best = _at_best_width(shown)
    spread = shown.holdout_spread.isel(n_samples=-1).sel({"width": best})
    lams, std = surface["regularization"].values, surface.std(REPETITION)
    curves = {
        "one fold, over j": (lams, spread.mean(REPETITION).values),
        "one fold, over repeats": (lams, std.sel(criterion="holdout").values),
        "mean over folds, over repeats": (lams, std.sel(criterion="kfold").values),
    }
    draw_lines(
        ax, f"{shown.data_set.item()}: standard deviations", "regularization",
        "squared error", curves, logarithmic="xy",
    )  # fmt: skip


def draw_biases(ax: Any, shown: xr.Dataset) -> None:
    """Draw how far estimates are from G + sigma^2, with three standard errors."""
    surface, _ = _at_best_width(shown)
    lams = surface["regularization"].values
    truth = surface.sel(criterion=ORACLE) + shown.noise**2
    curves, bars = {}, {}
    for name in ("holdout", "loo", "kfold"):
        gap = surface.sel(criterion=name) - truth
        curves[LABELS[name]] = (lams, gap.mean(REPETITION).values)
        error = gap.std(REPETITION, ddof=1) / np.sqrt(gap.sizes[REPETITION])
        bars[LABELS[name]] = 3.0 * error.values
    draw_lines(
        ax, f"{shown.data_set.item()}: estimate - G - $\\sigma^2$", "regularization",
        "squared error", curves, logarithmic="x", errors=bars,
    )  # fmt: skip


def _at_best_width(shown: xr.Dataset) -> tuple[xr.DataArray, float]:
    """Return the estimates of the largest n at the width of least mean G."""
    surface = shown.estimate.isel(n_samples=-1)
    truth = surface.sel(criterion=ORACLE).mean(REPETITION)
    place = int(truth.min("regularization").argmin("width"))
    return surface.isel({"width": place}), float(surface["width"][place])


EXPERIMENT = Experiment(
    name="sugiyama",
    paper="Sugiyama, slides on cross-validation: the homework",
    shows="slides 83 to 85, the closed form and the homework: estimates and choices",
    duration="about two minutes",
    sets=tuple(TARGETS),
    repetitions=20,
    settings=Settings(),
    measured={
        **{f"chosen_{name}": ("n_samples", "noise", "criterion") for name in CHOSEN},
        "estimate": ("n_samples", "noise", "criterion", "width", "regularization"),
        "holdout_spread": ("n_samples", "noise", "width", "regularization"),
        "closed_form_gap": ("noise",),
    },
    axes=lambda settings: {
        "n_samples": settings.sizes,
        "noise": settings.noises,
        "criterion": (*ESTIMATES, ORACLE),
        "width": settings.widths,
        "regularization": settings.regularizations,
    },
    measure=measure,
    compare=compare,
    figures=figures,
    errors=(),
    departures=(
        "The slides print no numbers: what they say of means is held to 0.",
        "Targets, sizes, noises and grids are ours; the homework leaves them open.",
    ),
    in_processes=True,
)

if __name__ == "__main__":
    main(EXPERIMENT)
