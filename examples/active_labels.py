"""
Labels picked by active learning
================================

Rows that a learner asked for are not drawn at random, so no bound holds (assumption A1
is violated). Co-validation still estimates the error: labeled rows are divided into two
random halves, a model is trained on each, and their disagreement on the pool says how
wrong they are at least.
"""

# %%
# Ask for 60 labels
# -----------------
# The digits 3 and 8. Each step asks for the rows of which the model is least certain.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dsel
from dsel.co_validation import learn_actively
from dsel.criteria import CRITERIA

X, y = load_digits(return_X_y=True)
kept = np.isin(y, (3, 8))
X, y = X[kept] / 16, y[kept]
steps = list(
    learn_actively(
        SVC(kernel="linear", C=1.0),
        X,
        y.__getitem__,
        n_rows=60,
        every=15,
        batch=5,
        repeats=10,
        random_state=0,
    )
)

# %%
# Estimates along the way
# -----------------------
# ``two_fold_cv`` trains on one half and tests on the other; ``max_dt_e`` is the larger
# of the error on the training rows and the error that the disagreement shows.

names = ["disagreement", "dis_error", "train_error", "two_fold_cv", "max_dt_e"]
print("labels" + "".join(f"{name:>13}" for name in names))
for step in steps:
    shown = "".join(f"{step.estimates[name]:13.4f}" for name in names)
    print(f"{len(step.rows):6d}{shown}")

figure, ax = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
labels = [len(step.rows) for step in steps]
for name, mark in zip(names, "os^Dv", strict=True):
    values = [100 * step.estimates[name] for step in steps]
    style = {"marker": mark, "fillstyle": "none"}  # some estimates are equal
    ax.plot(labels, values, **style, label=CRITERIA[name].title)
ax.set_title(
    "Estimates of the error while labels are picked; none is a bound\n"
    "Means over ten divisions of the labeled rows into halves, digits 3 and 8"
)
ax.set_xlabel("labels asked for")
ax.set_ylabel("estimated error, %")
figure.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# Never certified
# ---------------
# The disagreement is an estimate: no bound holds for a model trained on picked rows.

choice = dsel.select(steps[-1].results, "max_dt_e")
print(choice.certificate.reading())
