"""Settings of PyTorch's fusers. Scripts run on the library's kernels, which fuse where that is faster, so
they change nothing that is computed."""

import contextlib

__all__ = ["fuser", "set_fusion_strategy"]

_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Say how often shapes may be specialised, as pairs of ``"STATIC"`` or ``"DYNAMIC"`` and a number;
    returns what was said before.

    Example:
        >>> before = torch.jit.set_fusion_strategy([("DYNAMIC", 3)])
        >>> torch.jit.set_fusion_strategy(before)
        [('DYNAMIC', 3)]
    """
    global _strategy
    said = [(kind, int(depth)) for kind, depth in strategy]
    for kind, _ in said:
        if kind not in ("STATIC", "DYNAMIC"):
            raise RuntimeError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
    before, _strategy = _strategy, said
    return before


@contextlib.contextmanager
def fuser(name: str):
    """A block that names one of PyTorch's fusers, ``"fuser0"`` to ``"fuser3"``, or none."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield
