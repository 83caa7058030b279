"""Where files of the package lie, under the name that copies of PyTorch's modules ask for."""

import os

__all__ = ["get_file_path", "get_file_path_2", "resolve_library_path"]


def get_file_path(*path_components):
    """The path of a file of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *path_components)


def get_file_path_2(*path_components):
    """A path of its parts."""
    return os.path.join(*path_components)


def resolve_library_path(path):
    """A library's own path, behind links."""
    return os.path.realpath(path)
