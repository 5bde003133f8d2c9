"""Paths: hashes of all that a candidate's counts depend on beside the fingerprint.

A store finds a cell again by its path, in another process and in a larger grid. So two
candidates share a path only if they are the same, and the same candidate has the same
path everywhere.
"""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from dsel.data.content import exact_text
from dsel.models.family import Candidate


def candidate_texts(candidates: Iterable[Candidate]) -> dict[int, str]:
    """Return a text for each candidate number that no other candidate has.

    Candidates that are told apart by nothing are told apart by their order.
    """
    seen: Counter[str] = Counter()
    texts = {}
    for candidate in candidates:
        text = exact_text([candidate.params or candidate.estimator])
        seen[text] += 1
        texts[candidate.number] = f"{text}#{seen[text]}" if seen[text] > 1 else text
    return texts


def candidate_path(family: str, candidate: Candidate, text: str) -> str:
    """Return the path of a candidate that no other of its plan has the text of."""
    what = f"{type(candidate.estimator).__qualname__} {text}"
    return blake2b(f"{family} {what}".encode(), digest_size=12).hexdigest()
