"""The family of ensembles: one fit for all sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dsel.arrays import Estimator
from dsel.data.identity import exact_text
from dsel.families.ensemble_sizes import keep_members, size_parameter, with_last_step
from dsel.families.family import Candidate
from dsel.families.generic import Fit, ScikitLearnFamily, fit_or_error
from dsel.families.prefixes import clone_estimator


@dataclass(frozen=True)
class EnsembleFamily(ScikitLearnFamily):
    """Forests, bagging and boosting that differ in the number of their members.

    Only the largest of them is fitted on a split. The others are copies of its first
    members, which predict as if each ensemble had been fitted by itself.
    """

    takes_single: ClassVar[bool] = False

    def refusal(self, estimator: Estimator) -> str | None:
        """Return "" for any estimator but an ensemble that contains smaller ones."""
        names = {name.rpartition("__")[2] for name in self.fit_params}
        # A monitor of the fit, for example, is called for each member.
        shares = size_parameter(estimator) and names <= {"sample_weight"}
        return None if shares else ""

    def group_candidates(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[Candidate, ...]]:
        """Group candidates that differ only in the size of their ensemble."""
        candidate_groups: dict[tuple[str, str], list[Candidate]] = {}
        for candidate in sorted(candidates, key=lambda candidate: candidate.number):
            same = clone_estimator(candidate.estimator, candidate.all_params)
            same.set_params(**{size_parameter(same): 1})
            key = exact_text(same), self.seed_text(candidate)
            candidate_groups.setdefault(key, []).append(candidate)
        return [tuple(candidate_group) for candidate_group in candidate_groups.values()]

    def fit_note(
        self, candidate_groups: Sequence[Sequence[Candidate]], n_rows: int
    ) -> str:
        """Return the number of ensembles that are fitted on each split, as text."""
        n_groups = len(candidate_groups)
        return f"one ensemble for all its sizes, {n_groups} on each split"

    def _fit_candidates(
        self, candidates: Sequence[Candidate], fit_one: Callable[[Candidate], Fit]
    ) -> list[Fit | Exception]:
        """Fit the largest ensemble of a group, which contains the others."""
        sizes = [c.all_params[size_parameter(c.estimator)] for c in candidates]
        largest = sizes.index(max(sizes))
        whole = fit_or_error(fit_one, candidates[largest])
        if isinstance(whole, Exception) or whole.message is not None:
            # Which member raised or warned is not known, so each size is fitted alone.
            return [
                whole if i == largest else fit_or_error(fit_one, candidate)
                for i, candidate in enumerate(candidates)
            ]
        fits: list[Fit | Exception] = []
        for size in sizes:  # each keeps the first members, and shares the steps before
            last = model = keep_members(whole.last, size)
            if whole.model is not whole.last:
                model = with_last_step(whole.model, last)
            fits.append(replace(whole, model=model, last=last))
        fits[largest] = whole
        return fits
