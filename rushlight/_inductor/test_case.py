"""Test cases for compiled programs, under the name of the back end."""

from rushlight._dynamo.test_case import TestCase, run_tests

__all__ = ["TestCase", "run_tests"]
