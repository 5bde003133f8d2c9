"""``results.dsel``: choices, tables and figures of a results cube.

Imports are inside methods: those of searches take a second, and figures need an extra.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import pandas as pd
import xarray as xr

from dsel.checks import attribute_error, did_you_mean, explain_unknown
from dsel.old_names import names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dsel.least_squares.loss_cube import LossChoice
    from dsel.results import Certificate, Choice
    from dsel.results.class_report import CertifiedReport


@xr.register_dataset_accessor("dsel")  # type: ignore[no-untyped-call]
@explain_unknown()
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
        """Return a criterion's value for every candidate, at any delta.

        The arguments are those of `dsel.select`. Numbers are unclipped; a pruned
        candidate has NaN and one that failed has inf. They are a guarantee only if
        `select` says so, for this criterion and delta.
        """
        from dsel.results.cube import restore_dims
        from dsel.search.running.select import evaluate

        evaluation = evaluate(self._results, criterion, delta=delta)
        status = restore_dims(self._results)["status"]
        return (
            status.copy(data=evaluation.terms.value.reshape(status.shape))
            .assign_attrs(long_name=evaluation.criterion.name, units="1")
            .rename("bound")
        )

    def table(self) -> pd.DataFrame:
        """Return one row for each candidate.

        It has parameters, ``status``, ``cv_error`` (mean error on the held-out folds),
        and for each criterion of the search its estimate, in a column with its name,
        and its two terms, if it has two. NaN where nothing was counted. The numbers of
        a ``partly pruned`` candidate, which some searches dropped early, are counted on
        fewer rows than those of others.
        """
        from dsel.results.candidate_tables import candidate_table

        return candidate_table(self._results)

    @property
    def assumptions(self) -> pd.DataFrame:
        """Assumptions of the certificates, each with its state and reason.

        Empty if operations on the cube lost its attributes: then nothing is certified.
        """
        from dsel.results.assumptions import assumptions_of

        rows = [
            (assumption.name, assumption.state, assumption.statement, assumption.reason)
            for assumption in assumptions_of(self._results)
        ]
        columns = ["assumption", "state", "statement", "reason"]
        return pd.DataFrame(rows, columns=columns).set_index("assumption")

    @property
    def plot(self) -> "ResultsPlots":
        """Figures of the cube; a call draws one of them. Needs the extra ``plots``.

        ``plot()``, ``plot.certificates()`` and ``plot.folds()`` draw any search,
        ``plot.terms()`` and ``plot.timing()`` one by ``cv_bound`` or ``best_fold``. The
        seconds of a nested search are in its `pair_results`; see `Outcome.plot`.
        """
        return ResultsPlots(self._results)

    def bounds_svg(self) -> str:
        """Return the figure of the bounds as an SVG element, for a card.

        It has the color of the text around it. Empty where there are no bounds, or
        where matplotlib is not installed.
        """
        from dsel.search.running.select import select

        with suppress(ModuleNotFoundError, KeyError, ValueError):
            from dsel.plots.svg import draw_bounds

            return draw_bounds(self._results, select(self._results))
        return ""


@explain_unknown()
class ResultsPlots:
    """The figures of a cube: methods that draw on ``ax=`` or on new axes.

    Each draws one panel, and returns its axes. A call draws the surface of a grid; see
    `Outcome.plot` for others. Needs the extra ``plots``.
    """

    def __init__(
        self, results: xr.Dataset, pair_results: xr.Dataset | None = None
    ) -> None:
        self._results = results
        # The counts of the inner searches; None where only the cube is known.
        self._pair_results = pair_results

    def __call__(
        self,
        criterion: str | None = None,
        *,
        ax: "Axes | None" = None,
        x: str | None = None,
        y: str | None = None,
    ) -> "Axes":
        """Draw a criterion over the grid; see `dsel.plots.plot_surface`.

        For a least-squares search it draws the curves of the estimates, and for a list
        of candidates that is no grid their folds. `dsel.certify` has one candidate: for
        classes it draws the report, if one was declared, else the bounds with those of
        more labels, and for numbers how far predictions are off.

        Parameters
        ----------
        criterion
            The criterion to draw; by default that of the search.
        ax
            Axes to draw on, which are returned; None makes a new figure.
        x, y
            Dimensions for columns and rows; by default the last two that vary.
        """
        from dsel.names import CANDIDATE
        from dsel.plots import plot_loss_curves, plot_surface
        from dsel.plots.surface import procedure_without_grid
        from dsel.results.cube import candidate_dims

        if isinstance(criterion, str) and criterion in names_of(type(self)):
            raise ValueError(
                f"`criterion` must be the name of a criterion, got {criterion!r}, a "
                f"figure; write plot.{criterion}()."
            )
        if "regularization" in self._results.dims:
            return plot_loss_curves(self._results, criterion=criterion, ax=ax)
        has_options = not (criterion is x is y is None)
        if not has_options and procedure_without_grid(self._results):
            figures = self._figures()
            best = next(name for name in WITHOUT_GRID if name in figures)
            axes: Axes = getattr(self, best)(ax=ax)
            return axes
        is_list = candidate_dims(self._results) == (CANDIDATE,)
        if is_list and not has_options and "folds" in self._figures():
            return self.folds(ax=ax)  # its numbers have no order, and names are needed
        return plot_surface(self._results, criterion, ax=ax, x=x, y=y)

    def surface(
        self,
        criterion: str | None = None,
        *,
        ax: "Axes | None" = None,
        x: str | None = None,
        y: str | None = None,
    ) -> "Axes":
        """Draw a criterion over the grid; see `dsel.plots.plot_surface`."""
        from dsel.plots import plot_surface

        return plot_surface(self._results, criterion, ax=ax, x=x, y=y)

    def certificates(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the bounds of the models; see `dsel.plots.plot_certificates`."""
        from dsel.plots import plot_certificates

        return plot_certificates(self._results, ax=ax)

    def folds(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the folds of the best candidates; see `dsel.plots.plot_folds`."""
        from dsel.plots import plot_folds

        return plot_folds(self._results, ax=ax)

    def terms(
        self, criterion: str | None = None, *, n_best: int = 8, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw the parts of the smallest bounds; see `dsel.plots.plot_terms`.

        A nested search has no bound for every candidate; `certificates` draws the parts
        of the bounds of its models.
        """
        from dsel.plots import plot_terms

        return plot_terms(self._results, criterion, n_best=n_best, ax=ax)

    def bound_by_labels(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw what more labels give; see `dsel.plots.plot_bound_by_labels`."""
        from dsel.plots import plot_bound_by_labels

        return plot_bound_by_labels(self._results, ax=ax)

    def residuals(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw how far predictions are off; see `dsel.plots.plot_residuals`."""
        from dsel.plots import plot_residuals

        return plot_residuals(self._results, ax=ax)

    def report(self, deploy: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw recalls and precisions; see `dsel.plots.plot_certified_report`.

        `deploy` names the model, ``one_fold`` or ``all_rows``; by default the deployed
        one. Regressors have none: `residuals` draws their tolerances.
        """
        from dsel.plots import plot_certified_report

        return plot_certified_report(self._class_report(deploy), ax=ax)

    def report_by_value(
        self, deploy: str | None = None, *, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw limits by value; see `dsel.plots.plot_report_by_value`."""
        from dsel.plots import plot_report_by_value
        from dsel.search.running.select import select

        report = select(self._results).report_by_value(deploy)
        return plot_report_by_value(report, ax=ax)

    def timing(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the seconds of each kind of task; see `Outcome.plot`."""
        from dsel.plots.bars import plot_timing

        pairs = self._pair_results
        return plot_timing(self._results if pairs is None else pairs, ax=ax)

    def __repr__(self) -> str:
        from dsel.rounded_texts import terminal_width, wrap_line

        calls = (f"plot.{name}()" for name in self._figures())
        text = f"<figures: plot(), {', '.join(calls)}>"
        width = terminal_width()
        return text if width is None else wrap_line(text, 1, width)

    # Completion offers the plots that this search has: the others would raise an error.
    def __dir__(self) -> list[str]:
        return [*(n for n in super().__dir__() if n not in FIGURES), *self._figures()]

    def __getattr__(self, name: str) -> NoReturn:
        figures = self._figures()
        end = did_you_mean(name, figures)
        raise attribute_error(
            "`plot`", name, figures, f"; it has {', '.join(figures)}{end}"
        )

    def _figures(self) -> list[str]:
        """Return the names of the figures that can be drawn of these results.

        Those are left out whose own check raises an error: it explains why, if they are
        called nevertheless.
        """
        from dsel.plots.bars import names_of_timed_phases, smallest_bounds
        from dsel.plots.by_labels import choice_by_labels
        from dsel.plots.spread import whole_candidates
        from dsel.plots.surface import check_grid
        from dsel.search.design.expected_tolerances import MeasuredDistances
        from dsel.search.running.select import select

        results, pairs = self._results, self._pair_results
        checks: dict[str, Callable[[], object]] = {
            "surface": lambda: check_grid(results),
            "certificates": lambda: select(results),
            "folds": lambda: whole_candidates(results),
            "terms": lambda: smallest_bounds(results),
            "bound_by_labels": lambda: choice_by_labels(results),
            "residuals": lambda: MeasuredDistances.of_cube(results),
            "report": lambda: self._class_report(None),
            "report_by_value": lambda: select(results).report_by_value(),
            "timing": lambda: names_of_timed_phases(
                results if pairs is None else pairs
            ),
        }
        figures = []
        for name in FIGURES:
            with suppress(KeyError, TypeError, ValueError):
                checks[name]()
                figures.append(name)
        return figures

    def _class_report(self, deploy: str | None) -> "CertifiedReport":
        """Return the report that `report` draws; ValueError if there is none."""
        from dsel.results.tolerances import ToleranceReport
        from dsel.search.running.select import select

        report = select(self._results).report(deploy)
        if isinstance(report, ToleranceReport):
            raise ValueError(
                "`plot.report` draws recall and precision of classes, and regressors "
                "have none: plot.residuals() draws their tolerances."
            )
        return report


FIGURES: Final = [name for name in vars(ResultsPlots) if not name.startswith("_")]
"""Names of the methods that draw."""
WITHOUT_GRID: Final = ("report", "residuals", "bound_by_labels", "certificates")
"""Figures of what has no grid, the most useful one first."""
