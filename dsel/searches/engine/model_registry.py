"""Fitted models that tasks left where they were made: which, under which key."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from dsel.searches.engine.fit_task import FitRecord


@dataclass
class HeldModels:
    """What the driver knows of models that the executor keeps."""

    keys: dict[tuple[int, int], str] = field(default_factory=dict)
    """Candidate and training number to the task that holds the model."""
    sizes: dict[str, dict[int, int]] = field(default_factory=dict)
    """Task to the bytes that it holds of each candidate."""
    nbytes: dict[int, int] = field(default_factory=dict)
    """Candidate number to the bytes of all that was ever fitted of it."""

    def add(self, key: str, record: FitRecord) -> None:
        """Take what a task holds of one job."""
        numbers, sizes = record.job.candidates, self.sizes.setdefault(key, {})
        share = record.nbytes // max(1, len(numbers))
        for number in numbers:
            self.keys[number, record.job.training] = key
            sizes[number] = sizes.get(number, 0) + share
            self.nbytes[number] = self.nbytes.get(number, 0) + share

    def has(self, candidate: int, training: int) -> bool:
        """Whether the model is held."""
        return (candidate, training) in self.keys

    def keys_of(self, candidates: Iterable[int], trainings: Iterable[int]) -> set[str]:
        """Return the tasks that hold the candidates' models on all these trainings."""
        numbers = list(trainings)
        return {self.keys[c, training] for c in candidates for training in numbers}

    def unwanted_nbytes(self, key: str, wanted: Collection[int]) -> int:
        """Return the bytes that a task holds of other candidates."""
        return sum(n for number, n in self.sizes[key].items() if number not in wanted)

    def release(self, needed: Collection[int]) -> set[str]:
        """Forget tasks that hold no model of a needed candidate, and return them."""
        kept = {key for (number, _), key in self.keys.items() if number in needed}
        dropped = set(self.sizes) - kept
        self.keys = {at: key for at, key in self.keys.items() if key in kept}
        self.sizes = {key: self.sizes[key] for key in kept}
        return dropped
