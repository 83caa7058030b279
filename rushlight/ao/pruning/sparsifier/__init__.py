"""Sparsifiers: who chooses the elements of weights that become zero."""
