"""What is printed from the built module, one Python module for each kind of text: `stubs` and `cpp` by
`tools/print_operators.py`, pages of the site by `tools/site.py`."""
