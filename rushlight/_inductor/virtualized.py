"""Operations of the loops that PyTorch's compiler writes: there are no such loops here, and each says so."""

__all__ = ["ops"]


class _Ops:
    """Every operation by its name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        from .ir import Pointwise

        return lambda *args, **kwargs: Pointwise.create(*args, **kwargs)


ops = _Ops()
