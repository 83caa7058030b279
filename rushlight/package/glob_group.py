"""Sets of dotted names, by patterns: ``*`` stands for part of one name, ``**`` for any number of names."""

import re

__all__ = ["GlobGroup"]


class GlobGroup:
    """What one of the patterns `include` matches and none of `exclude`.

    Args:
        include, exclude (str or list): ``torch.*`` matches ``torch.nn``, ``torch.**`` also ``torch`` and
            ``torch.nn.functional``.
        separator (str): what stands between names.

    Example:
        >>> torch.package.GlobGroup("torch.**", exclude="torch.nn").matches("torch.nn.functional")
        True
    """

    def __init__(self, include, *, exclude=(), separator="."):
        self.separator = separator
        self._dbg = f"GlobGroup(include={include}, exclude={exclude})"
        self.include, self.exclude = (_compiled(patterns, separator) for patterns in (include, exclude))

    def __str__(self):
        return self._dbg

    __repr__ = __str__

    def matches(self, candidate):
        """Whether a name belongs to the set."""
        candidate = self.separator + candidate
        return any(p.fullmatch(candidate) for p in self.include) and not any(
            p.fullmatch(candidate) for p in self.exclude
        )


def _compiled(patterns, separator):
    return [_pattern(p, separator) for p in ([patterns] if isinstance(patterns, str) else patterns)]


def _pattern(text, separator):
    # Each name stands behind a separator, so "**" may stand for none.
    name = "[^" + re.escape(separator) + "]"
    made = ""
    for part in text.split(separator):
        if part == "**":
            made += f"({re.escape(separator)}{name}+)*"
        elif "**" in part:
            raise ValueError("** can only appear as an entire path segment")
        else:
            made += re.escape(separator) + f"{name}*".join(map(re.escape, part.split("*")))
    return re.compile(made)
