"""What comparisons of this library's values with PyTorch's, and of files, have in common."""

import io


def plain(value):
    """Tensors as lists, in whatever holds them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def saved(lib, obj, **kwargs):
    """A file in memory that `lib.save` wrote."""
    buffer = io.BytesIO()
    lib.save(obj, buffer, **kwargs)
    buffer.seek(0)
    return buffer
