"""Model selection with an error guarantee."""
