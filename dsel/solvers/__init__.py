"""Optimisation of one problem, given what its candidates share: arrays in, arrays out.

Promise: numpy and scipy only (compiled parts are imported by the function that needs
them), no input is changed, and a solver that stops early says so in the status that it
returns instead of raising.

Member: `simplex` (projection, for a rival of contrastive likelihood).

To add a solver: one file named after its method, whose docstring states the problem in
the letters that the code uses, and a test against a second route to the same answer.
"""
