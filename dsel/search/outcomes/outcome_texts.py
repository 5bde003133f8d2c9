"""The print of an outcome: the rows of its choice, and the calls that come next."""

from math import isfinite
from typing import Final

from dsel.cards import ShownRow
from dsel.results import Choice
from dsel.results.certificate_texts import ESTIMATE
from dsel.results.choice_texts import COMPARED, NEXT

DRAWN: Final = (ESTIMATE, COMPARED)
"""Names of rows of texts that the figure of the bounds has."""


def shown_rows(choice: Choice) -> list[ShownRow]:
    """Return the rows of the choice, and where a number that is no bound is."""
    rows = list(choice.shown_rows())
    bound = choice.certificate
    if not bound.certified and isfinite(bound.number):
        text = "`certificate.number` has it, and `certificate.bound` is NaN"
        rows.append(("Number", text))
    return rows


def rows_and_next_steps(choice: Choice) -> list[ShownRow]:
    """Return all rows, with the next steps together at the end."""
    steps = [(NEXT, "; ".join(_next_calls(choice)))]
    return sorted([*shown_rows(choice), *steps], key=lambda row: row[0] == NEXT)


def _next_calls(choice: Choice) -> list[str]:
    """Return calls that run as they are printed, where `X_new` are new rows."""
    calls = ["`predict(X_new)`", "`plot()`", "`save('folder')`"]
    queries = choice.queries
    if queries is not None and queries.labels is None:
        calls.insert(
            0, "`query_rows()`, label these, then `certify_with_labels(labels)`"
        )
    if any(b.certified and not b.says_nothing for b in choice.certificates.values()):
        calls.append("`monitor(X_new)` tests the bound on new rows")
    return calls
