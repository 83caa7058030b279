"""Test cases for compiled programs: what was captured is forgotten before and after each test."""

import unittest

import rushlight as torch

__all__ = ["TestCase", "run_tests"]


def run_tests(needs=()):
    """Run the tests of the main module; `needs` names modules without which there is nothing to run."""
    from importlib.util import find_spec

    wanted = (needs,) if isinstance(needs, str) else needs
    if all(find_spec(name) is not None for name in wanted):
        unittest.main()


class TestCase(unittest.TestCase):
    """A test case whose `assertEqual` compares tensors, and nested values with tensors, by `assert_close`."""

    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        before = torch.is_grad_enabled()
        self.addCleanup(torch._dynamo.reset)
        self.addCleanup(torch.set_grad_enabled, before)

    def assertEqual(self, first, second, msg=None, *, atol=None, rtol=None, equal_nan=True):
        from rushlight.utils._pytree import tree_leaves

        if any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((first, second))):
            torch.testing.assert_close(first, second, atol=atol, rtol=rtol, equal_nan=equal_nan, msg=msg)
        elif atol is not None:
            torch.testing.assert_close(
                first, second, atol=atol, rtol=rtol or 0.0, equal_nan=equal_nan, msg=msg
            )
        else:
            super().assertEqual(first, second, msg)
