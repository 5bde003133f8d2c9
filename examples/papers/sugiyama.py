"""Sugiyama's slides on cross-validation: the homework on one-dimensional toy data.

"Perform simulations using Gaussian kernel models and quadratically constrained least
squares, and optimize the width and the regularization by cross-validation. Analyze the
results when changing the target function, the number of samples and the noise level."
The slides print no numbers. What must show: estimates follow the true error plus the
noise's variance, and their minimisers are nearly as good as the best candidate.

No estimate says how far off predictions can be. At the largest size a certified search
does, and its tolerance stands next to the true one, which is known for made-up data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
import xarray as xr
from common import REPETITION, Row, mean_of
from scipy import optimize, stats

from dsel.least_squares import LeastSquaresSearch, select_least_squares
from dsel.losses import error_quantile

DOMAIN = 3.0
"""Inputs are uniform on [-3, 3]."""
DENSE = DOMAIN * (2.0 * (np.arange(1000) + 0.5) / 1000 - 1.0)[:, np.newaxis]
"""Points on which the true error G is integrated: midpoints of a fine partition."""
ORACLE = "true"
"""The choice by the true error itself, which is known for made-up data only."""
ESTIMATES = ("loo", "gcv", "kfold", "holdout")
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
class Settings(common.Settings):
    """What pieces depend on besides seed, set and repetition."""

    sizes: tuple[int, ...] = (20, 50, 100, 200)
    """Numbers of samples, n."""
    noises: tuple[float, ...] = (0.05, 0.1, 0.3)
    """Standard deviations of the noise, sigma."""
    widths: tuple[float, ...] = tuple(np.geomspace(0.05, 5.0, 11).tolist())
    regularizations: tuple[float, ...] = tuple(np.geomspace(1e-6, 1e2, 17).tolist())
    share: float = 0.9
    """Share of the predictions that keep the certified tolerance."""


def measure(target: str, repeat: int, settings: Settings, place: Any) -> xr.Dataset:
    """Return the estimates and choices of a repeat, over n_samples and noise."""
    cells = [
        [_cell(target, repeat, n, noise, settings) for noise in settings.noises]
        for n in settings.sizes
    ]
    piece = xr.combine_nested(cells, ["n_samples", "noise"], **common.ALIKE)
    axes = {"n_samples": list(settings.sizes), "noise": list(settings.noises)}
    return piece.assign_coords(axes)


def _cell(
    target: str, repeat: int, n: int, noise: float, settings: Settings
) -> xr.Dataset:
    seed = common.seed_of(settings.seed, "sugiyama", target, n, noise, repeat)
    rng = np.random.default_rng(seed)
    X, y = draw(target, n, noise, rng)
    cube = search_once(target, X, y, settings, rng)
    truth = cube.extra_loss_mean.drop_attrs()
    estimates = cube.estimate.sel(criterion=list(ESTIMATES)).drop_attrs()
    surfaces = xr.concat(
        [estimates, truth.expand_dims(criterion=[ORACLE])], "criterion", join="override"
    )
    chosen = truth.isel(surfaces.argmin(("width", "regularization")))
    by_fold_j = [select_least_squares(cube, fold=j).params for j in cube.fold.values]
    gap = np.nan
    if n == settings.sizes[0]:  # refits are slow
        first = chosen.sel(criterion="loo")
        refitted = loss_of_refits(X, y, float(first.width), float(first.regularization))
        gap = abs(float(estimates.sel(criterion="loo").min()) / refitted - 1.0)
    certified = true = np.nan
    if n == settings.sizes[-1]:  # fewer rows give no finite tolerance
        certified, true = tolerances(target, X, y, noise, settings, seed)
    return xr.Dataset({
        "certified_tolerance": certified,
        "true_tolerance": true,
        "estimate": surfaces,
        "holdout_spread": by_fold(cube).std("fold", ddof=1),
        "closed_form_gap": gap,
        "chosen_error": ("criterion", chosen.values),
        "chosen_width": ("criterion", chosen.width.values),
        "chosen_regularization": ("criterion", chosen.regularization.values),
        "error_by_fold": ("fold", [float(truth.sel(params)) for params in by_fold_j]),
        **{
            f"{name}_by_fold": ("fold", [params[name] for params in by_fold_j])
            for name in ("width", "regularization")
        },
    })  # fmt: skip


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
        cv=10,
        random_state=rng,
        n_jobs=1,
    )
    # Without noise in its targets the extra sample gives G, not G + sigma^2.
    truth = TARGETS[target](DENSE[:, 0])
    return search.plan(X, y, DENSE, truth).run(n_jobs=1)


def tolerances(
    target: str, X: np.ndarray, y: np.ndarray, noise: float, settings: Settings,
    seed: int,
) -> tuple[float, float]:  # fmt: skip
    """Return the certified tolerance of the chosen model, and its true one."""
    search = LeastSquaresSearch(
        settings.widths, settings.regularizations, penalty="rkhs",
        certificate="nested", loss=error_quantile(settings.share), random_state=seed,
        n_jobs=1,
    ).fit(X, y)  # fmt: skip
    off = search.predict(DENSE) - TARGETS[target](DENSE[:, 0])

    def beyond(tolerance: float) -> float:
        """Return how many more new rows are off by more than is allowed."""
        ends = (np.array([[-tolerance], [tolerance]]) + off) / noise
        return float(1.0 - np.diff(stats.norm.cdf(ends), axis=0).mean()) - (
            1.0 - settings.share
        )

    most = np.abs(off).max() + 10.0 * noise
    return search.certificate_.bound, optimize.brentq(beyond, 0.0, most)


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


def compare(results: xr.Dataset) -> Iterator[Row]:
    """Hold the estimates to what the slides say, for the candidate of least mean G."""
    what = f"{CLOSE:g} - |closed form / refits - 1|, largest"
    for name, gaps in results.closed_form_gap.groupby("data_set"):
        where = f"{name}, n = {results.n_samples.values[0]}"
        yield Row("closed form of LOOCV", where, what, CLOSE - float(gaps.max()))
    last = results.isel(n_samples=-1)
    for (name, noise), each in last.groupby(["data_set", "noise"]):
        where = f"{name}, n = {last.n_samples.item()}, sigma = {noise:g}"
        holds = each.certified_tolerance >= each.true_tolerance
        yield Row(
            "certified", where, "certified tolerance / true one",
            *mean_of((each.certified_tolerance / each.true_tolerance).values.ravel()),
            printed=np.nan, why=f"it holds in {int(holds.sum())} of {holds.size}",
        )  # fmt: skip
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
            mean, error = mean_of(gaps[name])
            what = f"mean of {label} - G - sigma^2"
            yield Row(source, where, what, mean, error, printed=0.0, spread=error)
        cell = {"data_set": target, "n_samples": size, "noise": noise}
        by_all = results.chosen_error.sel(criterion="kfold", **cell)
        more = results.error_by_fold.sel(cell).mean("fold") - by_all
        what = "G of the choice by fold j, mean over j - G of that by all folds"
        yield Row("slide 83", where, what, *mean_of(more.transpose(REPETITION)))
        for source, name, what in STEADIER:
            more = mean_of(gaps[name] ** 2 - gaps["kfold"] ** 2)
            yield Row(source, where, f"squared error of {what}", *more)


def figures(results: xr.Dataset) -> Iterator[tuple[str, str, Any]]:
    """Yield estimates against the truth, choices, and spreads; targets by noises."""
    panels = {"col": "data_set", "row": "noise", "xscale": "log"}
    last = results.isel(n_samples=-1)
    truth = last.estimate.sel(criterion=ORACLE, drop=True)
    best = truth.mean(REPETITION).min("regularization").argmin("width")
    at_best = last[["estimate", "holdout_spread"]].isel(width=best)
    truth = truth.isel(width=best) + results.noise**2
    each = at_best.estimate.sel(criterion=list(ESTIMATES))
    at = f"at n = {results.n_samples.values[-1]} and the width of the least true error"

    def draw(what: str, shown: xr.DataArray, **how: Any) -> Any:
        return common.lines_of(
            shown.rename(what), **{"x": "regularization"} | panels | how
        )

    aim = truth.expand_dims(criterion=["G + noise variance"])
    curves = xr.concat([aim, each], "criterion", coords="minimal", join="override")
    curves = curves.mean(REPETITION)
    yield "homework", f"Estimates against the truth {at}, means.", draw(
        "squared error", curves, hue="criterion", yscale="log"
    )  # fmt: skip
    for what, average in (("error", "mean"), ("width", "median"),
                          ("regularization", "median")):  # fmt: skip
        chosen = getattr(results[f"chosen_{what}"], average)(REPETITION)
        caption = f"Chosen {what} by samples, {average} of repeats."
        how = {"x": "n_samples", "hue": "criterion", "yscale": "log"}
        yield f"chosen-{what}", caption, draw(what, chosen, **how)
    std = each.std(REPETITION)
    spreads = xr.Dataset({
        "one fold, over j": at_best.holdout_spread.mean(REPETITION),
        "one fold, over repeats": std.sel(criterion="holdout", drop=True),
        "mean over folds, over repeats": std.sel(criterion="kfold", drop=True),
    }).to_dataarray("of")  # fmt: skip
    yield "spread", f"Standard deviations of hold-out {at}.", draw(
        "standard deviation", spreads, hue="of", yscale="log"
    )  # fmt: skip
    tolerance = last[["certified_tolerance", "true_tolerance"]].to_dataarray("of")
    yield "tolerance", "How far off predictions are at most, means of repeats.", draw(
        "tolerance", tolerance.mean(REPETITION), x="noise", hue="of", row=None,
        xscale="linear",
    )  # fmt: skip
    first = results.isel({REPETITION: 0})
    for what in ("width", "regularization"):
        shown = first[f"{what}_by_fold"]
        caption = f"How the {what} that fold j chooses varies with j, first repeat."
        yield f"choice-of-{what}-by-fold", caption, draw(
            what, shown, x="fold", hue="n_samples", xscale="linear", yscale="log"
        )  # fmt: skip
    gaps = each.sel(criterion=list(CLAIMS)) - truth
    errors = gaps.std(REPETITION, ddof=1) / np.sqrt(gaps.sizes[REPETITION])
    yield "bias", f"Estimate - G - noise variance {at}, in standard errors.", draw(
        "standard errors", gaps.mean(REPETITION) / errors, hue="criterion"
    )  # fmt: skip


EXPERIMENT = common.Experiment(
    name="sugiyama",
    paper="Sugiyama, slides on cross-validation: the homework",
    shows="slides 83 to 85, the closed form and the homework: estimates and choices",
    sets=tuple(TARGETS),
    repetitions=20,
    settings=Settings(),
    measure=measure,
    compare=compare,
    figures=figures,
    errors=(),
    departures=(
        "The slides print no numbers: what they say of means is held to 0.",
        "Targets, sizes, noises and grids are ours; the homework leaves them open.",
        "How heavily j affects hold-out by fold j is shown by what it chooses: the "
        "mean true error of these choices less that of the choice by all folds.",
    ),
    in_processes=True,
)

if __name__ == "__main__":
    common.main(EXPERIMENT)
