"""Modules that recompute their activations."""
