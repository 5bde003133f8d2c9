"""Settings of the audit: what is searched, by which steps.

An audit can find a wrong bound only where it can fail, so populations are hard: labels
that no feature predicts, candidates that look good by luck, models that change with one
more training row. Labeled rows are few: from 40 rows of each kind on, a run makes the
two-sample test, which takes longer than everything else.

To add a setting, add an entry to `SETTINGS`, with steps of `steps` or your own.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold

from dsel.auditing.numbers import (
    HEAVY,
    NoNumber,
    NumberMemory,
    Overshoot,
    RandomNumber,
    noise_around,
)
from dsel.auditing.populations import (
    BestColumn,
    Forgetful,
    Memory,
    Parity,
    Population,
    RandomTable,
    Refusing,
    Turncoat,
    add_value_column,
    biased_coin,
    group_rows,
    independent_classes,
    noisy_copies,
    step,
)
from dsel.auditing.steps import (
    FIVE_ROWS,
    Setting,
    certify_overfitting_procedure,
    claim_estimate,
    compare_two,
    compare_two_by_some,
    compare_with_baseline,
    fit_least_squares,
    label,
    label_some,
    pick_baseline,
    pick_fold,
    pool_folds,
    read_values_alone,
    repeat_search,
    resume,
    search_numbers,
    take_quantile,
)
from dsel.losses import balanced, beyond, cost, error_quantile, precision, recall
from dsel.search.design.certificate_methods import METHODS, CertificateMethod
from dsel.typing import BaselineLike

# These are population, learner and grid that several settings share.
_COIN: Final = biased_coin(0.5)
_TEN: Final = {"number": [*range(10)]}
_NOISE: Final = (_COIN, RandomTable(), {"number": [*range(20)]})
_ONE_TABLE: Final = (_COIN, RandomTable(), {"number": [0]})
_UNSEEDED: Final = (step(2), RandomTable(has_seed=False), _TEN)
_FIVE: Final = (
    independent_classes([0.4, 0.3, 0.15, 0.1, 0.05]),
    RandomTable(n_classes=5),
    _TEN,
)
_MEMORY: Final = (biased_coin(0.4), Memory(), {"otherwise": [0, 1]})
_COLUMNS: Final = {"n_columns": [2, 5, 10]}
_TURNCOAT: Final = (step(), Turncoat(400, 7.5, 3), {"n_rows": [400]})
_FORGETFUL: Final = (step(), Forgetful(39, 7.5, 3), {"n_rows": [39]})
_UNLIKE: Final = (_COIN, RandomTable(has_seed=False), _TEN)
_TWENTY: Final[Mapping[str, Any]] = {"n_queries": 20}
_COPIES: Final[dict[str, Any]] = {"n_unlabeled": 400, "n_copies": 40}
"""Most pool rows are labeled records."""
_FEW_IN_POOL: Final[dict[str, Any]] = {"n_labeled": 400, "n_unlabeled": 39}
_TABLE: Final = RandomTable(number=100).fit(FIVE_ROWS[0], FIVE_ROWS[1] % 2)
_BROKEN: Final[dict[str, Any]] = {"is_control": True, "n_unlabeled": 0}


def _with_prior(certificate: str) -> Setting:
    """Return a setting whose candidates have unequal shares of delta.

    The first one gets half of delta, the last one nothing.
    """
    population, table, grid = _NOISE
    weights = [*(2.0**-n for n in range(19)), 0.0]
    options = {"certificate": certificate, "cv": 2, "prior": weights}
    return Setting(population, table, grid, options)


def _settings_of_certificates(method: CertificateMethod) -> dict[str, Setting]:
    """Return the settings in which every certificate is audited."""
    few = {"certificate": method.name, "cv": 3 if method.is_nested else 2}
    tiny, lucky = noisy_copies(10, 0.35), noisy_copies(10, 0.3)
    settings = {
        "noise": Setting(*_NOISE, few),
        "memory": Setting(*_MEMORY, few),
        "tiny folds": Setting(tiny, BestColumn(), _COLUMNS, {**few, "cv": 6}),
        "lucky folds": Setting(lucky, BestColumn(), _COLUMNS, few),
    }
    if method.needs_pool or method.is_nested:  # bounds that change with a pool
        settings["duplicates"] = Setting(*_FORGETFUL, {**few, "cv": 2}, **_COPIES)
    return {f"{method.name}, {name}": setting for name, setting in settings.items()}


_COST: Final = cost({(0, 1): 1, (1, 0): 20})
_LOSSES: Final[Mapping[str, Mapping[str, Any]]] = {
    "recall": {"loss": recall(1)},
    "precision": {"loss": precision(1)},
    "balanced": {"loss": balanced([0, 1])},
    "cost": {"loss": _COST},
    "costs of three sizes": {"loss": cost([[0, 1], [20, 3]], [0, 1])},
    "report": {"report": [0, 1]},
    "report of a cost": {"report": [0, 1], "loss": _COST},
}


def _settings_of_losses(name: str) -> dict[str, Setting]:
    """Return the settings in which every loss, and the report, is audited."""
    loss_options = _LOSSES[name]
    rare, rarest = biased_coin(0.1), biased_coin(0.01)
    settings = {
        "rare class": Setting(rare, RandomTable(), _TEN, loss_options, n_labeled=90),
        "rarest class": Setting(
            rarest, RandomTable(), _TEN, loss_options, n_labeled=300
        ),
        "memory": Setting(*_MEMORY, loss_options),
        "full model differs": Setting(*_TURNCOAT, loss_options, **_FEW_IN_POOL),
        "duplicates": Setting(*_FORGETFUL, {**loss_options, "cv": 2}, **_COPIES),
    }
    return {f"{name}, {kind}": setting for kind, setting in settings.items()}


def _settings_by_value() -> dict[str, Setting]:
    """Return the settings in which limits by the values of a column are audited."""
    loss_options: dict[str, Any] = {"report_by": 1}

    def among(setup: tuple[Population, Any, Any]) -> tuple[Population, Any, Any]:
        return add_value_column(setup[0]), *setup[1:]

    many: dict[str, Any] = {"n_labeled": 300, "n_unlabeled": 39}
    halves = (
        step(1000, has_duplicates=True),
        Turncoat(500, 499.5, 1000),
        {"n_rows": [500]},
    )
    # With fewer rows the limits by value are 1, with or without duplicates.
    forgetful = step(), Forgetful(200, 7.5, 3), {"n_rows": [200]}
    settings = {
        "noise": Setting(*among(_UNLIKE), loss_options, **many),
        "memory": Setting(*among(_MEMORY), loss_options, n_labeled=90),
        "a feature": Setting(
            noisy_copies(10, 0.3), BestColumn(), _COLUMNS, {"report_by": 0}, **many
        ),
        "full model differs": Setting(*among(_TURNCOAT), loss_options, **_FEW_IN_POOL),
        "duplicates": Setting(
            *among(forgetful), {**loss_options, "cv": 2}, n_labeled=200, **_COPIES
        ),
        "twins": Setting(
            *among(halves), {**loss_options, "cv": 5}, n_labeled=500, n_unlabeled=2000
        ),
        "report of a cost": Setting(
            *among(_UNLIKE), {**loss_options, "report": [0, 1], "loss": _COST}, **many
        ),
    }
    return {f"by value, {name}": setting for name, setting in settings.items()}


def _settings_of_groups() -> dict[str, Setting]:
    """Return the settings in which rows come in groups."""
    # A memory knows the groups of its training rows, so rows of one group must not be
    # on both sides of a fold.
    leak = biased_coin(0.4)
    rare = biased_coin(0.1)
    forget = {"otherwise": [0, 1]}
    alone: dict[str, Any] = {"n_unlabeled": 0}
    settings = {
        "5 rows": Setting(group_rows(leak, 5), Memory(), forget, **alone),
        "20 rows": Setting(group_rows(leak, 20), Memory(), forget, **alone),
        "unlike sizes": Setting(group_rows(leak, 1, 20), Memory(), forget, **alone),
        "noise": Setting(group_rows(_COIN, 5), RandomTable(has_seed=False), _TEN),
        "holdout": Setting(
            group_rows(leak, 5), Memory(), forget, {"certificate": "holdout"}
        ),
        "report of a cost": Setting(
            group_rows(rare, 2, 9), RandomTable(has_seed=False), _TEN,
            {"report": [0, 1], "loss": _COST}, n_labeled=90, **alone,
        ),
        "any selection": Setting(
            group_rows(_COIN, 5), RandomTable(), _TEN, {}, certify_overfitting_procedure
        ),
        "by value": Setting(
            group_rows(add_value_column(leak), 1, 20), Memory(), forget,
            {"report_by": 1}, n_labeled=90, **alone,
        ),
    }  # fmt: skip
    return {f"groups, {name}": setting for name, setting in settings.items()}


def _settings_of_regressors() -> dict[str, Setting]:
    """Return the settings of regressors."""
    flat = np.zeros(16)
    half = error_quantile(0.5)
    lucky: Any = (RandomNumber(), _TEN)
    heavy, ties = noise_around(flat, HEAVY), noise_around(flat, range(-3, 4))
    # Half of the rows and a little more are off by 1.
    atom = noise_around(flat, [0.0, 1.0], [0.498, 0.502])
    # Without noise no fold model is ever off, so only the pool's part can fail.
    noiseless = noise_around(flat, [0.0])
    apart: Any = (Overshoot(), {"n_rows": [39]})
    groups = noise_around(flat, HEAVY, sizes=(5,), in_groups=True)
    # Each step of the value doubles the noise.
    louder = np.outer(2.0 ** np.floor(np.log2(1.0 + np.arange(16))), HEAVY)
    by_value = add_value_column(noise_around(flat, louder))
    few: Any = (RandomNumber(), {"number": [0, 1]})
    overshoot = Overshoot(n_rows=200), {"n_rows": [200]}
    held_out: dict[str, Any] = {"certificate": "holdout", "cv": 2, "n_unlabeled": 0}

    def of(
        population: Population,
        learner: tuple[Any, Any],
        loss: Any = half,
        n_unlabeled: int = 400,
        n_labeled: int = 39,
        n_copies: int = 0,
        **options: Any,
    ) -> Setting:
        return Setting(
            population,
            *learner,
            {"loss": loss, **options},
            search_numbers,
            n_labeled,
            n_unlabeled,
            n_copies,
        )

    settings = {
        "heavy tails": of(heavy, lucky),
        "ties": of(ties, lucky),
        "an atom above the level": of(
            atom, (RandomNumber(spread=0.0), {"number": [0]})
        ),
        "discrete targets": of(
            noise_around(np.arange(16) % 3, [0, 1, 5], [0.5, 0.3, 0.2]), lucky
        ),
        "memory": of(heavy, (NumberMemory(), {"otherwise": [0.0, 1.0]})),
        "full model differs": of(ties, apart),
        "duplicates": of(noiseless, apart, cv=2, n_copies=150),
        "no numbers": of(ties, (NoNumber(), _TEN)),
        "report": of(heavy, lucky, report=[0.2, 0.5, 0.7], n_labeled=90),
        "most rows": of(heavy, lucky, error_quantile(0.9), cv=2, n_labeled=150,
                        n_unlabeled=0),
        "most rows, pool": of(heavy, apart, error_quantile(0.8), cv=2, n_labeled=120,
                              n_unlabeled=1500),
        "groups": of(groups, (NumberMemory(), {"otherwise": [0.0]}), n_unlabeled=0),
        "beyond, heavy tails": of(heavy, lucky, beyond(2.0)),
        "beyond, full model differs": of(ties, apart, beyond(2.5)),
        "beyond, duplicates": of(noiseless, apart, beyond(2.5), cv=2, n_copies=40),
        "beyond, memory": of(heavy, (NumberMemory(), {"otherwise": [0.0, 1.0]}),
                             beyond(2.0)),
        "by value": of(by_value, few, n_labeled=300, report_by=1),
        "by value, beyond": of(by_value, few, beyond(4.0), n_labeled=300, report_by=1),
        "by value, duplicates": of(
            add_value_column(noiseless), overshoot, cv=2, n_labeled=200, n_copies=20,
            report_by=1),
        "by value, groups": of(
            add_value_column(noise_around(flat, louder, sizes=(5,), in_groups=True)),
            (NumberMemory(), {"otherwise": [0.0]}), n_labeled=200, n_unlabeled=0,
            report_by=1),
        "holdout": of(ties, (RandomNumber(), {"number": [*range(20)]}), **held_out),
        "holdout, beyond": of(heavy, lucky, beyond(2.0), **held_out),
        "holdout, all": of(by_value, few, n_labeled=300, report=[0.2, 0.5, 0.7],
                           report_by=1, **held_out),
        "holdout, groups": of(groups, (NumberMemory(), {"otherwise": [0.0, 1.0]}),
                              **held_out),
    }  # fmt: skip
    return {f"numbers, {name}": setting for name, setting in settings.items()}


def _settings_of_baselines() -> dict[str, Setting]:
    """Return the settings in which models are compared with a baseline.

    The models are exactly as good as the baseline, so the true difference is 0. In the
    last two settings this holds for the model of all rows, which only the pool shows.
    """
    coin = _COIN, RandomTable(has_seed=False), _TEN
    independent_five = (
        independent_classes([0.2] * 5),
        RandomTable(n_classes=5, has_seed=False),
        _TEN,
    )
    five = RandomTable(number=100, n_classes=5).fit(*FIVE_ROWS)
    # These models err on as many cells as the model of all rows, but on other ones.
    six, three = (Turncoat(0, 7.5, n) for n in (6, 3))
    X, y = np.column_stack([np.arange(16.0), np.zeros(16)]), np.arange(16) // 8
    alone: dict[str, Any] = {"n_labeled": 90, "n_unlabeled": 0}

    def of(
        made: tuple[Population, Any, Any], baseline: BaselineLike, **options: Any
    ) -> Setting:
        given = {"baseline": baseline, **options.pop("given", {})}
        return Setting(*made, given, compare_with_baseline, **options)

    settings = {
        "equally good": of(coin, _TABLE, **alone),
        "largest class": of(coin, "largest class", **alone),
        "five classes": of(independent_five, five, n_labeled=120, n_unlabeled=0),
        "largest of five": of(
            independent_five, "largest class", n_labeled=120, n_unlabeled=0
        ),
        "with a pool": of(coin, _TABLE, n_labeled=39),
        "groups": of(
            (group_rows(_COIN, 5), *coin[1:]), _TABLE, n_labeled=60, n_unlabeled=0
        ),
        "full model is as bad": of(_TURNCOAT, three.fit(X, y), **_FEW_IN_POOL),
        "duplicates": of(
            (step(), Forgetful(120, 7.5, 3), {"n_rows": [120]}), six.fit(X, y),
            given={"cv": 2}, n_labeled=120, **_COPIES,
        ),
    }  # fmt: skip
    return {f"baseline, {name}": setting for name, setting in settings.items()}


def _settings_of_comparisons() -> dict[str, Setting]:
    """Return the settings in which two models are compared by queried labels."""
    first_table, second_table = (RandomTable(number=number) for number in (1, 2))
    five = RandomTable(1, 5), RandomTable(2, 5)
    right, wrong = Turncoat(10**6, 7.5, 3), Turncoat(0, 7.5, 3)
    zero = DummyClassifier(strategy="constant", constant=0)

    def of(population: Population, models: tuple[Any, Any], **options: Any) -> Setting:
        return Setting(
            population, models, None, _TWENTY, **{"steps": compare_two, **options}
        )

    settings = {
        "noise": of(_COIN, (first_table, second_table)),
        "new model is wrong": of(step(), (right, wrong)),
        "old model is wrong": of(step(), (wrong, right)),
        "five classes": of(independent_classes([0.2] * 5), five, n_labeled=120),
        "duplicates": of(biased_coin(0.4), (zero, Memory(1)), **_COPIES),
        "fewer rows": of(step(), (right, wrong), n_unlabeled=39),
        "unusable labels": of(_FIVE[0], five, n_labeled=120, steps=compare_two_by_some),
    }
    return {f"compare, {name}": setting for name, setting in settings.items()}


def _search_undeclared_groups(size: int) -> Setting:
    """Return a search that treats rows of groups as independent: BROKEN."""
    population = group_rows(biased_coin(0.1), size)
    options = {"n_labeled": 60, "declares_groups": False, **_BROKEN}
    return Setting(population, Memory(), {"otherwise": [0]}, **options)


def _settings_of_least_squares() -> dict[str, Setting]:
    """Return the settings of least squares, from a memory to a constant model."""
    # Rows of a cell are equal, so that a model has one prediction for each cell.
    flat = np.zeros(16)
    kind = {"has_duplicates": True}
    grid = {"widths": [0.1, 2.0, 50.0], "regularizations": [1e-3, 1.0, 100.0]}
    memory = {"widths": [0.1], "regularizations": [1e-6, 1e-3]}
    populations = {
        "heavy tails": (noise_around(flat, HEAVY, **kind), grid),
        "memory": (noise_around(flat, HEAVY, **kind), memory),
        "ties": (noise_around(np.arange(16) % 3, range(-3, 4), **kind), grid),
        "an atom above the level": (
            noise_around(flat, [-1.0, 1.0], [0.498, 0.502], **kind),
            {"widths": [50.0], "regularizations": [1e6]},
        ),
    }
    return {
        f"least squares, {name}": Setting(
            population, None, grid, {"cv": 3, "loss": error_quantile(0.5)},
            fit_least_squares, n_unlabeled=0,
        )
        for name, (population, grid) in populations.items()
    }  # fmt: skip


SETTINGS: Final[Mapping[str, Setting]] = {
    **{k: v for m in METHODS.values() for k, v in _settings_of_certificates(m).items()},
    **{f"{name}, prior": _with_prior(name) for name, method in METHODS.items()
       if method.supports_prior},
    "nested, rare class": Setting(biased_coin(0.1), Parity(), {"divisor": [1, 2, 3]}),
    "nested, full model differs": Setting(*_TURNCOAT, **_FEW_IN_POOL),
    "nested, no seed": Setting(*_UNSEEDED),
    "nested, resumed": Setting(*_UNSEEDED, steps=resume),
    "nested, predict raises": Setting(
        step(32), Refusing(), {"cell": [*range(32)]}, n_labeled=60, n_unlabeled=0
    ),
    "nested, twins": Setting(
        step(1000, has_duplicates=True), Turncoat(500, 499.5, 1000), {"n_rows": [500]},
        {"cv": 5}, n_labeled=500, n_unlabeled=2000,
    ),
    **{k: v for each in _LOSSES for k, v in _settings_of_losses(each).items()},
    "balanced, five classes": Setting(
        *_FIVE, {"loss": balanced(range(5))}, n_labeled=120
    ),
    "report, five classes": Setting(*_FIVE, {"report": [*range(5)]}, n_labeled=120),
    **_settings_by_value(),
    **_settings_of_groups(),
    **_settings_of_regressors(),
    **_settings_of_least_squares(),
    "any selection": Setting(*_NOISE, steps=certify_overfitting_procedure),
    "queries, noise": Setting(*_UNLIKE, _TWENTY, label),
    "queries, full model is wrong": Setting(
        step(), Turncoat(39, 7.5, 3), {"n_rows": [39]}, _TWENTY, label
    ),
    "queries, five classes": Setting(
        _FIVE[0], RandomTable(n_classes=5, has_seed=False), _TEN, _TWENTY, label,
        n_labeled=120,
    ),
    "queries, duplicates": Setting(
        *_FORGETFUL, {**_TWENTY, "cv": 2}, label, **_COPIES
    ),
    "queries, fewer rows": Setting(*_TURNCOAT, _TWENTY, label, **_FEW_IN_POOL),
    "queries, unusable labels": Setting(
        _FIVE[0], RandomTable(n_classes=5, has_seed=False), _TEN, _TWENTY, label_some,
        n_labeled=120,
    ),
    **_settings_of_baselines(),
    **_settings_of_comparisons(),
    "folds pooled": Setting(
        noisy_copies(14, 0.3), BestColumn(), {"n_columns": [14]},
        {"certificate": "cv_bound", "cv": 39}, pool_folds, is_control=True,
    ),
    "luckiest fold": Setting(*_ONE_TABLE, {"cv": 5}, pick_fold, **_BROKEN),
    "repeated looks": Setting(*_ONE_TABLE, {"cv": 5}, repeat_search, **_BROKEN),
    "a baseline picked by labels": Setting(
        *_ONE_TABLE, {"baseline": _TABLE, "cv": 2}, pick_baseline,
        **{**_BROKEN, "n_labeled": 90},
    ),
    "5 rows a group": _search_undeclared_groups(5),
    "20 rows a group": _search_undeclared_groups(20),
    "values alone": Setting(
        add_value_column(biased_coin(0.5, 255)), Memory(), {"otherwise": [0]},
        {"report_by": 1, "cv": 2}, read_values_alone, n_labeled=600, **_BROKEN,
    ),
    "a quantile for its limit": Setting(
        noise_around(np.zeros(16), HEAVY), RandomNumber(), {"number": [0]},
        {"loss": error_quantile(0.5)}, take_quantile, **_BROKEN,
    ),
    "stratified folds": Setting(
        _COIN, None, [DummyClassifier(strategy="most_frequent")],
        {"certificate": "holdout", "cv": StratifiedKFold(2)}, claim_estimate,
        n_labeled=400, **_BROKEN,
    ),
}  # fmt: skip
"""The settings of the audit by name; the last nine are broken bounds."""
