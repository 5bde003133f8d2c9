"""Tests on a new table of whether the promises of a search still hold.

There are three kinds of tests, each at its own level: the new rows against the labeled
ones, the disagreement of both models and, if the new rows have labels, their
errors. One pass over the table counts for all of them, and keeps a sample of its rows.

`promises` has what is tested, `new_labels` and `new_row_counts` what is counted, and
`promise_tests` the tests.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from dsel.checks import check_probability
from dsel.families.kinds import is_regressor
from dsel.option_values import MONITOR_LEVEL
from dsel.results.monitoring import MonitorReport
from dsel.runtime.clients import resolve_client
from dsel.runtime.progress import OnProgress
from dsel.search.design.assumptions import N_PERMUTATIONS
from dsel.search.outcomes.new_labels import NewLabels, draw_rows_of_groups
from dsel.search.outcomes.new_row_counts import CountPart, MonitorContext, Tally
from dsel.search.outcomes.promise_tests import read_report
from dsel.search.outcomes.promises import Promises
from dsel.search.outcomes.table_rows import open_table
from dsel.typing import PoolLike

if TYPE_CHECKING:
    from distributed import Client


def monitor_table(
    promises: Promises,
    source: PoolLike,
    labels: NewLabels,
    *,
    level: float = MONITOR_LEVEL,
    client: "Client | None" = None,
    on_progress: OnProgress | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> MonitorReport:
    """Test the promises of a search on a table; see `Outcome.monitor`."""
    level = check_level(level)
    for model in promises.models.values():
        check_is_fitted(model)
    input_format = promises.input_format
    if labels.target is not None and any(map(is_regressor, promises.models.values())):
        input_format = input_format.with_numbers(labels.target)
    column = labels.groups if isinstance(labels.groups, str) else None
    others = [name for name in (labels.target, column) if name is not None]
    if labels.groups is not None and not promises.are_in_groups:
        raise ValueError(
            f"{labels.groups_option} is for a search with groups, and these bounds are "
            f"about independent rows; leave it out if the new rows are such rows."
        )
    table = open_table(
        input_format,
        source,
        tuple(others) or None,
        option="target" if column is None else "target` or `groups",
        model=next(iter(promises.models.values())),
        separator=separator,
        encoding=encoding,
    )
    context, client = MonitorContext.of(promises, table, labels), resolve_client(client)
    notes: list[str] = []
    if labels.groups is not None:
        drawn, notes = draw_rows_of_groups(promises, table, labels, client)
        context = replace(context, drawn=drawn)
    tally: Tally | None = None
    show_progress = on_progress or (lambda done, total: None)
    for part in table.run(context, CountPart(), client):
        tally = part if tally is None else tally.merge(part)
        show_progress(tally.n_rows, table.n_rows)
    if tally is None:
        raise ValueError(f"{table.where} must have rows to be tested, got none.")
    if labels.y is not None and len(labels.y) != tally.n_rows:
        raise ValueError(
            f"`y` must have a label for each new row, got {len(labels.y):,} for "
            f"{tally.n_rows:,} rows; write None for a label that is not known."
        )
    if context.drawn is not None and len(context.drawn) != tally.n_rows:
        raise ValueError(
            f"{labels.groups_option} must have a key for each new row, got "
            f"{len(context.drawn):,} for {tally.n_rows:,} rows."
        )
    made = read_report(promises, context, tally, level)
    return replace(made, notes=(*notes, *made.notes))


def check_level(level: Any) -> float:
    """Return the level of the tests, or raise if it is out of range."""
    number, least = check_probability(level, "level"), 1 / (N_PERMUTATIONS + 1)
    if not least <= number <= 0.5:
        raise ValueError(
            f"`level` must be between {least:g}, the smallest p-value that the "
            f"two-sample test can have, and 0.5, got {number:g}."
        )
    return number
