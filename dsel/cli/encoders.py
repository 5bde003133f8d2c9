"""The encoders of `dsel select`, and the columns about which a user must decide."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import MaxAbsScaler

from dsel.arrays import Features
from dsel.checks import listing
from dsel.cli.stops import NO_FEATURES
from dsel.data import column_encoders as encoders_of_frames
from dsel.data.column_encoders import encoders_by_kind, steps_of_numbers
from dsel.data.encoding import (
    DATES,
    LEFT_OUT,
    NUMBERS,
    VALUES,
    has_many_values,
    has_words_among_numbers,
    is_prose,
    is_single,
    kind_of_encoder,
)
from dsel.data.frame_columns import NUMBER, TEXT, TRUTH, Column, columns_of
from dsel.data.identifiers import (
    holds_sentences,
    is_name_of_count,
    is_name_of_identifier,
    notes_on_repeats,
)
from dsel.data.table_request import step_of_row_numbers
from dsel.data.text_columns.text_reasons import DATE_ORDERS, TextReason
from dsel.errors import Correction, ShellOptions, UndecidedError
from dsel.option_values import join_names, names_in, quote_names

Steps = list[tuple[str, Any]]
COLUMNS: Final = "columns"
"""Name of the row of texts that counts the columns of each kind."""
MOST_NAMES: Final = 8
"""Most names of columns in a line."""
MOST_IN_FULL: Final = 3
"""Most undecided columns that have a sentence each; of more, a sentence has all that
are alike, since the command below has the options."""


def encoders(
    X: Features,
    *,
    is_scaled: bool,
    why_texts: Mapping[str, TextReason] = MappingProxyType({}),
    has_groups: bool = False,
    pool_columns: Collection[str] | None = None,
    measured: Collection[str] = (),
) -> tuple[Steps, list[tuple[str, str]]]:
    """Return the steps that turn a table into numbers, and descriptions of them.

    Raises TypeError if no step can encode a column. The error names all such columns,
    with the reasons `why_texts` why they were read as texts, if there are any, and the
    options that decide how to read them. Without `has_groups` one of the columns may
    have the groups. Ids must be among `pool_columns`, where they are known. Columns
    that are `measured` are numbers, whatever they are called.
    """
    if sparse.issparse(X):
        steps, row = ("scale", MaxAbsScaler()), ("numbers", "scaled by the largest")
        return ([steps], [row]) if is_scaled else ([], [])
    filled = f"gaps filled by the median{', scaled' if is_scaled else ''}"
    encoder_of = encoders_by_kind(is_scaled=is_scaled)
    kinds: dict[str, tuple[Any, str, list[str]]] = {
        NUMBERS: (encoder_of[NUMBERS], filled, []),
        DATES: (encoder_of[DATES], f"as days, {filled}", []),
        VALUES: (encoder_of[VALUES], "a column for each value", []),
        LEFT_OUT: ("drop", "nothing but gaps", []),
    }
    undecided = []
    for column in columns_of(X) if isinstance(X, pd.DataFrame) else ():
        kind = kind_of_encoder(column, X[column.name])
        if kind == NUMBERS and column.name not in measured:
            in_pool = column.name in (pool_columns or ())
            kind = None if _holds_keys(X[column.name], in_pool=in_pool) else kind
        reason = why_texts.get(column.name)
        if kind is None or (reason and has_words_among_numbers(reason, X[column.name])):
            undecided.append(column)
        else:
            kinds[kind][2].append(column.name)
    if undecided:
        raise _error_of_undecided_columns(
            undecided, X, why_texts, has_groups, pool_columns
        )
    used = {kind: parts for kind, parts in kinds.items() if parts[2]}
    if used.keys() <= {NUMBERS}:
        n_columns = f"{len(used[NUMBERS][2]):,} columns: " if used else ""
        numbers = steps_of_numbers(is_scaled=is_scaled)
        return numbers, [(NUMBERS, f"{n_columns}{filled}")]
    shown_rows = [
        (
            COLUMNS,
            ", ".join(
                _count_columns(kind, of)
                for kind, (*_, of) in used.items()
                if kind != LEFT_OUT
            ),
        ),
        *(
            (kind, f"{_list_columns(of)}: {text}")
            for kind, (_, text, of) in used.items()
        ),
    ]
    _, _, left_out = used.pop(LEFT_OUT, (None, "", []))
    if not used:
        raise ValueError(f"no column holds a value: {listing(left_out, 8)}.")
    parts = [(kind, encoder, of) for kind, (encoder, _, of) in used.items()]
    return [("columns", ColumnTransformer(parts))], shown_rows


class _Undecided(NamedTuple):
    """Columns without an encoder, by what can be done with them."""

    columns: Sequence[Column]
    reasons: Mapping[str, TextReason]
    """Reasons by column why it was read as texts, where these name a way to read it."""
    unnamed: list[str]
    """Columns for which no reason names a way that keeps them."""
    keys: list[str]
    """Columns of numbers that have the names and values of keys."""
    prose: list[str]
    """Columns of texts in several words."""
    singles: list[str]
    """Columns with another value in nearly every row."""
    ids: list[str]
    """Columns that may identify rows in the predictions."""
    dropped: list[str]
    """All columns but `ids`."""
    owners: list[str]
    """The column to which rows may belong in groups; empty if there is none."""


def _error_of_undecided_columns(
    undecided: Sequence[Column],
    X: pd.DataFrame,
    why_texts: Mapping[str, TextReason],
    has_groups: bool,
    pool_columns: Collection[str] | None,
) -> UndecidedError:
    """Return the error that names columns without an encoder, and what decides them."""
    sorted_columns = _classify_columns(
        undecided, X, why_texts, has_groups, pool_columns
    )
    shown = "; ".join(
        reason.text
        if (reason := why_texts.get(column.name))
        else _describe_unencodable(column, X[column.name])
        for column in undecided[:10]
    )
    more = f" (and {len(undecided) - 10} more)" if len(undecided) > 10 else ""
    # Else a user mends these columns, and reads of others before the next run.
    known = {column.name for column in undecided}
    others = {
        name: reason
        for name, reason in why_texts.items()
        if name not in known and name in X and (reason.options or reason.text)
    }
    in_short = ""
    if len(undecided) + len(others) > MOST_IN_FULL:
        in_short = _describe_in_short(sorted_columns, X, others)
    error = UndecidedError(
        f"{shown}{more}.{_advise(sorted_columns)}",
        *_ways_to_decide(sorted_columns, X, why_texts),
        in_short=in_short,
    )
    for reason in others.values():
        error.add_note(reason.text)
    return error


def _describe_in_short(
    undecided: _Undecided, X: pd.DataFrame, others: Mapping[str, TextReason]
) -> str:
    """Return what is to be decided about many columns, those that are alike together.

    `others` have an encoder, and a reason to be read otherwise.
    """
    names = [column.name for column in undecided.columns]
    in_words = [name for name in names if name in undecided.prose]
    singles = [name for name in names if name in undecided.singles]
    texts = []
    for alike, hold in (
        (singles, "another value in nearly every row, as identifiers do"),
        (in_words, "free text"),
    ):
        if alike:
            verb = "has" if len(alike) == 1 else "have"
            texts.append(f"{listing([*map(repr, alike)], 8)} {verb} {hold}")
    rest = [c for c in undecided.columns if c.name not in {*singles, *in_words}]
    reasons = {**undecided.reasons, **others}
    described = [
        reasons[c.name].brief
        if c.name in reasons
        else _describe_unencodable(c, X[c.name])
        for c in rest
    ] + [reason.brief for reason in others.values()]
    texts += [
        text.removeprefix("column ")
        .replace("' is read as text: ", "': ")
        .replace(", and is read as text: ", ": ")
        for text in described[:MOST_NAMES]
    ]
    more = len(described) - MOST_NAMES
    end = f"; and {more:,} more" if more > 0 else ""
    n_columns = len(names) + len(others)
    belong = ""
    if undecided.owners:
        belong = f" {_sentence_on_groups(*undecided.owners)}"
    return f"{n_columns:,} columns need a decision: {'; '.join(texts)}{end}.{belong}"


def _sentence_on_groups(owner: str) -> str:
    """Return the sentence about a column that may say which rows belong together."""
    return (
        f"If rows of one {owner} belong together, write --groups "
        f"{shlex.quote(owner)}: without it the bound would be too small."
    )


def _classify_columns(
    undecided: Sequence[Column],
    X: pd.DataFrame,
    why_texts: Mapping[str, TextReason],
    has_groups: bool,
    pool_columns: Collection[str] | None,
) -> _Undecided:
    """Return the columns by what can be done with them."""
    reasons = {
        c.name: reason
        for c in undecided
        if (reason := why_texts.get(c.name)) and (reason.options or reason.date_orders)
    }
    keys = [c.name for c in undecided if c.kind == NUMBER and _holds_keys(X[c.name])]
    # A column with unique values may identify rows in the predictions.
    texts = [c.name for c in undecided if c.kind == TEXT or c.name in keys]
    unexplained = [t for t in texts if t not in why_texts]
    prose = [t for t in unexplained if is_prose(X[t])]
    singles = [t for t in unexplained if is_single(X[t]) and t not in prose]
    ids = [t for t in singles if pool_columns is None or t in pool_columns]
    dropped = [c.name for c in undecided if c.name not in ids]
    # Rows of one customer are not independent: without its column a certificate
    # would be about other rows, so that a command names the groups first.
    named = [t for t in unexplained if is_name_of_identifier(t) and not X[t].is_unique]
    repeated = [t for t in unexplained if t not in named and notes_on_repeats(X[t])]
    owners = [t for t in named + repeated if not (has_groups or holds_sentences(X[t]))]
    # What several rows share says more of groups than what hardly any do.
    owners.sort(key=lambda t: t in singles)
    return _Undecided(
        columns=undecided,
        reasons=reasons,
        # The reason for a column of amounts already names a way out.
        unnamed=[
            c.name
            for c in undecided
            if c.name not in reasons or reasons[c.name].date_orders
        ],
        keys=keys,
        prose=prose,
        singles=singles,
        ids=ids,
        dropped=dropped,
        owners=owners[:1],
    )


def _ways_to_decide(
    undecided: _Undecided, X: pd.DataFrame, why_texts: Mapping[str, TextReason]
) -> list[ShellOptions]:
    """Return options of commands that decide all columns, the likeliest first."""
    ids, dropped, owners = undecided.ids, undecided.dropped, undecided.owners
    reasons = undecided.reasons
    # Nothing in a table shows which of both meanings keys have, unless nearly all
    # differ: these are probably no groups.
    likely, other = owners, list[str]()
    if {*owners} & {*undecided.singles}:
        likely, other = other, owners
    # Options read some of the columns, and the rest is left out.
    rest = [name for name in dropped if name not in reasons]
    readings = list[dict[tuple[str, str], None]]()
    dated = [reason.date_orders for reason in reasons.values() if reason.date_orders]
    # All dates of a table are written in one order.
    orders = [o for o in DATE_ORDERS.values() if all(o in column for column in dated)]
    for order in orders if dated else [""]:
        options = dict.fromkeys(
            option
            for reason in reasons.values()
            for option in reason.options or [(order, "")]
        )
        # Who reads some amounts as numbers reads all of them so, also those of few
        # values, which could be categories.
        options |= dict.fromkeys(
            ("--number", name)
            for name, reason in why_texts.items()
            if name in X and reason.options == (("--number", name),)
        )
        readings.append(options)
    ways: list[ShellOptions]
    ways = [[*options, *_options(rest, ids, likely)] for options in readings]
    first = ways[0]
    if owners:
        ways.insert(1, [*readings[0], *_options(rest, ids, other)])
    # A column of numbers with a few words may have a column for each value.
    categories = [
        c.name for c in undecided.columns if kind_of_encoder(c, X[c.name]) == "values"
    ]
    if categories:
        rest = [name for name in rest if name not in categories]
        as_texts = [("--text", name) for name in categories]
        of_categories = {
            o for c in categories if c in reasons for o in reasons[c].options
        }
        others = [o for o in readings[0] if o not in of_categories]
        ways.insert(1, [*others, *as_texts, *_options(rest, ids, likely)])
    if undecided.keys:  # their names may mislead
        ways.append(_read_keys_as_numbers(first, undecided.keys))
    if reasons:
        ways.append(_options(dropped, ids, likely))
    return ways


def _advise(undecided: _Undecided) -> str:
    """Return the sentences about what a user can decide, after a blank."""
    columns, unnamed, keys = undecided.columns, undecided.unnamed, undecided.keys
    belong = ""
    if undecided.owners:
        belong = f" {_sentence_on_groups(*undecided.owners)}"
    decisions = []
    if unnamed:
        copied = ""
        if ids := undecided.ids:
            copied = (
                f" (or --id {quote_names(*ids)} to copy {_pronoun(ids)} to predictions)"
            )
        what = _pronoun(columns)
        if len(unnamed) < len(columns):
            what = ", ".join(unnamed)
        decisions.append(f"leave {what} out by --drop {quote_names(*unnamed)}{copied}")
    if keys:
        as_numbers = " ".join(f"--number {quote_names(key)}" for key in keys)
        is_measured = "it is a measurement" if len(keys) == 1 else "they are measured"
        decisions.append(f"write {as_numbers} if {is_measured}")
    if len(keys) < len(columns):
        decisions.append("name a pipeline that encodes them by --model MODULE:OBJECT")
    begin = "else " if belong else "" if unnamed else "or "
    advice = f"{begin}{', or '.join(decisions)}"
    keep = "".join(
        f" A model that counts the words of {name!r} may err less: docs/using/"
        f"tables.md, Free text, has its pipeline."
        for name in undecided.prose[:1]
    )
    return f"{belong} {advice[:1].upper()}{advice[1:]}.{keep}"


def _options(
    dropped: Iterable[str], ids: Iterable[str], groups: Sequence[str] = ()
) -> ShellOptions:
    """Return the options by which these columns are no features."""
    dropped = [name for name in dropped if name not in groups]
    ids = [name for name in ids if name not in groups]
    options = [("--groups", "".join(groups)), ("--drop", join_names(dropped))]
    options += [("--id", join_names(ids))]
    return [(name, value) for name, value in options if value]


def _read_keys_as_numbers(options: ShellOptions, keys: Collection[str]) -> ShellOptions:
    """Return options that read keys as numbers, where others make them no features."""
    changed = list[tuple[str, str] | Correction]()
    for option in options:
        if isinstance(option, Correction) or option[0] not in NO_FEATURES:
            changed.append(option)
        elif kept := [name for name in names_in(option[1]) if name not in keys]:
            changed.append((option[0], join_names(kept)))
    return [*changed, *(("--number", key) for key in keys)]


def _pronoun(columns: Sequence[object]) -> str:
    """Return the pronoun of one column, or of several."""
    return "it" if len(columns) == 1 else "them"


def leave_out(column: str) -> ColumnTransformer:
    """Return a step that removes a column from a data frame."""
    step = ColumnTransformer(
        [("left out", "drop", [column])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return step.set_output(transform="pandas")


def _count_columns(kind: str, names: list[str]) -> str:
    """Return the number of columns of a kind, and the names of the first ones.

    Codes that were read as numbers, such as those of towns, are seen by their names.
    """
    count = f"{len(names):,} of {kind}"
    end = ", ..." if len(names) > MOST_NAMES else ""
    return f"{count} ({', '.join(names[:MOST_NAMES])}{end})"


def _list_columns(names: list[str]) -> str:
    """Return the names of columns; if there are many, their number and the first."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{len(names):,} columns ({', '.join(names[:3])}, ...)"


