"""Stands in for PyTorch: importing it turns on the alias and hands over Rushlight's own module."""

import importlib
import os
import sys

try:
    _alias = importlib.import_module("rushlight._alias")
except ModuleNotFoundError as error:
    if error.name != "rushlight":
        raise
    # A child process with another working directory: Rushlight is the package that holds this file.
    sys.path.append(os.path.abspath(os.path.join(__file__, "..", "..", "..", "..")))
    _alias = importlib.import_module("rushlight._alias")

_alias.install()
