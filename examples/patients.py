"""
Patients with many visits
=========================

Rows often come in groups: visits of a patient, transactions of a customer, sentences of
a document. Rows of one group are alike, so a bound that takes them for independent
draws is too small. With ``groups=`` the bound holds for a random row of a new group.
"""

# %%
# Visits of one patient are alike
# -------------------------------
# A patient is ill or not, and some measurements depend on that. But most of what is
# measured is the patient's own, and the same at every visit.

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

import dsel


def visits(n_patients, seed, n_visits=6):
    """Draw the visits of some patients as a table, with the diagnosis."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), n_visits)
    is_ill = rng.random(n_patients) < 0.4
    own = rng.normal(size=(n_patients, 4)) + 0.8 * is_ill[:, np.newaxis]
    table = own[patient] + 0.2 * rng.normal(size=(len(patient), 4))
    columns = {f"blood_{number}": values for number, values in enumerate(table.T)}
    diagnosis = np.where(is_ill, "ill", "well")[patient]
    return pd.DataFrame({"patient": patient, **columns}), diagnosis


X, y = visits(100, seed=0)
print(X.head(8).round(2).to_string(index=False))

# %%
# The model knows the patient, not the illness
# --------------------------------------------
# Without ``groups=`` the folds cut patients into pieces. A model that has seen five
# visits of a patient recognizes the sixth one.

nearest, grid = KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}


def search(X, y, **options):
    """Search for the number of neighbors."""
    made = dsel.SemiSupervisedSearchCV(nearest, grid, random_state=0, n_jobs=1)
    return made.fit(X, y, **options)


by_rows = search(X.drop(columns="patient"), y)
print(by_rows.choice_)

# %%
# The folds of whole patients
# ---------------------------
# The name of a column is enough; it is no feature then. Models are trained on all
# visits of the patients in the other folds, and one visit of each patient in the fold
# is counted.

by_patients = search(X, y, groups="patient")
print(by_patients.choice_)

# %%
# What it assumes says so, too:

print(by_patients.certificate_.assumptions[0])

# %%
# Who is right?
# -------------
# Here new patients can be drawn, so that both errors are known.

new, truth = visits(5_000, seed=1)
for name, made in {"by rows": by_rows, "by patients": by_patients}.items():
    error = np.mean(made.predict(new.drop(columns="patient")) != truth)
    print(f"{name}: {made.certificate_.headline()}")
    print(f"    In truth the error is {error:.1%}.")

# %%
# Once again, with other patients
# -------------------------------
# A bound at 95% confidence may be wrong in one of twenty studies. Each mark is a study
# of 100 patients; below the line the bound is below the truth.

studies = []
for seed in range(100, 120):
    X, y = visits(100, seed)
    for name, made in {
        "by rows": search(X.drop(columns="patient"), y),
        "by patients": search(X, y, groups="patient"),
    }.items():
        error = np.mean(made.predict(new.drop(columns="patient")) != truth)
        studies.append((name, made.certificate_.bound, error))

table = pd.DataFrame(studies, columns=["folds", "bound", "error"])
table["is wrong"] = table["bound"] < table["error"]
print(table.groupby("folds")["is wrong"].agg(["sum", "size"]))

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, rows), mark in zip(table.groupby("folds"), "os", strict=True):
    ax.plot(
        100 * rows["error"], 100 * rows["bound"], mark, label=f"study, folds {name}"
    )
ends = [0, 75]
ax.plot(ends, ends, color="0.5", linewidth=1, label="bound equals error")
ax.set_xlim(*ends)
ax.set_ylim(*ends)
ax.set_title(
    "Below the line a bound is smaller than the true error\n"
    "20 studies of 100 patients, each with folds of both kinds"
)
ax.set_xlabel("true error on new patients, %")
ax.set_ylabel("bound, 95% confidence, %")
fig.legend(loc="outside lower center", ncols=3)

# %%
# The bound by patients is larger: 100 patients are worth 100 independent rows, however
# many visits they have. More patients make it smaller, more visits do not.

for n_patients in (100, 400, 1_600):
    X, y = visits(n_patients, seed=2)
    certificate = search(X, y, groups="patient").certificate_
    print(f"{n_patients:>5,} patients, {len(X):>5,} visits: {certificate.bound:.1%}")

# %%
# A model that is fitted already
# ------------------------------
# On visits of other patients it gets an exact bound; again one visit of each counts.

X, y = visits(300, seed=3)
print(dsel.certify(by_patients.best_estimator_, X, y, cv="prefit", groups="patient"))

# %%
# In a shell, ``dsel select visits.csv --target diagnosis --groups patient``. The proof
# is in :doc:`/theory/groups`.

plt.show()
