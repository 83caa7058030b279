"""PyTorch's dispatch keys, as names. Here interceptors look at bits (src/dispatch/call.cpp); the keys that
programs meet are those of devices, autograd and autocast, and leaving them out means what it says."""

import enum
import threading
from contextlib import ExitStack

import rushlight as torch
from rushlight._command.names import show_from

_DEVICES = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
)
_AUTOCAST_DEVICES = "CPU MPS CUDA XPU IPU HPU PrivateUse1".split()
_NAMES = [
    "Undefined",
    *_DEVICES,
    *(kind + device for kind in ("Quantized", "Sparse", "SparseCsr", "NestedTensor") for device in _DEVICES),
    *("Dense Quantized Sparse SparseCsr NestedTensor BackendSelect Python Functionalize".split()),
    *("Conjugate Negative ZeroTensor ADInplaceOrView PythonDispatcher PreDispatch".split()),
    *("Autograd AutogradOther AutogradFunctionality AutogradNestedTensor".split()),
    *("Autograd" + device for device in _DEVICES),
    *("Autocast" + device for device in _AUTOCAST_DEVICES),
    *("FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper FuncTorchDynamicLayerBackMode".split()),
    *("FuncTorchDynamicLayerFrontMode FuncTorchBatchedDecomposition PythonTLSSnapshot".split()),
    *("CompositeImplicitAutograd CompositeExplicitAutograd CompositeImplicitAutogradNestedTensor".split()),
    "CompositeExplicitAutogradNonFunctional",
]


class _Key(enum.IntEnum):
    def __str__(self):
        return f"DispatchKey.{self.name}"


_members = {name: number for number, name in enumerate(_NAMES)}
DispatchKey = _Key("DispatchKey", _members, module=__name__)  # type: ignore[call-arg, arg-type]
PRE_DISPATCH = DispatchKey.__members__["PreDispatch"]  # type: ignore[attr-defined]


class DispatchKeySet:
    """A set of dispatch keys: `|`, `&`, `-`, `add`, `remove`, `has`."""

    def __init__(self, *keys):
        self._keys = frozenset(DispatchKey(key) for key in keys) - {DispatchKey.Undefined}

    def __or__(self, other):
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other):
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other):
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self):
        return hash(self._keys)

    def __iter__(self):
        return iter(sorted(self._keys))

    def __repr__(self):
        return f"DispatchKeySet({', '.join(key.name for key in self)})"

    def has(self, key):
        return key in self._keys

    def add(self, key):
        return self | DispatchKeySet(key)

    def remove(self, key):
        return self - DispatchKeySet(key)

    def highestPriorityTypeId(self):
        return max(self._keys, default=DispatchKey.Undefined)

    def raw_repr(self):
        return sum(1 << key for key in self._keys)

    @staticmethod
    def from_raw_repr(bits):
        return DispatchKeySet(*(key for key in DispatchKey if bits >> key & 1))


_excluded = threading.local()  # `sets`: those of the guards that this thread is in


class _ExcludeDispatchKeyGuard:
    """A context in which operators skip the keys of a set: autocast of the devices named, and autograd."""

    def __init__(self, keys):
        self._keys = keys
        self._names = [key.name for key in keys]

    def __enter__(self):
        self._stack = ExitStack()
        sets = _excluded.__dict__.setdefault("sets", [])
        sets.append(self._keys)
        self._stack.callback(sets.remove, self._keys)
        for name in self._names:
            device = name.removeprefix("Autocast").lower()
            if name.startswith("Autocast") and torch.amp.is_autocast_available(device):
                self._stack.enter_context(torch.autocast(device, enabled=False))
            elif name.startswith(("Autograd", "ADInplaceOrView")):
                self._stack.enter_context(torch.no_grad())
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)


class ExcludeDispatchKeyGuard(_ExcludeDispatchKeyGuard):
    """The same from the moment it is made for as long as it lives."""

    def __init__(self, keys):
        super().__init__(keys)
        self.__enter__()

    def __del__(self):
        self._stack.close()


def _dispatch_tls_local_exclude_set():
    """The keys that operators of this thread skip, as guards ask."""
    excluded = DispatchKeySet()
    for keys in getattr(_excluded, "sets", ()):
        excluded = excluded | keys
    return excluded


def _dispatch_key_name(key):
    return DispatchKey(key).name


def _dispatch_key_parse(name):
    try:
        return DispatchKey[name]
    except KeyError:
        raise RuntimeError(f"could not parse dispatch key: {name}") from None


def _dispatch_keys(tensor):
    """The keys that a call with this tensor meets: of its device and layout, autograd and autocast."""
    device = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(tensor.device.type, "PrivateUse1")
    kind = (
        "Sparse"
        if tensor.layout is torch.sparse_coo
        else "SparseCsr"
        if tensor.layout is not torch.strided
        else ""
    )
    names = [("Quantized" if tensor.is_quantized else kind) + device]
    if device in _AUTOCAST_DEVICES:
        names.append("Autocast" + device)
    if not tensor.is_inference():
        names += ["ADInplaceOrView", "Autograd" + device]
    if type(tensor).__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        names += ["Python", "PythonTLSSnapshot"]
    names += ["Conjugate"] * tensor.is_conj() + ["Negative"] * tensor.is_neg()
    return DispatchKeySet(*(DispatchKey[name] for name in names))


def _dispatch_key_set(tensor):
    return repr(_dispatch_keys(tensor))


show_from("", DispatchKey, DispatchKeySet)
