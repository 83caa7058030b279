"""Comparing a model before and after it is quantised."""
