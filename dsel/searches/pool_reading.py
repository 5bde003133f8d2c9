"""How much of a pool a search reads."""

from dataclasses import dataclass

from dsel.checks import check_flag, check_integer, check_positive


@dataclass(frozen=True, kw_only=True)
class PoolReading:
    """How much of a pool a search reads; without arguments, all of it.

    Parameters
    ----------
    max_rows
        About how many pool rows to use at most: a random part, fixed in advance.
        ``transductive`` is about the rows that are counted, and no others.
    stop_within
        If given, a candidate is compared on the pool only until its bound is that near
        to what the whole pool would give. The bounds then hold at every stage, which
        makes them slightly larger.
    n_stages
        How many times reading may stop, at numbers of rows that grow by a factor; each
        costs its part of delta. With 0 the limits hold after any row instead: larger,
        but later searches of the same data may stop elsewhere. Counts only with
        `stop_within`.
    is_shuffled
        Whether the pool's rows stand in random order. Stages and parts are then its
        first rows, and the others are not even fetched; else they are drawn by random
        numbers of the rows, so that the storage is read through but only drawn rows
        are predicted.

    Raises
    ------
    TypeError, ValueError
        Where a value is of the wrong kind or out of range.

    Examples
    --------
    >>> PoolReading(stop_within=0.01).n_stages
    10
    """

    max_rows: int | None = None
    stop_within: float | None = None
    n_stages: int = 10
    is_shuffled: bool = False

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            check_integer(self.max_rows, "max_rows", at_least=1)
        if self.stop_within is not None:
            check_positive(self.stop_within, "stop_within")
        check_integer(self.n_stages, "n_stages", at_least=0)
        check_flag(self.is_shuffled, "is_shuffled")

    @property
    def takes_first_rows(self) -> bool:
        """Whether a part is read, and its rows are the first ones."""
        is_part = self.max_rows is not None or self.stop_within is not None
        return self.is_shuffled and is_part


def checked_reading(reading: PoolReading | None) -> PoolReading:
    """Return the reading, all of the pool where it is None, or raise TypeError."""
    if reading is None:
        return PoolReading()
    if not isinstance(reading, PoolReading):
        raise TypeError(
            f"`reading` must be a dsel.PoolReading or None, got {reading!r}; write "
            f"reading=PoolReading(max_rows=...)."
        )
    return reading
