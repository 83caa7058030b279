"""Operators as Python sees them: schemas, signatures, and what may override them."""

__package_capture__ = "through"  # Note [Capture marks]
