"""Audits: searches where the truth is known, to see whether certificates hold.

`audit` draws labeled rows and a pool from a distribution on finitely many cells,
searches as a user does, and counts how often a certified number is below the exact
error of the model that was returned.

Vocabulary: a *law* is a distribution of rows; a *setting* is a law, candidates, options
and *steps*, a function of a *draw*; a *claim* is the bound of one certificate for one
model, with the true error; a *control* is a broken bound that an audit must catch.

To add a setting: one line in `catalogue`, or a `Setting` passed to `audit`; steps:
`settings`; a law or a learner: `laws`.
"""
