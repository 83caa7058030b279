"""Operators as Python sees them: schemas, signatures, and what may override them."""
