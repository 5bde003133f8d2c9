"""A plan: everything that is decided about a search before it runs.

`plan_search` checks everything and fits nothing; `Plan.run` carries it out. A plan is
never changed: what a run finds on the way is a value of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dsel.arrays import Floats
from dsel.bounds.shares import uniform_shares
from dsel.candidates import (
    Grid,
    check_text,
    drawn,
    make_candidates,
    remarks_on_parameters,
    takes_nan,
)
from dsel.cards import Fact, as_card
from dsel.checks import check_delta, check_integer
from dsel.criteria import get_criterion
from dsel.criteria.base import Criterion
from dsel.data.frames import Frame, numbers
from dsel.data.groups import RowGroups, row_groups, take_groups
from dsel.data.labeled import LabeledRows, labeled_rows, remark_on_order
from dsel.data.open import open_pool
from dsel.data.pool import Pool, PoolSlice
from dsel.data.row_random import seed_from
from dsel.data.splits import full_split
from dsel.errors import warn_of_old_name
from dsel.families.family import FIT_DONE
from dsel.families.fit_arguments import (
    check_fit_params,
    check_pool_learners,
    takes_pool,
)
from dsel.families.kinds import is_classifier
from dsel.losses.by_value import find_column
from dsel.losses.declared import DeclaredLosses, declare_losses
from dsel.results.caveats import (
    Caveat,
    remarks_of,
)
from dsel.results.certificate import (
    Assumption,
    full_list,
)
from dsel.results.cube import GridAxes, grid_axes
from dsel.results.texts import wrap_line
from dsel.runtime.tasks import single_threaded
from dsel.search.design.baseline import add_baseline
from dsel.search.design.certificate_methods import (
    CertificateMethod,
    MethodOptions,
    SchemeOptions,
    choose_method,
    choose_pruning,
)
from dsel.search.design.comparisons import BestFold, Comparison, Halves, RandomFold
from dsel.search.design.folds import CVScheme, with_leave_one_out
from dsel.search.engine.jobs import JobContext, fit_splits
from dsel.search.engine.pruning import n_kept
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan_caveats import (
    caveats_of_groups,
    caveats_of_losses,
    known_assumptions,
    plan_caveats,
)
from dsel.search.planning.plan_checks import (
    check_losses,
    check_options_of_numbers,
    check_queries,
)
from dsel.search.planning.plan_identity import plan_identity, splits_text
from dsel.search.planning.plan_inputs import divide_pool, group_candidates, read_prior
from dsel.search.planning.plan_text import plan_facts
from dsel.search.running.execute import execute

SMALLEST_DELTA: Final = 1e-100
SLICES: Final = 64  # tasks of a pass, unless their rows get too few or too many
SLICE_ROWS: Final = (8_192, 2**20)  # fewest and most stored rows of a slice


@dataclass(frozen=True, repr=False)
class Plan:
    """Candidates, folds, pool, certificate and delta of a search."""

    axes: GridAxes
    """Candidates, and their places in the cube."""
    context: JobContext
    """Labeled rows, splits and groups, as every task gets them."""
    labeled: LabeledRows
    scheme: CVScheme
    """Which models are trained, and what each is tested on."""
    pool: Pool | None
    """The part of the pool that is counted, or None."""
    criterion: Criterion
    """What ranks the candidates."""
    method: CertificateMethod
    """How the error is bounded, or estimated."""
    deploy: str
    """Which model is handed over: ``one_fold`` or ``all_rows``."""
    delta: float
    """Probability with which the certificate may fail."""
    prune: str
    """``halving``, ``exact``, or "" for the exhaustive search."""
    seed: int
    assumptions: tuple[Assumption, ...]
    caveats: tuple[Caveat, ...]
    """What a reader should know, the gravest first; violated assumptions come on top.
    What is more than good to know is also said by choices."""
    identity: Mapping[str, str]
    """What counts depend on besides rows; by it a store knows its plan."""
    prior: Floats | None = None
    """Part of delta of each candidate, (n_candidates,); None for equal parts."""
    n_queries: int = 0
    """Pool rows on which both deployed models differ that are to be labeled."""
    source: Pool | None = None
    """The pool with all columns, from which queried rows are read; None without."""
    groups: RowGroups | None = None
    """Groups of the labeled rows, of which a bound counts one row each; None where
    rows are independent, or there is no bound."""

    @property
    def classes(self) -> NDArray[Any]:
        """Labels, sorted; of a regression there are none."""
        return self.labeled.classes

    @property
    def certificate(self) -> str:
        """One of `CERTIFICATES`; "" for a search that gives an estimate."""
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
    def n_compared(self) -> int:
        """Models among which one is picked by the rows that bound it.

        Inner searches read none of these rows, so of a nested search it is one.
        """
        return 1 if self.method.is_nested else self.n_candidates

    @property
    def few_rows(self) -> list[str]:
        """What the labeled rows are too few for, known before anything is fitted."""
        return caveats_of_losses(
            self.context.losses.caveats_before, self.labeled, self.scheme,
            delta=self.delta / self.n_compared, by_group=self.groups,
        )  # fmt: skip

    @property
    def fold_variances(self) -> Floats | None:
        """Variance of the targets of each fold, (n_folds,); None of classes."""
        if not self.is_regression:
            return None
        every = np.arange(self.labeled.n_rows)
        rows = [  # of a group a fold tests one row, and inner searches read all of them
            split.test_rows if self.groups is None or not self.scheme.is_nested
            else np.setdiff1d(every, split.train_rows)
            for split in self.scheme.held_out
        ]  # fmt: skip
        return np.array([self.labeled.y[each].var() for each in rows])

    @property
    def delta_shares(self) -> Floats:
        """Share of delta of each candidate, (n_candidates,)."""
        if self.prior is None:
            return uniform_shares(self.n_candidates, delta=self.delta)
        return self.delta * self.prior

    @property
    def remarks(self) -> tuple[str, ...]:
        """Caveats that leave a bound a guarantee, as texts."""
        return remarks_of(self.caveats)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What is counted on the pool for every candidate."""
        k, n_halvings = self.scheme.n_folds, self.scheme.n_halvings
        if self.pool is None or self.scheme.full is None:
            return ()
        if n_halvings:
            return (Halves(n_halvings),)
        unknown = np.full(self.n_candidates, -1)
        return RandomFold(self.seed, k), BestFold(k, unknown)

    @cached_property
    def slices(self) -> tuple[PoolSlice, ...]:
        """Parts of the pool that a task each counts, whatever the cluster is."""
        if self.pool is None:
            return ()
        fewest, most = SLICE_ROWS
        wanted = -(-self.pool.n_rows // SLICES)
        return self.pool.slices(int(np.clip(wanted, fewest, most)))

    @property
    def layout(self) -> CVScheme:
        """Old name of `scheme`."""
        warn_of_old_name("layout", "scheme")
        return self.scheme

    @property
    def spans(self) -> tuple[PoolSlice, ...]:
        """Old name of `slices`."""
        warn_of_old_name("spans", "slices")
        return self.slices

    def run(
        self,
        client: Any = None,
        *,
        out: Any = None,
        storage_options: Mapping[str, Any] | None = None,
        on_failure: str = "record",
        on_progress: Callable[[Any], None] | None = None,
        verbose: bool | int | None = None,
        n_jobs: int | None = None,
    ) -> Outcome:
        """Search.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else local threads.
        out
            Directory or URL that belongs to this plan: what tasks counted is written
            there, and the same plan goes on from it. A run that has ended is read.
        storage_options
            For fsspec, where `out` is a URL; never stored.
        on_failure
            ``"record"`` a fit that raises (the candidate cannot win), or ``"raise"``.
        on_progress
            Called a few times a second with a `Progress`; nothing is shown then.
        verbose
            Whether progress is shown on standard error. None shows it where a terminal
            or a notebook is there.
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
            Where no candidate could be fitted.
        StoreMismatchError
            Where `out` holds another plan.
        MemoryError
            Where a task has not enough memory for any fit.
        ClusterLostError
            Where the scheduler or all workers are gone.
        VersionMismatchError
            Where a worker has another version of a package that decides results.
        """
        return execute(
            self, client, out=out, storage_options=storage_options,
            on_failure=on_failure, on_progress=on_progress, verbose=verbose,
            n_jobs=n_jobs,
        )  # fmt: skip

    def with_leave_one_out(self) -> Self:
        """Return a plan that counts errors of leave-one-out, too, for ``loo_error``."""
        scheme = with_leave_one_out(self.scheme, self.labeled.n_rows)
        context = replace(self.context, schemes=(scheme.splits, scheme.folds))
        identity = {**self.identity, "splits": splits_text(scheme)}
        return replace(self, scheme=scheme, context=context, identity=identity)

    def model(self, candidate: int, fold: int | None = None) -> Any:
        """Fit a candidate anew, here, on all labeled rows or without a fold.

        Of a learner with a seed it is the model that the search has counted.

        Parameters
        ----------
        candidate
            Its number: the place in the cube's C order.
        fold
            Number of the fold whose rows are held out; of random halvings,
            ``2 * repeat + half``. None for the model of all labeled rows.

        Returns
        -------
        estimator
            Fitted scikit-learn estimator, for rows and labels as they were given.

        Raises
        ------
        ValueError
            Where there is no such candidate or fold.
        RuntimeError
            Where the fit fails.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, random_state=0)
        >>> plan.model(1, fold=3).predict(X[:2]).tolist()
        [0, 0]
        """
        last, split = self.n_candidates - 1, full_split(self.labeled.n_rows)
        number = check_integer(candidate, "candidate", at_least=0, at_most=last)
        if fold is not None:
            there = self.scheme.held_out
            last = len(there) - 1
            split = there[check_integer(fold, "fold", at_least=0, at_most=last)]
        with single_threaded():
            group = self.context.group_of(number)
            fitted = fit_splits(self.context, group, (number,), [split])
        if fitted.counts.status[0, 0] != FIT_DONE:
            raise RuntimeError(fitted.counts.messages[number, split.number])
        return fitted.model(number, split.number)

    def models(self) -> Iterator[tuple[int, Any]]:
        """Fit all candidates anew, here, on all labeled rows; one group at a time.

        Candidates of a group share work, such as the kernel matrix of one gamma, so
        this takes less than as many calls of `model`.

        Yields
        ------
        candidate : int
            Its number: the place in the cube's C order. Groups come one after the
            other, so these are not in order.
        model : estimator
            Fitted scikit-learn estimator; None where the fit failed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, random_state=0)
        >>> [(number, model.C) for number, model in plan.models()]
        [(0, 0.1), (1, 1.0)]
        """
        split = full_split(self.labeled.n_rows)
        for group in self.context.candidate_groups:
            numbers = tuple(each.number for each in group.candidates)
            with single_threaded():
                fitted = fit_splits(self.context, group, numbers, [split])
            statuses = fitted.counts.status[:, 0]
            for number, status in zip(numbers, statuses, strict=True):
                is_done = status == FIT_DONE
                yield number, fitted.model(number, split.number) if is_done else None

    def __repr__(self) -> str:
        (_, title), *facts = self.facts()
        paragraphs = [
            (title, 4),
            *((f"  {name:<14} {text}", 17) for name, text in facts if name),
            *((f"  {text}", 4) for name, text in facts if not name),
        ]
        return "\n".join(wrap_line(text, indent) for text, indent in paragraphs)

    def _repr_html_(self) -> str:
        return as_card(self.facts())

    def facts(self) -> list[Fact]:
        """Return what is planned: a title, names and texts, and caveats."""
        return plan_facts(self)

    @property
    def is_halved(self) -> bool:
        """Whether fits come in two rounds, the second one of the best candidates."""
        scheme = self.scheme
        return self.prune == "halving" and len(scheme.first) < len(scheme.splits)

    def fits_range(self) -> tuple[int, int]:
        """Return the fits of the whole run at least, if none is dropped, and at most.

        Fits that fail and are tried again count once.
        """
        scheme, n, last = self.scheme, self.n_candidates, 0
        splits, first = len(scheme.splits), len(scheme.first)
        if scheme.is_nested:
            last = scheme.n_folds + (self.pool is not None)
        if not self.is_halved:
            return n * splits + last, n * splits + last
        least, most = (
            n * first + kept * (splits - first) + last
            for kept in (n_kept(n), min(n, 2 * n_kept(n)))
        )
        return least, most


def plan_search(
    estimator: Any,
    param_grid: Grid,
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    certificate: str | None = None,
    deploy: str | None = None,
    criterion: str | None = None,
    cv: Any = None,
    delta: float = 0.05,
    prune: str | bool | None = True,
    max_pool_rows: int | None = None,
    random_state: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    groups: ArrayLike | None = None,
    loss: Any = "error",
    report: Any = False,
    report_by: str | int | None = None,
    prior: Any = None,
    n_queries: int = 0,
    baseline: Any = None,
) -> Plan:
    """Plan a search; everything is checked, nothing is fitted.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `param_grid` lists
        some.
    param_grid
        Dict of parameter to values, list of such dicts, or list of estimators. Or
        candidates one by one: a scikit-learn ``ParameterSampler`` (a random search), or
        any iterable of dicts of parameter to value. It is read once, here. A sampler
        without a random state draws by `random_state`.
    X
        Labeled rows, shape (n_labeled, n_columns): array, data frame or sparse.
    y
        Labels, shape (n_labeled,), of any kind.
    pool
        Unlabeled rows: anything that `open_pool` takes. Drawn from the same
        population as the labeled rows. None to go without it. A learner whose `fit`
        takes ``pool`` gets one half of it, as a `Pool`: nothing is certified where rows
        there equal labeled rows, unless `open_pool` was told that they are others.
    certificate
        How the error is bounded. ``"nested"``, the default, also makes the whole search
        without each fold, so that the bound does not grow with the number of
        candidates; it is about the model of the best fold, and with a pool about that
        of all rows, too. ``"cv_bound"`` bounds the models of all candidates at once, so
        that one may be chosen by hand; ``"best_fold"`` is the same, tighter, and
        ``"holdout"`` bounds the models that were trained without the first fold. Of
        regressors there are ``"nested"`` and ``"holdout"``, which picks the candidate
        of the smallest mean squared error on the first fold.
    deploy
        Which model a nested search hands over: ``"one_fold"``, the default, has the
        smaller bound; ``"all_rows"``, which needs a pool, is likely the better model.
    criterion
        For an estimate in the place of a certificate: what ranks the candidates, such
        as ``"cv_error"`` or ``"loo_error"``.
    cv
        Number of plain random folds, 5 by default, or ``KFold(n, shuffle=True)``. Any
        other scikit-learn splitter, or a list of (train rows, test rows), gives
        estimates only.
    delta
        Probability with which the certificate may fail, in (0, 0.5].
    prune
        True takes ``"halving"`` for a nested search: each search keeps the best third
        of the candidates after a first round; and ``"exact"`` for all others, which
        drops a candidate as soon as it cannot win. False drops none.
    max_pool_rows
        About how many pool rows to count at most: a random part, fixed in advance.
    random_state
        None, an integer, or a numpy generator; becomes the seed of everything.
    fit_params
        Keyword arguments of every `fit`; arrays of one value per row are cut to rows.
    groups
        Where labeled rows come in groups (customers, patients, documents): the key of
        each row, (n_labeled,), or the name of a column of a data frame `X`, which is no
        feature then. With folds by number, folds are of whole groups, and the bound,
        that of ``one_fold``, is about a random row of a new group; the pool is not
        read. A splitter such as ``GroupKFold`` gets them, and gives estimates.
    loss
        ``"error"``, or what a nested search ranks candidates by and certifies in its
        place: of `dsel.losses`, such as ``dsel.losses.recall("fraud")``.
    report
        True, or a list of classes: a nested search certifies recall and precision of
        each class and the error, all at once; see `Outcome.certified_report`.
    report_by
        A column of `X`, such as ``"site"``: its name, or its position where columns
        have no names. For each of its values, at most 100, a nested search certifies
        the error, or of a regressor the `loss`, all at once; see
        `Outcome.report_by_value`. Half of delta goes to them, whatever the values are.
        The column stays a feature.
    prior
        For ``"cv_bound"`` and ``"best_fold"``, which bound all candidates at once: how
        delta is divided among them. Weights >= 0, in the order of
        ``plan.axes.candidates`` (scikit-learn's ``ParameterGrid``), or a function that
        takes a candidate's parameters, a dict, and returns its weight. They are decided
        before any label is looked at. A candidate of weight 0 has no bound, and is not
        chosen. None divides delta equally.
    n_queries
        For nested searches with a pool: how many pool rows on which both deployed
        models differ shall be labeled after the run. Their labels make the bound of the
        model of all rows smaller; see `Outcome.query_rows` and
        `Outcome.certify_with_labels`. Decided before the run, since all bounds get
        other shares of delta. 0 queries none.
    baseline
        For nested searches by ``loss="error"``: what the models are compared with, by
        the labeled rows alone. A fitted classifier that was trained on none of these
        labels, such as the one in production; a place that `open_model` opens; or
        ``"largest class"``, the constant that predicts the largest class of the rows
        that a model was trained on. The comparison has a delta of its own; see
        `Choice.baseline`. A baseline is known by what it predicts for `X`.

    Returns
    -------
    Plan
        Print it, or call its `run`.

    Raises
    ------
    TypeError, ValueError
        For anything that cannot be searched; the message says what to change.

    See Also
    --------
    SemiSupervisedSearchCV : The same as a scikit-learn estimator.
    dsel.plan_bound : What a bound can be, before a label is used.
    dsel.certify : A bound for any other way to select.

    Notes
    -----
    Of rows in `groups`, one row of each group in a fold is counted, drawn by the seed
    before anything is looked at.
    Guarantee: with probability at least ``1 - delta`` the mean over groups of the share
    of their rows on which the model of ``one_fold`` errs is at most the bound.
    Assumes: groups are independent draws, each with one key, and their labeled rows are
    all of their rows or a random part; A3, A5 and A7 as the certificate prints them.
    Source: the binomial limits of a nested search, read on independent rows;
    :func:`dsel.bounds.nested_one_fold`.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.normal(size=(200, 2)), rng.normal(size=(1000, 2))
    >>> grid = {"C": [0.1, 1.0]}
    >>> plan = plan_search(SVC(), grid, X, X[:, 0] > 0, pool, cv=3, random_state=0)
    >>> print(str(plan).splitlines()[0])
    Plan of 2 candidates over (C)
    >>> plan.run().results["status"].values.tolist()
    [0, 0]
    """
    delta = check_delta(delta)
    if delta < SMALLEST_DELTA:
        raise ValueError(
            f"`delta` must be at least {SMALLEST_DELTA:g}, got {delta:g}; no data are "
            f"that certain: 5 % is written 0.05."
        )
    X, keys = take_groups(X, groups)
    seed = seed_from(random_state)
    grid = drawn(param_grid, seed)
    candidates = make_candidates(estimator, grid, takes_regressors=True)
    is_regression = not is_classifier(candidates[0].estimator)
    allow_nan = takes_nan(each.estimator for each in candidates)
    labeled = labeled_rows(
        X, y, allow_nan=allow_nan, as_frame=True, as_numbers=is_regression
    )
    check_text((each.estimator for each in candidates), labeled.X)
    check_options_of_numbers(n_queries, baseline, is_regression=is_regression)
    rows = labeled.X  # as a baseline gets them
    params = check_fit_params(fit_params, labeled.n_rows)
    of_rows = None if keys is None else row_groups(keys, labeled.n_rows)
    column = find_column(
        report_by,
        labeled.X if of_rows is None else labeled.X[of_rows.draw_rows(seed)],
        labeled.columns,
        getattr(y, "name", None),
    )
    sharing, notes = group_candidates(candidates, labeled, seed, params, of_rows)
    is_fitted = any(takes_pool(each.estimator) for each in candidates)
    reads_frames = any(
        isinstance(group.family.rows_of(each.estimator, labeled.X), Frame)
        for group in sharing
        for each in group.candidates
    )
    if is_fitted or not reads_frames:
        labeled = replace(labeled, X=numbers(labeled.X))
    if max_pool_rows is not None:
        check_integer(max_pool_rows, "max_pool_rows", at_least=1)
    n_queries = check_integer(n_queries, "n_queries", at_least=0)
    given = fitting = source = None
    if pool is not None:
        check_pool_learners(each.estimator for each in candidates)
        source = open_pool(pool)
        given, fitting, said = divide_pool(
            source, labeled, is_fitted, max_pool_rows, seed
        )
        notes += said
    options = MethodOptions(
        certificate, criterion, deploy, prune, cv, labeled.n_rows, of_rows,
        are_passed_on="groups" in params, has_pool=given is not None,
        is_regression=is_regression,
    )  # fmt: skip
    method = choose_method(options)
    prune_by, model = choose_pruning(prune, method), deploy or method.deploys
    rule = method.criterion
    scheme = method.make_scheme(
        SchemeOptions(cv, labeled, seed, of_rows, len(candidates), rule)
    )
    by_group = of_rows if method.is_guarantee and scheme.is_plain_random else None
    doubts = caveats_of_groups(by_group, given, fitting)
    # Of pool rows nobody knows the groups.
    counted = given if by_group is None else None
    axes = grid_axes(grid)
    parts = None if prior is None else read_prior(prior, method, axes.candidates)
    if parts is not None and (n_without := int((parts == 0.0).sum())):
        notes.append(
            f"`prior` gives {n_without} of {len(candidates)} candidates the weight 0: "
            f"they have no bound and are not chosen"
        )
    losses = declare_losses(loss, report, labeled.classes)
    if column is not None:
        if scheme.is_holdout:  # values are of all rows, and counted are some
            column = column.of_rows(labeled.X[scheme.counted_rows])
        losses = losses.report_by(column)
    check_losses(losses, method, report_by)
    check_queries(
        n_queries, method, losses, has_pool=counted is not None,
        in_groups=by_group is not None,
    )  # fmt: skip
    if losses != DeclaredLosses():
        rule = get_criterion(losses.main.criterion)
    losses, compared = add_baseline(
        losses, baseline, method, rows, labeled, scheme.held_out
    )
    weak = [
        *filter(None, [remark_on_order(X, y), remark_on_order(X, keys, "groups")]),
        *doubts,
        *remarks_on_parameters(estimator, candidates),
    ]
    of_losses = caveats_of_losses(
        losses.caveats, labeled, scheme, by_group=by_group,
        delta=delta if method.is_nested else delta / len(candidates),
    )  # fmt: skip
    caveats = plan_caveats(
        labeled, scheme, counted, certificate=method.name, by_group=by_group,
        weak=weak, notes=notes, of_losses=of_losses,
    )  # fmt: skip
    in_groups = of_rows is not None or "groups" in params
    known = known_assumptions(
        fitting, has_pool=counted is not None, in_groups=in_groups,
        by_groups=of_rows is not None and scheme.is_plain_random,
    )  # fmt: skip
    plan = Plan(
        axes=axes, labeled=labeled, scheme=scheme, pool=counted,
        context=JobContext(
            labeled.X, labeled.y, (scheme.splits, scheme.folds), sharing, fitting,
            allow_nan, losses,
            baseline=None if compared is None else compared.codes,
        ),
        criterion=rule, method=method, deploy=model, delta=delta,
        prune=prune_by, seed=seed, caveats=caveats,
        assumptions=full_list(known, has_pool=counted is not None),
        identity={},
        prior=parts,
        n_queries=n_queries,
        source=source if n_queries else None,
        groups=by_group,
    )  # fmt: skip
    identity = plan_identity(plan, estimator, params, max_pool_rows, of_rows, compared)
    return replace(plan, identity=identity)
