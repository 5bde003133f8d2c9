"""
A session in a shell
====================

From two tables to predictions, a smaller bound, a page about the run and a check a
month later. Every command below was run when this site was built, in a terminal of
80 columns, and all of its output is shown, but for the lines that show progress. The
script below this page has the functions that read the census and run a command.
"""

# %%
# The tables
# ----------
# Where the census table `adult` is at hand (``DSEL_DATA``), its rows are used: does a
# person earn more than 50,000 dollars a year? Elsewhere scikit-learn's digits take
# its place. Few rows are labeled, many are not; others stand for the rows of next
# month.

# sphinx_gallery_start_ignore
import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits


def census(path):
    """Return the census table with its categories as texts."""
    kept = np.load(path)
    names = kept["feature_names"].tolist()
    frame = pd.DataFrame(kept["X"], columns=names)
    texts = (text.split("=", 1) for text in kept["category_values"].tolist())
    categories = {name: values.split("|") for name, values in texts}
    for name in names:
        if name in categories:
            codes = frame[name].fillna(-1).astype(int)
            frame[name] = pd.Categorical.from_codes(codes, categories[name])
        else:
            frame[name] = frame[name].astype(int)
    return frame.assign(income=kept["classes"][kept["y"]])


def dsel(words):
    """Run a command of dsel in a terminal, and print what a person would see there."""
    print(f"$ dsel {words}")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dsel", *shlex.split(words)]
    done = subprocess.Popen(
        command, cwd=folder, stdout=theirs, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # raised where all is read
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    status = done.wait()
    notes = [line for line in done.stderr if line.startswith("Note")]
    print("".join(notes) + shown.decode().replace("\r\n", "\n"), end="")
    if status:
        print(f"(exit status {status})")


# sphinx_gallery_end_ignore
data = Path(os.environ.get("DSEL_DATA", ".")) / "adult.npz"
if data.exists():
    table, target, sizes = census(data), "income", (600, 5000, 2000)
else:
    table = load_digits(as_frame=True).frame.rename(columns={"target": "digit"})
    target, sizes = "digit", (300, 1200, 297)

table = table.sample(sum(sizes), random_state=0)
first, last = np.cumsum(sizes)[:2]
labeled, pool, later = table[:first], table[first:last], table[last:]
folder = Path(mkdtemp())
labeled.to_csv(folder / "labeled.csv", index=False)
pool.drop(columns=target).to_csv(folder / "unlabeled.csv", index=False)
later.to_csv(folder / "next_month.csv", index=False)
print("\n".join(f"{each.name:15} {len(pd.read_csv(each)):6,} rows"
                for each in sorted(folder.iterdir())))  # fmt: skip

# %%
# Choose a model and bound its error
# ----------------------------------

dsel(f"select labeled.csv --target {target} --pool unlabeled.csv --queries 40 "
     "--out results")  # fmt: skip

# %%
# Label what decides
# ------------------
# A person fills the last column of ``query_rows.csv``: rows on which both models
# differ. Here the labels that were kept away are looked up.

rows = pd.read_csv(folder / "results/query_rows.csv")
rows[target] = pool[target].to_numpy()[rows["pool_row"]]
rows.to_csv(folder / "results/query_rows.csv", index=False)
dsel("label results results/query_rows.csv")

# %%
# Predict
# -------

dsel("predict results next_month.csv --out predictions.csv")
predictions = pd.read_csv(folder / "predictions.csv")
print(predictions.iloc[:3, :4].round(3).to_string())
wrong = np.mean(predictions["label"].to_numpy() != later[target].to_numpy())
print(f"wrong on {100 * wrong:.1f}% of these rows, whose labels only we know")

# %%
# Is the promise still kept?
# --------------------------

dsel(f"monitor results next_month.csv --target {target}")

# %%
# A page about the run
# --------------------
# It is one file that loads nothing from elsewhere:
# `the page of this very run <report_of_a_run.html>`__.

dsel("report results")
page = (folder / "results/report.html").read_text(encoding="utf-8")
if site := os.environ.get("DSEL_SITE_REPORT"):  # where the build of this site wants it
    Path(site).write_text(page, encoding="utf-8")
