"""Audits: a pipeline replayed where the truth is known, to see whether bounds hold.

`audit` draws samples of a population whose error rates are known, runs the user's own
search on each, and counts how often each certificate failed and how loose it was.

Vocabulary: a *claim* is what one certificate says of one draw; a *control* is a broken
bound that an audit must catch; a *replay* is one draw, searched and judged. To add a
bound to audits: a claim in `claims`; to add a broken one: `controls`.
"""
