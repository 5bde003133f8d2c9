"""The searches room."""
