"""The plan of a search: what `plan_search` decides, and how to run it."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config

from dsel.bounds.shares import checked_prior
from dsel.candidates import Grid, drawn, make_candidates, takes_nan
from dsel.checks import check_choice, check_flag, check_probability, check_reserve
from dsel.criteria import named_criteria
from dsel.data.identity import exact_text
from dsel.data.labeled import LabeledRows, labeled_rows, matching_pool
from dsel.data.open import open_pool
from dsel.data.overlap import POLICIES
from dsel.data.row_random import seed_from
from dsel.data.splits import splits_token
from dsel.families.family import Candidate
from dsel.families.fit_arguments import check_pool_learners, checked_params, takes_pool
from dsel.results import Choice, grid_axes
from dsel.results.notebook import as_html
from dsel.searches.assumptions import plan_ledger
from dsel.searches.cross_validation import check_given, cross_validation
from dsel.searches.describe import describe, facts, title
from dsel.searches.engine.fit_task import Work
from dsel.searches.engine.scheme import Scheme, with_labels
from dsel.searches.engine.stages import (
    PoolReading,
    Stages,
    checked_reading,
    plan_stages,
)
from dsel.searches.execute import execute
from dsel.searches.groups import as_taken, make_groups
from dsel.searches.recommended import taken, warned
from dsel.searches.refits import fit_deployed, fit_model
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
            ``on_failure``, ``on_progress``, ``verbose``, ``n_jobs``.

        Returns
        -------
        xarray.Dataset
            The results cube.
        """
        return execute(self, client, **options).results

    def model(self, candidate: int, fold: int | None = None) -> Any:
        """Fit one model of the search and return it, the same as the search's own.

        A run keeps models only as long as it needs them. This one is fitted here, in
        one thread, by the same code on the same rows, so its predictions are those that
        were counted.

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
            Fitted scikit-learn estimator, for rows and labels as they were given.

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
        >>> held_out = plan.work.splits[3].test_rows
        >>> wrong = plan.model(1, fold=3).predict(X[held_out]) != y[held_out]
        >>> int(wrong.sum()) == int(plan.run().fold_errors.sel(C=1.0, fold=3))
        True
        """
        return fit_model(self, candidate, fold)

    def deployed(self, choice: Choice) -> Any:
        """Fit the model that the certificate of a choice is about, and return it.

        Parameters
        ----------
        choice
            From `select`, of all results of this plan; all models of a vote are fitted.

        Returns
        -------
        estimator
            What a search with this certificate hands over. A certified one is fitted
            twice; RuntimeError where a learner draws random numbers without a seed,
            ValueError where `choice` is not of this plan, or of one with
            `certify_rows`, whose model was trained on more rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> plan = plan_search(SVC(), {"C": [0.1, 1.0]}, X, y, random_state=0,
        ...                    certificate="nested_fold_model")
        >>> from dsel.searches import select
        >>> choice = select(plan.run())
        >>> choice.fold, len(plan.deployed(choice).support_vectors_) < 100
        (1, True)
        """
        return fit_deployed(self, choice)

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return as_html(title(self), facts(self))


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
    label_share: float | None = None,
    cv: Any = None,
    duplicates: str = "refuse",
    prune: bool = True,
    random_state: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    reserve: float = 0.0,
    pool_labels: ArrayLike | None = None,
    reading: PoolReading | None = None,
    prior: ArrayLike | None = None,
    train_errors: bool = False,
    groups: ArrayLike | None = None,
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
        any iterable of dicts of parameter to value. It is read once, here; delta is
        divided among its candidates. A sampler without a random state draws by
        `random_state`.
    X
        Labeled rows, shape (n_labeled, n_columns): array, data frame or sparse.
    y
        Labels, shape (n_labeled,), of any kind.
    pool
        Unlabeled rows: anything that `open_pool` takes. Drawn from the same
        population as the labeled rows.
    criterion
        What ranks the candidates. By default ``cv_bound`` with a pool and ``cv_error``
        without one; ``cv_error`` too where `certificate` is a nested one or
        ``best_fold_of_leader``, or ``auto`` takes one of these.
    certificate
        Criterion of the reported number. It decides which model is handed over: with
        ``holdout_bound`` the one trained without fold 0, with ``best_fold_model`` that
        of the fold with the fewest errors, with ``nested_fold_model`` that of the best
        fold (neither needs a pool), with ``nested_vote`` a vote of the folds' models,
        with every other one the model of all labeled rows. The nested ones make the
        whole search without each fold, too: more fits, and a bound that does not grow
        with the number of candidates. ``auto`` takes the one that `plan_bound` expects
        to be smallest for the model of all rows, from the numbers of rows and
        candidates alone; the plan says what others would give. By default `criterion`,
        or ``auto`` where neither is given, there is a pool and plain folds, and none of
        `prior`, `reserve` and `reading.stop_within` is given.
    delta
        Probability with which the reported bound may fail, in (0, 1).
    label_share
        Part of delta for the term of the labeled rows, in (0, 1). By default half of
        it, as in the paper; with a nested search or ``certificate="auto"`` 0.95 where
        the pool has 10,000 rows or more, else 0.8.
    cv
        Number of plain random folds. A scikit-learn splitter, or a list of (train
        rows, test rows), gives estimates only, never a guarantee. More folds cost more
        fits. By default 10, and 3 for a nested search; ``auto`` chooses it, too.
    duplicates
        What to do about pool rows that equal labeled rows: ``"refuse"`` to run,
        ``"exclude"`` them as the same records, or ``"keep"`` them as other records,
        without a guarantee if more rows are equal than chance makes.
    prune
        Whether to drop candidates as soon as they cannot win. The choice and its
        certificate are those of the exhaustive search.
    random_state
        None, an integer, or a numpy generator; becomes the seed of everything.
    fit_params
        Keyword arguments of every `fit`; arrays of one value per row are cut to rows.
    reserve
        Probability set aside besides `delta` for what is added after results were
        seen: more candidates, another certificate. The probability that any bound ever
        reported is wrong is then at most ``delta + reserve``.
    pool_labels
        Labels of pool rows by their row numbers, for evaluation: one label per row,
        masked or missing (NaN, None) where it is not known. They make ``true_error``
        (and in co-validation ``half_true_error``) readable, on the same rows as the
        disagreement. A label that is not in `y` is an error of every model.
    reading
        How much of the pool is read, a `PoolReading`; None for all of it.
    prior
        Part of delta of each candidate, fixed before any data are seen: positive
        weights with a sum of at most 1, in the order of the grid or in its shape. A
        larger part means a smaller bound. None for equal parts.
    train_errors
        Whether every model's errors on its own training rows are counted. By default
        they are only where `criterion` or `certificate` reads them, and in
        co-validation; elsewhere the cube holds NaN. A run that continues from an `out`
        begun without them makes its fits again.
    groups
        Group of each labeled row, for a splitter such as ``GroupKFold``. Rows that come
        in groups are not independent: nothing is certified then.

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
    dsel.select : The choice and its certificate.
    dsel.certify_selection : A bound for any other way to select.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.normal(size=(200, 2)), rng.normal(size=(1000, 2))
    >>> grid = {"C": [0.1, 1.0]}
    >>> plan = plan_search(SVC(), grid, X, X[:, 0] > 0, pool, cv=3, random_state=0)
    >>> print(str(plan).splitlines()[0])
    Plan of 2 candidates over (C) by cv_error
    >>> plan.run()["status"].values.tolist()
    [0, 1]
    """
    delta = check_probability(delta, "delta")
    reserve = check_reserve(reserve, delta)
    reading = checked_reading(reading)
    seed = seed_from(random_state)
    grid = drawn(param_grid, seed)
    candidates = make_candidates(estimator, grid)
    weights = checked_prior(prior, len(candidates))
    allow_nan = takes_nan(each.estimator for each in candidates)
    labeled = labeled_rows(X, y, allow_nan=allow_nan, as_frame=True)
    params = checked_params(fit_params, labeled.n_rows)
    sharing, remarks, depends = make_groups(candidates, labeled, seed, params)
    labeled = as_taken(labeled, sharing)
    whole, counted, fitting = _divide_pool(pool, labeled, candidates, seed, params)

    n_pool = 0 if counted is None else counted.n_rows
    # What `auto` takes is no certificate for these.
    is_special = reserve > 0 or weights is not None or reading.stop_within is not None
    took = taken(
        criterion, certificate, cv, label_share, delta=delta,
        sizes=(labeled.n_rows, n_pool, len(candidates)), is_special=is_special,
    )  # fmt: skip
    rule, read = criteria = named_criteria(took.criterion, took.certificate)
    share = _least_share(took.label_share, delta, weights, len(candidates))
    stages = plan_stages(counted, reading, share=share, seed=seed)
    check_given(criteria, stages, pool_labels)
    scheme = cross_validation(
        took.cv, labeled, seed, criteria, with_pool=pool is not None,
        train_errors=check_flag(train_errors, "train_errors"), groups=groups,
    )  # fmt: skip
    scheme = with_labels(scheme, pool_labels, stages.pool, labeled.classes)

    ledger = plan_ledger(
        labeled, scheme, candidates, params, cv=took.cv, has_pool=pool is not None,
        pool_is_fitted=fitting is not None, breaks_independence=depends,
        in_groups=groups is not None or "groups" in params,
        shuffled=reading.takes_first_rows,
    )  # fmt: skip
    return warned(Plan(
        axes=grid_axes(grid), classes=labeled.classes, columns=labeled.columns,
        work=Work(labeled.X, labeled.y, scheme.splits, sharing, fitting, allow_nan),
        scheme=scheme, whole_pool=whole, stages=stages, prune=prune, prior=weights,
        duplicates=check_choice(duplicates, "duplicates", POLICIES),
        criterion=rule, certificate=read, delta=delta, reserve=reserve,
        label_share=float(took.label_share), remarks=took.remarks + remarks,
        seed=seed, assumptions=ledger,
        fingerprint=_fingerprint(stages, scheme, estimator, seed),
    ))  # fmt: skip


OPTIONS: Final = tuple(
    name
    for name, p in signature(plan_search).parameters.items()
    if p.kind is p.KEYWORD_ONLY
)
"""Names of its options, for other functions that take them and pass them on."""


def _least_share(
    label_share: float, delta: float, prior: ArrayLike | None, n_candidates: int
) -> float:
    """Return the least part of delta that a candidate's disagreement limit has."""
    least = 1 / n_candidates if prior is None else np.min(prior)
    return float((1 - check_probability(label_share, "label_share")) * delta * least)


