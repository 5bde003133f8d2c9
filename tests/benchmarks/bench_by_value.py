"""Limits by the values of a column, beside those of a 20% hold-out set.

    python -m tests.benchmarks.bench_by_value [--draws 9]

Adult with 2,000 labels, by sex and by relationship, with a pool of the other rows.
Without dsel: `GridSearchCV(cv=5)` on 80% of the labels, and Clopper-Pearson limits on
the rest, with half of delta divided equally by the values. Each line has the value, its
labeled rows, and averages of limits and of the errors on rows of the set that have no
part in it; last, in how many draws any limit was too small.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

import dsel
from dsel import datasets
from dsel.bounds import binomial_tail_inversion

N_LABELED, N_POOL, DELTA = 2000, 20_000, 0.05
MODEL = HistGradientBoostingClassifier(max_iter=50, random_state=0)
GRID = {"learning_rate": [0.05, 0.2], "max_leaf_nodes": [5, 15]}


def one_draw(table, column, seed):
    """Return by model a frame of limits and errors by value."""
    order = np.random.default_rng(seed).permutation(len(table.y))
    labeled, pool, rest = np.split(order, [N_LABELED, N_LABELED + N_POOL])
    X, y = table.X, table.y
    search = dsel.SemiSupervisedSearchCV(
        MODEL, GRID, report_by=column, delta=DELTA, random_state=seed
    )
    search.fit(X[labeled], y[labeled], pool=X[pool])
    kept, held = np.split(labeled, [N_LABELED * 4 // 5])
    plain = GridSearchCV(MODEL, GRID, cv=5).fit(X[kept], y[kept])
    values = search.report_by_value().values
    models = {"hold-out": plain, **search.models_}
    found = {}
    for name, model in models.items():
        wrong = pd.Series(model.predict(X[rest]) != y[rest])
        errors = wrong.groupby(X[rest, column]).mean()
        if name == "hold-out":
            misses, there = model.predict(X[held]) != y[held], X[held, column]
            counts = [(misses[there == v].sum(), (there == v).sum()) for v in values]
            share = DELTA / 2 / len(values)
            limits = binomial_tail_inversion(*np.transpose(counts), delta=share)
        else:
            limits = search.report_by_value(name).error_at_most
        rows = search.report_by_value().rows
        parts = {"rows": rows, "limit": limits, "error": errors.loc[list(values)]}
        found[name] = pd.DataFrame(parts, index=values)
    return found


def main():
    """Print a table for each column."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=9)
    draws = parser.parse_args().draws
    table = datasets.load_set("adult")
    for name in ("sex", "relationship"):
        column = table.columns.index(name)
        made = [one_draw(table, column, seed) for seed in range(draws)]
        print(f"{name}, {draws} draws: limit / error")
        models = list(made[0])
        print("  value  rows  " + "  ".join(f"{model:>13}" for model in models))
        for value in made[0]["hold-out"].index:
            rows = np.mean([each["hold-out"].rows[value] for each in made])
            cells = [
                "{:.3f} / {:.3f}".format(*(
                    np.mean([each[model][part][value] for each in made])
                    for part in ("limit", "error")
                ))
                for model in models
            ]  # fmt: skip
            print(f"  {value:5g} {rows:5.0f}  {'  '.join(cells)}")
        for model in models:
            n = sum((each[model].error > each[model].limit).any() for each in made)
            print(f"  {model}: too small in {n} draws")


if __name__ == "__main__":
    main()
