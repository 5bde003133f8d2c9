"""The steps that a user takes in an audit, on rows drawn by a setting.

Steps use public names only. They return the certified bounds, each with the exact error
of the model that the search returned.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final
from warnings import catch_warnings

import numpy as np
from sklearn.base import clone

from dsel import names
from dsel.arrays import Floats, Integers
from dsel.auditing.numbers import NumberPopulation
from dsel.auditing.populations import Population, RandomTable
from dsel.bounds import binomial_tail_inversion
from dsel.errors import GuaranteeWarning
from dsel.least_squares import LeastSquaresSearch
from dsel.losses import precision, recall
from dsel.search.certifying.certify import certify
from dsel.search.certifying.compare_models import compare_models
from dsel.search.outcomes.outcome import Outcome
from dsel.search.planning.plan import Plan
from dsel.search.planning.plan_search import plan_search
from dsel.typing import ClassCodes

Claims = list[tuple[float, float]]
"""Certified bounds, and the true error of the model that each is about."""
FIVE_ROWS: Final = np.zeros((5, 2)), np.arange(5)
"""Rows and labels from which a table learns that there are five classes."""
OTHER_TABLES: Final = [
    RandomTable(number=number).fit(FIVE_ROWS[0], FIVE_ROWS[1] % 2)
    for number in range(101, 601)
]
"""Fitted models of two classes, the luckiest of which `pick_baseline` picks."""


@dataclass(frozen=True)
class Draw:
    """Labeled rows and a pool, drawn from the population of a setting."""

    setting: "Setting"
    X: Floats
    y: ClassCodes
    pool: Floats | None
    pool_y: ClassCodes
    """True classes of the pool rows, from which queried rows are labeled."""
    seed: int
    groups: Integers | None = None
    """Group of each labeled row, if there are groups and the search gets them."""

    def plan(self, delta: float, **changed: Any) -> Plan:
        """Plan the setting's search, or a changed one."""
        setting = self.setting
        options = {"cv": 3, "random_state": self.seed, **setting.options, **changed}
        options |= {} if self.groups is None else {"groups": self.groups}
        return plan_search(
            setting.estimator, setting.grid, self.X, self.y, self.pool, delta=delta,
            **options,
        )  # fmt: skip

    def claims(self, outcome: Outcome) -> Claims:
        """Return the certified bounds of the bounded models, with the truth."""
        population = self.setting.population
        loss = self.setting.options.get("loss")
        claims = []
        for model_name, certificate in outcome.certificates.items():
            if not certificate.certified:
                continue
            model = outcome.models[model_name]
            truth = (
                population.error(model)
                if loss is None
                else population.loss(model, loss)
            )
            claims.append((certificate.bound, truth))
            if (
                values := outcome.choice.by_model("report_by_value").get(model_name)
            ) is not None:
                column = self.setting.options["report_by"]
                claims += [
                    (limit, population.where(column, value).error(model))
                    for value, limit in values.to_dataframe().error_at_most.items()
                ]
            if (report := outcome.choice.by_model("report").get(model_name)) is None:
                continue
            claims.append((report.error_at_most, population.error(model)))
            for label, row in report.to_dataframe().iterrows():
                for fraction in (recall, precision):
                    bound = 1.0 - row[f"{fraction.__name__}_at_least"]
                    claims.append((bound, population.loss(model, fraction(label))))
        return claims


Steps = Callable[[Draw, float], Claims]
"""A function that searches a draw at a delta and returns the certified bounds."""


def search(draw: Draw, delta: float) -> Claims:
    """Run the search of the setting."""
    return draw.claims(draw.plan(delta).run(n_jobs=1))


def resume(draw: Draw, delta: float) -> Claims:
    """Kill a run after its first fits, and continue it by the same call."""

    def kill(progress: Any) -> None:
        if progress.fits_done:
            raise KeyboardInterrupt

    with TemporaryDirectory() as out:
        with suppress(KeyboardInterrupt):
            draw.plan(delta).run(n_jobs=1, out=out, on_progress=kill)
        return draw.claims(draw.plan(delta).run(n_jobs=1, out=out))


def certify_overfitting_procedure(draw: Draw, delta: float) -> Claims:
    """Certify a procedure that takes the candidate with the fewest training errors."""
    [(name, values)] = draw.setting.grid.items()

    def procedure(X: Floats, y: ClassCodes) -> Any:
        models = [
            clone(draw.setting.estimator).set_params(**{name: value}).fit(X, y)
            for value in values
        ]
        errors = [np.mean(model.predict(X) != y) for model in models]
        return models[int(np.argmin(errors))]

    return draw.claims(
        certify(
            procedure, draw.X, draw.y, draw.pool, delta=delta, random_state=draw.seed,
            n_jobs=1, cv=3, groups=draw.groups, **draw.setting.options,
        )
    )  # fmt: skip


def omit_some(labels: list[int]) -> list[Any]:
    """Return labels without those of class 0, and with an unknown one for class 2."""
    usable = {0: None, 2: 99}
    return [usable.get(label, label) for label in labels]


