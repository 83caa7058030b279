"""Errors: what they say besides what went wrong, and what a missing device says."""
