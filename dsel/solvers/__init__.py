"""The solvers room."""
