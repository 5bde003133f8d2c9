"""A plan, as users get it: it prints itself, runs, and fits candidates again.

`plan_search.plan_search` makes it. A plan never changes: results of a run are separate
values, and `Plan.with_leave_one_out` returns another plan.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from dsel.arrays import Floats
from dsel.cards import ShownRow, render_card
from dsel.checks import attribute_error, check_integer
from dsel.data.splits import OuterNumber, all_rows_split
from dsel.families.family import FitId
from dsel.old_names import OldName, names_of
from dsel.results.caveats import texts_that_void_nothing
from dsel.results.choice import NAMES_IN_OUTCOME, NAMES_OF_SEARCH
from dsel.results.cube import GridAxes
from dsel.runtime.clients import resolve_client
from dsel.runtime.progress import Progress, check_verbose
from dsel.runtime.tasks import limit_threads
from dsel.search.design.cv_schemes import with_leave_one_out
from dsel.search.engine.fit_batch import fit_splits
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planned_search import PlanFacts, PlannedSearch
from dsel.search.planning.plan_caveats import name_counted_rows, notes_on_possible_bound
from dsel.search.planning.plan_text import (
    notes_before_fits,
    plan_lines,
    plan_rows,
)
from dsel.search.running.execute import execute
from dsel.search.running.run import RunOptions
from dsel.typing import Options, PathLike

if TYPE_CHECKING:
    from distributed import Client

NEXT: Final = "Next: `run()`, or `run(out='results')` to keep results in a folder"


@dataclass(frozen=True, repr=False)
class Plan:
    """A planned search, with the methods that users call, such as `run`.

    It needs the labeled rows for its fits, so a pickle of it contains them; that of an
    outcome does not.
    """

    search: PlannedSearch
    """The decisions: candidates, folds, pool, certificate and delta."""
    facts: PlanFacts
    """What is known before any fit, such as caveats."""

    def __getattr__(self, name: str) -> NoReturn:
        end = ""
        if name == "fit":
            end = "; `plan.run()` fits all candidates, and returns the outcome."
        # Fields without a default are no attributes of the class.
        of_outcome = {*names_of(Outcome), *Outcome.__dataclass_fields__}
        if name in NAMES_IN_OUTCOME:
            way = NAMES_IN_OUTCOME[name].removeprefix("outcome.")
            end = f"; its outcome has it: `plan.run().{way}`."
        if name in NAMES_OF_SEARCH:
            of_search = f"`plan.run().model.{name}` if that is a search"
            end = f"{end[:-1]}, or {of_search}." if end else f"; it is {of_search}."
        elif not end and name in of_outcome and not name.startswith("_"):
            end = f"; its outcome has it: `plan.run().{name}`."
        raise attribute_error("a plan", name, names_of(type(self)), end)

    @property
    def axes(self) -> GridAxes:
        """The candidates, with their axes in the cube."""
        return self.search.axes

    @property
    def notes_on_few_rows(self) -> list[str]:
        """Notes about limits that will say little, for too few labeled rows."""
        search, scheme = self.search, self.search.scheme
        few_rows = search.context.losses.vacuous_caveats(
            search.labeled.y[scheme.counted_rows],
            scheme.n_folds,
            search.planned_delta.model_label_delta,
        )
        named = name_counted_rows(few_rows, scheme, search.row_groups)
        texts = [caveat.text for caveat in named]
        return [*texts, *notes_on_possible_bound(search)]

    @property
    def fold_variances(self) -> Floats | None:
        """Variance of the targets of each fold, (n_folds,); None for classes."""
        search = self.search
        if not search.is_regression:
            return None
        all_rows = np.arange(search.labeled.n_rows)
        # A fold tests one row of a group, and inner searches read all rows of it.
        rows = [
            split.test_rows
            if search.row_groups is None or not search.method.is_nested
            else np.setdiff1d(all_rows, split.train_rows)
            for split in search.scheme.fold_splits
        ]
        return np.array([search.labeled.y[row_numbers].var() for row_numbers in rows])

    @property
    def remarks(self) -> tuple[str, ...]:
        """Texts of the caveats that do not void a bound, and notes about the fits."""
        return (*texts_that_void_nothing(self.facts.caveats), *self.search.fit_notes)

    certificate, layout = OldName("search.method_name"), OldName("search.scheme")
    spans, prior = OldName("search.slices"), OldName("search.prior_shares")
    delta_shares = OldName("search.candidate_deltas")
    context, labeled = OldName("search.context"), OldName("search.labeled")
    pool, classes = OldName("search.pool"), OldName("search.classes")
    criterion, method = OldName("search.criterion"), OldName("search.method")
    delta, deploy = OldName("search.delta"), OldName("search.deploy")
    prune, seed = OldName("search.prune"), OldName("search.seed")
    n_candidates = OldName("search.n_candidates")
    comparisons = OldName("search.comparisons")
    fits_range, identity = OldName("search.fits_range"), OldName("facts.identity")
    assumptions, caveats = OldName("facts.assumptions"), OldName("facts.caveats")

    def run(
        self,
        client: "Client | None" = None,
        *,
        out: PathLike | None = None,
        storage_options: Options | None = None,
        on_failure: str = "record",
        on_progress: Callable[[Progress], None] | None = None,
        verbose: bool | int | None = None,
        n_jobs: int | None = None,
    ) -> Outcome:
        """Search.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else this machine.
        out
            Directory or URL that belongs to this plan: counts are written there, and
            the same plan continues from them. If the run has ended, it is only read,
            with the labels of queried rows that were stored there since.
        storage_options
            Options of fsspec if `out` is a URL; never stored.
        on_failure
            ``"record"`` a fit that raises (the candidate cannot win), or ``"raise"``.
        on_progress
            Called a few times a second with a `Progress`; nothing is shown then.
        verbose
            Whether progress is shown on standard error: bars in terminals and
            notebooks, elsewhere a line for each phase and each slow fit. None shows
            bars, and lines only of runs that last longer than 5 seconds.
        n_jobs
            Local threads, or processes for learners other than kernel SVMs; None and
            -1 mean one for each core. Ignored on a cluster.

        Returns
        -------
        Outcome
            ``results`` (the cube), ``choice``, ``certificates``, ``models``.

        Raises
        ------
        AllFitsFailedError
            If no candidate could be fitted.
        StoreMismatchError
            If `out` belongs to another plan.
        MemoryError
            If a task has too little memory for any fit.
        ClusterLostError
            If the scheduler or all workers are gone.
        VersionMismatchError
            If a worker has another version of a package that affects results.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> from dsel import plan_search
        >>> plan = plan_search(SVC(), {"C": [1, 10]}, X, y, random_state=0)
        >>> plan.run().choice.params
        {'C': 10}
        """
        options = RunOptions(
            client=resolve_client(client),
            out=out,
            storage_options=storage_options,
            on_failure=on_failure,
            on_progress=on_progress,
            verbose=check_verbose(verbose),
            n_jobs=n_jobs,
        )
        return execute(self.search, self.facts, options)

    def with_leave_one_out(self) -> "Plan":
        """Return a plan that also counts leave-one-out errors, for ``loo_error``.

        Returns
        -------
        Plan
            A plan of the same search with these counts; this plan stays as it is.

        Raises
        ------
        ValueError
            If the search is nested, rows come in groups, or candidates predict numbers.
        """
        if self.search.method.is_nested:
            raise ValueError(
                "a nested search fits no candidate without each row, so it cannot "
                "count leave-one-out errors; plan with criterion='loo_error', or with "
                "certificate='cv_bound' and then `with_leave_one_out`."
            )
        if self.search.is_regression or self.search.row_groups is not None:
            what = (
                "`groups`" if self.search.row_groups is not None else "a `y` of numbers"
            )
            raise ValueError(
                f"leave-one-out errors are counted row by row for classifiers, got a "
                f"plan with {what}; run it without `with_leave_one_out`."
            )
        scheme = with_leave_one_out(self.search.scheme, self.search.labeled.n_rows)
        # Only splits and identity differ, since assumptions and caveats are about the
        # folds.
        context = replace(self.search.context, scheme=scheme)
        identity = {**self.facts.identity, "splits": scheme.identity}
        return Plan(
            replace(self.search, context=context),
            replace(self.facts, identity=identity),
        )

    def model(self, candidate: int, fold: int | None = None) -> Any:
        """Fit a candidate again, in this process, on all rows or without a fold.

        If the learner has a seed, the model equals the one that the search counted.

        Parameters
        ----------
        candidate
            Its number in the C order of the cube.
        fold
            Number of the fold whose rows are held out; for random halvings
            ``2 * repeat + half``. None for the model of all labeled rows.

        Returns
        -------
        estimator
            Fitted scikit-learn estimator, for rows and labels like those of the plan.

        Raises
        ------
        ValueError
            If there is no such candidate or fold.
        RuntimeError
            If the fit fails.

        Examples
        --------
        >>> import dsel
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = dsel.plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, random_state=0)
        >>> plan.model(1, fold=3).predict(X[:2]).tolist()
        [0, 0]
        """
        last = self.search.n_candidates - 1
        split = all_rows_split(self.search.labeled.n_rows, number=OuterNumber(0))
        candidate_number = check_integer(
            candidate, "candidate", at_least=0, at_most=last
        )
        if fold is not None:
            folds = self.search.scheme.fold_splits
            last = len(folds) - 1
            split = folds[check_integer(fold, "fold", at_least=0, at_most=last)]
        # Workers fit on one thread, too. On several threads BLAS would sum in another
        # order, and the model would differ in its last digits.
        with limit_threads():
            candidate_group = self.search.context.candidate_group_of(candidate_number)
            fitted = fit_splits(
                self.search.context, candidate_group, (candidate_number,), [split]
            )
        if fitted.fit_counts.has_failed[0, 0]:
            failed_fit = FitId(candidate_number, split.number)
            reason = fitted.fit_counts.messages[failed_fit].text
            raise RuntimeError(
                f"candidate {candidate_number}, {split.trained_on}: {reason}; the "
                f"plan's `axes.candidates` has its parameters."
            )
        return fitted.model(candidate_number, split.number)

    def models(self) -> Iterator[tuple[int, Any]]:
        """Fit all candidates again, in this process, on all rows; group by group.

        Candidates of a group share work, such as the kernel matrix of one gamma, so
        that this is faster than one call of `model` for each.

        Yields
        ------
        candidate : int
            Its number in the C order of the cube. Groups come one after the other, so
            that the numbers are not in order.
        model : estimator
            Fitted scikit-learn estimator; None if the fit failed.

        Examples
        --------
        >>> import dsel
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = dsel.plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, random_state=0)
        >>> [(number, model.C) for number, model in plan.models()]
        [(0, 0.1), (1, 1.0)]
        """
        split = all_rows_split(self.search.labeled.n_rows, number=OuterNumber(0))
        for candidate_group in self.search.context.candidate_groups:
            candidate_numbers = tuple(
                candidate.number for candidate in candidate_group.candidates
            )
            with limit_threads():
                fitted = fit_splits(
                    self.search.context, candidate_group, candidate_numbers, [split]
                )
            failures = fitted.fit_counts.has_failed[:, 0]
            for candidate_number, has_failed in zip(
                candidate_numbers, failures, strict=True
            ):
                model = (
                    None if has_failed else fitted.model(candidate_number, split.number)
                )
                yield candidate_number, model

    def __str__(self) -> str:
        return plan_lines(self.shown_rows())

    # A prompt and a notebook also show next steps, as for an outcome.
    def __repr__(self) -> str:
        return plan_lines([*self.shown_rows(), ("", NEXT)])

    def _repr_html_(self) -> str:
        return render_card([*self.shown_rows(), ("", NEXT)])

    def shown_rows(self) -> list[ShownRow]:
        """Return rows of texts: a title, names with texts, and caveats."""
        return plan_rows(self.search, self.facts)


def run_unseen(plan: Plan, options: RunOptions) -> Outcome:
    """Run a plan that nobody has printed.

    Its lines for which somebody may stop the run are shown before the progress,
    wherever that is shown.
    """
    notes = notes_before_fits(plan.search, plan.facts)
    options = replace(options, client=resolve_client(options.client), notes=notes)
    return execute(plan.search, plan.facts, options)
