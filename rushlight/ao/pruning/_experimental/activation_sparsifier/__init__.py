"""Masks on what enters a layer."""
