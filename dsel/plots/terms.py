"""What the smallest bounds are made of: labeled rows, pool, and the error observed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dsel import names
from dsel.plots.style import ACCENT, BLUE, INK, PALE, new_axes, params_label, tidy
from dsel.results import evidence
from dsel.results.choice import params_of
from dsel.results.rounding import at_most
from dsel.searches.evaluate import evaluate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class TermsData:
    """The candidates with the smallest numbers, best first."""

    title: str
    labels: tuple[str, ...]
    """Parameters of each candidate."""
    label_term: NDArray[np.float64]
    disagreement_term: NDArray[np.float64]
    cv_error: NDArray[np.float64]
    """Errors counted in all folds, as a rate: an estimate, below the bound."""


def terms_data(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    n_best: int = 8,
    delta: float | None = None,
) -> TermsData:
    """Return the numbers of the terms figure.

    Parameters
    ----------
    results, criterion
        As `plot_terms` takes them.
    n_best
        How many candidates to show.
    delta
        Probability with which the bounds may fail; by default that of the search.

    Raises
    ------
    ValueError
        Where the criterion has no terms, or no candidate is complete.
    """
    found = evaluate(
        results, criterion or results.attrs.get("certificate"), delta=delta
    )
    first = found.label_term.values.ravel()
    second = found.disagreement_term.values.ravel()
    order = np.argsort(found.estimate.values.ravel(), kind="stable")
    best = [int(n) for n in order if np.isfinite(first[n] + second[n])][:n_best]
    if not best:
        raise ValueError(
            f"`criterion` {found.criterion!r} has no two terms to show; choose one "
            f"that bounds the error by labeled rows and a pool, such as 'cv_bound'."
        )
    counts = evidence(results)
    errors = counts[names.FOLD_ERRORS].reshape(len(order), -1).sum(axis=1)
    rows = counts[names.FOLD_ROWS].sum()
    return TermsData(
        title=f"{found.criterion} at delta = {found.delta:g}: what it is made of",
        labels=tuple(params_label(params_of(results, n)) for n in best),
        label_term=first[best],
        disagreement_term=second[best],
        cv_error=errors[best] / rows,
    )


def plot_terms(
    results: xr.Dataset,
    criterion: str | None = None,
    *,
    ax: "Axes | None" = None,
    **options: Any,
) -> "Axes":
    """Draw what the smallest bounds of a cube are made of, the best one on top.

    Parameters
    ----------
    results
        Cube of a search.
    criterion
        A criterion that has two terms; by default the search's certificate.
    ax
        Where to draw, and what is returned; None makes a new figure.
    **options
        ``n_best`` and ``delta`` of `terms_data`.

    See Also
    --------
    terms_data : The numbers that are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5], "weights": ["uniform", "distance"]}
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), grid, X[::2], y[::2], X[1::2], cv=3, random_state=0,
    ...     criterion="cv_bound", duplicates="keep")
    >>> ax = plot_terms(plan.run())
    >>> ax.get_xlabel()
    'bound on the error (share of rows)'
    """
    data = terms_data(results, criterion, **options)
    ax = new_axes() if ax is None else ax
    places = np.arange(len(data.labels))[::-1]
    ax.barh(places, data.label_term, height=0.6, color=BLUE, label="from labeled rows")
    ax.barh(
        places, data.disagreement_term, height=0.6, left=data.label_term, color=PALE,
        edgecolor=BLUE, lw=0.6, label="from disagreement on the pool",
    )  # fmt: skip
    for place, bound in zip(
        places, data.label_term + data.disagreement_term, strict=True
    ):
        ax.annotate(
            f" {at_most(bound)}", (bound, place), va="center", fontsize=8, color=INK
        )
    ax.plot(
        data.cv_error, places, "|", color=ACCENT, markersize=14, markeredgewidth=2.5,
        label="error in cross-validation (an estimate)",
    )  # fmt: skip
    ax.set_yticks(places, data.labels)
    ax.set_xlabel("bound on the error (share of rows)")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.15))
    tidy(ax, title=data.title)
    return ax