def label(
    draw: Draw, delta: float, label_rows: Callable[[list[int]], list[Any]] = list
) -> Claims:
    """Label the queried rows, by default by their true classes.

    The bounds before and after labels are known hold at once.
    """
    outcome = draw.plan(delta).run(n_jobs=1)
    claims = draw.claims(outcome)
    queries = outcome.choice.queries
    if queries is None or not queries.rows:
        return claims
    labels = label_rows(draw.pool_y[list(queries.rows)].tolist())
    if not set(queries.classes).intersection(labels):
        return claims  # labels without a usable one are refused, and the bounds stay
    labeled = outcome.certify_with_labels(labels, partial=True, allow_unknown=True)
    return claims + draw.claims(labeled)


label_some: Final[Steps] = partial(label, label_rows=omit_some)
"""Labels some of the queried rows only."""


def compare_with_baseline(draw: Draw, delta: float) -> Claims:
    """Search with a baseline; claims are limits of an error less the baseline's."""
    population = draw.setting.population
    claims = []
    outcome = draw.plan(delta).run(n_jobs=1)
    for model_name, comparison in outcome.choice.by_model("baseline").items():
        if not comparison.certified:
            continue
        error = (
            1.0 - population.probabilities[:, int(comparison.largest_class or 0)].sum()
        )
        if not comparison.largest_class:
            error = population.error(draw.setting.options["baseline"])
        truth = population.error(outcome.models[model_name]) - error
        claims.append((comparison.upper, truth))
    return claims


def compare_two(
    draw: Draw, delta: float, label_rows: Callable[[list[int]], list[Any]] = list
) -> Claims:
    """Compare two models; label the queried rows, by default by their true classes.

    Claims are both limits of the difference of errors, and that of the disagreement.
    """
    setting, population = draw.setting, draw.setting.population
    old, new = (clone(estimator).fit(draw.X, draw.y) for estimator in setting.estimator)
    question = compare_models(
        old, new, draw.pool, delta=delta, random_state=draw.seed,
        X_seen=draw.X if setting.n_copies else None, **setting.options,
    )  # fmt: skip
    comparisons = [question]
    if question.rows:
        labels = label_rows(draw.pool_y[list(question.rows)].tolist())
        if set(question.known_labels).intersection(labels):
            comparisons.append(
                question.certify_with_labels(labels, partial=True, allow_unknown=True)
            )
    truth = population.error(new) - population.error(old)
    claims = [(question.disagreement, population.disagreement(old, new))]
    for comparison in comparisons:
        claims += [(comparison.upper, truth), (-comparison.lower, -truth)]
    return claims


compare_two_by_some: Final[Steps] = partial(compare_two, label_rows=omit_some)
"""Compares two models by labels of some of the queried rows."""


def search_numbers(draw: Draw, delta: float) -> Claims:
    """Search regressors; claims are fractions of new rows that are off by more."""
    population = draw.setting.population
    outcome = draw.plan(delta).run(n_jobs=1)
    assert isinstance(population, NumberPopulation)  # else nothing is known of numbers
    claims: Claims = []
    for model_name, certificate in outcome.certificates.items():
        model, loss = outcome.models[model_name], draw.setting.options["loss"]
        if not certificate.certified:
            continue

        limits = [(population, certificate.bound)]
        if (
            values := outcome.choice.by_model("report_by_value").get(model_name)
        ) is not None:
            column = draw.setting.options["report_by"]
            table = values.to_dataframe()
            limits += [
                (population.where(column, value), limit)
                for value, limit in table[f"{values.quantity}_at_most"].items()
            ]
        for among, limit in limits:
            tolerance, exceeding_fraction = loss.exceedance(limit)
            claims.append((exceeding_fraction, among.beyond(model, tolerance)))
        if np.isfinite(loss.largest):  # the bound is a share, which has no intervals
            continue
        ends = outcome.predict_interval(population.rows, deploy=model_name)
        claims.append((loss.level, population.rate_outside(ends)))
        if (
            report := outcome.choice.by_model("tolerances").get(model_name)
        ) is not None:
            claims += [
                (1.0 - fraction, population.beyond(model, limit))
                for fraction, limit in report.to_dataframe().off_by_at_most.items()
            ]
    return claims


def fit_least_squares(draw: Draw, delta: float) -> Claims:
    """Search least squares without refits; claims are about the predicted intervals.

    Both the intervals of one fold's model and those of the model of all rows are
    certified.
    """
    options, population = draw.setting.options, draw.setting.population
    assert isinstance(population, NumberPopulation)  # else nothing is known of numbers
    search = LeastSquaresSearch(
        **draw.setting.grid, penalty="rkhs", certificate="nested", delta=delta,
        random_state=draw.seed, n_jobs=1, **options,
    ).fit(draw.X, draw.y)  # fmt: skip
    if not search.certificate_.certified:
        return []
    ends = [
        search.predict_interval(population.rows, model_name)
        for model_name in search.models_
    ]
    return [(options["loss"].level, population.rate_outside(pair)) for pair in ends]


# Controls are broken bounds. They count as certified, and the audit must catch them.


