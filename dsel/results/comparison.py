"""Comparison of the errors of a new and an old model, with or without queried labels.

A `ModelComparison` holds counts, predictions for the queried rows and, once they are
known, their labels. Its limits are computed from these alone.
"""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import isclose
from typing import TYPE_CHECKING, Any, Final, Self

import pandas as pd

from dsel.arrays import ArrayLike
from dsel.bounds import (
    binomial_tail_inversion,
    mean_difference_limit,
    queried_difference,
    sign_test_limit,
)
from dsel.bounds.queried_differences import POOL_SHARE
from dsel.cards import ShownRow, render_card
from dsel.checks import check_truth
from dsel.results import records
from dsel.results.assumptions import Assumption
from dsel.results.queried_labels import (
    FINAL,
    LabelRules,
    add_labels,
    check_usable,
    labels_by_row,
    labels_by_row_number,
    note_on_corrections,
    notes_on_neither,
)
from dsel.results.records import NOT_KEPT
from dsel.results.renderings import Renderable, render_lines
from dsel.rounded_texts import (
    confidence,
    count_of,
    in_percent,
    points_at_least,
    points_at_most,
    terminal_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KIND: Final = "dsel model comparison"
VERSION: Final = 1
DERIVED: Final = ("lower", "upper", "disagreement", "certified", "assumptions")
"""Properties that its JSON has in addition to the fields."""


@dataclass(frozen=True, repr=False, eq=False)
class ModelComparison(Renderable):
    """Comparison of two models on one pool, with labels of queried rows if known.

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
    """Probability that an end of the interval fails."""
    n_unlabeled: int
    """Pool rows that were counted."""
    n_differ: int
    """Counted pool rows on which the models differ, without duplicates."""
    n_queries: int = 0
    """Planned queries; fewer rows are queried if the models differ on fewer."""
    n_duplicates: int | None = None
    """Pool rows that equal rows on which a model was trained; None if none of these
    are known."""
    n_duplicates_differ: int = 0
    """Duplicates on which the models differ; they are never queried."""
    classes: tuple[Any, ...] | None = None
    """All labels of the target; None if they were not declared."""
    rows: tuple[int, ...] = ()
    """Numbers of the queried pool rows."""
    old_predictions: tuple[Any, ...] = ()
    """Labels that the old model predicts for these rows."""
    new_predictions: tuple[Any, ...] = ()
    labels: tuple[Any, ...] | None = None
    """Their true labels, None for a row without one; None before they are known."""
    seed: int | None = None
    """Seed with which the rows were drawn."""
    sources: dict[str, str] = field(default_factory=dict)
    """The models that are compared, for pages: ``old model`` and ``new model``; from a
    shell the pool, the target and the date, too. Empty in older records."""
    pool_rows: pd.DataFrame | None = field(
        default=None, compare=False, metadata=NOT_KEPT
    )
    """The queried rows with all columns of the pool; not part of the JSON."""
    n_corrected: int = 0
    """Queried rows whose labels took the place of others."""
    passed_labels: dict[tuple[int, ...], list[tuple[Any, ...]]] = field(
        default_factory=dict, repr=False, compare=False, metadata=NOT_KEPT
    )
    """All labels that were passed in this process, by rows: others are refused, unless
    they correct these."""

    @property
    def certified(self) -> bool:
        """Whether the limits are a guarantee under the declared assumptions."""
        return not any(assumption.is_violated for assumption in self.assumptions)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of the limits."""
        duplicates = ""
        if self.n_duplicates:
            duplicates = self._duplicates
        return Assumption("A1"), Assumption("A4", reason=duplicates), Assumption("A7")

    @property
    def _duplicates(self) -> str:
        rows = count_of(self.n_duplicates or 0, "pool row", "equals", "equal")
        return f"{rows} rows on which a model was trained"

    @cached_property
    def disagreement(self) -> float:
        """Upper limit of the rate at which the models differ; holds with the others."""
        if self.n_queries:
            # The limits of the interval use the same events, so that this spends none
            # of delta.
            return min(1.0, float(self._difference_limit(1.0)))
        n_same = self.n_duplicates or 0
        n_same_differ = self.n_duplicates_differ
        return float(
            binomial_tail_inversion(
                self.n_differ + n_same_differ,
                self.n_unlabeled - n_same + n_same_differ,
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
            All columns of the pool, one row for each query. The index, named
            ``pool_row``, has their positions in the pool, from 0. If the pool is a
            pandas frame with an index of its own, it has the values of that index,
            and is named ``pool_index``: ``y.loc[rows.index]`` are their labels.

        Raises
        ------
        ValueError
            If no row was queried, or the comparison was read from a file, which has
            the row numbers only.
        """
        if self.pool_rows is None or not self.rows:
            reason = (
                "the comparison was read from a file, and they are in the same folder"
            )
            if not self.rows:
                reason = (
                    "the models differ on no row that may be queried"
                    if self.n_queries
                    else "none were planned; pass n_queries=60"
                )
            raise ValueError(f"there are no rows to be labeled: {reason}.")
        return self.pool_rows

    def certify_with_labels(
        self,
        labels: ArrayLike,
        *,
        partial: bool = False,
        allow_unknown: bool = False,
        corrected: bool = False,
    ) -> "ModelComparison":
        """Return the comparison with the labels of the queried rows; it is final.

        Every queried row counts: a row without a label, or with a label that is no
        class, counts against the verdict at both ends of the interval. Such rows are
        refused unless you allow them.

        Parameters
        ----------
        labels
            A Series by the index of `query_rows`, in any order, in which rows may be
            missing; or an array in the order of `query_rows`, None or NaN for a missing
            label.
        partial
            Whether rows may have no label.
        allow_unknown
            Whether labels may be no class.
        corrected
            Whether these labels take the place of wrong ones that were passed before,
            such as those of other rows. It declares that no result decided which labels
            are right.

        Returns
        -------
        ModelComparison
            A new one; this one is not changed.

        Raises
        ------
        ValueError
            If a row was not queried or has two labels, the length differs, no row was
            queried, no label is a class, or labels are missing or unknown that were not
            allowed.
        TypeError
            If labels are of another type than the predictions.
        """
        rules = LabelRules(
            check_truth(partial, "partial"),
            check_truth(allow_unknown, "allow_unknown"),
            check_truth(corrected, "corrected"),
        )
        return self.with_labels(labels, rules)

    def with_labels(self, labels: ArrayLike, rules: LabelRules) -> "ModelComparison":
        """Return the comparison with labels that are usable by these rules."""
        if not self.rows:
            self.query_rows()  # raises with the reason
        labels = labels_by_row_number(labels, self.pool_rows, self.rows)
        row_labels = labels_by_row(labels, self.rows)
        is_complete = self.classes is not None
        check_usable(row_labels, self.known_labels, rules, is_complete=is_complete)
        passed = self.passed_labels.setdefault(self.rows, [])
        n_corrected = add_labels(passed, row_labels, rules)
        return replace(self, labels=row_labels, n_corrected=n_corrected)

    @property
    def known_labels(self) -> tuple[Any, ...]:
        """The declared classes; without them the labels that a model predicts."""
        predicted = (*self.old_predictions, *self.new_predictions)
        return self.classes or tuple(dict.fromkeys(predicted))

    @cached_property
    def unusable_labels(self) -> int:
        """Number of queried rows whose label is missing or no class."""
        return sum(not self._is_class(label) for label in self.labels or ())

    def _is_class(self, label: object) -> bool:
        if label is None:
            return False
        return self.classes is None or label in self.classes

    @cached_property
    def _wrong_alone(self) -> tuple[int, int]:
        """Labeled rows on which only the new model errs, and only the old one."""
        # A label on which both models err is uninformative: Z = 0 in the bound.
        labels = self.labels or (None,) * len(self.rows)
        pairs = [
            (new == label, old == label)
            for new, old, label in zip(
                self.new_predictions, self.old_predictions, labels, strict=True
            )
            if self._is_class(label)
        ]
        return pairs.count((False, True)), pairs.count((True, False))

    def _limit(self, n_only_g_right: int, n_only_f_right: int) -> float:
        """Return an upper limit of err(f) - err(g), which gives both ends.

        On `n_only_g_right` labeled rows only f errs, on `n_only_f_right` only g.
        """
        if self.labels is None:
            return self.disagreement
        # Each end of the interval gets half of the labels' share.
        delta = (1.0 - POOL_SHARE) / 2 * self.delta
        n_rows = len(self.rows)
        if self.classes is not None and len(self.classes) == 2:
            mean = mean_difference_limit(n_only_f_right, n_rows, delta=delta)
        else:
            # A missing label counts as "f wrong, g right", which lowers no limit.
            n_only_g_right += self.unusable_labels
            mean = sign_test_limit(n_only_g_right, n_only_f_right, n_rows, delta=delta)
        return float(self._difference_limit(float(mean)))

    def _difference_limit(self, mean: float) -> Any:
        """Return the limit of the difference from the limit of its queried mean."""
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
        lower, upper = self.lower, self.upper
        level = f"{confidence(self.delta)}% confidence"
        if upper < 0:
            points = _points(-upper, -lower)
            return f"The new model errs {points} less than the old one ({level})"
        if lower > 0:
            points = _points(lower, upper)
            return f"The new model errs {points} more than the old one ({level})"
        less, more = points_at_most(max(-lower, 0.0)), points_at_most(max(upper, 0.0))
        if self.labels is None:
            return (
                f"Neither model is proved better: the errors of both models differ by "
                f"at most {more} percentage points ({level}, from the pool alone)"
            )
        return (
            f"Not proved either way: the error of the new model is between {less} "
            f"percentage points below and {more} above that of the old one ({level})"
        )

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw both limits; see `dsel.plots.plot_comparison`.

        Needs the extra ``plots``.

        Parameters
        ----------
        ax
            Axes to draw on, which are returned; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Examples
        --------
        >>> ax = ModelComparison(0.05, 10_000, n_differ=200).plot()
        >>> print(ax.get_xlabel())
        error of new minus old, percentage points
        ← new better · old better →
        """
        plots = import_module("dsel.plots")  # figures import results
        drawn: Axes = plots.plot_comparison(self, ax=ax)
        return drawn

    def shown_rows(self) -> list[ShownRow]:
        """Return names and texts, which all renderings show."""
        n_rows = self.n_unlabeled
        rate = in_percent(self.disagreement)
        total = self.n_differ + self.n_duplicates_differ
        shown_rows: list[ShownRow] = [
            ("", self.headline()),
            (
                "Pool",
                f"both models differ on {total:,} of {count_of(n_rows, 'row')}, at "
                f"most {rate} of all",
            ),
        ]
        if self.n_queries:
            n = len(self.rows)
            queried = f"{count_of(n, 'row', 'was', 'were')} queried"
            if self.labels is None:
                shown_rows.append(("Labels", f"{queried}; none is known yet"))
            else:
                new_wrong, old_wrong = self._wrong_alone
                text = (
                    f"of {count_of(n, 'row')} on which they differ the new model "
                    f"alone is right on {old_wrong:,}, the old one alone on "
                    f"{new_wrong:,}"
                )
                shown_rows.append(("Labels", text))
        if self.labels is not None and self.unusable_labels:
            text = (
                f"{count_of(self.unusable_labels, 'row', 'has', 'have')} no label, or "
                f"one that is no class: each counts against whatever is proved"
            )
            shown_rows.append(("Caveat", text))
        if self.labels is not None:
            usable = [label if self._is_class(label) else None for label in self.labels]
            predictions = self.old_predictions, self.new_predictions
            notes = [
                *notes_on_neither(usable, *predictions),
                *note_on_corrections(self.n_corrected),
                FINAL,
            ]
            shown_rows += [("Caveat", note) for note in notes]
        if self.n_queries > len(self.rows) and self.rows:
            shown_rows.append(
                ("Caveat", "the models differ on fewer rows than were planned")
            )
        if self.n_duplicates:
            text = (
                f"{self._duplicates}: no such row is queried, and the limits allow for "
                f"it"
            )
            shown_rows.append(("Caveat", text))
        return shown_rows + [
            ("Assumes", str(assumption)) for assumption in self.assumptions
        ]

    def __str__(self) -> str:
        return render_lines([*self.shown_rows(), *self._seed], terminal_width())

    # A prompt and a notebook also show next steps, as for an outcome.
    def __repr__(self) -> str:
        rows = [*self.shown_rows(), *self._seed, *self._next]
        return render_lines(rows, terminal_width())

    def _repr_html_(self) -> str:
        return render_card([*self.shown_rows(), *self._seed, *self._next])

    @property
    def _seed(self) -> list[ShownRow]:
        """The row of texts about the seed of the draw, if rows were drawn."""
        text = f"random_state={self.seed} draws the same rows to label again"
        # An older record has no seed.
        return [("Seed", text)] * (bool(self.rows) and self.seed is not None)

    @property
    def _next(self) -> list[ShownRow]:
        """The rows of texts about the next calls, if labels are missing."""
        if self.labels is not None or self.pool_rows is None or not self.rows:
            return []
        text = "`query_rows()`; label these, then `certify_with_labels(labels)`"
        return [("Next", text)]

    def to_json(self) -> str:
        """Return all fields and both limits, with all digits."""
        derived = {name: records.to_record(getattr(self, name)) for name in DERIVED}
        head = {"kind": KIND, "version": VERSION}
        return json.dumps(records.to_record(self) | head | derived)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; ValueError if it is something else."""
        try:
            record = dict(json.loads(text))
            if (kind := record.pop("kind")) != KIND:
                raise ValueError(f"its kind is {kind!r}")
            records.check_version(record.pop("version"), VERSION, "it")
            derived = {name: record.pop(name) for name in DERIVED}
            # A file of `dsel compare` has these keys, too.
            for name in ("target", "form"):
                record.pop(name, None)
            comparison = records.from_record(cls, record)
            upper = comparison.upper
        except (KeyError, TypeError, ValueError) as error:
            text = f"this is no model comparison that dsel wrote: {error}."
            raise ValueError(text) from error
        if not isclose(upper, derived["upper"], abs_tol=1e-9):
            raise ValueError(
                f"this model comparison was changed: its counts give an upper limit of "
                f"{upper}, not {derived['upper']}; compare the models again."
            )
        return comparison


def _points(least: float, most: float) -> str:
    """Return an interval of a difference in percentage points, rounded outward."""
    low, high = points_at_least(least), points_at_most(most)
    if low == "0.0":  # the difference is proved, but may be too small to matter
        return f"at most {high}, and perhaps less than 0.1, percentage points"
    return f"{low} to {high} percentage points"
