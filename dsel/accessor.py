"""``results.dsel``: what can be asked of a results cube."""

from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dsel.results import Choice
    from dsel.searches import Plan

# Registered as soon as dsel and xarray are both loaded, so its methods import what they
# need: searches take a second, and drawing is an extra.


@xr.register_dataset_accessor("dsel")  # type: ignore[no-untyped-call]
class ResultsAccessor:
    """Choices, bounds and figures of a results cube; only `pairs` ever fits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import dsel
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = dsel.plan_search(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5, 9]}, X, y, random_state=0)
    >>> results = plan.run()
    >>> results.dsel.select().params
    {'n_neighbors': 9}
    """

    def __init__(self, results: xr.Dataset) -> None:
        self._results = results

    def __repr__(self) -> str:
        """Say what was chosen, and which verbs read the cube."""
        verbs = "select, bound, read, compare, pairs, plot"
        try:
            choice = str(self.select())
        except (ValueError, KeyError) as error:
            choice = f"no choice: {error}"
        return f"{choice}\n<verbs of results.dsel: {verbs}>"

    def select(self, criterion: str | None = None, **settings: Any) -> "Choice":
        """Choose a candidate; see `dsel.select` for the settings."""
        from dsel.searches.select import select

        return select(self._results, criterion, **settings)

    def bound(
        self,
        criterion: str | None = None,
        *,
        delta: float | None = None,
        label_share: float | None = None,
    ) -> xr.DataArray:
        """Return a criterion's number for every candidate, at any delta.

        Parameters
        ----------
        criterion
            Name of the criterion; by default that of the search.
        delta
            Probability with which the bounds may fail, all together.
        label_share
            Part of delta for the labeled term.

        Returns
        -------
        xarray.DataArray
            Over the grid's dimensions, unclipped; NaN where a candidate was pruned
            and inf where it failed.
        """
        from dsel.searches.evaluate import evaluate

        judged = evaluate(
            self._results, criterion, delta=delta, label_share=label_share
        )
        return judged.estimate.rename("bound").assign_attrs(
            long_name=judged.criterion, units="1", delta=judged.delta
        )

    def read(
        self, certificate: str, *, delta: float, label_share: float | None = None
    ) -> xr.Dataset:
        """Return the cube with another certificate paid from the search's reserve.

        Parameters
        ----------
        certificate
            Name of a criterion that is a guarantee.
        delta
            Probability with which it may fail.
        label_share
            Part of `delta` for the labeled term.

        Raises
        ------
        ValueError
            Where the reserve does not cover it.
        """
        from dsel.searches.ledger import add_certificate

        return add_certificate(
            self._results, certificate, delta=delta, label_share=label_share
        )

    def compare(self, *, delta: float | None = None) -> xr.Dataset:
        """Return what every criterion that can answer would choose.

        Parameters
        ----------
        delta
            Probability with which each one's bound may fail; by default that of the
            search. Which of them is used is to be fixed before looking.

        Returns
        -------
        xarray.Dataset
            Over ``criterion``: ``candidate``, ``params`` (text), ``estimate`` and
            ``bound`` of its choice, ``is_guarantee``; and why the others cannot
            answer in ``message``, with candidate -1.
        """
        from dsel.searches.compare import compare

        return compare(self._results, delta=delta)

    def pairs(self, plan: "Plan", **settings: Any) -> xr.Dataset:
        """Return what the pool says of pairs of candidates without a label.

        Parameters
        ----------
        plan
            The plan that the cube came from; its best candidates are fitted again.
        **settings
            As `dsel.searches.compare_pairs` takes them: ``candidates``, ``n_best``,
            ``delta``, ``client``.
        """
        from dsel.searches.compare import compare_pairs

        return compare_pairs(self._results, plan, **settings)

    @property
    def plot(self) -> "ResultsPlots":
        """Figures of the cube; needs the extra ``plots``."""
        return ResultsPlots(self._results)


class ResultsPlots:
    """The figures of a cube, each drawn on `ax` or on a new one."""

    def __init__(self, results: xr.Dataset) -> None:
        self._results = results

    def surface(self, criterion: str | None = None, **options: Any) -> "Axes":
        """Draw a criterion over the grid; see `dsel.plots.plot_surface`."""
        from dsel.plots import plot_surface

        return plot_surface(self._results, criterion, **options)

    def terms(self, criterion: str | None = None, **options: Any) -> "Axes":
        """Draw what the best bounds are made of; see `dsel.plots.plot_terms`."""
        from dsel.plots import plot_terms

        return plot_terms(self._results, criterion, **options)

    def timing(self, **options: Any) -> "Axes":
        """Draw where the time went; see `dsel.plots.plot_timing`."""
        from dsel.plots import plot_timing

        return plot_timing(self._results, **options)
