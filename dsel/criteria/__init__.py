"""The criteria room."""
