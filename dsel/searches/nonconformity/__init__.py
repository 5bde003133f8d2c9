"""Searches that keep every model of a grid and choose one for each row.

Models are trained once, on one part of the labeled rows. Their scores on the other
part, the validation rows, give a p-value for each label of a new row.

Vocabulary: a *nonconformity score* is large where a label does not fit a row; *ties*
are rows on which several models have the smallest count, and a tie rule decides which
of them predicts. To add a measure: `conformity`; a tie rule: `tie_rules`.
"""
