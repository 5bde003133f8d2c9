"""Optimisation of one problem, given what its candidates share: arrays in, arrays out.

Promise: numpy and scipy only (compiled parts are imported by the function that needs
them), no input is changed, and a solver that stops early says so in the status that it
returns instead of raising.

Vocabulary: the *dual* is the vector of coefficients of training rows; a *block* is a
set of rows left out together; the *gap* is what an iterative solver has left to gain.

Members: `least_squares` (all regularizations and all left-out rows from one
factorisation, with the identity and its proof; `_blocks` and `_streamed` beside it),
`simplex` (projection, for a rival of contrastive likelihood).

To add a solver: one file named after its method, whose docstring states the problem in
the letters that the code uses, and a test against a second route to the same answer.
"""
