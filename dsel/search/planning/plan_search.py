"""Planning of a search: reads the inputs, chooses a design, and lists assumptions."""

from dataclasses import replace

from dsel.arrays import Estimator, RandomState
from dsel.candidates import Grid
from dsel.data.groups import take_groups
from dsel.data.labeled import one_column
from dsel.errors import GuaranteeWarning, warn
from dsel.losses.protocols import Loss
from dsel.results.caveats import collect_caveats
from dsel.search.design.assumption_checks import DuplicatesAcrossFolds
from dsel.search.design.certificate_methods import SchemeRequest, choose_method
from dsel.search.design.cv_schemes import with_leave_one_out
from dsel.search.design.search_options import SearchOptions
from dsel.search.planned_search import PlanFacts
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_caveats import known_assumptions, plan_caveats
from dsel.search.planning.plan_design import (
    check_queries,
    design_search,
    make_context,
    plan_identity,
)
from dsel.search.planning.plan_inputs import CallerSettings, divide_pool, read_inputs
from dsel.typing import (
    BaselineLike,
    GroupsLike,
    LabelsLike,
    Options,
    PoolLike,
    PriorLike,
    ReportLike,
    RowsLike,
    SplitsLike,
)


def plan_search(
    estimator: Estimator | None,
    param_grid: Grid,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike = None,
    *,
    certificate: str | None = None,
    deploy: str | None = None,
    criterion: str | None = None,
    cv: SplitsLike = None,
    delta: float = 0.05,
    prune: str | bool | None = True,
    max_pool_rows: int | None = None,
    random_state: RandomState = None,
    fit_params: Options | None = None,
    groups: GroupsLike = None,
    loss: Loss | str = "error",
    report: ReportLike = False,
    report_by: str | int | None = None,
    prior: PriorLike = None,
    n_queries: int = 0,
    baseline: BaselineLike = None,
) -> Plan:
    """Plan a search; everything is checked, nothing is fitted.

    Parameters
    ----------
    estimator
        Unfitted scikit-learn classifier, regressor or pipeline; None if `param_grid`
        lists estimators.
    param_grid
        Dict of parameter to values, list of such dicts, or list of estimators. Or
        candidates one by one: a scikit-learn ``ParameterSampler`` (a random search), or
        any iterable of dicts of parameter to value. It is read once, here. A sampler
        without a random state uses `random_state`.
    X
        Labeled rows, shape (n_labeled, n_columns): array, data frame or sparse.
    y
        Labels, shape (n_labeled,), of any kind.
    pool
        Unlabeled rows: anything that `open_pool` takes. Drawn from the same population
        as the labeled rows. None searches without a pool. A learner whose `fit` takes
        ``pool`` gets one half of it, as a `Pool`: nothing is certified if rows there
        equal labeled rows, unless `open_pool` declared that they are other records.
    certificate
        The method of the bound. ``"nested"``, the default, also makes the whole search
        without each fold, so that the bound does not grow with the number of
        candidates; it is about the model of the deployed fold, and with a pool about
        that of all rows, too. ``"cv_bound"`` bounds the models of all candidates at
        once by the mean of their folds, so that one may be chosen by hand;
        ``"best_fold"`` by the fold with the smallest limit, which mostly bounds less;
        ``"holdout"`` bounds the models that were trained without the first fold. For
        regressors there are ``"nested"`` and ``"holdout"``, which chooses the candidate
        with the smallest mean squared error on the first fold.
    deploy
        The model of a nested search that is deployed: ``"one_fold"``, the default,
        mostly has the smaller bound; ``"all_rows"``, which needs a pool, is likely the
        better model.
    criterion
        For an estimate instead of a certificate: the criterion that ranks candidates,
        such as ``"cv_error"`` or ``"loo_error"``.
    cv
        Number of plain random folds, 5 by default, or ``KFold(n, shuffle=True)``, whose
        seed must be None, since `random_state` draws the folds. Any other scikit-learn
        splitter, or a list of (train rows, test rows), gives estimates only.
    delta
        Probability that the certificate fails, in (0, 0.5].
    prune
        True, as None, takes ``"halving"`` for a nested search: each search without a
        fold keeps the best quarter of the candidates after a first round; and
        ``"exact"`` for all others, which drops a candidate as soon as it cannot win.
        False drops none.
    max_pool_rows
        About how many pool rows to count at most: a random part, fixed in advance.
    random_state
        None, an integer, a RandomState or a Generator; becomes the seed of all draws.
    fit_params
        Keyword arguments of every `fit`; arrays with one value for each row are cut to
        the rows of a fit.
    groups
        If labeled rows come in groups (customers, patients, documents): the key of each
        row, (n_labeled,), or the name of a column of a data frame `X`, which is no
        feature then. If `cv` is a number, folds consist of whole groups, and the bound,
        that of ``one_fold``, is about a random row of a new group; the pool is not
        read. A splitter such as ``GroupKFold`` gets them, and gives estimates.
    loss
        ``"error"``, or another loss by which a nested search ranks candidates and which
        it certifies: one of `dsel.losses`, such as ``dsel.losses.recall("fraud")``, or
        its name as in the shell, such as ``"recall:fraud"`` or ``"balanced"``.
    report
        True, or a list of classes: a nested search certifies recall and precision of
        each class and the error, all at once; see `Outcome.certified_report`.
    report_by
        A column of `X`, such as ``"site"``: its name, or its position if columns have
        no names. For each of its values, at most 100, a nested search certifies the
        error, or for a regressor the `loss`, all at once; see
        `Outcome.report_by_value`. They get half of delta, for any number of values. The
        column is still a feature.
    prior
        For ``"cv_bound"`` and ``"best_fold"``, which bound all candidates at once: the
        division of delta among them. Weights >= 0, in the order of
        ``plan.axes.candidates`` (scikit-learn's ``ParameterGrid``), or a function that
        takes a candidate's parameters, a dict, and returns its weight. Decide them
        before you inspect any label. A candidate with weight 0 has no bound, and is not
        chosen. None divides delta equally.
    n_queries
        For nested searches by ``loss="error"`` with a pool, without `report`,
        `report_by` and `groups`: the number of pool rows to label after the run, drawn
        where both models differ. Their labels make the bound of the
        model of all rows smaller; see `Outcome.query_rows` and
        `Outcome.certify_with_labels`. It is fixed before the run, since it changes the
        shares of delta of all bounds. 0 queries none.
    baseline
        For nested searches by ``loss="error"``: a model with which those of the search
        are compared, on the labeled rows alone. A fitted classifier that was trained on
        none of these labels, such as the one in production; a place that `open_model`
        opens; or ``"largest class"``, the constant that predicts the largest class of
        the rows that a model was trained on. The comparison has its own delta; see
        `Choice.baseline`. A store recognizes a baseline by its predictions for `X`.

    Returns
    -------
    Plan
        Print it, or call its `run`.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments; the message has the argument, its value and advice.

    See Also
    --------
    SemiSupervisedSearchCV : The same as a scikit-learn estimator.
    dsel.plan_bound : Predicts bounds before a label is used.
    dsel.certify : Bounds for any other way to select a model.

    Notes
    -----
    With `groups`, one row of each group in a fold is counted, drawn by the seed before
    any row is inspected.
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
    Plan of 2 candidates that differ in C
    >>> plan.run().results["status"].values.tolist()
    [0, 0]
    """
    search_options = SearchOptions(
        certificate=certificate,
        deploy=deploy,
        criterion=criterion,
        cv=cv,
        delta=delta,
        prune=prune,
        max_pool_rows=max_pool_rows,
        random_state=random_state,
        fit_params=fit_params,
        groups=groups,
        loss=loss,
        report=report,
        report_by=report_by,
        prior=prior,
        n_queries=n_queries,
        baseline=baseline,
    )
    y = one_column(y)
    return plan_with_options(
        estimator, param_grid, X, y, pool, search_options, CallerSettings()
    )


