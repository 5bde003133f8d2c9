"""Data sets, preprocessing and one repetition of the experiments of Loog (2015)."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dsel.data.row_random import hashed_seed
from dsel.datasets import load_set
from dsel.mcpl import MaximumLikelihoodLDA, OracleLDA, SemiSupervisedLDA
from dsel.models import (
    DensityRatioLDA,
    ImplicitlyConstrainedLDA,
    MomentConstrainedLDA,
)
from dsel.models.mcpl.discriminant import fitted_classes

FILES: Final[Mapping[str, str]] = {
    "banknote": "banknote",
    "climate": "climate",
    "first-order": "theorem",
    "gas": "gas_drift_zscored",
    "landsat": "satimage",
    "letter": "letter",
    "low": "lrs",
    "magic": "magic",
    "optical": "optdigits",
    "pen-based": "pendigits",
    "qsar": "qsar_biodegradation",
    "shuttle": "shuttle",
    "skin": "skin",
    "spambase": "spambase",
    "spectf": "spectf",
}
"""The paper's names, and those of the files; miniboone could not be had."""

METHODS: Final = (
    "supervised", "semi", "oracle", "constrained", "density_ratio", "implicit",
)  # fmt: skip
"""The paper's four, and two rivals that it does not run."""
PARTS: Final = ("test", "train")
REGULAR: Final = ("low", "spectf")
"""Section 6.3: sets whose learning curves the paper looked at."""
GROWTH: Final = (1.5, 2.0)
"""How many times as many labeled rows these curves go up to."""
KEPT_VARIANCE: Final = 0.999
"""Lost in the text that we have; this figure gives the dimensions of Table 2."""

SINGULAR_RIDGE: Final = 1e-7
"""Added to the supervised covariance where it is singular, features having unit
variance. The paper's numbers rest on rounding there."""


