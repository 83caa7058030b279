"""Passes over graphs of scripts, under PyTorch's paths."""
