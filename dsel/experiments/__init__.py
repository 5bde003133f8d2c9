"""The experiments of the papers: each with its protocol, its numbers and its doubts.

One module for each paper: `hardoon2009` (nonconformity), `kaariainen2005` (the
semi-supervised bound), `loog2015` (semi-supervised discriminant analysis),
`madani2004` (co-validation), `sugiyama` (least squares). Each
has a `Scale` from a trial of seconds to the paper's size, functions that `run` it and
functions that put what came out beside the printed numbers, and it says where the paper
leaves a choice. Nothing else imports this room.

Vocabulary: a *problem* is a data set with a task; a *repetition* or *trial* draws rows
anew; *published* numbers are those of the paper, as printed. Data sets are read from
the folder that ``DSEL_DATA`` names or that is passed as ``folder=``; without it the
error says which file is missing.

To add a paper: one module with `Scale`, `run` and its tables, others under its name for
data sets and printed numbers, and a test at the smallest scale.
"""