def take_quantile(draw: Draw, delta: float) -> Claims:
    """Use a quantile of a fold's residuals instead of its upper limit: BROKEN."""
    population = draw.setting.population
    outcome = draw.plan(delta).run(n_jobs=1)
    assert isinstance(population, NumberPopulation)
    loss = draw.setting.options["loss"]
    residuals = outcome.results["outer_residuals"].isel(fold=outcome.certificate.fold)
    known = residuals.values[~np.isnan(residuals.values)]
    limit = float(np.quantile(known, loss.fraction, method="inverted_cdf"))
    return [(loss.level, population.beyond(outcome.model, limit))]


def pool_folds(draw: Draw, delta: float) -> Claims:
    """Treat all fold errors as one binomial: BROKEN, since folds are dependent."""
    outcome = draw.plan(delta).run(n_jobs=1)
    n_errors = int(outcome.results[names.FOLD_ERRORS].sum())
    limit = binomial_tail_inversion(n_errors, len(draw.y), delta=delta)
    return [(float(limit), draw.setting.population.error(outcome.model))]


def pick_fold(draw: Draw, delta: float) -> Claims:
    """Bound the model of the smallest limit as if it had not been picked: BROKEN."""
    outcome = draw.plan(delta).run(n_jobs=1)
    errors, rows = (
        outcome.results[name].values.astype(int)
        for name in (names.OUTER_ERRORS, names.FOLD_ROWS)
    )
    # This control takes the fold with the fewest errors, without its share of delta;
    # all models are the same table.
    limit = binomial_tail_inversion(errors, rows, delta=delta).min()
    return [(float(limit), draw.setting.population.error(outcome.model))]


def read_values_alone(draw: Draw, delta: float) -> Claims:
    """Use all of delta for the limit of each value: BROKEN, since one of many fails."""
    outcome = draw.plan(delta).run(n_jobs=1)
    fold, population = outcome.certificate.fold, draw.setting.population
    counts = outcome.results["outer_value_counts"].isel(fold=fold).values
    claims = []
    for value, (rows, errors) in zip(
        outcome.report_by_value().values, counts, strict=False
    ):
        limit = binomial_tail_inversion(int(errors), int(rows), delta=delta)
        truth = population.where(draw.setting.options["report_by"], value).error(
            outcome.model
        )
        claims.append((float(limit), truth))
    return claims


def pick_baseline(draw: Draw, delta: float) -> Claims:
    """Compare with the model of many that errs most on these labels: BROKEN."""
    tables = [draw.setting.options["baseline"], *OTHER_TABLES]
    errors = [np.mean(table.predict(draw.X) != draw.y) for table in tables]
    worst = tables[int(np.argmax(errors))]
    outcome = draw.plan(delta, baseline=worst).run(n_jobs=1)
    population = draw.setting.population
    comparison = outcome.choice.by_model("baseline")["one_fold"]
    return [
        (comparison.upper, population.error(outcome.model) - population.error(worst))
    ]


def repeat_search(draw: Draw, delta: float) -> Claims:
    """Search ten times with other folds, and report the smallest bound: BROKEN."""
    seeds = range(draw.seed, draw.seed + 10)
    plans = [draw.plan(delta, random_state=seed) for seed in seeds]
    outcomes = [plan.run(n_jobs=1) for plan in plans]
    return draw.claims(min(outcomes, key=lambda outcome: outcome.choice.bound))


def claim_estimate(draw: Draw, delta: float) -> Claims:
    """Use a number that dsel marks as not certified as a bound: BROKEN."""
    with catch_warnings(action="ignore", category=GuaranteeWarning):
        outcome = draw.plan(delta).run(n_jobs=1)
    estimate = outcome.choice.certificate.number
    return [(estimate, draw.setting.population.error(outcome.model))]


@dataclass(frozen=True)
class Setting:
    """A search that is audited, on rows drawn from a known distribution."""

    population: Population
    estimator: Any
    grid: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `plan_search`; the default of ``cv`` is 3 here."""
    steps: Steps = search
    n_labeled: int = 39
    """Labeled rows, or groups of them."""
    n_unlabeled: int = 200
    """Rows of the pool; 0 means no pool."""
    n_copies: int = 0
    """Number of copies of each labeled record in the pool, in addition to its rows."""
    is_control: bool = False
    """Whether it is a broken bound, which the audit must catch."""
    declares_groups: bool = True
    """Whether the groups of rows are passed to the search."""

    def draw(self, entropy: Any) -> Draw:
        """Return one draw; equal entropy gives an equal draw."""
        rng = np.random.default_rng(entropy)
        X, y, groups = self.population.draw_labeled_rows(self.n_labeled, rng)
        pool, pool_y = self.population.draw(self.n_unlabeled, rng)
        pool = np.vstack([pool, *[X] * self.n_copies])
        pool_y = np.concatenate([pool_y, *[y] * self.n_copies])
        seed = int(rng.integers(2**31))
        rows = pool if self.n_unlabeled else None
        groups = groups if self.declares_groups else None
        return Draw(self, X, y, rows, pool_y, seed, groups)
