"""Audits: searches where the truth is known, to see whether certificates hold.

`audit` draws labeled rows and a pool from a law on finitely many cells, searches as a
user does, and counts how often a certified number is below the exact error of the model
that was handed over.

Vocabulary: a *law* is where rows come from; a *setting* is a law, candidates, options
and *steps*, which is what is done with a *draw*; a *claim* is what one certificate says
of one model, beside the truth; a *control* is a broken bound that an audit must catch.

To add a setting: one line in `catalogue`, or a `Setting` passed to `audit`; steps:
`settings`; a law or a learner: `laws`.
"""
