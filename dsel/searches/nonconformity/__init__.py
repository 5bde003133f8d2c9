"""Searches that keep every model of a grid and choose one for each row.

Models are trained once, on one part of the labeled rows; their scores on the other
part, the validation rows, say how strange a new row's score is to each of them.

Vocabulary: a *nonconformity score* is small where a model is sure; *ties* are rows on
which several models are equally sure, and a tie rule decides them. To add a measure of
nonconformity: `conformity`; a tie rule: `tie_rules`.
"""
