"""What objects and programs say about packages."""

from rushlight.package.analyze.find_first_use_of_broken_modules import find_first_use_of_broken_modules
from rushlight.package.analyze.is_from_package import is_from_package
from rushlight.package.analyze.trace_dependencies import trace_dependencies

__all__ = ["find_first_use_of_broken_modules", "is_from_package", "trace_dependencies"]
