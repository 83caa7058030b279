"""The programs that leaks.py repeats: `PROGRAMS` maps a name to what makes one, given the library.

Each makes what it needs anew and lets it go; what it opens it closes. Those that end in an error take it, as
a program would that goes on.
"""

import leak_graphs  # noqa: F401 - fills the table
import leak_modules  # noqa: F401
from leak_base import PROGRAMS  # noqa: F401
