"""``torch.sparse.FloatTensor`` and its kin: constructors of COO tensors that fix a dtype and answer
``isinstance``."""

import rushlight
from rushlight._functions.legacy_types import _NAMES
from rushlight.sparse._factories import sparse_coo_tensor


def _is_number(x):
    return isinstance(x, int) and not isinstance(x, bool)


class _SparseTypeMeta(type):
    layout = rushlight.sparse_coo

    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, rushlight.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
        )

    def __call__(cls, *args):
        """``()``, ``(*sizes)``, ``(size)``, ``(tensor)`` or ``(indices, values[, size])``."""
        if all(map(_is_number, args)):
            return sparse_coo_tensor(args or (0,), dtype=cls.dtype)
        first, *rest = args
        if not rest and isinstance(first, rushlight.Size):
            return sparse_coo_tensor(first, dtype=cls.dtype)
        if not rest and isinstance(first, rushlight.Tensor):
            return (
                first.to(cls.dtype).to_sparse() if first.layout is rushlight.strided else first.to(cls.dtype)
            )
        if len(rest) in (1, 2) and isinstance(first, rushlight.Tensor):
            return sparse_coo_tensor(first, rest[0], *rest[1:], dtype=cls.dtype)
        raise TypeError(
            f"{cls._legacy_name}(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
            "construct a strided tensor and convert it to sparse via to_sparse."
        )

    def __repr__(cls):
        return f"<class '{cls._legacy_name}'>"


globals().update(
    {
        f"{name}Tensor": _SparseTypeMeta(
            f"{name}Tensor",
            (),
            {
                "dtype": dtype,
                "_legacy_name": f"torch.sparse.{name}Tensor",
                "__module__": __name__.rpartition(".")[0],
            },
        )
        for name, dtype in _NAMES.items()
        if name != "Bool"
    }
)
