"""The data room."""
