"""The results accessor."""
