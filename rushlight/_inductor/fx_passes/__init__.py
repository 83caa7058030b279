"""Passes over graphs that packages add to."""
