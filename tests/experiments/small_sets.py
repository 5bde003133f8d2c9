"""Small made-up sets in the place of the benchmark sets, as files."""

import gzip
import json

import numpy as np


def write_set(folder, name, *, n=90, n_columns=4, n_classes=2, labels=None, seed=0):
    """Write classes that lie side by side and overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, n_columns)) + 0.7 * y[:, None]
    classes = np.array(labels or [str(code) for code in range(n_classes)])
    np.savez(folder / f"{name}.npz", X=X, y=y, classes=classes)


def write_documents(folder, name, labels, *, n=80, seed=0):
    """Write documents of a few words, some of which tell their label."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(40)])
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        for place in range(n):
            label = place % len(labels)
            text = " ".join([*rng.choice(words, 8), *rng.choice(words[label::4], 4)])
            file.write(json.dumps({"text": text, "label": labels[label]}) + "\n")
