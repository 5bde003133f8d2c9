import numpy as np
import pandas as pd
import pytest
import zarr

from dsel.data import write_pool
from dsel.data.tables import read_table

X = np.array([[1.0, 0.0, 2.5], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0], [0.5, 0.0, 1.0]])
LABELS = np.array(["no", "yes", "yes", "no"])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=LABELS)


def read_to_write(path, *, target):
    return write_pool(path, f"{path}.zarr", target=target)


def to_npz(path):
    names, codes = np.array(["no", "yes"]), np.array([0, 1, 1, 0])
    np.savez(path, X=X, y=codes, classes=names, feature_names=np.array(list("abc")))


def to_zarr(path):
    group = zarr.create_group(path, attributes={"columns": list("abc")})
    group.create_array("X", data=X)
    group.create_array("label", data=np.array([0, 1, 1, 0]))


@pytest.mark.parametrize(
    ("name", "write", "target"),
    [
        ("t.csv", lambda path: FRAME.to_csv(path, index=False), "label"),
        ("t.csv", lambda path: FRAME.to_csv(path), "label"),
        ("t.tsv.gz", lambda path: FRAME.to_csv(path, index=False, sep="\t"), "label"),
        ("t.parquet", FRAME.to_parquet, "label"),
        ("t.npz", to_npz, None),
        ("t.zarr", to_zarr, "label"),
    ],
)
def test_read_table__takes(name, write, target, tmp_path):
    write(tmp_path / name)
    table = read_table(tmp_path / name, target=target)
    assert (table.X == X).all()
    assert (table.y == ((LABELS == "yes") if name == "t.zarr" else LABELS)).all()
    assert table.columns == ("a", "b", "c")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_read_table__keeps_a_frame_where_a_column_is_no_number(tmp_path, ending):
    path, towns = tmp_path / f"t.{ending}", ["Ulm", "Bonn", "Bonn", "Kiel"]
    frame = FRAME.assign(label=towns)
    getattr(frame, f"to_{ending}")(path, index=False)
    pd.testing.assert_frame_equal(read_table(path).X, frame, check_dtype=False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("ragged.csv", b"a,label\n1,x\n1,2,3\n"),
        ("named.csv", b"a,label\nfirst,1,x\nsecond,2,y\n"),
        ("ends.csv", b"label,a,b\nx,1,2,\ny,3,4,\n"),
        ("latin.csv", b"a,label\n1,gr\xfcn\n"),
        ("cut.npz", b"PK\x03\x04 and no more"),
        ("text.npz", b"hello"),
        ("cut.parquet", b"PAR1 and no more"),
        ("text.svm", b"hello world\n"),
        ("text.csv.gz", b"hello"),
    ],
)
@pytest.mark.parametrize("read", [read_table, read_to_write])
def test_read_table__names_the_file_that_cannot_be_read(name, content, read, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name):
        read(str(path), target="label" if ".csv" in name else None)


def test_read_table__takes_minus_one_as_a_label_where_there_are_no_classes(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=np.array([-1, 1, 1, -1]))
    assert read_table(tmp_path / "t.npz").y.tolist() == [-1, 1, 1, -1]
