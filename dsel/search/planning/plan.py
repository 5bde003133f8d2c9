"""A plan: all decisions about a search before it runs.

`plan_search.plan_search` makes it, `Plan.run` runs it. A plan never changes: results of
a run are separate values.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dsel.arrays import Floats
from dsel.bounds.shares import uniform_shares
from dsel.cards import Fact, render_card
from dsel.checks import check_integer
from dsel.criteria.base import Criterion
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.pool import Pool, PoolSlice
from dsel.data.splits import all_rows_split
from dsel.errors import OldName
from dsel.families.family import FitId
from dsel.families.kinds import search_name
from dsel.option_values import Pruning
from dsel.results.caveats import Caveat, remarks_of
from dsel.results.certificate import Assumption
from dsel.results.cube import GridAxes
from dsel.runtime.progress import Progress
from dsel.runtime.tasks import limit_threads
from dsel.search.design.certificate_methods import CertificateMethod
from dsel.search.design.comparisons import BestFold, Comparison, Halves, RandomFold
from dsel.search.design.folds import CVScheme, with_leave_one_out
from dsel.search.engine.fit_batch import fit_splits
from dsel.search.engine.jobs import JobContext
from dsel.search.engine.nested_pruner import count_survivors
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan_caveats import name_counted_rows
from dsel.search.planning.plan_design import splits_text
from dsel.search.planning.plan_text import plan_facts, plan_lines
from dsel.search.running.execute import execute
from dsel.search.running.run import RunOptions
from dsel.typing import Options, PathLike

if TYPE_CHECKING:
    from distributed import Client


SLICES: Final = 64  # tasks of a pass, unless their rows get too few or too many
SLICE_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a slice


@dataclass(frozen=True, repr=False)
class Plan:
    """Candidates, folds, pool, certificate and delta of a search.

    It needs the labeled rows for its fits, so a pickle of it contains them; that of an
    outcome does not.
    """

    axes: GridAxes
    """Candidates, with their axes in the cube."""
    context: JobContext
    """Labeled rows, splits and groups, for every task."""
    scheme: CVScheme
    """The models that are trained, with the test rows of each."""
    pool: Pool | None
    """The part of the pool that is counted, or None."""
    criterion: Criterion
    """The criterion that ranks the candidates."""
    method: CertificateMethod
    """The certificate, or the method of an estimate."""
    deploy: str
    """Name of the deployed model: ``one_fold`` or ``all_rows``."""
    delta: float
    """Probability that the certificate fails."""
    prune: Pruning
    """How candidates are dropped; it equals its text, such as ``"halving"``."""
    seed: int
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """Caveats, the gravest first, without violated assumptions. Choices repeat all but
    those with `Effect.PLAN`."""
    identity: Mapping[str, str]
    """Everything but rows that affects counts; a store recognizes its plan by it."""
    prior: Floats | None = None
    """Part of delta of each candidate, (n_candidates,); None for equal parts."""
    n_queries: int = 0
    """Number of pool rows to label, on which both models differ."""
    source: Pool | None = None
    """The pool with all columns, from which queried rows are read; None without one."""
    fit_notes: tuple[str, ...] = ()
    """How families will fit the candidates; empty if a closed form does it."""
    groups: RowGroups | None = None
    """Groups of the labeled rows, of which a bound counts one row each; None if rows
    are independent, or there is no bound."""

    @property
    def labeled(self) -> LabeledRows:
        """The labeled rows."""
        return self.context.labeled

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted labels; empty for a regression."""
        return self.labeled.classes

    @property
    def certificate(self) -> str:
        """Name of the certificate; "" for a search that gives an estimate."""
        return self.method.name

    @property
    def is_regression(self) -> bool:
        """Whether candidates predict numbers."""
        return not len(self.classes)

    @property
    def n_candidates(self) -> int:
        """Candidates, N."""
        return self.axes.n_candidates

    @property
    def n_chosen_fits(self) -> int:
        """Fits of chosen candidates, without each fold and on all rows; or 0.

        The model of all rows has a bound only by a pool.
        """
        return (
            0
            if self.scheme.scheme_of_chosen is None
            else self.scheme.n_folds + (self.pool is not None)
        )

    @property
    def few_rows(self) -> list[str]:
        """Notes about limits that will say nothing, for too few labeled rows."""
        texts = self.context.losses.vacuous_caveats(
            self.labeled.y[self.scheme.counted_rows],
            self.scheme.n_folds,
            self.method.label_delta(
                self.delta, self.n_candidates, has_pool=self.pool is not None
            ),
        )
        return name_counted_rows(texts, self.scheme, self.groups)

    @property
    def fold_variances(self) -> Floats | None:
        """Variance of the targets of each fold, (n_folds,); None for classes."""
        if not self.is_regression:
            return None
        every = np.arange(self.labeled.n_rows)
        rows = [  # of a group a fold tests one row, and inner searches read all of them
            split.test_rows
            if self.groups is None or not self.scheme.is_nested
            else np.setdiff1d(every, split.train_rows)
            for split in self.scheme.held_out
        ]
        return np.array([self.labeled.y[numbers].var() for numbers in rows])

    @property
    def delta_shares(self) -> Floats:
        """Share of delta of each candidate, (n_candidates,)."""
        if self.prior is None:
            return uniform_shares(self.n_candidates, delta=self.delta)
        return self.delta * self.prior

    @property
    def remarks(self) -> tuple[str, ...]:
        """Texts of the caveats that do not void a bound, and notes about the fits."""
        return (*remarks_of(self.caveats), *self.fit_notes)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons on the pool for every candidate."""
        k, n_halvings = self.scheme.n_folds, self.scheme.n_halvings
        if self.pool is None or self.scheme.all_rows_split is None:
            return ()
        if n_halvings:
            return (Halves(n_halvings),)
        # Best folds are known once all folds are fitted; see `at_best_folds`.
        unknown = np.full(self.n_candidates, -1)
        return RandomFold(self.seed, k), BestFold(k, unknown)

    @cached_property
    def slices(self) -> tuple[PoolSlice, ...]:
        """Parts of the pool, one task each; they do not depend on the cluster."""
        if self.pool is None:
            return ()
        # By the pool alone, never by the cluster: a run that goes on elsewhere must
        # find the slices that are stored.
        fewest, most = SLICE_ROWS
        wanted = -(-self.pool.n_rows // SLICES)
        return self.pool.slices(int(np.clip(wanted, fewest, most)))

    layout = OldName("scheme")
    spans = OldName("slices")

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
            A `distributed.Client`; None means the current one, else local threads.
        out
            Directory or URL that belongs to this plan: counts are written there, and
            the same plan continues from them. If the run has ended, it is only read.
        storage_options
            Options of fsspec if `out` is a URL; never stored.
        on_failure
            ``"record"`` a fit that raises (the candidate cannot win), or ``"raise"``.
        on_progress
            Called a few times a second with a `Progress`; nothing is shown then.
        verbose
            Whether progress is shown on standard error: bars in terminals and
            notebooks, elsewhere a line for each phase and each slow fit. None shows
            bars, and lines only of runs that last longer than 15 seconds.
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
        """
        options = RunOptions(
            client=client,
            out=out,
            storage_options=storage_options,
            on_failure=on_failure,
            on_progress=on_progress,
            verbose=verbose,
            n_jobs=n_jobs,
        )
        return execute(self, options)

    def with_leave_one_out(self) -> Self:
        """Return a plan that also counts leave-one-out errors, for ``loo_error``.

        Raises
        ------
        ValueError
            If the search is nested, rows come in groups, or candidates predict numbers.
        """
        if self.scheme.is_nested:
            raise ValueError(
                "a nested search fits no candidate without each row, so it cannot "
                "count leave-one-out errors; plan with criterion='loo_error', or with "
                "certificate='cv_bound' and then `with_leave_one_out`."
            )
        if self.is_regression or self.groups is not None:
            what = "`groups`" if self.groups is not None else "a `y` of numbers"
            raise ValueError(
                f"leave-one-out errors are counted row by row for classifiers, got a "
                f"plan with {what}; run it without `with_leave_one_out`."
            )
        scheme = with_leave_one_out(self.scheme, self.labeled.n_rows)
        context = replace(self.context, splits=scheme.splits)
        identity = {**self.identity, "splits": splits_text(scheme)}
        return replace(self, scheme=scheme, context=context, identity=identity)

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
        last, split = self.n_candidates - 1, all_rows_split(self.labeled.n_rows)
        number = check_integer(candidate, "candidate", at_least=0, at_most=last)
        if fold is not None:
            folds = self.scheme.held_out
            last = len(folds) - 1
            split = folds[check_integer(fold, "fold", at_least=0, at_most=last)]
        # As workers fit: BLAS on several threads sums in another order.
        with limit_threads():
            group = self.context.candidate_group_of(number)
            fitted = fit_splits(self.context, group, (number,), [split])
        if fitted.counts.has_failed[0, 0]:
            raise RuntimeError(fitted.counts.messages[FitId(number, split.number)].text)
        return fitted.model(number, split.number)

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
        split = all_rows_split(self.labeled.n_rows)
        for group in self.context.candidate_groups:
            numbers = tuple(candidate.number for candidate in group.candidates)
            with limit_threads():
                fitted = fit_splits(self.context, group, numbers, [split])
            failures = fitted.counts.has_failed[:, 0]
            for number, has_failed in zip(numbers, failures, strict=True):
                model = None if has_failed else fitted.model(number, split.number)
                yield number, model

    def __repr__(self) -> str:
        return plan_lines(self.facts())

    def _repr_html_(self) -> str:
        return render_card(self.facts())

    def facts(self) -> list[Fact]:
        """Return rows of texts: a title, names with texts, and caveats."""
        return plan_facts(self)

    @cached_property
    def fit_unit(self) -> str:
        """Name of the units of work: ``fits``, or ``searches by GridSearchCV``."""
        names = {search_name(estimator) for estimator in self.context.estimators}
        name = names.pop() if len(names) == 1 else ""
        return f"searches by {name}" if name else "fits"

    @property
    def is_halved(self) -> bool:
        """Whether fits come in two rounds, the second one of the best candidates."""
        n_first, n_splits = len(self.scheme.first_round), len(self.scheme.splits)
        return self.prune == Pruning.HALVING and n_first < n_splits

    def fits_range(self) -> tuple[int, int]:
        """Return the least and the largest number of fits of the run, without failures.

        A fit that is retried counts once. Where ``prune`` is ``"exact"`` and the
        criterion can drop candidates, the least are the fits of one candidate.
        """
        scheme, n, chosen = self.scheme, self.n_candidates, self.n_chosen_fits
        splits, first = len(scheme.splits), len(scheme.first_round)
        if not self.is_halved:
            may_prune = self.prune == Pruning.EXACT and self.criterion.can_prune
            return (1 if may_prune else n) * splits + chosen, n * splits + chosen
        # A fit without two folds is read by two searches, which may keep different
        # thirds.
        least, most = (
            n * first + kept * (splits - first) + chosen
            for kept in (count_survivors(n), min(n, 2 * count_survivors(n)))
        )
        return least, most
