"""A pool that is of another population, by columns that are read before the run."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dsel.checks import listing
from dsel.data.unknown_values import UnknownValues
from dsel.option_values import join_names, quote_names


@dataclass(frozen=True)
class PoolShift:
    """Columns of which most pool rows have values that no labeled row has.

    They violate A1 (independent draws), so a run would end without a bound.

    Examples
    --------
    >>> shift = PoolShift(
    ...     (UnknownValues("nr", 900, ("601",), limits=("1", "600")),), 900, ("nr",))
    >>> print(shift.line)
    NOT CERTIFIED: in most pool rows column 'nr' has values that no labeled row has (900 of 900 rows, such as 601; labeled rows have 1 to 600). So A1 is violated (independent draws from one population), and the run will say so instead of a bound. If it only counts rows or names records, write --id nr, which keeps it in predictions, or --drop nr
    >>> shift.ways
    [[('--id', 'nr')], [('--drop', 'nr')]]
    """  # noqa: E501

    columns: tuple[UnknownValues, ...]
    n_rows: int
    """Rows of the pool."""
    keys: tuple[str, ...]
    """Those of the columns that probably identify rows."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.column for column in self.columns]

    @property
    def others(self) -> list[str]:
        """Names of the columns that are no keys."""
        return [name for name in self.names if name not in self.keys]

    @property
    def short_line(self) -> str:
        """The finding with its options, for a plan below the whole line."""
        options = [f"--id {quote_names(*self.keys)}"] * bool(self.keys)
        options += [f"--drop {quote_names(*self.others)}"] * bool(self.others)
        return (
            f"{self._nouns()} {listing([*map(repr, self.names)], 8)} of most pool rows "
            f"{self._verb()} values that no labeled row has; a way out may be "
            f"{' '.join(options)}"
        )

    @property
    def line(self) -> str:
        """The finding, its consequence, and the options that end it."""
        found = "; ".join(map(self._describe, self.columns[:3]))
        ends = []
        if self.keys:
            keys = quote_names(*self.keys)
            one = len(self.keys) == 1
            what = "it only counts" if one else "they only count"
            name, keep = ("names", "keeps it") if one else ("name", "keeps them")
            ends.append(
                f"If {what} rows or {name} records, write --id {keys}, which {keep} "
                f"in predictions, or --drop {keys}"
            )
        if self.others:
            others = quote_names(*self.others)
            ends.append(
                f"If predictions should not depend on {listing(self.others, 8)}, as on "
                f"a date of entry, write --drop {others}; otherwise label a random "
                f"sample of the pool"
            )
        return (
            f"NOT CERTIFIED: in most pool rows {self._nouns()} "
            f"{listing([*map(repr, self.names)], 8)} {self._verb()} values that no "
            f"labeled row has ({found}). So A1 is violated (independent draws from one "
            f"population), and the run will say so instead of a bound. "
            f"{'. '.join(ends)}"
        )

    @property
    def ways(self) -> list[list[tuple[str, str]]]:
        """Options by which keys are no features, the likeliest first.

        There are none for other columns: without a measurement by which the pool
        differs, the bound would seem to be about the pool.
        """
        keys = join_names(self.keys)
        return [[("--id", keys)], [("--drop", keys)]] if self.keys else []

    def _nouns(self) -> str:
        return "column" if len(self.columns) == 1 else "columns"

    def _verb(self) -> str:
        return "has" if len(self.columns) == 1 else "have"

    def _describe(self, column: UnknownValues) -> str:
        """Return what is found in a column, in a few words."""
        first = column.values[0] if column.limits else repr(column.values[0])
        known = ""
        if column.limits is not None:
            known = f"; labeled rows have {column.limits[0]} to {column.limits[1]}"
        name = "" if len(self.columns) == 1 else f"{column.column}: "
        return (
            f"{name}{column.n_rows:,} of {self.n_rows:,} rows, such as {first}{known}"
        )


def find_pool_shift(
    unexpected: Iterable[UnknownValues], n_rows: int, keys: Collection[str]
) -> PoolShift | None:
    """Return the columns by which a pool is of another population; None without any.

    `unexpected` are the values that a pool of the same one would not have, and `keys`
    the features that probably identify rows.
    """
    columns = tuple(each for each in unexpected if 2 * each.n_rows > n_rows)
    if not columns:
        return None
    named: Sequence[str] = [c.column for c in columns if c.column in keys]
    return PoolShift(columns, n_rows, tuple(named))
