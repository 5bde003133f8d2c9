"""Named benchmark sets."""
