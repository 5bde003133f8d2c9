"""Gaussian classes and passes over the pool, as the baselines share them."""
