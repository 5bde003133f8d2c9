r"""
A table with names, categories and gaps
=======================================

Some hundred labeled rows in one Parquet file, many unlabeled ones in a folder of them,
and a pipeline that encodes columns by name. ``python examples/tables.py FOLDER`` writes
both to the folder and searches. From there, a shell does the same by

.. code-block:: sh

    dsel select labeled.parquet --target label --pool unlabeled \
        --model tables:pipeline --grid logisticregression__C=0.01,0.1,1,10

where tables is this file, found in the folder that the command is called in. With so
few columns, different customers may look alike: pool rows that equal labeled ones are
counted, and the bound allows for them.
"""

# %%
# The whole script
# ----------------

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dsel


def pipeline() -> Pipeline:
    """Return an unfitted classifier that takes the table as it is."""
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "visits"]),
            (OneHotEncoder(handle_unknown="ignore"), ["city", "tariff"]),
        ),
        LogisticRegression(),
    )


def customers(
    n_rows: int, seed: int, cities: list[str]
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw rows and labels from a distribution that a user would not know."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 15, n_rows).round(1),
            "visits": rng.poisson(3, n_rows),
            "city": rng.choice(cities, n_rows),
            "tariff": rng.choice(["flat", "hourly", "none"], n_rows),
        }
    )
    score = (frame.age - 45) / 15 + (frame.tariff == "flat") + 0.3 * (frame.visits - 3)
    label = np.where(score + rng.normal(0, 0.4, n_rows) > 0.5, "stays", "leaves")
    frame.loc[rng.random(n_rows) < 0.1, "visits"] = np.nan
    return frame, label


def main(folder: Path) -> None:
    (folder / "unlabeled").mkdir(parents=True, exist_ok=True)
    cities = [f"city {number}" for number in range(20)]
    labeled, label = customers(600, 0, cities)
    labeled.assign(label=label).to_parquet(folder / "labeled.parquet", index=False)
    # Cities that no labeled row has are no problem: the encoder ignores them.
    unlabeled, hidden = customers(20_000, 1, [*cities, "a new city"])
    for number in range(4):
        path = folder / "unlabeled" / f"part-{number}.parquet"
        unlabeled.iloc[number::4].to_parquet(path, index=False)

    X = pd.read_parquet(folder / "labeled.parquet")
    y = X.pop("label")
    search = dsel.SemiSupervisedSearchCV(
        pipeline(),
        {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]},
        random_state=0,
    )
    search.fit(X, y, pool=folder / "unlabeled")
    print(search.choice_)
    print(f"true error {np.mean(search.predict(unlabeled) != hidden):.4f}")


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    main(Path(place))
