"""``results.dsel``: choices, tables and figures of a results cube.

Imports are inside methods: those of searches take a second, and figures need an extra.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from dsel.checks import did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dsel.least_squares.losses import LossChoice
    from dsel.results import Certificate, Choice


@xr.register_dataset_accessor("dsel")  # type: ignore[no-untyped-call]
class ResultsAccessor:
    """Choices, certificates and figures of a results cube; nothing is fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}, X, y, random_state=0,
    ...     prune=False)
    >>> results = plan.run().results
    >>> results.dsel.select("cv_error").params
    {'n_neighbors': 9}
    """

    def __init__(self, results: xr.Dataset) -> None:
        self._results = results

    def __repr__(self) -> str:
        try:
            choice = str(self.select())
        except (ValueError, KeyError) as error:
            choice = f"no choice: {error}"
        verbs = "select, certificates, assumptions, bound, table, plot"
        return f"{choice}\n<verbs of results.dsel: {verbs}>"

    def select(
        self, criterion: str | None = None, *, delta: float | None = None
    ) -> "Choice | LossChoice":
        """Choose a candidate; see `dsel.select`."""
        from dsel.least_squares import select_least_squares
        from dsel.search.running.select import select

        is_certified = "choice" in self._results.attrs
        if "regularization" in self._results.dims and (criterion or not is_certified):
            # Criteria of least squares are estimates, which have no delta.
            return select_least_squares(self._results, criterion)
        return select(self._results, criterion, delta=delta)

    @property
    def certificates(self) -> Mapping[str, "Certificate"]:
        """The certificate of each model of the run."""
        from dsel.search.running.select import select

        return select(self._results).certificates

    def bound(
        self, criterion: str | None = None, *, delta: float | None = None
    ) -> xr.DataArray:
        """Return a criterion's number for every candidate, at any delta.

        The arguments are those of `dsel.select`. Numbers are unclipped; a pruned
        candidate has NaN and one that failed has inf.
        """
        from dsel.results.cube import in_order
        from dsel.search.running.evaluate import evaluate

        evaluation = evaluate(self._results, criterion, delta=delta)
        status = in_order(self._results)["status"]
        return (
            status.copy(data=evaluation.terms.estimate.reshape(status.shape))
            .assign_attrs(long_name=evaluation.rule.name, units="1")
            .rename("bound")
        )

    def table(self) -> pd.DataFrame:
        """Return one row for each candidate.

        It has parameters, ``status``, ``cv_error`` (mean error on the held-out folds),
        and for each criterion of the search its estimate, in a column with its name,
        and its two terms, if it has two. NaN where nothing was counted.
        """
        from dsel.results.tables import candidate_table

        return candidate_table(self._results)

    @property
    def assumptions(self) -> pd.DataFrame:
        """Assumptions of the certificates, each with its state and reason.

        Empty if operations on the cube lost its attributes: then nothing is certified.
        """
        from dsel.results.certificate import assumptions_of

        rows = [
            (each.name, each.state, each.statement, each.reason)
            for each in assumptions_of(self._results)
        ]
        columns = ["assumption", "state", "statement", "reason"]
        return pd.DataFrame(rows, columns=columns).set_index("assumption")

    @property
    def plot(self) -> "ResultsPlots":
        """Figures of the cube; a call draws the surface. Needs the extra ``plots``.

        ``plot()``, ``plot.certificates()`` and ``plot.folds()`` draw any search,
        ``plot.terms()`` and ``plot.timing()`` one by ``cv_bound`` or ``best_fold``. The
        seconds of a nested search are in its `pair_results`; see `Outcome.plot`.
        """
        return ResultsPlots(self._results)


class ResultsPlots:
    """The figures of a cube: methods that draw on ``ax=`` or on new axes.

    Each draws one panel, returns its axes, and takes the arguments of the function of
    `dsel.plots` that has its name, such as `dsel.plots.plot_surface`.
    """

    def __init__(
        self, results: xr.Dataset, pair_results: xr.Dataset | None = None
    ) -> None:
        self._results = results
        # What inner searches counted; None where only the cube is known.
        self._pair_results = pair_results

    def with_pairs(self, pair_results: xr.Dataset | None) -> "ResultsPlots":
        """Return the figures of a search that has counts of inner searches, too."""
        return ResultsPlots(self._results, pair_results)

    def __call__(self, *args: Any, **options: Any) -> "Axes":
        """Draw a criterion over the grid; see `dsel.plots.plot_surface`.

        For a least-squares search it draws the curves of the estimates.
        """
        from dsel.plots import plot_loss_curves, plot_surface

        is_classified = "regularization" not in self._results.dims
        plot = plot_surface if is_classified else plot_loss_curves
        return plot(self._results, *args, **options)

    def __getattr__(self, name: str) -> Callable[..., "Axes"]:
        if name.startswith("_"):  # copy and notebooks look these up, without the extra
            raise AttributeError(name)
        from dsel.plots import FIGURES

        if name not in FIGURES:
            raise AttributeError(
                f"`plot` has no figure {name!r}; it has {', '.join(FIGURES)}"
                f"{did_you_mean(name, FIGURES)}"
            )
        is_of_pairs = name == "timing" and self._pair_results is not None
        return partial(
            FIGURES[name], self._pair_results if is_of_pairs else self._results
        )

    def __dir__(self) -> list[str]:
        from dsel.plots import FIGURES

        return [*super().__dir__(), *FIGURES]
