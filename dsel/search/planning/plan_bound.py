"""Expected bounds of each certificate, before a label is used.

Each certificate brings the rows that it adds to the table, see `table_rows`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, Final

import numpy as np
import xarray as xr

from dsel import names
from dsel.arrays import Integers
from dsel.cards import ShownRow, render_card
from dsel.checks import (
    check_counts,
    check_delta,
    check_integer,
    check_probability,
    show,
)
from dsel.option_values import ALL_ROWS, DEFAULT_FOLDS, ONE_FOLD
from dsel.results.renderings import render_lines
from dsel.rounded_texts import about_percent, confidence, count_of, terminal_width
from dsel.search.design.certificate_methods import METHODS
from dsel.search.design.expected_bounds import (
    Case,
    ExpectedBound,
    ToleranceCase,
    all_but_20_percent,
    count_exceeding_holdout,
    expected_terms,
    plain_holdout_terms,
)

PLAIN_HOLDOUT: Final = "holdout_20_percent"
"""Name of the row for a search without dsel: 80% to search and train, 20% to test."""
MOST_ROWS: Final = 10**9
"""Most rows that are tried in the search for needed rows."""

NEVER: Final = -1
"""Number of needed rows where no number is enough."""
NEVER_TEXT: Final = "never"
"""The text that is printed in its place."""
LEFT_OUT: Final = " (lines for which no number is enough are left out)"
"""End of the title of a table without some rows."""

NEXT: Final = (
    "Next",
    "`dsel.certify(model, X, y)` for the bound of a model of yours, with `pool=` if "
    "you have one; `dsel.plots.plot_bound_plan(plan)` for a figure",
)
DISAGREEMENT_OF_ERROR: Final = 1 / 3
"""Default ratio to the error of the disagreement between the model of all rows and a
model without 20% of them: 0.3 to 0.5 on letter, magic, optdigits, pendigits, satimage
and spambase with 300 to 2,000 labels."""
QUANTITIES: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    names.BOUND: ("bound", lambda rate: _rate_text(min(1.0, rate), "-")),
    names.LABEL_TERM: ("from labels", lambda rate: _rate_text(rate, "-")),
    names.DISAGREEMENT_TERM: ("from the pool", lambda rate: _rate_text(rate, "-")),
    "labels_needed": ("labels needed", lambda n: _count_text(n)),
    "pool_rows_needed": ("pool rows needed", lambda n: _count_text(n)),
    "residual_quantile": ("quantile", lambda level: _rate_text(level, "none")),
}
"""Numbers in print, in order: their titles, and their texts."""
PARTS: Final = (names.LABEL_TERM, names.DISAGREEMENT_TERM)
"""Numbers that are shown for a single number of folds only."""
PLAIN_HOLDOUT_ROW: Final = ExpectedBound(
    plain_holdout_terms,
    all_but_20_percent,
    text="without dsel, 80% to search and train, 20% to test",
    bounds_losses=True,
    count_exceeding=count_exceeding_holdout,
)


class BoundPlan(xr.Dataset):  # type: ignore[no-untyped-call]  # of xarray
    """The Dataset of `plan_bound`, which is shown as a sentence, a table and notes.

    A part of it that lacks a dimension or the attributes is shown like any Dataset.

    Examples
    --------
    >>> print(plan_bound(600, 10_000, n_candidates=25, error=0.1))
    ... # doctest: +NORMALIZE_WHITESPACE, +ELLIPSIS
    Bound on the error (95% confidence), on average, for 600 labeled rows, 10,000 pool
    rows and 25 candidates, if the error is 10%:
    5 folds                  bound  from labels  from the pool
    trained without a fold   14.4%        14.4%           0.0%
    trained on all labels    18.4%        14.4%           4.0%
    cv_bound                 26.2%        22.2%           4.1%
    ...
    """

    __slots__ = ()

    def tables(self) -> list[tuple[str, list[ShownRow]]]:
        """Return tables of certificates with their titles; a column for each folds.

        With a single number of folds there is one table, with a column for each
        quantity.
        """
        shown = self
        if names.BOUND in self:
            shown = self.dropna(names.CERTIFICATE, how="all", subset=[names.BOUND])
        heads = [name_row(name) for name in shown[names.CERTIFICATE].values.tolist()]
        folds = shown[names.N_FOLDS].values.tolist()
        cells = {
            title: [[show(number) for number in row] for row in shown[name].values]
            for name, (title, show) in QUANTITIES.items()
            # The row is left out where no number of rows is enough, which a note
            # reports.
            if name in shown and bool((shown[name] != NEVER).any())
            if name not in PARTS or (len(folds) == 1 and "labels_needed" not in shown)
        }
        if len(folds) == 1:
            columns = [[row[0] for row in rows] for rows in cells.values()]
            head = (f"{folds[0]} folds", *cells)
            return [("", [head, *zip(heads, *columns, strict=True)])]
        head = ("folds", *map(str, folds))
        # A row without any number would say nothing, and is left out.
        return [
            (
                title
                + (LEFT_OUT if any({*row} == {NEVER_TEXT} for row in rows) else ""),
                [
                    head,
                    *(
                        (name, *row)
                        for name, row in zip(heads, rows, strict=True)
                        if {*row} != {NEVER_TEXT}
                    ),
                ],
            )
            for title, rows in cells.items()
        ]

    def shown_rows(self) -> list[ShownRow]:
        """Return the title, tables, an explanation of each table row, and notes."""
        (_, first), *other_tables = self.tables()
        shown_rows: list[ShownRow] = [("", f"{self.attrs['title']}:"), *first]
        for title, rows in other_tables:
            shown_rows += [("", f"{title.capitalize()}:"), *rows]
        heads = [name for name, *_ in first]
        defaults = [name_row(name) for name in (ONE_FOLD, ALL_ROWS)]
        defaults = [name for name in defaults if name in heads]
        if DEFAULT_FOLDS in self[names.N_FOLDS] and defaults:
            shown_rows.append(
                (
                    "",
                    f"By default a search has {DEFAULT_FOLDS} folds, and bounds the "
                    f"models {' and '.join(map(repr, defaults))}",
                )
            )
        # Names of up to 8 letters would be padded to a column, and longer ones end with
        # a colon.
        shown_rows += [
            ("", f"{name_row(name)}: {row.text}")
            for name, row in table_rows().items()
            if row.text and name_row(name) in heads
        ]
        return shown_rows + [("Note", note) for note in self.attrs["remarks"]]

    @property
    def _is_whole(self) -> bool:
        whole = {names.CERTIFICATE, names.N_FOLDS} <= set(self.dims)
        return whole and "title" in self.attrs

    def __str__(self) -> str:
        if not self._is_whole:
            return super().__repr__()
        return render_lines(self.shown_rows(), terminal_width())

    # A prompt and a notebook also show next steps, as for an outcome.
    def __repr__(self) -> str:
        if not self._is_whole:
            return super().__repr__()
        return render_lines([*self.shown_rows(), NEXT], terminal_width())

    def _repr_html_(self) -> str:
        if not self._is_whole:
            return super()._repr_html_()
        return render_card([*self.shown_rows(), NEXT])


def table_rows() -> dict[str, ExpectedBound]:
    """Return the rows of the table by name.

    These are the rows of all certificates, and `PLAIN_HOLDOUT_ROW`. A nested search
    has two rows, one for each model that it certifies.
    """
    rows = [item for method in METHODS.values() for item in method.expects.items()]
    return {**dict(rows), PLAIN_HOLDOUT: PLAIN_HOLDOUT_ROW}


def name_row(certificate: str) -> str:
    """Return the head of a row in words; a certificate with a name keeps it.

    Examples
    --------
    >>> name_row("one_fold"), name_row("cv_bound")
    ('trained without a fold', 'cv_bound')
    """
    words = {
        METHODS["holdout"].name: "one fold (holdout)",  # not the hold-out set of 20%
        ONE_FOLD: "trained without a fold",
        ALL_ROWS: "trained on all labels",
        PLAIN_HOLDOUT: "20% hold-out set",
    }
    return words.get(certificate, certificate)


def describe_row(certificate: str) -> str:
    """Return what a row of the table is about, in words that a figure can show alone.

    Examples
    --------
    >>> describe_row("cv_bound")
    'all candidates, by all folds (cv_bound)'
    """
    words = {
        ONE_FOLD: "chosen model, trained without a fold",
        ALL_ROWS: "chosen model, trained on all labels",
        "cv_bound": "all candidates, by all folds (cv_bound)",
        "best_fold": "all candidates, by their best fold (best_fold)",
        "holdout": "all candidates, by one fold (holdout)",
        PLAIN_HOLDOUT: "20% hold-out set, without dsel",
    }
    return words.get(certificate, certificate)


def _count_text(n_rows: float) -> str:
    return NEVER_TEXT if n_rows == NEVER else f"{n_rows:,}"


def _rate_text(rate: float, text_of_nan: str) -> str:
    return text_of_nan if isnan(rate) else about_percent(rate)


def plan_bound(
    n_labeled: int,
    n_unlabeled: int = 0,
    *,
    n_candidates: int,
    error: float | None = None,
    disagreement: float | None = None,
    class_share: float | None = None,
    cv: int | Sequence[int] = 5,
    delta: float = 0.05,
    wanted: float | None = None,
    error_quantile: float | None = None,
    n_queries: int = 0,
) -> BoundPlan:
    """Return the bound to expect from each certificate, and from a 20% hold-out set.

    Parameters
    ----------
    n_labeled
        Labeled rows, at least 2; if rows come in groups, the number of groups.
    n_unlabeled
        Pool rows; with 0, the default, certificates that need the pool have no number.
    n_candidates
        Candidates that are compared, at least 1.
    error
        Error rate that the chosen model is assumed to have, in ``(0, 1)``.
    disagreement
        Rate at which the model of all rows is assumed to differ from one that was
        trained without 20% of them, in ``(0, 1)``; it is larger with fewer folds, and
        smaller with more. None takes a third of `error`. Both are guesses.
    class_share
        For ``loss=dsel.losses.recall(label)``: the fraction of the class, in
        ``(0, 1)``. Then `error` and `disagreement` are fractions of its rows, and
        limits are computed from the rows of the class alone.
    cv
        Number of folds, at least 2, or several to compare.
    delta
        Probability that the bound fails, in ``(0, 1)``.
    wanted
        A bound: the labeled rows and the pool rows that it needs are returned, too.
    error_quantile
        For regressors, instead of `error`: the fraction of the predictions that keep
        the tolerance, such as 0.9. See the last paragraph of "Returns".
    n_queries
        Pool rows to label in a nested search, as `plan_search` takes it; 0 for none.
        They take a share of `delta` from all other limits. The bound of ``all_rows``
        is that with these labels, if either model is right on half of the rows, or the
        one from the pool alone where this is smaller.

    Returns
    -------
    BoundPlan
        An `xarray.Dataset` that is shown as a table in words.
        `bound`, `label_term` and `disagreement_term` over (`certificate`, `n_folds`),
        averages, not clipped at 1; NaN if there are more folds than rows, or no pool.
        `seen` is the fraction of the labeled rows on which the model is trained, and
        `disagreement` over `n_folds` the assumed rate. Certificates are ``one_fold``
        and ``all_rows``, the two numbers of a nested search; ``cv_bound``,
        ``best_fold`` and ``holdout``; and ``holdout_20_percent``, for a search on 80%
        of the labels and a test on the rest.
        With `wanted` also `labels_needed` and `pool_rows_needed`, exact to 1 %, each
        if all other arguments stay the same; -1 if no number up to 1e9 is enough. The
        attribute `remarks` lists the guesses, and why a wanted bound is impossible.

        With `error_quantile`, over the same dimensions without ``cv_bound`` and
        ``best_fold``, which are for classifiers: `labels_needed`, the labeled rows from
        which on a tolerance is finite, and `residual_quantile`, the quantile of the
        residuals on held-out rows that it equals; NaN if it is infinite.

    Raises
    ------
    TypeError
        If a number of rows, candidates or folds is no integer.
    ValueError
        If one is too small, a probability is outside ``(0, 1)``, or rows are queried
        without a pool, or for another loss than the error.

    See Also
    --------
    plan_search : Plans the search itself.

    Examples
    --------
    >>> plan = plan_bound(600, 100_000, n_candidates=25, error=0.1)
    >>> plan.bound.sel(n_folds=5).round(3).to_series().to_dict()
    ... # doctest: +NORMALIZE_WHITESPACE
    {'one_fold': 0.144, 'all_rows': 0.179, 'cv_bound': 0.257, 'best_fold': 0.216,
     'holdout': 0.202, 'holdout_20_percent': 0.156}

    From how many labeled rows on there is a tolerance for 95% of the predictions:

    >>> plan = plan_bound(600, 0, n_candidates=25, error_quantile=0.95)
    >>> plan.labels_needed.sel(n_folds=5).to_series().to_dict()
    {'one_fold': 356, 'holdout': 606, 'holdout_20_percent': 295}
    """
    folds = list(dict.fromkeys(np.atleast_1d(check_counts(cv, "cv")).ravel().tolist()))
    if not folds or min(folds) < 2:
        raise ValueError(
            f"`cv` must be a number of folds >= 2, or several, got {show(cv)}."
        )
    if error_quantile is not None:
        _refuse_rates(
            error=error,
            disagreement=disagreement,
            class_share=class_share,
            wanted=wanted,
            n_queries=n_queries or None,
        )
        n = check_integer(n_labeled, "n_labeled", at_least=2)
        has_pool = check_integer(n_unlabeled, "n_unlabeled", at_least=0) > 0
        fraction = check_probability(error_quantile, "error_quantile")
        return _plan_tolerance(
            n,
            folds,
            fraction,
            check_delta(delta),
            has_pool=has_pool,
            n_candidates=check_integer(n_candidates, "n_candidates", at_least=1),
        )
    if error is None:
        raise TypeError(
            "`plan_bound` needs `error`, the error rate that you expect of the chosen "
            "model, such as error=0.1; for regressors it needs error_quantile=0.9."
        )
    assumed_error = check_probability(error, "error")
    rate = DISAGREEMENT_OF_ERROR * assumed_error
    if disagreement is not None:
        rate = check_probability(disagreement, "disagreement")
    case = Case(
        check_integer(n_labeled, "n_labeled", at_least=2),
        check_integer(n_unlabeled, "n_unlabeled", at_least=0),
        check_integer(n_candidates, "n_candidates", at_least=1),
        check_delta(delta),
        assumed_error,
        rate,
        1.0 if class_share is None else check_probability(class_share, "class_share"),
        check_integer(n_queries, "n_queries", at_least=0),
    )
    if case.n_queries and (class_share is not None or not case.n_unlabeled):
        raise ValueError(
            f"`n_queries` is for the error, and for a search with a pool, got "
            f"{case.n_queries} queries "
            f"{'with `class_share`' if case.n_unlabeled else 'and no pool rows'}; "
            f"leave it out."
        )
    plan = _plan_rates(case, folds)
    of_class = class_share is not None
    title = _title_of_rates(case, of_class=of_class)
    notes = _notes_on_rates(
        plan, case, of_class=of_class, is_declared=bool(disagreement)
    )
    if wanted is not None:
        limit = check_probability(wanted, "wanted")
        needed = _count_rows_for_limit(case, folds, limit)
        plan = plan.assign(needed)
        if limit > case.error:
            title += f"; and rows needed for a bound of {100 * limit:g}%"
            notes += [
                f"No number of {kind} rows gives a bound of {100 * limit:g}%."
                for kind, name in (("labeled", "labels"), ("pool", "pool_rows"))
                if (needed[f"{name}_needed"][1] == NEVER).all()
            ]
        notes += _notes_on_limit(case, folds, limit)
    return plan.assign_attrs(title=title, remarks=notes)


def _refuse_rates(**rates: float | None) -> None:
    """Raise ValueError if an option of classifiers is passed for regressors."""
    for name, rate in rates.items():
        if rate is not None:
            raise ValueError(
                f"`{name}` is of classifiers and `error_quantile` of regressors; "
                f"leave one of them out."
            )


def _title_of_rates(case: Case, *, of_class: bool) -> str:
    """Return what is bounded, and what is assumed for it."""
    what, is_assumed = "error", "the error is"
    if of_class:
        what, is_assumed = "misses of the class", "these are"
    pool = count_of(case.n_unlabeled, "pool row") if case.n_unlabeled else "no pool"
    pool += f" ({case.n_queries:,} of them labeled)" if case.n_queries else ""
    return (
        f"Bound on the {what} ({confidence(case.delta)}% confidence), on average, for "
        f"{count_of(case.n_labeled, 'labeled row')}, {pool} and "
        f"{count_of(case.n_candidates, 'candidate')}, if {is_assumed} "
        f"{100 * case.error:g}%"
    )


def _notes_on_rates(
    plan: BoundPlan, case: Case, *, of_class: bool, is_declared: bool
) -> list[str]:
    """Return notes about the guessed disagreement, and about a hold-out set."""
    folds = plan[names.N_FOLDS].values.tolist()
    notes = []
    if case.n_unlabeled > 0:
        k = DEFAULT_FOLDS
        begin = "Given" if is_declared else "Guessed"
        how = "" if is_declared else " (a third of the assumed error)"
        more = "" if folds == [k] else ", and with fewer folds on more"
        notes.append(
            f"{begin}: the model trained on all labels differs from that of a fold on "
            f"{about_percent(case.disagreement(k))} of the rows"
            f"{' of the class' if of_class else ''} with {k} folds{how}{more}."
        )
    if case.n_queries:
        notes.append(
            f"Guessed: of {count_of(case.n_queries, 'pool row')} to label, on which "
            f"the models differ, either model is right on half."
        )
    is_holdout = plan[names.CERTIFICATE].values == PLAIN_HOLDOUT
    dsel_bound = plan[names.BOUND][~is_holdout].min()
    if plan[names.BOUND][is_holdout].min() <= dsel_bound:
        notes.append("A 20% hold-out set would give the smallest of these bounds.")
    return notes


def _plan_rates(case: Case, folds: Sequence[int]) -> BoundPlan:
    """Return the expected bound of each certificate, and its parts."""
    table = (names.CERTIFICATE, names.N_FOLDS)
    rows = table_rows()
    terms = np.array(
        [[expected_terms(case, row, k) for k in folds] for row in rows.values()]
    )
    trained_fractions = [
        [row.trained_fraction(k) for k in folds] for row in rows.values()
    ]
    return BoundPlan(
        {
            names.BOUND: (table, terms.sum(axis=2)),
            names.LABEL_TERM: (table, terms[..., 0]),
            names.DISAGREEMENT_TERM: (table, terms[..., 1]),
            "seen": (table, trained_fractions),
            "disagreement": (names.N_FOLDS, [case.disagreement(k) for k in folds]),
            "error": case.error,
            names.N_LABELED: case.n_labeled,
            names.N_UNLABELED: case.n_unlabeled,
            names.N_CANDIDATES: case.n_candidates,
            names.DELTA: case.delta,
        },
        coords={names.CERTIFICATE: list(rows), names.N_FOLDS: list(folds)},
    )


def _notes_on_limit(case: Case, folds: Sequence[int], limit: float) -> list[str]:
    """Return why no number of rows gives a wanted bound, where none does."""
    least = min(case.disagreement(k) for k in folds)
    if limit <= case.error:
        return [
            f"A bound of {100 * limit:g}% cannot be expected of a model that errs on "
            f"{100 * case.error:g}% of the rows, as assumed, with any number of rows: "
            f"a bound is larger than the error; assume a smaller error, or want a "
            f"larger bound."
        ]
    # Labels of queried rows may show that models are equally good where they differ.
    if limit <= case.error + least and not case.n_queries:
        return [
            f"No number of labels gives {100 * limit:g}% for a model of all rows: its "
            f"bound is larger than the assumed error ({100 * case.error:g}%) and "
            f"disagreement ({100 * least:.2g}% with {max(folds)} folds) together."
        ]
    return []


def _count_rows_for_limit(
    case: Case, folds: Sequence[int], limit: float
) -> dict[str, tuple[tuple[str, str], Integers]]:
    """Return variables with the labels, or the pool rows, that a wanted bound needs."""
    table = (names.CERTIFICATE, names.N_FOLDS)
    fields = {"labels_needed": "n_labeled", "pool_rows_needed": "n_unlabeled"}
    return {
        name: (
            table,
            np.array(
                [
                    [_rows_for_bound(case, field, row, k, limit) for k in folds]
                    for row in table_rows().values()
                ]
            ),
        )
        for name, field in fields.items()
    }


def _plan_tolerance(
    n_labeled: int,
    folds: Sequence[int],
    fraction: float,
    delta: float,
    *,
    n_candidates: int,
    has_pool: bool,
) -> BoundPlan:
    """Return the rows that a tolerance of regressors needs; see `plan_bound`."""
    case = ToleranceCase(n_candidates, delta, 1.0 - fraction, has_pool)
    rows = {
        name: row
        for name, row in table_rows().items()
        if row.count_exceeding is not None and (has_pool or not row.needs_pool)
    }
    needed, quantiles = [], []
    for k in folds:
        for row in rows.values():
            assert row.count_exceeding is not None  # `rows` has no others
            count = row.count_exceeding(case, k)
            # 20% are rounded down to whole rows; the first fold is one of the larger
            # folds.
            is_holdout = row is PLAIN_HOLDOUT_ROW
            n = n_labeled // 5 if is_holdout else -(-n_labeled // k)
            fewest = _fewest_rows(count)
            needed.append(5 * fewest if is_holdout else k * (fewest - 1) + 1)
            exceeding = count(n)
            quantiles.append((n - exceeding) / n if exceeding >= 0 else np.nan)
    table = (names.N_FOLDS, names.CERTIFICATE)
    shape = len(folds), len(rows)
    plan = BoundPlan(
        {
            "labels_needed": (table, np.reshape(needed, shape)),
            "residual_quantile": (table, np.reshape(quantiles, shape)),
            names.DELTA: delta,
            names.N_LABELED: n_labeled,
            names.N_CANDIDATES: n_candidates,
        },
        coords={names.N_FOLDS: list(folds), names.CERTIFICATE: list(rows)},
    )
    text = (
        f"How far off predictions are depends on the model. A bound of "
        f"{100 * fraction:.6g}% of them is about this quantile of the absolute errors "
        f"on held-out rows"
    )
    text += (
        "; that of all_rows is larger, by how far the models are apart"
        if has_pool
        else ""
    )
    plan = plan.transpose(names.CERTIFICATE, names.N_FOLDS)
    title = (
        f"Labeled rows from which on there is a finite bound of how far "
        f"{100 * fraction:.6g}% of predictions are off "
        f"({confidence(delta)}% confidence), "
        f"with {count_of(n_candidates, 'candidate')}, and quantiles with "
        f"{count_of(n_labeled, 'labeled row')}"
    )
    return plan.assign_attrs(title=title, remarks=[f"{text}."])


def _fewest_rows(excess_of: Callable[[int], int]) -> int:
    """Return the least number of rows for a finite tolerance."""
    low, high = 0, 1
    while excess_of(high) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if excess_of(middle) >= 0 else (middle, high)
    return high


def _rows_for_bound(
    case: Case, field: str, row: ExpectedBound, n_folds: int, wanted: float
) -> int:
    """Return the smallest number of rows that gives the bound, to 1 %, or -1."""

    def is_enough(n_rows: int) -> bool:
        rows: dict[str, Any] = {field: n_rows}
        changed = replace(case, **rows)
        return sum(expected_terms(changed, row, n_folds)) <= wanted

    # A hold-out set of 20% has no folds, and one answer for all numbers of them.
    fewest = 5 if row is PLAIN_HOLDOUT_ROW else n_folds
    low, high = (fewest, MOST_ROWS) if field == "n_labeled" else (0, MOST_ROWS)
    if is_enough(low):
        return low
    if not is_enough(high):
        return -1
    while high > low * 1.01 + 1:
        middle = max(low + 1, int(np.sqrt(low * high)))
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