def _divide_pool(
    pool: Any,
    labeled: LabeledRows,
    candidates: tuple[Candidate, ...],
    seed: int,
    params: Mapping[str, Any],
) -> tuple[Any, Any, Any]:
    """Return the pool, its counted part and its fitting part, or None."""
    if pool is None:
        return None, None, None
    opened = matching_pool(open_pool(pool), labeled)
    if opened.collection.n_rows == 0:
        raise ValueError("`pool` must have rows, got none; use None to go without it.")
    check_pool_learners((each.estimator for each in candidates), params)
    if not any(takes_pool(candidate.estimator) for candidate in candidates):
        return opened, opened, None
    fitting = opened.part(0.0, FITTING_PART, seed=seed)
    return opened, opened.part(FITTING_PART, 1.0, seed=seed), fitting


def _fingerprint(
    stages: Stages, scheme: Scheme, estimator: Any, seed: int
) -> dict[str, str]:
    known = [labels.token for labels in scheme.known_labels]
    output = get_config()["transform_output"]
    return {
        **stages.fingerprint,
        **({"pool_labels": known[0]} if known else {}),
        **({"transform_output": output} if output != "default" else {}),
        "splits": f"{scheme.kind}, {splits_token(scheme.with_models)}",
        "estimator": exact_text(estimator),
        "seed": str(seed),
    }
