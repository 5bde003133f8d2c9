"""Files as people have them: from the shell to a bound with one stop at most.

Each imitates a public table with its quirks. The first command is what a user types; if
it is refused, the second is what the line says, and that one must end in a bound.
"""

import shlex
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tests.shell import run

pytestmark = pytest.mark.contract
N = 400


def telco(rng):
    tenure = rng.integers(0, 72, N)
    monthly = rng.uniform(18, 118, N).round(2)
    charges = np.where(tenure == 0, " ", np.char.mod("%.2f", tenure * monthly))
    return pd.DataFrame(
        {
            "customerID": [f"{k:04d}-{'ABCDE'[k % 5]}XYZ" for k in range(N)],
            "SeniorCitizen": rng.integers(0, 2, N),
            "Partner": rng.choice(["Yes", "No"], N),
            "InternetService": rng.choice(["DSL", "Fiber optic", "No"], N),
            "tenure": tenure,
            "MonthlyCharges": monthly,
            "TotalCharges": charges,
            "Churn": np.where(rng.random(N) + tenure / 72 < 0.8, "Yes", "No"),
        }
    ).to_csv(index=False), "Churn"


def titanic(rng):
    age = rng.uniform(1, 80, N).round()
    frame = pd.DataFrame(
        {
            "PassengerId": range(1, N + 1),
            "Survived": rng.integers(0, 2, N),
            "Pclass": rng.integers(1, 4, N),
            "Name": [f'Doe, Mr. John "Jack" the {k}th' for k in range(N)],
            "Sex": rng.choice(["male", "female"], N),
            "Age": np.where(rng.random(N) < 0.2, np.nan, age),
            "Ticket": [f"A/5 {k + 21171}" for k in range(N)],
            "Fare": rng.uniform(7, 500, N).round(4),
            "Cabin": np.where(rng.random(N) < 0.7, None, [f"C{k}" for k in range(N)]),
            "Embarked": rng.choice(["S", "C", "Q"], N),
        }
    )
    return frame.to_csv(index=False), "Survived"


def adult(rng):
    lines = ["age, workclass, fnlwgt, education, hours-per-week, income"]
    for _ in range(N):
        age, hours = rng.integers(17, 90), rng.integers(1, 99)
        work = rng.choice(["Private", "State-gov", "?"])
        school = rng.choice(["Bachelors", "HS-grad", "11th"])
        income = "<=50K" if age + hours < 90 else ">50K"
        fields = (age, work, rng.integers(10**4, 10**6), school, hours, income)
        lines.append(", ".join(map(str, fields)))
    return "\n".join(lines) + "\n\n", "income"


def bank(rng):
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "job": rng.choice(["admin.", "blue-collar", "unknown"], N),
            "default": rng.choice(["no", "yes"], N),
            "emp.var.rate": rng.choice([1.1, -1.8, -0.1], N),
            "euribor3m": rng.uniform(0.6, 5, N).round(3),
            "y": rng.choice(["yes", "no"], N),
        }
    )
    return frame.to_csv(index=False, sep=";", quoting=2), "y"


def german(rng):
    amount = [f"{v:.2f}".replace(".", ",") for v in rng.uniform(1, 9000, N)]
    frame = pd.DataFrame(
        {
            "Alter": rng.integers(18, 90, N),
            "Betrag": amount,
            "PLZ": [f"{k:05d}" for k in rng.choice([1067, 10115, 80331, 4109], N)],
            "Stra\u00dfe": rng.choice(["Hauptstra\u00dfe", "Am M\u00fchlbach"], N),
            "Zahlung": rng.choice(["gut", "schlecht"], N),
        }
    )
    return frame.to_csv(index=False, sep=";").replace("\n", "\r\n"), "Zahlung"


def kidney(rng):
    def spoiled(values):
        return [
            "?" if rng.random() < 0.1 else f"\t{v}" if rng.random() < 0.05 else str(v)
            for v in values
        ]

    frame = pd.DataFrame(
        {
            "age": spoiled(rng.integers(2, 90, N)),
            "bp": spoiled(rng.choice([50, 60, 70, 80], N)),
            "sg": spoiled(rng.choice(["1.005", "1.010", "1.020"], N)),
            "rbc": spoiled(rng.choice(["normal", "abnormal"], N)),
            "wc": spoiled(rng.integers(2200, 26400, N)),
            "dm": spoiled(rng.choice(["yes", "no"], N)),
            "classification": rng.choice(["ckd", "ckd\t", "notckd"], N),
        }
    )
    return frame.to_csv(), "classification"


