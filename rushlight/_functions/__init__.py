"""Functions, types and settings of the top namespace that are written in Python."""
