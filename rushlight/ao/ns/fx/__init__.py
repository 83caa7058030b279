"""Comparing graphs before and after they are quantised."""
