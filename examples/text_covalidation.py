"""
Documents: the error by disagreement
====================================

Few labeled documents, many without labels, and no random sample of either.

Needs the documents of 20 newsgroups (baseball against hockey) as JSON lines in the
folder that DSEL_DATA names. Sparse all the way: counts of up to three words in a row.

::

    DSEL_DATA=folder python examples/text_covalidation.py
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from dsel.datasets import load_documents
from dsel.searches import covalidate, sample_uncertain, select

# 1. Raw documents become l2-normalised counts of words, pairs and triples.
texts, labels = load_documents("newsgroups5")
kept = [i for i, label in enumerate(labels) if label.startswith("rec.sport")]
counts = CountVectorizer(stop_words="english", ngram_range=(1, 3), dtype=np.float64)
X = normalize(counts.fit_transform([texts[i] for i in kept]))
y = np.array([labels[i] for i in kept])
print(f"{X.shape[0]} documents, {X.shape[1]} columns, {X.nnz / X.shape[0]:.0f} used")

# 2. A hundred labels, asked for where a linear machine is least sure.
svm = SVC(kernel="linear", C=10)
run = sample_uncertain(svm, X, y.__getitem__, n_rows=100, batch=5, random_state=0)
pool = np.setdiff1d(np.arange(len(y)), run.rows)

# 3. Ten halvings: what the halves disagree on, and what they would get wrong. The
#    labels of the pool are here for comparison only. Degrees may be fractional.
poly = SVC(kernel="poly", gamma=1.0, C=10)
results = covalidate(
    poly, {"degree": [0.5, 1.0, 2.0]}, X[run.rows], y[run.rows], X[pool],
    repeats=10, pool_labels=y[pool], picked=True,
)  # fmt: skip
table = results.estimate.to_dataframe()["estimate"].unstack("criterion")
print(table.round(3).to_string())

# 4. The true error of each degree, and the choice by the larger of training error and
#    disagreement's error. No certificate: the labels were picked, not drawn.
print("true errors", (results.full_test_errors / results.test_rows).values.round(3))
choice = select(results, "max_dt_e")
print(choice.params, "; ".join(choice.certificate.reasons))
