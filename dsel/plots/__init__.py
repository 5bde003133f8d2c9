"""The plots room."""
