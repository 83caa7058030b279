"""Rows of the suite `kernels`, by family: one operation on much data each."""
