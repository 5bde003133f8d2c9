"""``results.dsel``: what can be asked of a results cube."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dsel.results import Choice

# Registered as soon as dsel and xarray are both loaded, so its methods import what they
# need: searches take a second, and drawing is an extra.


@xr.register_dataset_accessor("dsel")  # type: ignore[no-untyped-call]
class ResultsAccessor:
    """Choices, bounds and figures of a results cube.

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
        verbs = "select, bound, table, compare, plot, add_certificate"
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

        The arguments are those of `dsel.select`.

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

    def add_certificate(
        self, certificate: str, *, delta: float, label_share: float | None = None
    ) -> xr.Dataset:
        """Return the cube with another certificate paid from the search's reserve.

        The reserve is spent in the cube that is returned, and this one stays as it is:
        add the next certificate to what was returned. Two that are added to the same
        cube spend one reserve twice, and may then fail more often than was declared.

        Parameters
        ----------
        certificate
            Name of a criterion that is a guarantee.
        delta
            Probability with which it may fail. Events that are paid for already cost
            nothing again.
        label_share
            Part of `delta` for the labeled term; by default that of the search.

        Raises
        ------
        ValueError
            Where the reserve does not cover it, or the run had an ``out``, whose
            journal keeps what is spent: there it is another run.
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
            Probability with which each criterion's bound may fail; by default that of
            the search. Decide which one you use before you look at them.

        Returns
        -------
        xarray.Dataset
            Over ``criterion``: ``candidate``, ``params`` (text), ``estimate``
            (unclipped) and ``bound`` (NaN where it is not certified) of its choice,
            ``is_guarantee``; and why the others cannot answer in ``message``, with
            candidate -1.
        """
        from dsel.searches.compare import compare

        return compare(self._results, delta=delta)

    def table(self) -> pd.DataFrame:
        """Return one row for each candidate.

        Returns
        -------
        pandas.DataFrame
            Parameters, ``status``, ``cv_error`` (mean error on the held-out folds), and
            for each criterion of the search its estimate, under its own name, with the
            two terms that it is made up of. NaN where nothing was counted.
        """
        from dsel.results.choice import candidate_table

        return candidate_table(self._results)

    @property
    def assumptions(self) -> pd.DataFrame:
        """What the certificates assume: A1 to A6, each with its state and reason.

        Empty where operations on the cube lost it: then nothing is certified.
        """
        from dsel.results.ledger import assumption_table

        return assumption_table(self._results)

    @property
    def spent(self) -> pd.DataFrame:
        """What delta was spent on: a row for each event behind each certificate.

        Certificates that rest on the same event pay for it once. The attributes of the
        table, ``spent.attrs``, hold the declared ``delta``, the ``reserve`` included,
        and what is left of the ``reserve``. Empty where operations on the cube lost it:
        then nothing is certified.
        """
        from dsel.results.ledger import spent_table

        return spent_table(self._results)

    @property
    def plot(self) -> "ResultsPlots":
        """Figures of the cube; needs the extra ``plots``."""
        return ResultsPlots(self._results)


class ResultsPlots:
    """The figures of a cube: methods that draw on ``ax=`` or on new axes.

    ``surface(criterion)`` draws a criterion over the grid, ``terms(criterion)`` what
    the best bounds are made of, ``timing()`` where the time went. Each draws one panel,
    returns its axes, and takes the arguments of the function of `dsel.plots` that has
    its name, such as `dsel.plots.plot_surface`.
    """

    def __init__(self, results: xr.Dataset) -> None:
        self._results = results

    def __getattr__(self, name: str) -> Callable[..., "Axes"]:
        """Return the function that draws a figure, such as `dsel.plots.plot_surface`.

        Raises
        ------
        AttributeError
            Where there is no figure of that name.
        """
        if name.startswith("_"):  # others ask for those, without the extra too
            raise AttributeError(name)
        from dsel.plots import FIGURES

        if name not in FIGURES:
            raise AttributeError(
                f"`plot` has no figure {name!r}; it has {', '.join(FIGURES)}."
            )
        return partial(FIGURES[name], self._results)

    def __dir__(self) -> list[str]:
        from dsel.plots import FIGURES

        return [*super().__dir__(), *FIGURES]
