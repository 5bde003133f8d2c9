"""The catalogue of settings: one line each.

An audit shows something only where a bound can fail, so the laws are hard: labels that
no feature predicts, candidates that look good by luck, models that change with one more
training row. Rows are few: from 40 of each kind on, a run makes the two-sample test,
which takes longer than everything else.

To add a setting: one line, with steps of `settings` or your own.
"""

from functools import partial
from typing import Any, Final

from sklearn.model_selection import StratifiedKFold

from dsel.bounds.events import CERTIFICATE_EVENTS
from dsel.searches.auditing import settings as steps
from dsel.searches.auditing.laws import (
    BestColumn,
    Law,
    Memory,
    Parity,
    PoolMemory,
    RandomTable,
    Turncoat,
    biased_coin,
    noisy_copies,
    step,
)
from dsel.searches.auditing.settings import Setting
from dsel.searches.engine.stages import PoolReading


def _setting(
    name: str, how: Any, *, law: Law, model: Any, grid: Any, **more: Any
) -> Setting:
    fields = Setting.__dataclass_fields__
    own = {key: more.pop(key) for key in list(more) if key in fields}
    return Setting(name, law, model, grid, how, more, **own)


_LUCKY: Final = partial(
    _setting,
    law=noisy_copies(10, 0.3),
    model=BestColumn(),
    grid={"n_columns": [10]},
    cv=2,
    label_share=0.9,
)
"""One column of ten is picked: errors of folds are dependent and too small."""
_TURNED: Final = partial(
    _setting,
    law=step(0.0),
    model=Turncoat(),
    grid={"n_rows": [400]},
    cv=2,
    label_share=0.1,
    n_labeled=400,
)
"""No fold model errs and the full one does: only the pool can show it."""
_OF_50: Final = {"number": [*range(50)]}
_SELECTION: Final = partial(
    _setting, law=biased_coin(0.5), model=RandomTable(), grid=_OF_50
)
"""A procedure that picks one of fifty, by the errors on the rows that it has."""
_FIFTY: Final = partial(_SELECTION, criterion="holdout_bound", cv=2)
_NOISE: Final = partial(_FIFTY, grid={"number": [*range(10)]})
"""All candidates err on half of the rows; by chance one of them seems better."""
_MEMORY: Final = partial(
    _setting, law=biased_coin(0.4), model=Memory(), grid={"otherwise": [0, 1]}
)
_POOL_MEMORY: Final = partial(_setting, law=step(0.2), model=None, grid=[PoolMemory()])
_NESTED: Final = ("nested", "nested_fold_model", "nested_vote")
_COLUMNS: Final = {"n_columns": [2, 5, 10]}
_PLACE: Final = steps.in_one_place
_NAMES: Final = tuple(
    name for name in CERTIFICATE_EVENTS if name not in ("select_then_certify", *_NESTED)
)

CONTROLS: Final = (
    _LUCKY(
        "folds pooled",
        steps.pooled_folds,
        law=noisy_copies(14, 0.3),
        grid={"n_columns": [14]},
        cv=39,
        is_control=True,
    ),
    _NOISE(
        "luckiest fold",
        steps.luckiest_fold,
        criterion="cv_bound",
        grid={"number": [0]},
        cv=5,
        is_control=True,
    ),
    _NOISE("repeated looks", steps.repeated_looks, is_control=True),
)
"""Broken bounds, which an audit must catch."""

SETTINGS: Final = (
    *(_LUCKY(f"{n}, lucky folds", steps.once, criterion=n) for n in _NAMES),
    *(
        _TURNED(f"{n}, full model differs", steps.once, criterion=n, n_unlabeled=39)
        for n in _NAMES
    ),
    _FIFTY("50 candidates of pure noise", steps.each),
    _FIFTY(
        "50 candidates of pure noise, merged folds",
        steps.each,
        criterion="merged_folds",
        label_share=0.9,
    ),
    _FIFTY("every candidate searched to its end", steps.once),
    _LUCKY("folds of three rows", steps.once, cv=13),
    _setting(
        "rare class, unstable learner",
        steps.once,
        law=biased_coin(0.2),
        model=None,
        grid=[Parity()],
        cv=2,
    ),
    _MEMORY("learners that memorise", steps.each, criterion="holdout_bound", cv=2),
    _TURNED("interim looks", steps.each, reading=PoolReading(stop_within=0.05)),
    _TURNED(
        "any-time limits", steps.each, reading=PoolReading(stop_within=0.05, n_stages=0)
    ),
    _TURNED("any-time limits, looked elsewhere", steps.looked_elsewhere),
    _TURNED("a part of the pool", steps.once, reading=PoolReading(max_rows=50)),
    _LUCKY(
        "transductive, a part of the pool",
        steps.once,
        criterion="transductive",
        reading=PoolReading(max_rows=20),
    ),
    _NOISE("stratified folds", steps.once, cv=StratifiedKFold(2)),
    _TURNED(
        "any pair of criterion and certificate",
        steps.any_pair,
        grid={"n_rows": [39]},
        n_labeled=39,
    ),
    _NOISE(
        "certify_rows",
        partial(steps.deployed, certify_rows=0.3, cv=5, criterion="cv_error"),
    ),
    *(
        _SELECTION(
            f"any selection, {n}", partial(steps.selected_in_folds, certificate=n), cv=3
        )
        for n in ("best_fold", "best_fold_model")
    ),
    *(_LUCKY(f"{n}, lucky folds", steps.once, criterion=n, cv=3) for n in _NESTED),
    *(
        _TURNED(f"{n}, full model differs", steps.once, criterion=n, cv=3)
        for n in _NESTED
    ),
    *(
        _setting(
            f"{name}, {what}",
            steps.deployed,
            law=law,
            model=model,
            grid=grid,
            criterion=name,
            cv=cv,
        )
        for name in _NESTED
        for what, cv, law, model, grid in (
            ("50 candidates of pure noise", 3, biased_coin(0.5), RandomTable(), _OF_50),
            ("folds of ten rows", 4, noisy_copies(10, 0.3), BestColumn(), _COLUMNS),
            ("memory", 3, biased_coin(0.4), Memory(), {"otherwise": [0, 1]}),
        )
    ),
    _TURNED("later read-out from a reserve", steps.read_later),
    _MEMORY("labeled records in the pool", steps.with_labeled_rows_in_the_pool),
    _POOL_MEMORY(
        "learner that remembers its pool", steps.with_labeled_rows_in_the_pool
    ),
    _POOL_MEMORY(
        "transductive, learner with a pool", steps.once, criterion="transductive", cv=3
    ),
    _NOISE("resumed", steps.interrupted),
    _NOISE(
        "grown grid, the same again",
        partial(_PLACE, grids=steps.half_then_all, reserve=0.0),
    ),
    _NOISE(
        "grown grid, from a reserve",
        partial(_PLACE, grids=steps.half_then_all, reserve=0.5),
    ),
    _NOISE(
        "shrunk to the winner", partial(_PLACE, grids=steps.the_winner, reserve=0.0)
    ),
    _NOISE(
        "shrunk to the winner, from a reserve",
        partial(_PLACE, grids=steps.the_winner, reserve=0.5),
    ),
    _NOISE(
        "shrunk to the winner and another",
        partial(_PLACE, grids=steps.the_winner_and_another, reserve=0.0),
    ),
    _NOISE(
        "the winner by cv_error, then certified",
        partial(_PLACE, grids=steps.the_winner, reserve=0.0, criterion="cv_error"),
        criterion="merged_folds",
        label_share=0.9,
    ),
    *CONTROLS,
)
"""The settings of an audit."""
