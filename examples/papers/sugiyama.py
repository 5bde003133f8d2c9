"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

"Perform simulations using Gaussian kernel models and quadratically constrained least
squares, and optimize the width and the regularization by cross-validation. Analyze the
results when changing the target function, the number of samples and the noise level."
The slides print no numbers. What must show: estimates follow the true error plus the
noise's variance, and their minimisers are nearly as good as the best candidate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from common import REPETITION, Experiment, Figure, main, seed_of
from comparison import Comparison, compare_number, compare_order, mean_of
from drawing import Lines, draw_lines

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
    del place
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
    rng = np.random.default_rng(
        seed_of(settings.seed, "sugiyama", target, n, noise, repeat)
    )
    X, y = draw(target, n, noise, rng)
    cube = search_once(target, X, y, settings, rng)
    truth = cube.extra_loss.values
    surfaces = [cube.estimate.sel(criterion=name).values for name in ESTIMATES]
    surfaces.append(truth)
    places = [np.unravel_index(np.nanargmin(each), each.shape) for each in surfaces]
    width, lam = (settings.widths[places[0][0]], settings.regularizations[places[0][1]])
    gap = np.nan
    if n == settings.sizes[0]:
        refitted = loss_of_refits(X, y, width, lam)
        gap = abs(surfaces[0][places[0]] / refitted - 1.0)
    return {
        "chosen_width": [settings.widths[at] for at, _ in places],
        "chosen_regularization": [settings.regularizations[at] for _, at in places],
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
    found = search.plan(X, y, DENSE, TARGETS[target](DENSE[:, 0])).run(n_jobs=1)
    return getattr(found, "results", found)


def by_fold(cube: xr.Dataset) -> xr.DataArray:
    """Return the estimate by each fold alone; their mean is that of ``kfold``."""
    return cube.fold_losses / cube.fold_rows


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


def compare(results: xr.Dataset) -> list[Comparison]:
    """Hold the estimates to what the slides say, for the candidate of least mean G."""
    lines, n = _closed_form(results), results.sizes[REPETITION]
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
            ours = mean_of(gaps[name])
            what = f"mean of {label} - G - sigma^2"
            lines.append(
                compare_number(
                    source, where, what, printed=0.0, ours=ours, spread=ours[1], n=n
                )
            )
        for source, name, what in STEADIER:
            ours = mean_of(gaps[name] ** 2 - gaps["kfold"] ** 2)
            steady = f"squared error of {what}"
            lines.append(compare_order(source, where, steady, ours=ours, n=n))
    return lines


def _closed_form(results: xr.Dataset) -> list[Comparison]:
    """Hold the closed form of leave-one-out to refits, on the smallest samples."""
    n, size = results.sizes[REPETITION], results.n_samples.values[0]
    what = f"{CLOSE:g} - |closed form / refits - 1|, largest"
    source = "closed form of LOOCV"
    return [
        compare_order(
            source, f"{name}, n = {size}", what,
            ours=(CLOSE - float(gaps.max()), np.nan), n=n,
        )
        for name, gaps in results.closed_form_gap.groupby("data_set")
    ]  # fmt: skip


def figures(results: xr.Dataset) -> Sequence[Figure]:
    """Return curves and errors of choices, the choices, and spreads, by noise level."""
    n_targets = results.sizes["data_set"]
    size = results.n_samples.values[-1]
    found = []
    for noise in results.noise.values.tolist():
        at = f"noise {noise:g}"
        panels: dict[str, tuple[str, tuple[Callable[..., Lines], ...]]] = {
            "homework": (
                f"Estimates against the truth at n = {size}, and the true error of "
                f"the choices, {at}.",
                (curves, errors),
            ),
            "choices": (
                f"Width and regularization that each estimate chooses, medians, {at}.",
                (partial(choices, name="width"),
                 partial(choices, name="regularization")),
            ),
            "spread": (
                f"Hold-out at n = {size}: how much it depends on the fold j, and its "
                f"distance from G + sigma^2, {at}.",
                (spreads, biases),
            ),
        }  # fmt: skip
        found += [
            Figure(
                f"{name}-noise-{noise:g}",
                caption,
                partial(_draw, results.sel(noise=noise), each),
                height=2.9 * n_targets,
            )
            for name, (caption, each) in panels.items()
        ]
    return found


def curves(shown: xr.Dataset) -> Lines:
    """Return estimates and truth along the regularizations, at the best width."""
    surface, best = _at_best_width(shown)
    mean = surface.mean(REPETITION)
    lams = mean["regularization"].values
    # Estimates less the variance may be negative, which no logarithm shows.
    truth = "true G + noise variance"
    drawn = {truth: (lams, (mean.sel(criterion=ORACLE) + shown.noise**2).values)}
    for name in ("loo", "kfold", "gcv"):
        drawn[LABELS[name]] = (lams, mean.sel(criterion=name).values)
    return Lines(
        f"{shown.data_set.item()}, n = {shown.n_samples.values[-1]}, width {best:.2g}",
        "regularization",
        "squared error, mean of repeats",
        drawn,
        logarithmic="xy",
        dashed=(truth,),
    )


def errors(shown: xr.Dataset) -> Lines:
    """Return the true error of the choices as samples grow."""
    mean = shown.chosen_error.mean(REPETITION)
    title, what = "true G of the choice", "true G, mean of repeats"
    return _over_samples(shown, mean, title=title, what=what)


def choices(shown: xr.Dataset, *, name: str) -> Lines:
    """Return the medians of a chosen parameter as samples grow."""
    median = shown[f"chosen_{name}"].median(REPETITION)
    title, what = f"chosen {name}", f"{name}, median of repeats"
    return _over_samples(shown, median, title=title, what=what)


def _over_samples(
    shown: xr.Dataset, values: xr.DataArray, *, title: str, what: str
) -> Lines:
    sizes, best = values.n_samples.values, "best candidate"
    by_label = {best: ORACLE, **{label: name for name, label in LABELS.items()}}
    return Lines(
        f"{shown.data_set.item()}: {title}",
        "samples",
        what,
        {
            label: (sizes, values.sel(criterion=name).values)
            for label, name in by_label.items()
        },
        logarithmic="xy",
        dashed=(best,),
    )


def spreads(shown: xr.Dataset) -> Lines:
    """Return the standard deviation of hold-out over the folds, and of their mean."""
    surface, best = _at_best_width(shown)
    spread = shown.holdout_spread.isel(n_samples=-1).sel({"width": best})
    lams = surface["regularization"].values
    drawn = {
        "one fold, over j": (lams, spread.mean(REPETITION).values),
        "one fold, over repeats": (
            lams,
            surface.sel(criterion="holdout").std(REPETITION).values,
        ),
        "mean over folds, over repeats": (
            lams,
            surface.sel(criterion="kfold").std(REPETITION).values,
        ),
    }
    return Lines(
        f"{shown.data_set.item()}: standard deviations",
        "regularization",
        "squared error",
        drawn,
        logarithmic="xy",
    )


def biases(shown: xr.Dataset) -> Lines:
    """Return how far estimates are from G + sigma^2, with three standard errors."""
    surface, _ = _at_best_width(shown)
    lams = surface["regularization"].values
    truth = surface.sel(criterion=ORACLE) + shown.noise**2
    drawn, bars = {}, {}
    for name in ("holdout", "loo", "kfold"):
        label = LABELS[name]
        gap = surface.sel(criterion=name) - truth
        drawn[label] = (lams, gap.mean(REPETITION).values)
        error = gap.std(REPETITION, ddof=1) / np.sqrt(gap.sizes[REPETITION])
        bars[label] = 3.0 * error.values
    return Lines(
        f"{shown.data_set.item()}: estimate - G - $\\sigma^2$",
        "regularization",
        "squared error",
        drawn,
        logarithmic="x",
        errors=bars,
    )


def _at_best_width(shown: xr.Dataset) -> tuple[xr.DataArray, float]:
    """Return the estimates of the largest n at the width of least mean G."""
    surface = shown.estimate.isel(n_samples=-1)
    truth = surface.sel(criterion=ORACLE).mean(REPETITION)
    place = int(truth.min("regularization").argmin("width"))
    return surface.isel({"width": place}), float(surface["width"][place])


def _draw(
    results: xr.Dataset, panels: Sequence[Callable[..., Lines]], drawing: Any
) -> None:
    targets = results.data_set.values
    axes = drawing.subplots(len(targets), len(panels), squeeze=False)
    for row, target in zip(axes, targets, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            draw_lines(panel(results.sel(data_set=target)), ax)


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
