"""What `tools/print_operators.py` prints, one module for each kind of page."""
