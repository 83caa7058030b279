"""Makes Rushlight importable for the packages beside it, wherever a process starts."""

import importlib.util
import os
import sys

if importlib.util.find_spec("rushlight") is None:
    sys.path.append(os.path.abspath(os.path.join(__file__, "..", "..", "..", "..")))
