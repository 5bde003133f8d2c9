"""Results: the cube of counts, the choice made from it, and its certificate.

The package promises one Dataset schema (`dsel.names`), exact round trips through zarr,
and a store from which an interrupted run continues.

Vocabulary: a *cube* is an `xarray.Dataset` over candidates, splits and criteria. A
*candidate* is numbered in the C order of the grid's dimensions. Counts are NaN where
nothing was counted; `read_counts` returns them as integers, with -1 for NaN. A *record*
is the result of one fit or one count; a *store* keeps the records of one plan, and its
outcome. An *assumption* is declared or violated. A *caveat* voids a number, weakens it,
or is only information. A certificate is certified if no caveat voids it; each violated
assumption is a caveat that voids it.

`caveats` defines caveats, `renderings` shows results as lines, HTML and JSON.
`certificate`, `choice` and `prefit` have the results themselves, `cube` and `tables`
the counts, `place`, `model_files` and `run_store` the files, `rows` results for every
row of a pool.
"""

from dsel.checks import explain_public
from dsel.results.baseline_comparison import BaselineComparison
from dsel.results.bounded_values import BoundedValues
from dsel.results.caveats import Caveat, Effect
from dsel.results.certificate import Certificate
from dsel.results.choice import Choice
from dsel.results.choice_parts import BoundedModel
from dsel.results.class_report import CertifiedReport
from dsel.results.comparison import ModelComparison
from dsel.results.model_files import open_model, save_model
from dsel.results.monitoring import MonitorReport
from dsel.results.prefit_certificate import PrefitCertificate
from dsel.results.queries import Queries
from dsel.results.run_store import open_results, save_results
from dsel.results.value_report import ReportByValue

__all__ = [
    "BaselineComparison",
    "BoundedModel",
    "BoundedValues",
    "Caveat",
    "Certificate",
    "CertifiedReport",
    "Choice",
    "Effect",
    "ModelComparison",
    "MonitorReport",
    "PrefitCertificate",
    "Queries",
    "ReportByValue",
    "open_model",
    "open_results",
    "save_model",
    "save_results",
]

explain_public(globals())