def mushrooms(rng):
    frame = pd.DataFrame({f"c{k}": rng.choice(list("abcde"), N) for k in range(8)})
    frame["stalk-root"] = rng.choice(list("bce?"), N)
    frame["veil-type"] = "p"
    frame.insert(0, "class", np.where(frame.c0 < "c", "p", "e"))
    return frame.to_csv(index=False), "class"


def penguins(rng):
    frame = pd.DataFrame(
        {
            "species": rng.choice(["Adelie", "Gentoo", "Chinstrap"], N),
            "island": rng.choice(["Biscoe", "Dream"], N),
            "bill_length_mm": rng.normal(43, 5, N).round(1),
            "body_mass_g": rng.integers(2700, 6300, N),
            "sex": rng.choice(["male", "female", None], N),
            "year": rng.choice([2007, 2008, 2009], N),
        }
    )
    frame.loc[rng.random(N) < 0.05, ["bill_length_mm", "body_mass_g"]] = np.nan
    return frame.to_csv(index=False, na_rep="NA"), "species"


def labels_and_gaps(rng):
    x = rng.normal(size=N)
    label = np.where(rng.random(N) < 0.5, None, np.where(x > 0, 1.0, 0.0))
    return pd.DataFrame({"x": x, "z": x**2, "label": label}).to_csv(
        index=False
    ), "label"


def messy(rng):
    n = 900
    x = rng.uniform(0, 10, n)
    amount = np.where(rng.random(n) < 0.1, " ", np.char.mod("%.2f", x * 100))
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{k:06d}" for k in rng.permutation(n)],
            "last_login": pd.date_range("2023-09-26", periods=n)
            .strftime("%d/%m/%Y %H:%M")
            .to_numpy(),
            "amount": amount,
            "town": rng.choice([f"Town {k}" for k in range(40)], n),
            "member": rng.choice(["yes", "no", None], n),
            "postcode": [f"{k:05d}" for k in rng.choice([1067, 4109, 10115], n)],
            "status": np.array(["None", "Some", "Marked"])[np.digitize(x, [3, 6])],
            "": None,
        }
    )
    return frame.to_csv(index=False), "status"


TABLES = {
    telco: ("Yes", "No"),
    titanic: (0, 1),
    adult: ("<=50K", ">50K"),
    bank: ("no", "yes"),
    german: ("gut", "schlecht"),
    kidney: ("ckd", "notckd"),
    mushrooms: ("e", "p"),
    penguins: ("Adelie", "Chinstrap", "Gentoo"),
    labels_and_gaps: (0, 1),
    messy: ("Marked", "None", "Some"),
}
STOPS = {telco: "customerID", titanic: "PassengerId,Name,Ticket,Cabin",
         messy: "customer_id"}  # fmt: skip
FACTS = {
    telco: ["empty cells", "Partner, InternetService: a column for"],
    adult: ["age, fnlwgt, hours-per-week: gaps"],
    bank: ["separated by ';'", "euribor3m"],
    german: ["decimal commas", "Alter, Betrag: gaps", "PLZ"],
    kidney: ["labels have blanks around them", "age, bp, sg, wc: gaps", "'?'"],
    mushrooms: ["10 columns (c0, c1, c2, ...): a column for each value"],
    penguins: ["'NA'", "year"],
    labels_and_gaps: ["have no label in 'label': they are the pool"],
    messy: [
        "'None' is a class",
        "day first in last_login",
        "(no name, no values)",
    ],
}


@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_select__ends_in_a_bound_after_one_stop_at_most(make, tmp_path, rng):
    text, target = make(rng)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    words = ["select", path, "--target", target, "--model", "logistic"]
    words += ["--grid", "C=1", "--verbose"]
    done = run(*words)
    said = done.output
    if make in STOPS:
        assert done.exit_code == 1
        assert said.startswith("Error: ")
        lines = said.splitlines()[1:]
        commands = [line for line in lines if not line.startswith("(")]
        assert all(line.startswith(("Run: dsel", "Or: dsel")) for line in commands)
        first = shlex.split(commands[0])[2:]
        named = {
            name
            for option, names in pairwise(first)
            if option in ("--drop", "--id")
            for name in names.split(",")
        }
        assert named == {*STOPS[make].split(",")}
        done = run(*first)
        said += done.output
    assert done.exit_code == 0, done.output
    assert "Error at most" in done.output
    for words in FACTS.get(make, ()):
        assert words in " ".join(said.split()), said
