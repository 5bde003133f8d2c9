"""Whether a new model errs less than an old one, before and after labels are known.

A `ModelComparison` holds counts, predictions for the queried rows and, once there are
some, their labels. Its limits are computed from these alone.
"""

import json
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isclose
from typing import Any, Final, Self

import pandas as pd
from numpy.typing import ArrayLike

from dsel.bounds import (
    binomial_tail_inversion,
    mean_difference_limit,
    queried_difference,
    sign_test_limit,
)
from dsel.bounds.queries import POOL_SHARE
from dsel.cards import Fact
from dsel.results.certificate import Assumption
from dsel.results.queried_labels import check_label_type, labels_by_row
from dsel.results.told import Told
from dsel.rounded_texts import (
    confidence,
    count_of,
    in_percent,
    points_at_least,
    points_at_most,
)

KIND: Final = "dsel model comparison"
VERSION: Final = 1


@dataclass(frozen=True, repr=False, eq=False)
class ModelComparison(Told):
    """Two models on one pool, and what labels of queried rows prove about them.

    Notes
    -----
    Guarantee: with probability at least ``1 - delta`` over the draw of the pool and the
    labels of its queried rows, the error of the new model less that of the old one lies
    between ``lower`` and ``upper``, and the rate at which both differ is at most
    ``disagreement``.
    Assumes: what `assumptions` lists.
    Source: :func:`dsel.bounds.queried_difference` with
    :func:`dsel.bounds.mean_difference_limit` for two classes and
    :func:`dsel.bounds.sign_test_limit` for more; half of the labels' share of delta for
    each end.
    """

    delta: float
    """Probability with which an end of the interval may fail."""
    n_unlabeled: int
    """Pool rows that were counted."""
    n_differ: int
    """Those on which the models differ, duplicates left out."""
    n_queries: int = 0
    """Queries that were planned; fewer rows are handed out where fewer differ."""
    n_duplicates: int | None = None
    """Pool rows that equal rows of ``X_seen``; None where no such rows were given."""
    n_duplicates_differ: int = 0
    """Those of them on which the models differ; they are never handed out."""
    classes: tuple[Any, ...] | None = None
    """The labels that there are; None where nobody declared them."""
    rows: tuple[int, ...] = ()
    """Numbers of the pool rows that were handed out."""
    old_predictions: tuple[Any, ...] = ()
    """Labels that the old model predicts for these rows."""
    new_predictions: tuple[Any, ...] = ()
    labels: tuple[Any, ...] | None = None
    """Their true labels, None for a row without one; None before they are known."""
    seed: int = 0
    """Seed by which the rows were drawn."""
    pool_rows: pd.DataFrame | None = field(default=None, compare=False)
    """The queried rows with all columns of the pool; not part of the JSON."""

    @property
    def certified(self) -> bool:
        """Whether the limits are a guarantee under the declared assumptions."""
        return not any(each.is_violated for each in self.assumptions)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the limits rest on."""
        seen = ""
        if self.n_duplicates is not None:
            seen = f"{self._duplicates} rows of `X_seen`"
        return Assumption("A1"), Assumption("A4", reason=seen), Assumption("A7")

    @property
    def _duplicates(self) -> str:
        return count_of(self.n_duplicates or 0, "pool row", "equals", "equal")

    @cached_property
    def disagreement(self) -> float:
        """Upper limit of the rate at which the models differ; holds jointly."""
        if self.n_queries:
            # The same events that the interval reads, so this costs nothing.
            return min(1.0, float(self._difference_limit(1.0)))
        stale, stale_differ = self.n_duplicates or 0, self.n_duplicates_differ
        return float(
            binomial_tail_inversion(
                self.n_differ + stale_differ,
                self.n_unlabeled - stale + stale_differ,
                delta=self.delta,
            )
        )

    @property
    def upper(self) -> float:
        """Upper limit of the new model's error less the old one's, in [-1, 1]."""
        return self._limit(*self._wrong_alone)

    @property
    def lower(self) -> float:
        """Lower limit of the new model's error less the old one's, in [-1, 1]."""
        return -self._limit(*reversed(self._wrong_alone))

    @property
    def is_better(self) -> bool:
        """Whether the new model is proved to err less than the old one."""
        return self.certified and self.upper < 0

    @property
    def is_worse(self) -> bool:
        """Whether the new model is proved to err more than the old one."""
        return self.certified and self.lower > 0

    def query_rows(self) -> pd.DataFrame:
        """Return the rows to be labeled, without any prediction.

        Returns
        -------
        pandas.DataFrame
            All columns of the pool, one row for each query; the index, named
            ``pool_row``, holds global row numbers.

        Raises
        ------
        ValueError
            Where no row was queried, or the comparison was read from a file, which
            has the numbers only.
        """
        if self.pool_rows is None or not self.rows:
            why = "it was read from a file, beside which they are written"
            if not self.rows:
                why = (
                    "the models differ on no row that may be queried"
                    if self.n_queries
                    else "none were planned; pass n_queries=60"
                )
            raise ValueError(f"there are no rows to be labeled: {why}.")
        return self.pool_rows

    def certify_with_labels(self, labels: ArrayLike) -> "ModelComparison":
        """Return the comparison with the labels of the queried rows.

        Every row that was handed out counts: one without a label, or with one that is
        no class, counts against what is proved, at either end.

        Parameters
        ----------
        labels
            A Series by pool row number, in which rows may be missing or in any order;
            or an array in the order of `query_rows`, None or NaN where there is none.

        Returns
        -------
        ModelComparison
            A new one; this one stays as it is.

        Raises
        ------
        ValueError
            Where rows were not queried or have two labels, the length differs, or no
            row was queried.
        TypeError
            Where labels are of another type than the predictions.
        """
        if not self.rows:
            self.query_rows()  # says why there are none
        given = labels_by_row(labels, self.rows)
        predicted = self.classes or (*self.old_predictions, *self.new_predictions)
        check_label_type(given, predicted)
        return replace(self, labels=given)

    @cached_property
    def unusable_labels(self) -> int:
        """Number of queried rows without a label, or with one that is not a class."""
        return sum(not self._is_class(label) for label in self.labels or ())

    def _is_class(self, label: object) -> bool:
        if label is None:
            return False
        return self.classes is None or label in self.classes

    @cached_property
    def _wrong_alone(self) -> tuple[int, int]:
        """Labeled rows on which the new model alone is wrong, and the old one alone."""
        # Of a label that both miss nothing follows: Z is 0.
        labels = self.labels or (None,) * len(self.rows)
        pairs = [
            (new == label, old == label)
            for new, old, label in zip(
                self.new_predictions, self.old_predictions, labels, strict=True
            )
            if self._is_class(label)
        ]
        return pairs.count((False, True)), pairs.count((True, False))

    def _limit(self, n_for: int, n_against: int) -> float:
        """Return an upper limit of err(f) - err(g), from which both ends are read.

        `n_for` rows say that f alone is wrong, `n_against` that g alone is.
        """
        if self.labels is None:
            return self.disagreement
        share = (1.0 - POOL_SHARE) / 2 * self.delta
        n_rows = len(self.rows)
        if self.classes is not None and len(self.classes) == 2:
            mean = mean_difference_limit(n_against, n_rows, delta=share)
        else:
            # What is not known counts as "f wrong, g right": no limit falls by that.
            n_for += self.unusable_labels
            mean = sign_test_limit(n_for, n_against, n_rows, delta=share)
        return float(self._difference_limit(float(mean)))

    def _difference_limit(self, mean: float) -> Any:
        return queried_difference(
            mean,
            self.n_differ,
            self.n_unlabeled,
            delta=POOL_SHARE * self.delta,
            n_duplicates=self.n_duplicates,
            n_duplicates_differ=self.n_duplicates_differ,
        )

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        lower, upper, sure = self.lower, self.upper, self._confidence()
        if upper < 0:
            span = _points(-upper, -lower)
            return f"The new model errs {span} less than the old one ({sure})"
        if lower > 0:
            span = _points(lower, upper)
            return f"The new model errs {span} more than the old one ({sure})"
        less, more = points_at_most(max(-lower, 0.0)), points_at_most(max(upper, 0.0))
        if self.labels is None:
            return (
                f"The errors of both models differ by at most {more} percentage points "
                f"({sure}, from the pool alone)"
            )
        return (
            f"Not proved either way: the new model errs at most {less} percentage "
            f"points less and at most {more} more than the old one ({sure})"
        )

    def _confidence(self) -> str:
        return f"{confidence(self.delta)}% confidence"

    def facts(self) -> list[Fact]:
        """Return names and texts, which all renderings show."""
        n_rows, rate = self.n_unlabeled, in_percent(self.disagreement)
        total = self.n_differ + self.n_duplicates_differ
        facts: list[Fact] = [
            ("", self.headline()),
            (
                "Pool",
                f"both models differ on {total:,} of {count_of(n_rows, 'row')}, at "
                f"most {rate} of all",
            ),
        ]
        if self.n_queries:
            n = len(self.rows)
            queried = f"{count_of(n, 'row', 'was', 'were')} handed out to be labeled"
            if self.labels is None:
                facts.append(("Labels", f"{queried}; none is known yet"))
            else:
                new_wrong, old_wrong = self._wrong_alone
                text = (
                    f"of {count_of(n, 'row')} on which they differ the new model "
                    f"alone is right on {old_wrong:,}, the old one alone on "
                    f"{new_wrong:,}"
                )
                facts.append(("Labels", text))
        if self.labels is not None and self.unusable_labels:
            text = (
                f"{count_of(self.unusable_labels, 'row', 'has', 'have')} no label, or "
                f"one that is no class: each counts against whatever is proved"
            )
            facts.append(("Note", text))
        if self.n_queries > len(self.rows) and self.rows:
            facts.append(("Note", "the models differ on fewer rows than were planned"))
        if self.n_duplicates:
            text = (
                f"{self._duplicates} rows of `X_seen`: no such row is handed out, and "
                f"the limits allow for it"
            )
            facts.append(("Note", text))
        return facts + [("Assumes", str(each)) for each in self.assumptions]

    def __repr__(self) -> str:
        return f"ModelComparison({self.headline()})"

    def to_json(self) -> str:
        """Return all fields and both limits, with all digits."""
        own = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name != "pool_rows"
        }
        limits = {
            "lower": self.lower,
            "upper": self.upper,
            "disagreement": self.disagreement,
            "certified": self.certified,
            "assumptions": [vars(each) for each in self.assumptions],
        }
        return json.dumps({"kind": KIND, "version": VERSION, **own, **limits})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote; ValueError where it is something else."""
        try:
            record = json.loads(text)
            if record["kind"] != KIND:
                raise ValueError(f"its kind is {record['kind']!r}")
            if record["version"] > VERSION:
                raise ValueError(
                    f"its version {record['version']} is newer than {VERSION}; "
                    f"install a newer dsel"
                )
            own: dict[str, Any] = {}
            for each in fields(cls):
                if each.compare:
                    value = record[each.name]
                    own[each.name] = tuple(value) if isinstance(value, list) else value
            comparison = cls(**own)
            upper = comparison.upper
        except (KeyError, TypeError, ValueError) as error:
            text = f"this is no model comparison that dsel wrote: {error}."
            raise ValueError(text) from error
        if not isclose(upper, record["upper"], abs_tol=1e-9):
            raise ValueError(
                f"this model comparison was changed: its counts give an upper limit of "
                f"{upper}, not {record['upper']}; compare the models again."
            )
        return comparison


def _points(least: float, most: float) -> str:
    """Return an interval of a difference in percentage points, rounded outward."""
    return f"{points_at_least(least)} to {points_at_most(most)} percentage points"
