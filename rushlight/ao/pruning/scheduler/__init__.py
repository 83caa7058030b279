"""Schedulers: how much a sparsifier makes zero at each step."""
