"""The plan of a search: what `plan_search` decides, and how to run it."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, Final

from numpy.typing import ArrayLike

from dsel import names
from dsel.checks import (
    check_choice,
    check_probability,
    check_reserve,
)
from dsel.criteria import Criterion, get_criterion
from dsel.data.content import exact_text
from dsel.data.labeled import LabeledRows, check_pool_matches, labeled_rows
from dsel.data.open import open_pool
from dsel.data.shared import POLICIES
from dsel.data.trainings import trainings_token
from dsel.data.words import seed_from
from dsel.models.family import Candidate
from dsel.models.generic import check_pool_learners, checked_params, takes_pool
from dsel.results import grid_axes
from dsel.searches.assumptions import inspect_labeled, plan_ledger
from dsel.searches.candidates import Grid, make_candidates, make_groups, takes_nan
from dsel.searches.cross_validation import cross_validation
from dsel.searches.describe import describe
from dsel.searches.engine.fit_task import Work
from dsel.searches.engine.scheme import Scheme, with_labels
from dsel.searches.engine.stages import Stages, plan_stages
from dsel.searches.execute import execute, fit_model
from dsel.searches.pool_reading import PoolReading, checked_reading
from dsel.searches.spec import SearchSpec

FITTING_PART = 0.5  # of the pool, for learners that want one


class Plan(SearchSpec):
    """A search that has not run; print it to see what it will do."""

    def run(self, client: Any = None, **options: Any) -> Any:
        """Run the search and return its cube.

        Parameters
        ----------
        client
            A `distributed.Client`; None means the current one, else local threads.
        **options
            As `dsel.searches.execute` takes them: ``out``, ``storage_options``,
            ``on_failure``, ``on_progress``, ``n_jobs``.

        Returns
        -------
        xarray.Dataset
            The results cube.
        """
        return execute(self, client, **options).results

    def model(self, candidate: int, fold: int | None = None) -> Any:
        """Fit one model of the search and return it, the same as the search's own.

        A run keeps models only as long as it needs them. This one is fitted here, in
        one thread, along the same path of fits and on the same rows: its answers are
        those that were counted.

        Parameters
        ----------
        candidate
            Number of the candidate, such as ``choice.candidate``: its place in the
            cube's C order.
        fold
            Number of the fold whose rows were held out; of random halvings,
            ``2 * repeat + half``. None for the model of all labeled rows. The model
            that a certificate is about is that of ``choice.fold``.

        Returns
        -------
        estimator
            Fitted scikit-learn estimator; it takes and gives what `fit` was given.

        Raises
        ------
        ValueError
            Where there is no such candidate, fold or full model.
        RuntimeError
            Where the fit fails, as it did in the search.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, cv=5, random_state=0)
        >>> held_out = plan.work.trainings[3].test_rows
        >>> wrong = plan.model(1, fold=3).predict(X[held_out]) != y[held_out]
        >>> int(wrong.sum()) == int(plan.run().fold_errors.sel(C=1.0, fold=3))
        True
        """
        return fit_model(self, candidate, fold)

    def __repr__(self) -> str:
        return describe(self)


def plan_search(
    estimator: Any,
    param_grid: Grid,
    X: Any,
    y: Any,
    pool: Any = None,
    *,
    criterion: str | None = None,
    certificate: str | None = None,
    delta: float = 0.05,
    label_share: float = 0.5,
    cv: Any = 10,
    duplicates: str = "refuse",
    prune: bool = True,
    random_state: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    reserve: float = 0.0,
    pool_labels: ArrayLike | None = None,
    reading: PoolReading | None = None,
    fit_timeout: float | None = None,
) -> Plan:
    """Plan a search; everything is checked, nothing is fitted.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier or pipeline; None where `param_grid` lists
        some.
    param_grid
        Dict of parameter to values, list of such dicts, or list of estimators.
    X
        Labeled rows, shape (n_labeled, n_columns): array, data frame or sparse.
    y
        Labels, shape (n_labeled,), of any kind.
    pool
        Unlabeled rows: anything that `open_pool` takes. Drawn from the same
        population as the labeled rows.
    criterion
        What ranks the candidates; by default ``cv_bound`` with a pool and
        ``cv_error`` without.
    certificate
        What the reported number is; by default what `criterion` gives. It decides which
        model is handed over: with ``holdout_bound`` that of fold 0's training rows,
        with every other one that of all labeled rows.
    delta
        Probability with which the reported bound may fail, in (0, 1).
    label_share
        Part of delta for the term of the labeled rows, in (0, 1).
    cv
        Number of plain random folds, or a scikit-learn splitter (which costs the
        guarantee).
    duplicates
        What pool rows equal to labeled rows are: ``"refuse"`` to go on, ``"exclude"``
        them as the same records, or ``"keep"`` them as others: no guarantee if more
        rows are equal than chance makes.
    prune
        Whether to drop candidates as soon as they cannot win. The choice and its
        certificate are those of the exhaustive search.
    random_state
        None, an integer, or a numpy generator; becomes the seed of everything.
    fit_params
        Keyword arguments of every `fit`; arrays of one value a row are cut to rows.
    reserve
        Probability set aside beside `delta` for what may be added after results were
        seen: more candidates, another certificate. All that is ever read then fails
        with probability at most ``delta + reserve``.
    pool_labels
        Labels of pool rows by their row numbers, for evaluation: one label a row, a
        masked array where some are not known. They make ``true_error`` (and in
        co-validation ``half_true_error``) readable, on the same rows as the
        disagreement. A label that is not in `y` is an error of every model.
    reading
        How much of the pool is read, a `PoolReading`; None for all of it.
    fit_timeout
        Seconds that one fit may take, on average over candidates that share work. A
        candidate with a fit that takes longer is recorded as failed. Fits then run in
        processes that can be ended, one for each thread; give seconds rather than
        fractions, since the first fit of a process also loads what it needs. Which
        candidates fail depends on the machine, so the choice may differ from run to
        run; the certificate stands, since its delta is shared by all candidates. A run
        that goes on from its `out` tries again whatever failed, but what ran out of
        time only with more of it, or without a limit.

    Returns
    -------
    Plan
        Print it, or call its `run`.

    Raises
    ------
    TypeError, ValueError
        For anything that cannot be searched; the message says the way out.
    """
    check_probability(delta, "delta")
    check_probability(label_share, "label_share")
    check_reserve(reserve, delta)
    rule = get_criterion(criterion or ("cv_error" if pool is None else "cv_bound"))
    reported = get_criterion(certificate or rule.name, "certificate")
    candidates = make_candidates(estimator, param_grid)
    seed = seed_from(random_state)
    allow_nan = takes_nan(candidates)
    labeled = labeled_rows(X, y, allow_nan=allow_nan)
    params = checked_params(fit_params, labeled.n_rows)
    whole, unlabeled, fitting = _prepare_pool(pool, labeled, candidates, seed)
    share = (1.0 - label_share) * delta / len(candidates)
    reading = checked_reading(reading)
    stages = plan_stages(unlabeled, reading, share=share, seed=seed)
    criteria = (rule, reported)
    _check_given(criteria, stages, pool_labels)
    scheme = cross_validation(
        cv, labeled, seed, with_pool=pool is not None, criteria=criteria
    )
    scheme = with_labels(scheme, pool_labels, stages.pool, labeled.classes)
    groups, remarks, depends = make_groups(candidates, labeled, seed, params)
    return Plan(
        axes=grid_axes(param_grid),
        work=Work(labeled.X, labeled.y, scheme.trainings, groups, fitting, allow_nan),
        classes=labeled.classes,
        scheme=scheme,
        pool=stages.pool,
        whole_pool=whole,
        stages=stages,
        duplicates=check_choice(duplicates, "duplicates", POLICIES),
        criterion=rule,
        certificate=reported,
        delta=delta,
        label_share=label_share,
        prune=prune,
        seed=seed,
        assumptions=plan_ledger(
            inspect_labeled(labeled, scheme.trainings, candidates, params),
            random_folds=None if scheme.is_plain_random else repr(cv),
            has_pool=stages.pool is not None,
            pool_is_fitted=fitting is not None,
            breaks_independence=depends,
            shuffled=reading.takes_first_rows,
        ),
        remarks=remarks,
        fingerprint=_fingerprint(stages, scheme, estimator, seed),
        columns=labeled.columns,
        reserve=reserve,
        fit_timeout=fit_timeout,
    )


OPTIONS: Final = tuple(
    name
    for name, p in signature(plan_search).parameters.items()
    if p.kind is p.KEYWORD_ONLY
)
"""Names of its options: what else takes them hands them on without a list."""


def _check_given(
    criteria: tuple[Criterion, ...], stages: Stages, pool_labels: Any
) -> None:
    """Raise where a criterion needs what is not given, or more than is read."""
    if stages.may_stop and pool_labels is not None:
        raise ValueError(
            "`pool_labels` need the whole pool; search without `stop_within`."
        )
    for criterion in criteria:
        if stages.may_stop and criterion.reads_whole_pool:
            raise ValueError(
                f"`stop_within` does not go with {criterion.name!r}, which needs the "
                f"whole pool; search without it, or by 'cv_bound' or 'best_fold'."
            )
        if pool_labels is None and names.TEST_ROWS in criterion.needs:
            raise ValueError(
                f"`criterion` {criterion.name!r} needs labels of pool rows, but "
                f"`pool_labels` is None; pass those that are known."
            )
        if stages.pool is None and names.POOL_ROWS in criterion.needs:
            raise ValueError(
                f"`criterion` {criterion.name!r} needs unlabeled rows, but `pool` is "
                f"None; pass the pool, or use criterion='cv_error' (an estimate) or "
                f"criterion='holdout_bound' (a bound without a pool)."
            )


def _prepare_pool(
    pool: Any,
    labeled: LabeledRows,
    candidates: tuple[Candidate, ...],
    seed: int,
) -> tuple[Any, Any, Any]:
    """Return the pool, its counted part and its fitting part, or None."""
    if pool is None:
        return None, None, None
    opened = open_pool(pool)
    check_pool_matches(opened, labeled)
    check_pool_learners(candidate.estimator for candidate in candidates)
    if not any(takes_pool(candidate.estimator) for candidate in candidates):
        return opened, opened, None
    fitting = opened.part(0.0, FITTING_PART, seed=seed)
    return opened, opened.part(FITTING_PART, 1.0, seed=seed), fitting


def _fingerprint(
    stages: Stages, scheme: Scheme, estimator: Any, seed: int
) -> dict[str, str]:
    known = [labels.token for labels in scheme.known_labels]
    return {
        **stages.fingerprint,
        **({"pool_labels": known[0]} if known else {}),
        "trainings": trainings_token(scheme.with_models),
        "estimator": exact_text(estimator),
        "seed": str(seed),
    }
