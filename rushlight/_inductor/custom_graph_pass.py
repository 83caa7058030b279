"""Passes of programs over graphs, which say by ``uuid`` when compiled code can be kept."""

import hashlib
from abc import ABC, abstractmethod

__all__ = ["CustomGraphPass", "get_hash_for_files"]


class CustomGraphPass(ABC):
    """A pass over a graph."""

    @abstractmethod
    def __call__(self, graph):
        """Change the graph."""

    @abstractmethod
    def uuid(self):
        """What stands for this pass's code; None keeps nothing."""


def get_hash_for_files(paths, extra=""):
    """A hash of files' bytes."""
    found = hashlib.sha256(extra.encode())
    for path in paths:
        with open(path, "rb") as file:
            found.update(file.read())
    return found.digest()
