"""
Is the new model better?
========================

A model is in production, a new one is ready. Whether the new one errs less can be
decided with some dozen labels, if they are those of rows on which the two differ:
elsewhere both are right or wrong together.
"""

# %%
# Two models
# ----------
# Both were trained on 200 of scikit-learn's digits. The other 1,597 stand for rows
# without labels that the models will meet; their labels answer the queries below.

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import dsel

X, y = load_digits(return_X_y=True)
pool, truth = X[200:], y[200:]
old = LogisticRegression(C=1e-4, max_iter=500).fit(X[:200], y[:200])
new = SVC().fit(X[:200], y[:200])

# %%
# Where they differ
# -----------------
# One pass over the pool counts the rows on which the models differ and draws 60 of
# them. Before any label is known, the pool alone says by how much the errors can
# differ.

question = dsel.compare_models(old, new, pool, n_queries=60, random_state=0)
print(question)

# %%
# The rows to be labeled have all columns of the pool, also those that no model uses,
# and their row numbers. They do not say what the models predict: the person who
# labels them must not know.

rows = question.query_rows()
rows.iloc[:4, :6]

# %%
# The answer
# ----------
# Labels come as a Series by pool row number, or as an array in the order of the rows. A
# row without a label counts against whatever is proved: skipping hard rows costs, and
# is accepted with ``partial=True`` only, since the answer is final.

answer = question.certify_with_labels(truth[rows.index])
print(answer)

# %%
answer.plot()

# %%
# What was true
# -------------
# All labels of the pool, which nobody has outside of an example:

less = (old.predict(pool) != truth).mean() - (new.predict(pool) != truth).mean()
print(f"The new model errs {100 * less:.1f} percentage points less.")

# %%
# The same 60 labels on rows drawn at random would compare two error rates of a few rows
# each. Of 60 such rows the models would differ on nine:

print(round(60 * question.n_differ / question.n_unlabeled, 1))

# %%
# When one model was trained on rows that are still in the pool, pass them as
# ``X_seen``: rows that equal one of them are never queried, and the limits allow for
# them. The theory is in :doc:`/theory/queries`. Where labeled rows are left that the
# old model was not trained on, ``fit(X, y, baseline=old)`` compares it with the new
# ones that a search makes, without any new label (:doc:`/theory/baseline`).

# %%
# The better model of a search
# ----------------------------
# A search certifies two models: that of one fold, trained on 80% of the labels,
# and that of all labels. This one is likely better and has a larger bound, since it may
# be wrong wherever the two differ. Labels of such rows decide. Their number is fixed
# before the run, and makes other bounds a little larger.

import numpy as np

order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
search = dsel.SemiSupervisedSearchCV(
    SVC(), {"C": [1.0, 10.0], "gamma": [2e-4, 1e-3]}, n_queries=50, random_state=0
)
search.fit(X[:300], y[:300], pool=X[300:])
print(search.choice_)

# %%
# With the labels both bounds of that model are known, and hold at once.

rows = search.query_rows()
outcome = search.certify_with_labels(y[300:][rows.index])
print(outcome)
