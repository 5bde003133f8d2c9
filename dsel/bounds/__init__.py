"""The bounds room."""
