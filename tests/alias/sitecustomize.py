"""On the path of a test run under the alias: `import torch` is Rushlight in each of its processes."""

from rushlight._command import alias

alias.install_for_children()
