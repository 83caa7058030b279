"""Pruning of rows, of data without a layer, and of activations."""
