"""``torch.FloatTensor`` and its kin: constructors that fix a dtype and answer ``isinstance``."""

import rushlight
from rushlight import _C

__capture__ = "through"  # Note [Capture marks]


class _TensorTypeMeta(type):
    def __new__(mcls, name, bases, names):
        if bases:
            raise TypeError(f"type '{bases[0]._legacy_name}' is not an acceptable base type")
        return super().__new__(mcls, name, bases, names)

    def __instancecheck__(cls, instance):
        return isinstance(instance, rushlight.Tensor) and instance.dtype is cls.dtype and instance.is_cpu

    def __call__(cls, *args, **kwargs):
        return _C._legacy_tensor(cls.dtype, args, kwargs or None)

    def __repr__(cls):
        return f"<class '{cls._legacy_name}'>"


def _make(name, dtype):
    text = str(dtype)
    doc = (
        f"Makes tensors of {text} on the CPU, from sizes or data; `isinstance` asks for these.\n\n"
        f"Example:\n    >>> torch.{name}([1, 0]).dtype\n    {text}"
    )
    names = {
        "dtype": dtype,
        "is_cuda": False,
        "is_xpu": False,
        "_legacy_name": f"torch.{name}",
        "__module__": rushlight.__name__,
        "__doc__": doc,
    }
    return _TensorTypeMeta(name, (), names)


_NAMES = {
    "BFloat16": rushlight.bfloat16,
    "Bool": rushlight.bool,
    "Byte": rushlight.uint8,
    "Char": rushlight.int8,
    "Double": rushlight.float64,
    "Float": rushlight.float32,
    "Half": rushlight.float16,
    "Int": rushlight.int32,
    "Long": rushlight.int64,
    "Short": rushlight.int16,
}
globals().update({f"{name}Tensor": _make(f"{name}Tensor", dtype) for name, dtype in _NAMES.items()})
_tensor_classes = {globals()[f"{name}Tensor"] for name in _NAMES}


def __getattr__(name):
    if name == "_storage_classes":
        from rushlight import storage

        named = {getattr(storage, name) for name in storage._DTYPE_OF_NAME}
        return named | {storage.UntypedStorage, storage.TypedStorage}
    if name.endswith("Storage"):
        import rushlight.storage

        if name == "Storage":  # the one of the default type
            name = rushlight.storage._name_of_dtype()[rushlight.get_default_dtype()]
        found = getattr(rushlight.storage, name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
