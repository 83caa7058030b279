"""Tracing below autograd, simple optimisations, and names of symbolic shapes."""
