"""Exit status of commands: one meaning for each number."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of every command, with its meaning.

    Examples
    --------
    >>> int(ExitStatus.CLUSTER_LOST), ExitStatus.CLUSTER_LOST.meaning
    (4, 'the cluster was lost: repeat dsel select --out to continue')
    """

    DONE = 0, "done"
    FAILED = (
        1,
        "failed or refused, also a column that a table lacks: see the line with Error",
    )
    NOT_UNDERSTOOD = (
        2,
        "an option or its value was not understood; no table was needed to see it",
    )
    REFUTED = (
        3,
        "a promise is refuted (monitor), nothing is certified (select), no bound "
        "is about most rows (predict), or a bound failed too often (audit)",
    )
    CLUSTER_LOST = 4, "the cluster was lost: repeat dsel select --out to continue"
    # 128 + SIGINT, as shells report it.
    INTERRUPTED = 130, "interrupted by Ctrl-C: repeat dsel select --out to continue"

    meaning: str

    def __new__(cls, status: int, meaning: str) -> "ExitStatus":
        """Return the number with its meaning."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member
