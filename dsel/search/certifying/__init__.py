"""Bounds for models that no search of dsel has chosen.

`certify` bounds a function that selects a model or, by `prefit`, a fitted model.
`compare_models` tests whether a new model is better than an old one.
"""
