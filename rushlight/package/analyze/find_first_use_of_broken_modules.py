"""Where modules that cannot be packaged come from."""

from rushlight.package.package_exporter import PackagingError

__all__ = ["find_first_use_of_broken_modules"]


def find_first_use_of_broken_modules(exc):
    """For each module that an exporter refused the names on a path that leads to it."""
    if not isinstance(exc, PackagingError):
        raise AssertionError("exception must be a PackagingError")
    graph = exc.dependency_graph
    return {name: graph.first_path(name) for name, node in graph.nodes.items() if node.get("error")}