def _holds_keys(values: pd.Series, *, in_pool: bool = False) -> bool:
    """Return whether numbers have the name of a key, and as many values as keys have.

    Models take texts of this kind for no feature either. Row numbers that the pool has,
    too, are features with a note: the two-sample test shows whether they go on there.
    """
    known, name = values.dropna(), str(values.name)
    if is_name_of_count(name) or not is_name_of_identifier(name):
        return False
    if not has_many_values(known):
        return False
    numbers = known.to_numpy(np.float64)
    if in_pool and len(known) == len(values) and step_of_row_numbers(numbers):
        return False
    return bool((numbers % 1 == 0).all())


def _describe_unencodable(column: Column, values: pd.Series) -> str:
    """Return a description of a column that no encoder accepts."""
    known = values.dropna()
    name = f"column {column.name!r} "
    content = f"{column.kind}, which no encoder of `dsel select` takes"
    if column.kind == NUMBER and _holds_keys(values):
        return (
            f"{name}is named as keys are, and holds {known.nunique():,} different "
            f"whole numbers in {len(known):,} rows, such as {known.iloc[0]:.0f}"
        )
    if column.kind in (TEXT, TRUTH, NUMBER):
        content = f"{known.nunique():,} different texts in {len(known):,} rows"
    return f"{name}holds {content}, such as {str(known.iloc[0])[:40]!r}"


def days_since_1970(X: pd.DataFrame) -> pd.DataFrame:
    """Return dates as days; models that dsel kept before 0.3 look it up here."""
    return encoders_of_frames.days_since_1970(X)
