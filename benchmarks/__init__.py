"""Benchmarks of Rushlight beside PyTorch: `python -m benchmarks --help`."""