@dataclass(frozen=True, eq=False)
class Table:
    """A data set ready to be drawn from."""

    name: str
    X: NDArray[np.float64]
    """Preprocessed on all rows as in the paper; raw for the clean variant."""
    y: NDArray[np.int64]
    n_features: int
    """Features after PCA on all rows: fixes the number of labeled rows."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    @property
    def n_labeled(self) -> int:
        """Labeled rows of a repetition: twice the features, and the classes."""
        return 2 * self.n_features + self.n_classes


@dataclass(frozen=True)
class Draw:
    """Rows of the three parts."""

    labeled: NDArray[np.int64]
    unlabeled: NDArray[np.int64]
    test: NDArray[np.int64]


def fit_projection(X: NDArray[np.float64]) -> Pipeline:
    """Drop constant columns, scale to unit variance, keep 99.9 % of the variance."""
    pca = PCA(KEPT_VARIANCE, svd_solver="full")
    return make_pipeline(VarianceThreshold(), StandardScaler(), pca).fit(X)


def load_table(
    name: str, *, clean: bool = False, folder: str | Path | None = None
) -> Table:
    """Load a set of the paper, a key of `FILES`.

    `clean` leaves scaling and PCA to each repetition, which fits them without its test
    rows. The paper fits them to the whole set.
    """
    loaded = load_set(FILES[name], folder=folder)
    X = loaded.X.astype(np.float64)
    projection = fit_projection(X)
    n_features = projection[-1].n_components_
    return Table(name, X if clean else projection.transform(X), loaded.y, n_features)


def draw_rows(
    table: Table, repeat: int, *, seed: int, n_labeled: int | None = None
) -> Draw:
    """Draw labeled rows, one of each class first, and halve the rest.

    Labeled are 2d + K rows as in the paper, or `n_labeled`.
    """
    rng = np.random.default_rng(hashed_seed(seed, "loog2015", table.name, repeat))
    wanted = table.n_labeled if n_labeled is None else n_labeled
    order = rng.permutation(len(table.y))
    # In a random order the first row of each class is a random row of the class. But
    # the order of the others is not random any more: no row of a class comes before
    # its first one, so that the first of them would lack the rare classes.
    first = np.unique(table.y[order], return_index=True)[1]
    rest = rng.permutation(np.delete(order, first))
    n_more = wanted - len(first)
    middle = n_more + (len(rest) - n_more + 1) // 2
    labeled = np.concatenate([order[first], rest[:n_more]])
    return Draw(labeled, rest[n_more:middle], rest[middle:])


def run_repetition(
    table: Table, repeat: int, *, seed: int, clean: bool, n_labeled: int | None = None
) -> dict[str, Any]:
    """Draw, fit all methods, and measure them on test and training rows.

    Returns
    -------
    dict
        ``log_likelihood`` (mean per row) and ``error`` (rate), methods x parts; of the
        semi-supervised fit ``duality_gap``, ``contrast_lower``, ``n_passes`` and
        ``seconds``; and ``ridge``, 0 where the supervised covariance is regular.
    """
    draw = draw_rows(table, repeat, seed=seed, n_labeled=n_labeled)
    train = np.concatenate([draw.labeled, draw.unlabeled])
    X = _components(table, train, clean=clean)
    models, ridge, seconds = _fit_all(X, table.y, draw)
    semi = models[1]
    measured = np.array(
        [
            [_measure(model, X[rows], table.y[rows]) for rows in (draw.test, train)]
            for model in models
        ]
    )
    return {
        "log_likelihood": measured[..., 0],
        "error": measured[..., 1],
        "duality_gap": semi.duality_gap_,
        "contrast_lower": semi.contrast_lower_,
        "n_passes": semi.n_passes_,
        "ridge": ridge,
        "seconds": seconds,
    }


def supervised_curve(
    table: Table, repeat: int, *, seed: int, clean: bool
) -> list[float]:
    """Return the supervised test error with `GROWTH` times as many labeled rows.

    NaN for sets that are not among `REGULAR`.
    """
    if table.name not in REGULAR:
        return [np.nan] * len(GROWTH)
    errors = []
    for factor in GROWTH:
        n_labeled = int(factor * table.n_labeled)
        draw = draw_rows(table, repeat, seed=seed, n_labeled=n_labeled)
        train = np.concatenate([draw.labeled, draw.unlabeled])
        X = _components(table, train, clean=clean)
        labeled = X[draw.labeled], table.y[draw.labeled]
        model = MaximumLikelihoodLDA(ridge=needed_ridge(*labeled)).fit(*labeled)
        errors.append(_measure(model, X[draw.test], table.y[draw.test])[1])
    return errors


def _components(
    table: Table, train: NDArray[np.int64], *, clean: bool
) -> NDArray[np.float64]:
    if not clean:
        return table.X
    return np.asarray(fit_projection(table.X[train]).transform(table.X))


def _fit_all(
    X: NDArray[np.float64], y: NDArray[np.int64], draw: Draw
) -> tuple[list[Any], float, float]:
    """Return the fits in the order of `METHODS`, the ridge, and MCPL's seconds."""
    labeled = X[draw.labeled], y[draw.labeled]
    ridge = needed_ridge(*labeled)
    pool = X[draw.unlabeled]
    supervised = MaximumLikelihoodLDA(ridge=ridge).fit(*labeled)
    started = time.perf_counter()
    semi = SemiSupervisedLDA(ridge=ridge).fit(*labeled, pool=pool)
    seconds = time.perf_counter() - started
    truth = y[draw.unlabeled]
    oracle = OracleLDA(ridge=ridge).fit(*labeled, pool=pool, pool_labels=truth)
    rivals = [
        _rival(kind, ridge, labeled, pool)
        for kind in (MomentConstrainedLDA, DensityRatioLDA, ImplicitlyConstrainedLDA)
    ]
    return [supervised, semi, oracle, *rivals], ridge, seconds


def _rival(kind: Any, ridge: float, labeled: Any, pool: NDArray[np.float64]) -> Any:
    """Return a rival's fit, with the small ridge where its covariance is singular.

    That of weighted rows can be so where that of the rows is not.
    """
    try:
        return kind(ridge=ridge).fit(*labeled, pool=pool)
    except ValueError:
        return kind(ridge=SINGULAR_RIDGE * len(labeled[1])).fit(*labeled, pool=pool)


def needed_ridge(X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return 0 where the labeled rows have a regular covariance, else a small ridge."""
    try:
        MaximumLikelihoodLDA().fit(X, y)
    except ValueError:
        return SINGULAR_RIDGE * len(X)
    return 0.0


def _measure(
    model: Any, X: NDArray[np.float64], y: NDArray[np.int64]
) -> tuple[float, float]:
    """Return mean log-likelihood and error rate; densities are computed once."""
    scores = fitted_classes(model).log_joint(X)
    error = float(np.mean(scores.argmax(axis=1) != y))
    return float(scores[np.arange(len(y)), y].mean()), error
