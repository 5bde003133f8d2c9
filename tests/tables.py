"""Tables in other forms."""

from pathlib import Path

import numpy as np
import zarr
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import dsel

NUMERIC = ("npz", "npy", "svm", "zarr", "group")
TABLES = ("csv", "csv.gz", "tsv", "parquet", "folder")


def write(kind, place, frame, y=None):
    """Write a data frame, and labels if any, in some format; return the path."""
    path, X = Path(f"{place}.{kind}"), frame.to_numpy()
    table = frame if y is None else frame.assign(label=y.to_numpy())
    if kind == "folder":
        path.mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(table)), 3)):
            file = path / f"{number}.parquet"
            table.iloc[part].to_parquet(file, row_group_size=100)
    elif kind == "parquet":
        table.to_parquet(path)
    elif kind in TABLES:
        table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    elif kind == "npy":
        np.save(path, X)
    elif kind == "svm":
        labels = np.zeros(len(X)) if y is None else y
        dump_svmlight_file(X, labels, str(path), zero_based=False)
    elif kind == "group":
        group = zarr.create_group(path)
        group.create_array("X", data=X)
        group.create_array("y", data=y.to_numpy())
    else:
        dsel.write_pool(X, path, chunk_rows=25)
    return path


def in_two_entries(X):
    """Return CSR rows in which each value stands as two halves at one place."""
    once = sparse.csr_matrix(X)
    data, indices = np.repeat(once.data / 2, 2), np.repeat(once.indices, 2)
    return sparse.csr_matrix((data, indices, 2 * once.indptr), shape=X.shape)