def plan_with_options(
    estimator: Estimator | None,
    param_grid: Grid,
    X: RowsLike,
    y: LabelsLike,
    pool: PoolLike,
    search_options: SearchOptions,
    caller_settings: CallerSettings,
) -> Plan:
    """Plan a search, as `plan_search` does, with all of its options in one record.

    `caller_settings` are what a system knows of its search and no option expresses. A
    table of one column as `y` is read with a warning, as scikit-learn has it for
    estimators.
    """
    rows, group_keys, _ = take_groups(X, search_options.groups)
    search_options = replace(search_options, groups=group_keys).check_values()
    search_inputs = read_inputs(estimator, param_grid, rows, y, search_options)
    # The pool is opened first, since some certificates need one.
    divided_pool = divide_pool(pool, search_inputs, search_options.max_pool_rows)
    request = SchemeRequest(
        search_options=search_options,
        labeled=search_inputs.labeled,
        seed=search_inputs.seed,
        n_candidates=len(search_inputs.candidates),
        row_groups=search_inputs.row_groups,
        has_pool=divided_pool.counted is not None,
    )
    method = choose_method(request)
    # The method decides which splits are made, such as halves for co-validation.
    scheme = method.make_scheme(request)
    if caller_settings.leave_one_out:
        scheme = with_leave_one_out(scheme, search_inputs.labeled.n_rows)
    context = make_context(search_options, search_inputs, divided_pool, method, scheme)
    search = design_search(
        search_options, search_inputs, divided_pool, method, context, caller_settings
    )
    if search.n_queries:
        check_queries(search)
    # Nothing is refused from here on.
    if search_options.criterion is None and not scheme.is_plain_random:
        text = "no bound: the folds of `cv` are not plain random; write cv=5."
        warn(text, GuaranteeWarning)
    duplicates = DuplicatesAcrossFolds.of(
        search.labeled,
        scheme,
        has_groups=search.row_groups is not None,
        have_unique_ids=caller_settings.has_unique_ids,
    )
    facts = PlanFacts(
        identity=plan_identity(search, search_options, search_inputs),
        assumptions=known_assumptions(
            search, search_inputs, duplicates, caller_settings.violation
        ),
        caveats=collect_caveats(
            plan_caveats(
                search,
                search_inputs,
                divided_pool,
                duplicates,
                caller_settings.categories,
            ),
            caller_settings.caveats,
        ),
        duplicates=duplicates,
    )
    return Plan(search, facts)
