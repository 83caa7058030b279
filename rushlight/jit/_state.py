"""Whether `torch.jit` makes anything of what it is given: not with PYTORCH_JIT=0 in the environment."""

import os

__all__ = ["EnabledProxy", "disable", "enable"]


class EnabledProxy:
    """A switch that is true or false."""

    def __init__(self):
        self.enabled = self.parse_env("PYTORCH_JIT", True, "> Using PyTorch JIT", "> PyTorch JIT DISABLED")

    def parse_env(self, name, default, true_message, false_message):
        """What the variable says: 0, 1, true, false, yes, no, or 0v and 1v, which say it aloud."""
        value = os.environ.get(name)
        if value is None:
            return default
        if value in ("0v", "1v"):
            print(true_message if value == "1v" else false_message)
        elif value.lower() not in ("0", "1", "true", "false", "yes", "no"):
            raise ValueError(f"Unknown setting of {name}. Try using 0 or 1.")
        return value.lower() in ("1", "1v", "true", "yes")

    def __bool__(self):
        return self.enabled


_enabled = EnabledProxy()


def enable():
    _enabled.enabled = True


def disable():
    """From now on `script`, `trace` and their like give back what they are given."""
    _enabled.enabled = False
