"""A classifier that keeps every model of a grid and chooses one for each row.

Models are trained once, on one part of the labeled rows; their scores on the other
part, the validation rows, give a p-value for each label of a new row. A row is
predicted by the model whose second largest p-value is smallest, since for this model
every other label fits the row worst.

Vocabulary: *conformity* is large where a label fits a row (here its margin over the
best other label); the *critical count* is the number of validation rows that conform no
better than a row's runner-up label; models *tie* where their counts are equal. `models`
trains a grid and packs the models, `classifier` is the estimator,
`dsel.bounds.nonconformity` has the formulas. To use another conformity, write another
formula there and another critical count in `NonconformityClassifier`.

Source: Hardoon, Hussain and Shawe-Taylor (2009), Algorithm 1.
"""

from dsel.checks import explain_public
from dsel.nonconformity.classifier import NonconformityClassifier

__all__ = ["NonconformityClassifier"]

explain_public(globals())
