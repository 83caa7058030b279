"""Running passes in order."""
