"""Certificate methods, one object for each.

A method decides by which criterion candidates are ranked, how they are pruned, which
models are trained and deployed, and which options are allowed. There is also one for
each estimate. Other files call the object; they use its name only in texts, and to
decide whether a number is of the method that a plan declared.

To add a certificate method, add its formula to `dsel.bounds`, its criterion to
`dsel.criteria`, an instance to `METHODS`, and its name to
`dsel.option_values.CERTIFICATES`, since the help of the shell must not import the
methods. docs/project/extending.md has the tests, pages and texts that go with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Final

from dsel import names
from dsel.checks import check_choice, check_integer, raise_first, show
from dsel.criteria import get_criterion
from dsel.criteria.criterion import Criterion
from dsel.data.groups import RowGroups
from dsel.data.labeled import LabeledRows
from dsel.data.splits import OuterNumber, all_rows_split, half_splits
from dsel.losses.error_rate import ERROR_RATE
from dsel.losses.protocols import Loss
from dsel.option_values import ALL_ROWS, DEFAULT_FOLDS, ONE_FOLD, Pruning
from dsel.results.certificate import Certificate
from dsel.search.design.cv_schemes import (
    CVScheme,
    indices_of_outer,
    number_of_folds,
    scheme_of_folds,
    scheme_of_pairs,
    with_leave_one_out,
)
from dsel.search.design.expected_bounds import (
    ExpectedBound,
    all_but_one_fold,
    all_labels,
    all_rows_terms,
    best_fold_terms,
    count_exceeding_both,
    count_exceeding_first,
    count_exceeding_fold,
    first_fold_terms,
    mean_of_folds_terms,
    one_fold_terms,
)
from dsel.search.design.search_options import SearchOptions

DEFAULT_HALVINGS: Final = 30
"""Random halvings of co-validation, over which disagreements are averaged."""


@dataclass(frozen=True, kw_only=True)
class SchemeRequest:
    """Options and labeled rows of a search, from which its scheme is made."""

    search_options: SearchOptions
    labeled: LabeledRows
    seed: int
    n_candidates: int
    row_groups: RowGroups | None
    """Groups of the labeled rows, by the option `groups`."""
    has_pool: bool

    @cached_property
    def draws_random_folds(self) -> bool:
        """Whether folds are drawn at random, and not those of a splitter or a list."""
        # For co-validation it is a number of halvings, which divides no rows evenly.
        is_number = self.search_options.cv is None or isinstance(
            self.search_options.cv, Real
        )
        return is_number or bool(
            number_of_folds(self.search_options.cv, self.labeled.n_rows)
        )

    @property
    def draws_independent_units(self) -> bool:
        """Whether the randomly drawn units are independent: rows, or whole groups."""
        # Fits get groups of `fit_params`, and folds ignore them.
        in_groups = "groups" in (self.search_options.fit_params or ())
        return self.draws_random_folds and (
            self.row_groups is not None or not in_groups
        )

    @property
    def has_whole_groups(self) -> bool:
        """Whether random folds consist of whole groups."""
        return self.draws_random_folds and self.row_groups is not None


@dataclass(frozen=True, kw_only=True)
class CertificateMethod:
    """One way to bound the error of a model, or to estimate it."""

    name: str | None
    """Value of `certificate=`; None for an estimate."""
    ranks_by: str
    """Criterion that ranks the candidates."""
    pruning: Pruning
    """Default pruning of candidates."""
    deploys: str
    """Default of the model that is deployed."""
    make_scheme: Callable[[SchemeRequest], CVScheme]
    """Function that returns the scheme of the search."""
    check_options: Callable[["CertificateMethod", SchemeRequest], None]
    """Function that raises ValueError for options that the method does not support."""
    allows_regression: bool = False
    """Whether candidates may be regressors."""
    is_guarantee: bool = True
    """Whether it gives a bound, not an estimate."""
    is_nested: bool = False
    """Whether the search is repeated without each fold. Then the bound does not grow
    with the number of candidates, any loss can be bounded, and there are two models to
    choose from for deployment."""
    supports_prior: bool = False
    """Whether weights may divide delta among the candidates."""
    expects: Mapping[str, ExpectedBound] = field(default_factory=dict)
    """Rows of the table of `plan_bound` by name, one for each model that is bounded;
    none of an estimate."""

    @property
    def criterion(self) -> Criterion:
        """The criterion that ranks the candidates."""
        return get_criterion(self.ranks_by)

    def criterion_of(self, loss: Loss) -> Criterion:
        """Return the criterion that ranks the candidates where this loss is declared.

        The error is ranked by the method, such as by its bounds.
        """
        return self.criterion if loss == ERROR_RATE else get_criterion(loss.criterion)

    @property
    def bounds_all_candidates(self) -> bool:
        """Whether every candidate is bounded, at a share of delta.

        Inner searches read none of the rows that bound their choice, so that the choice
        is bounded at the whole delta.
        """
        return not self.is_nested

    def supports(self, loss: Loss) -> bool:
        """Return whether it can bound this loss instead of the error."""
        return self.is_nested or (self.allows_regression and loss.is_regression)

    @property
    def needs_pool(self) -> bool:
        """Whether it gives no bound without a pool; a nested search does give one."""
        return bool({names.DISAGREEMENTS, names.POOL_ROWS} & set(self.criterion.needs))


def choose_method(request: SchemeRequest) -> CertificateMethod:
    """Return the method that options select; ValueError if they contradict it."""
    search_options = request.search_options
    certificate, criterion = search_options.certificate, search_options.criterion
    if certificate is not None:
        check_choice(certificate, "certificate", list(METHODS))
    if search_options.deploy is not None:
        check_choice(search_options.deploy, "deploy", (ONE_FOLD, ALL_ROWS))
    if certificate is not None:
        method = METHODS[certificate]
    elif criterion is None and request.draws_independent_units:
        method = NESTED_METHOD
    else:
        ranking = "mean_squared_error" if request.labeled.is_regression else "cv_error"
        method = estimate_by(ranking if criterion is None else criterion)
    if certificate and criterion is not None:
        raise ValueError(
            f"`criterion` is for estimates, but `certificate` is {certificate!r}; "
            f"leave one of them out."
        )
    check_candidate_kind(method, is_regression=request.labeled.is_regression)
    method.check_options(method, request)
    return method


def check_candidate_kind(method: CertificateMethod, *, is_regression: bool) -> None:
    """Raise ValueError if the method is for regressors only, or classifiers only."""
    ranks_regressors = method.criterion.is_regression
    raise_first(
        (
            is_regression and method.is_guarantee and not method.allows_regression,
            f"`certificate` {method.name!r} is for classifiers; regressors have "
            f"{names_of_methods(lambda m: m.allows_regression)}, and for a hold-out "
            f"set of your own dsel.certify(model, X, y, cv='prefit').",
        ),
        (
            is_regression and not method.is_guarantee and not ranks_regressors,
            f"`criterion` of regressors is 'mean_squared_error', got "
            f"{show(method.ranks_by)}; leave it out.",
        ),
        (
            ranks_regressors and not is_regression,
            "`criterion` 'mean_squared_error' is that of regressors; use 'cv_error'.",
        ),
    )


def choose_pruning(prune: object, method: CertificateMethod) -> Pruning:
    """Return how candidates are pruned."""
    if prune is None or prune is True:
        return method.pruning
    if prune is False:
        return Pruning.NONE
    # Not `Pruning(prune)`: that would accept "", the value of `Pruning.NONE`.
    if isinstance(prune, str) and prune in (Pruning.HALVING, Pruning.EXACT):
        return Pruning(prune)
    raise ValueError(
        f"`prune` must be True, False, 'halving' or 'exact', got {show(prune)}; True "
        f"takes 'halving' for a nested search, else 'exact'."
    )


def check_nested_options(_: CertificateMethod, request: SchemeRequest) -> None:
    """Raise ValueError if folds are not random, or a nested search lacks a model."""
    wants_all_rows = request.search_options.deploy == ALL_ROWS
    cv_type = type(request.search_options.cv).__name__
    raise_first(
        (
            not request.draws_random_folds,
            f"`cv` must be a number of folds, such as 5, for the bound of certificate="
            f"'nested', got a {cv_type}: they are drawn here, at random. Where "
            f"rows come in groups pass `groups`; for estimates by other folds use "
            f"plan_search without `certificate`.",
        ),
        (
            not request.draws_independent_units,
            "`certificate` 'nested' makes folds of whole groups where they are passed "
            "as `groups`, got them in `fit_params`; pass `groups` by itself, and `fit` "
            "gets those of its rows where it wants them.",
        ),
        (
            request.has_whole_groups and wants_all_rows,
            "`deploy` 'all_rows' compares two models on rows of the pool, which have "
            "no `groups`; use deploy='one_fold', or leave `groups` out.",
        ),
        (
            wants_all_rows and not request.has_pool,
            "`deploy` 'all_rows' compares two models on unlabeled rows, but `pool` is "
            "None; pass the pool, or use deploy='one_fold'.",
        ),
    )


def check_exhaustive_options(method: CertificateMethod, request: SchemeRequest) -> None:
    """Raise ValueError if options do not fit a search that counts all candidates.

    Such a search has one model, and drops no candidate that could win.
    """
    deploy = request.search_options.deploy
    what = "certificate" if method.is_guarantee else "criterion"
    method_text = (
        f"certificate={method.name!r}" if method.is_guarantee else "an estimate"
    )
    # A user who requested an estimate is advised of another estimate, not of a
    # certificate.
    without_pool = f"{what}={'nested' if method.is_guarantee else 'cv_error'!r}"
    raise_first(
        (
            request.has_whole_groups and method.is_guarantee and method.needs_pool,
            f"`certificate` {method.name!r} compares models on rows of the pool, which "
            f"have no `groups`; use 'nested', which reads none, or leave `groups` out.",
        ),
        (
            method.needs_pool and not request.has_pool,
            f"`{what}` {method.name or method.ranks_by!r} needs unlabeled rows, but "
            f"`pool` is None; pass the pool, or use {without_pool}, which needs none.",
        ),
        (
            choose_pruning(request.search_options.prune, method) == Pruning.HALVING,
            "`prune` 'halving' is for certificate='nested'; use 'exact' or False.",
        ),
        (
            deploy,
            f"`deploy` {deploy!r} is for certificate='nested', which bounds "
            f"two models, got {method_text}; leave `deploy` out.",
        ),
    )


def check_estimate_options(method: CertificateMethod, request: SchemeRequest) -> None:
    """Raise ValueError if a criterion is no estimate, or options lack its counts."""
    raise_first(
        (
            method.criterion.uses_declared_loss,
            "`criterion` 'mean_loss' is that of a declared loss; leave it out, and "
            'write loss=dsel.losses.recall("fraud") or another.',
        ),
        (
            method.criterion.is_guarantee,
            f"`criterion` is for estimates, got {show(method.ranks_by)}; write "
            f"certificate={method.ranks_by!r}.",
        ),
    )
    check_exhaustive_options(method, request)


def nested_scheme(request: SchemeRequest) -> CVScheme:
    """Return the scheme without each pair of folds, then without each fold."""
    n_rows, cv = request.labeled.n_rows, request.search_options.cv
    k = number_of_folds(DEFAULT_FOLDS if cv is None else cv, n_rows)
    assert k is not None  # `check_nested_options` has refused other splitters
    # No pair can be left out of two folds, so that halves of one rank the candidates.
    needs_halves = k == 2 and request.n_candidates > 1
    check_groups(request.row_groups, k, 4 if needs_halves else k)
    return scheme_of_pairs(
        k,
        n_rows,
        request.seed,
        n_candidates=request.n_candidates,
        row_groups=request.row_groups,
    )


def certified_scheme(request: SchemeRequest) -> CVScheme:
    """Return the scheme without each fold; one row of each group is counted."""
    return plain_scheme(request, is_certified=True)


def first_fold_scheme(request: SchemeRequest) -> CVScheme:
    """Return the scheme that trains without the first fold alone."""
    scheme = certified_scheme(request)
    first = scheme.fold_splits[:1]
    return replace(
        scheme, splits=indices_of_outer(first), fold_splits=first, all_rows=None
    )


def estimate_scheme(request: SchemeRequest) -> CVScheme:
    """Return the scheme for the criterion of an estimate: halves, folds, or rows."""
    n_rows = request.labeled.n_rows
    criterion = get_criterion(request.search_options.criterion or "cv_error")
    if criterion.by_halves:
        repeats = (
            DEFAULT_HALVINGS
            if request.search_options.cv is None
            else request.search_options.cv
        )
        repeats = check_integer(repeats, "cv", at_least=1)
        halves = half_splits(n_rows, repeats, seed=request.seed)
        all_rows = all_rows_split(n_rows, number=OuterNumber(len(halves)))
        scheme = CVScheme(
            indices_of_outer((*halves, all_rows)), halves, all_rows, True, repeats
        )
    else:
        scheme = plain_scheme(request, is_certified=False)
    reads_rows = criterion.by_halves or names.LOO_ERRORS in criterion.needs
    if reads_rows and request.row_groups is not None:
        raise ValueError(
            f"`groups` are not kept together by {criterion.name!r}, which is counted "
            f"by random halves or row by row; leave them out, or search without "
            f"`criterion`."
        )
    if names.LOO_ERRORS in criterion.needs:
        scheme = with_leave_one_out(scheme, n_rows)
    return scheme


def plain_scheme(request: SchemeRequest, *, is_certified: bool) -> CVScheme:
    """Return the scheme without each fold and on all rows."""
    labeled = request.labeled
    cv = (
        DEFAULT_FOLDS
        if request.search_options.cv is None
        else request.search_options.cv
    )
    k = number_of_folds(cv, labeled.n_rows)
    if k is not None:
        check_groups(request.row_groups, k, k)
    return scheme_of_folds(
        cv,
        labeled.X,
        labeled.labels,
        request.seed,
        row_groups=request.row_groups,
        is_certified=is_certified,
    )


def check_groups(row_groups: RowGroups | None, n_folds: int, fewest: int) -> None:
    """Raise ValueError if there are too few groups for the folds."""
    if row_groups is not None and row_groups.n_groups < fewest:
        raise ValueError(
            f"`groups` must have at least {fewest} groups for cv={n_folds}, got "
            f"{row_groups.n_groups}; use fewer folds, or label rows of more groups."
        )


# Halving may drop the candidate that the whole grid would choose. No bound depends on
# this: the searches without a fold are halved by rows that they may use.
NESTED_METHOD: Final = CertificateMethod(
    name="nested",
    ranks_by="cv_error",
    pruning=Pruning.HALVING,
    deploys=ONE_FOLD,
    make_scheme=nested_scheme,
    check_options=check_nested_options,
    allows_regression=True,
    is_nested=True,
    expects={
        ONE_FOLD: ExpectedBound(
            one_fold_terms,
            all_but_one_fold,
            bounds_losses=True,
            count_exceeding=count_exceeding_fold,
        ),
        ALL_ROWS: ExpectedBound(
            all_rows_terms,
            all_labels,
            needs_pool=True,
            bounds_losses=True,
            count_exceeding=count_exceeding_both,
        ),
    },
)
CV_BOUND_METHOD: Final = CertificateMethod(
    name="cv_bound",
    ranks_by="cv_bound",
    pruning=Pruning.EXACT,
    deploys=ALL_ROWS,
    make_scheme=certified_scheme,
    check_options=check_exhaustive_options,
    supports_prior=True,
    expects={
        "cv_bound": ExpectedBound(
            mean_of_folds_terms,
            all_labels,
            text="all candidates at once, trained on all labels, by the mean of folds",
            needs_pool=True,
        )
    },
)
# Limits of all folds of all candidates hold at once, so the mean of a candidate's
# limits may rank, and the smallest of the chosen one is its bound.
BEST_FOLD_METHOD: Final = replace(
    CV_BOUND_METHOD,
    name="best_fold",
    expects={
        "best_fold": ExpectedBound(
            best_fold_terms,
            all_labels,
            text="all candidates at once, trained on all labels, by one of the folds",
            needs_pool=True,
        )
    },
)
# Only the first fold is used: the smallest limit of several folds would cost some of
# delta. Regressors are ranked by their squared errors on it, and the chosen one is
# bounded.
HOLDOUT_METHOD: Final = CertificateMethod(
    name="holdout",
    ranks_by="holdout",
    pruning=Pruning.EXACT,
    deploys=ONE_FOLD,
    make_scheme=first_fold_scheme,
    check_options=check_exhaustive_options,
    allows_regression=True,
    expects={
        "holdout": ExpectedBound(
            first_fold_terms,
            all_but_one_fold,
            text="all candidates at once, trained without one fold, by that fold",
            count_exceeding=count_exceeding_first,
        )
    },
)
METHODS: Final[dict[str, CertificateMethod]] = {
    method.name: method
    for method in (NESTED_METHOD, CV_BOUND_METHOD, BEST_FOLD_METHOD, HOLDOUT_METHOD)
    if method.name is not None
}
"""Methods that give a guarantee, by name."""


def estimate_by(criterion: str) -> CertificateMethod:
    """Return the method that ranks by an estimate, and certifies nothing."""
    get_criterion(criterion)  # raises where there is none
    return CertificateMethod(
        name=None,
        ranks_by=criterion,
        pruning=Pruning.EXACT,
        deploys=ALL_ROWS,
        make_scheme=estimate_scheme,
        check_options=check_estimate_options,
        is_guarantee=False,
    )


def names_of_methods(is_named: Callable[[CertificateMethod], bool]) -> str:
    """Return the names of the methods for which a function returns True, as a text."""
    return " and ".join(
        repr(name) for name, method in METHODS.items() if is_named(method)
    )


def is_nested(certificate: Certificate) -> bool:
    """Return whether a nested search has made a certificate."""
    method = METHODS.get(certificate.method)  # None for an estimate
    return method is not None and method.is_nested
