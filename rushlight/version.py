"""The version, comparable with PyTorch's: programs ask for ``torch.__version__ >= (2, 13)``."""

__all__ = ["TorchVersion", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False
release = "0.1.0"  # Rushlight's own; pyproject.toml has it too
cuda = None
git_version = "unknown"
hip = None
xpu = None


class TorchVersion(str):
    """A version string that compares as a version, with strings and tuples alike."""

    @staticmethod
    def _key(version):
        if isinstance(version, str):
            release = version.strip().lstrip("v").partition("+")[0].split(".")
            numbers = []
            for part in release:  # "0rc1" counts as 0
                digits = part[: len(part) - len(part.lstrip("0123456789"))]
                if not digits:
                    break
                numbers.append(int(digits))
            return tuple(numbers) or None
        try:
            return tuple(int(part) for part in version)
        except (TypeError, ValueError):
            return None

    def _compare(self, other, holds):
        mine, theirs = self._key(self), self._key(other)
        if mine is None or theirs is None:
            return NotImplemented
        width = max(len(mine), len(theirs))
        pad = lambda key: key + (0,) * (width - len(key))
        return holds(pad(mine), pad(theirs))

    def __eq__(self, other):
        return super().__eq__(other) or self._compare(other, lambda a, b: a == b)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+rushlight")
