"""Results: the cube of evidence, the choice made from it, and its certificate.

The room promises one Dataset schema (`schema`), exact round trips through zarr, and a
journal from which a killed run goes on. It is the only room that knows the file
format.

Vocabulary: a *cube* is an `xarray.Dataset` over candidates, trainings and criteria. A
*candidate* is numbered in the C order of the grid's dimensions. Counts are int64 and
-1 where nothing was counted. The *ledger* is the list of assumptions A1 to A6, each
``checked``, ``declared`` or ``violated``; a certificate is certified if none is
violated.

To add a variable: one entry in `schema.VARIABLES` and its name in `dsel.names`.
"""

from dsel.results.assumptions import Assumption, full_ledger
from dsel.results.certificate import Certificate
from dsel.results.checking import check_cube
from dsel.results.choice import Choice
from dsel.results.cube import add_criterion, evidence, make_cube
from dsel.results.files import open_results, save_results
from dsel.results.grid import GridAxes, grid_axes
from dsel.results.journal import Journal, open_journal
from dsel.results.models import open_model, save_model
from dsel.results.trainings import TrainingAxes, fold_axes, half_axes

__all__ = [
    "Assumption",
    "Certificate",
    "Choice",
    "GridAxes",
    "Journal",
    "TrainingAxes",
    "add_criterion",
    "check_cube",
    "evidence",
    "fold_axes",
    "full_ledger",
    "grid_axes",
    "half_axes",
    "make_cube",
    "open_journal",
    "open_model",
    "open_results",
    "save_model",
    "save_results",
]
