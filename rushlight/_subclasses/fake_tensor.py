"""``FakeTensor``: a tensor with shape, dtype, strides and a device it pretends to be on, and no data.

A fake tensor shares a storage without memory with a meta tensor. Under ``FakeTensorMode`` every operator
runs on these (see "Tensors without data" in the core); results are dressed up again; views stay views.
"""

import contextlib
import functools
import weakref
from dataclasses import dataclass

import rushlight as torch
from rushlight import _C
from rushlight._subclasses._fake_history import with_gradient
from rushlight._subclasses._fake_numbers import FakeNumbers
from rushlight._subclasses._result_cache import (
    RESULTS,
    CacheInfo,
    CacheKeyState,
    TensorMetadata,
    extract_tensor_metadata,
    setting,
)
from rushlight._subclasses.decisions import draft_under_way
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

__all__ = [
    "CacheInfo",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorMode",
    "TensorMetadata",
    "extract_tensor_metadata",
    "unset_fake_temporarily",
]

_CacheKeyState = CacheKeyState  # PyTorch's name

aten = torch.ops.aten  # type: ignore[attr-defined]


@dataclass
class UnsupportedFakeTensorException(RuntimeError):
    reason: str


class MetadataMismatchError(RuntimeError):
    """Two tensors that should look alike differ in shape, dtype, device or strides."""


@dataclass
class DynamicOutputShapeException(RuntimeError):
    """The shape of the result depends on data."""

    func: object


@dataclass
class DataDependentOutputException(RuntimeError):
    """The result is a value, and there are no values."""

    func: object


class UnsupportedOperatorException(NotImplementedError):
    """An operator that the program defined, `func`, has no function for tensors without data."""

    def __init__(self, func, reason=None):
        reason = (reason or "").removeprefix(f"{func._schema.name}: ")
        named = func._schema.name in reason
        super().__init__(reason if named else f"{func}: {reason}" if reason else func)
        self.func = func


class FakeTensor(FakeNumbers, torch.Tensor):
    """Made by ``FakeTensorMode.from_tensor``, or by any operator under the mode."""

    fake_mode: "FakeTensorMode"
    constant = None
    item_memo = None
    count_memo = None  # how many elements are not zero: the version that was counted, the numbers, the name
    real_tensor = None  # where the mode propagates real tensors

    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, fake_mode, elem, device, constant=None, real_tensor=None):
        if not elem.is_meta:
            raise AssertionError("a fake tensor is made from a meta tensor")
        device = torch.device(device)
        if device.type == "meta" and not fake_mode.allow_meta:
            raise AssertionError("device must not be meta when allow_meta is False")
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda:0")
        fake = _C._wrap_meta(cls, elem, device)
        fake.fake_mode, fake.constant, fake.real_tensor = fake_mode, constant, real_tensor
        return fake

    @property
    def fake_device(self):
        return self.device

    @staticmethod
    def from_tensor(t, fake_mode):
        return fake_mode.from_tensor(t)

    def __repr__(self, *, tensor_contents=None):
        dtype = "" if self.dtype == torch.get_default_dtype() else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad and self.is_leaf else ""
        grad = f", grad_fn=<{self.grad_fn.name().split('::')[-1]}>" if self.grad_fn is not None else grad
        device = f"device='{self.device}', " if self.device.type != "cpu" else ""
        return f"FakeTensor(..., {device}size={tuple(self.shape)}{dtype}{grad})"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = self.fake_mode.from_meta(_C._as_meta(self.detach().clone()), self.device)
            copied.size_numbers = self.size_numbers
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if any(not issubclass(t, (FakeTensor, torch.Tensor)) or _foreign(t) for t in types):
            return NotImplemented
        mode = next(t.fake_mode for t in _tensors([args, kwargs or {}]) if isinstance(t, FakeTensor))
        return mode.dispatch(func, types, args, kwargs or {})


def _foreign(cls):
    """Another class that dispatches: it must unwrap itself first."""
    return not issubclass(cls, FakeTensor) and cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _are_fake(value):
    return all(isinstance(t, FakeTensor) for t in _tensors(value))


def _map(function, value):
    """Apply to all tensors within lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        items = [_map(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return {k: _map(function, v) for k, v in value.items()} if isinstance(value, dict) else value


class FakeTensorConverter:
    """Remembers which fake tensor stands for which real one, and which storage for which memory."""

    def __init__(self):
        self.tensor_memo: dict = {}
        self.storage_memo: dict = {}
        self._constants: dict = {}  # storage of known values -> the fake tensors that know them

    def keep_constant(self, fake, real):
        """The fake tensor stands for these numbers until somebody writes to them."""
        fake.constant = real
        key = real.untyped_storage()._cdata
        alive = [ref for ref in self._constants.get(key, ()) if ref() is not None]
        self._constants[key] = [*alive, weakref.ref(fake)]

    def forget_constant(self, fake):
        """What is written now is not known: of all that look there."""
        if fake.constant is None:
            return
        key = fake.constant.untyped_storage()._cdata
        for ref in self._constants.pop(key, ()):
            other = ref()
            if other is not None and other.constant is not None:
                other.constant = None
        fake.constant = None

    def from_real_tensor(self, mode, t, make_constant=False):
        fake = self._known(t)
        if fake is not None:
            return fake
        fake = mode.from_meta(self._meta(t), t.device)
        if t.requires_grad:
            fake = with_gradient(fake, t.is_leaf)
        if mode.propagate_real_tensors and not t.is_meta:
            fake.real_tensor = t.detach().clone()
        if make_constant:
            self.keep_constant(fake, t)
        if isinstance(t, torch.nn.Parameter):
            fake._is_param = True
        if t.is_leaf and t.grad is not None and t.grad.layout is torch.strided:
            fake.grad = self.from_real_tensor(mode, t.grad)
        self._remember(t, fake)
        return fake

    def forget(self):
        """Let go of all tensors that have fakes: weak references keep them from being swapped."""
        self.tensor_memo.clear()
        self.storage_memo.clear()

    def _known(self, t):
        known = self.tensor_memo.get(id(t))
        return None if known is None else known[1]

    def _remember(self, t, fake):
        key, memo = id(t), self.tensor_memo
        memo[key] = weakref.ref(t, lambda _: memo.pop(key, None)), fake

    def _meta(self, t):
        """The meta tensor; tensors that share memory have ones that share a storage."""
        meta = _C._as_meta(t)
        if t.is_meta:
            return meta
        key = t.untyped_storage()._cdata
        # A storage lives while one of its tensors does; later another one may have its address.
        users, first = self.storage_memo.get(key, ((), None))
        users = [ref for ref in users if (user := ref()) is not None and user.untyped_storage()._cdata == key]
        if users:
            _C._share_storage(meta, first)
        self.storage_memo[key] = [*users, weakref.ref(t)], first if users else meta
        return meta

    def from_meta_and_device(self, mode, t, device):
        """What a meta tensor stands for on a device; the same one each time."""
        if not t.is_meta:
            raise AssertionError(f"expected a meta tensor, got one on {t.device}")
        fake = self._known(t)
        if fake is None:
            fake = mode.from_meta(_C._as_meta(t), device)
            self._remember(t, fake)
        return fake


class FakeCopyMode(TorchFunctionMode):
    """Within it, `copy.deepcopy` gives fake copies of real tensors."""

    def __init__(self, fake_mode):
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0], static_shapes=True), **kwargs)
        if func is torch.Tensor.__deepcopy__:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor, static_shapes=True)
            return memo[id(tensor)]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


class FakeTensorMode(TorchDispatchMode):
    """Within it, operators give fake tensors; outside, fake tensors bring it along."""

    def __init__(
        self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None,
        export=False,
    ):  # fmt: skip
        from rushlight._functorch import config

        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env, self.static_shapes = (
            shape_env,
            shape_env is None if static_shapes is None else static_shapes,
        )
        self.allow_meta = config.fake_tensor_allow_meta
        self.propagate_real_tensors = config.fake_tensor_propagate_real_tensors
        self.cache_enabled = setting("fake_tensor_cache_enabled") and not self.propagate_real_tensors
        self.data_numbers = None  # what gives samples of numbers that depend on data
        if shape_env is not None:
            from .data_numbers import DataNumbers

            self.data_numbers = DataNumbers()
        self.fake_tensor_converter = FakeTensorConverter()
        self.enter_stack: list = []

    def __enter__(self):
        stack = _get_current_dispatch_mode_stack()
        entered = not (stack and stack[-1] is self)
        self.enter_stack.append(entered)
        return super().__enter__() if entered else self

    def __exit__(self, kind, error, traceback):
        if self.enter_stack[-1]:  # first of all, and without super(): there may be no memory for either
            TorchDispatchMode.__exit__(self, kind, error, traceback)
        self.enter_stack.pop()

    @classmethod
    def is_infra_mode(cls):
        return True

    @classmethod
    def cache_info(cls):
        """How often results were taken from the cache, were not there, or could not be; how many are kept."""
        return RESULTS.info()

    @classmethod
    def cache_clear(cls):
        RESULTS.clear()

    def _cache_key(self, state, func, args, kwargs):
        return RESULTS.key(self, state, func, args, kwargs)

    # --- making fake tensors ---------------------------------------------------------------------

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The fake tensor that stands for a real one; the same one each time."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return tensor
        if tensor.layout is not torch.strided:
            raise UnsupportedFakeTensorException(f"{tensor.layout} tensors have no fake form")
        with torch.no_grad(), _C._DisableTorchDispatch():
            return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def from_meta(self, meta, device, constant=None):
        return FakeTensor(self, meta, device, constant)

    def _from_real(self, value):
        return _map(self.from_tensor, value)

    # --- running operators -----------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(_foreign(t) for t in types):
            return NotImplemented
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func, types, args, kwargs):
        name = func._opname if func.namespace == "aten" else None
        if name == "lift_fresh" and not isinstance(args[0], FakeTensor):
            return self.fake_tensor_converter.from_real_tensor(self, args[0], make_constant=True)
        if func.traits.reads_values:
            return self._value(func, args, kwargs)
        masked = name == "index" and any(t.dtype in (torch.bool, torch.uint8) for t in _tensors([args[1]]))
        if masked or (func.traits.data_dependent_shape and not _has_output_size(name, kwargs)):
            args, kwargs = self._accept(func, args, kwargs)
            real = self._real_result(func, args, kwargs)
            if real is not None and not self._looking():
                return _map(lambda t: self.fake_tensor_converter.from_real_tensor(self, t), real)
            if self.data_numbers is None:
                raise DynamicOutputShapeException(func)
            from ._data_shapes import result

            return result(self, func, args, kwargs, real)
        if self.cache_enabled and self.data_numbers is None and _are_fake((args, kwargs)):
            args, kwargs = self._accept(func, args, kwargs)
            return RESULTS.call(self, func, args, kwargs)
        args, kwargs = self._accept(func, args, kwargs)
        real = self._real_result(func, args, kwargs)
        if self.data_numbers is not None and not func._record():
            from ._data_shapes import result_of_program

            result = result_of_program(self, func, args, kwargs, real)
        else:
            result = self._run(func, args, kwargs)
        if real is not None:
            for fake, known in zip(_tensors([result]), _tensors([real]), strict=True):
                fake.real_tensor = known
        return result

    def _real_result(self, func, args, kwargs):
        """What the operator gives of the real tensors beside the fake ones; None where one is not known."""
        fakes = _tensors([args, kwargs])
        shapes_unknown = func.traits.data_dependent_shape and not self.allow_fallback_kernels
        if not self._propagates() or shapes_unknown or any(t.real_tensor is None for t in fakes):
            return None
        if any(isinstance(a, torch.device) and a.type == "meta" for a in (*args, *kwargs.values())):
            return None
        real_args, real_kwargs = (_map(lambda t: t.real_tensor, value) for value in (args, kwargs))
        reals = [t for t in _tensors([real_args, real_kwargs]) if not t.is_inference()]
        versions = {id(t): t._version for t in reals}
        with torch.no_grad(), _C._DisableTorchDispatch():
            result = func(*real_args, **real_kwargs)
        if not func._record():
            _check_writes(func, (*real_args, *real_kwargs.values()), versions)
        return result

    def _propagates(self):
        """Whether operators run on real tensors, too: not where a graph is made that has symbols for numbers
        of the data, whose samples operators get, except to look at the example's."""
        recorded = self.data_numbers is not None and self.data_numbers.tracer is not None
        return self.propagate_real_tensors and (not recorded or self._looking())

    def _looking(self):
        return self.data_numbers is not None and self.data_numbers.asked.looking

    def _value(self, func, args, kwargs):
        """Constants are known; all others are not."""
        if all(t.constant is not None for t in _tensors([args]) if isinstance(t, FakeTensor)):
            real = _map(lambda t: t.constant if isinstance(t, FakeTensor) else t, args)
            with _C._DisableTorchDispatch():
                return func(*real, **kwargs)
        if self._propagates() and all(t.real_tensor is not None for t in _tensors([args])):
            real = _map(lambda t: t.real_tensor, args)
            with _C._DisableTorchDispatch():
                known = func(*real, **kwargs)
            if self.data_numbers is None or not self._looking() or func._opname != "_local_scalar_dense":
                return known
            return self.data_numbers.read(args[0], known)
        if self.data_numbers is not None and func._opname == "_local_scalar_dense":
            return self.data_numbers.read(args[0])
        raise DataDependentOutputException(func)

    def _accept(self, func, args, kwargs):
        """All tensors as fake ones of this mode, or an error that says which is not."""

        def accept(t):
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI (in {func})")
                return t
            if not (self.allow_non_fake_inputs or _C._is_temporary(t)):
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                    f"'allow_non_fake_inputs'. Found in {func}({_shown(args)})"
                )
            return self.fake_tensor_converter.from_real_tensor(self, t)

        return _map(accept, args), _map(accept, kwargs)

    def _known_result(self, func, args, kwargs, fakes):
        """The result on known single numbers, which stays known; None where it does not."""
        if not fakes or any(t.constant is None or t.device.type != "cpu" for t in fakes):
            return None
        if func.traits.random or (func._schema.is_mutable and func.traits.family != "pointwise"):
            return None
        if any(isinstance(a, torch.device) for a in (*args, *kwargs.values())):
            return None
        args, kwargs = (_map(lambda t: t.constant, value) for value in (args, kwargs))
        with _C._DisableTorchDispatch():
            real = func(*args, **kwargs)
        if all(t.numel() <= 1 for t in _tensors([real])):
            return real
        if func.is_view:  # what is written through it reaches numbers that would seem known
            for t in fakes:
                self.fake_tensor_converter.forget_constant(t)
        return None

    def _run(self, func, args, kwargs):
        fakes = _tensors([args, kwargs])
        known_result = self._known_result(func, args, kwargs, fakes)
        device = _common_device(func, _tensors([_on_one_device(func, args), kwargs]) or fakes[:1])
        metas = {id(t): _C._as_meta(t) for t in fakes}
        originals = {id(meta): t for t, meta in zip(fakes, (metas[id(t)] for t in fakes))}
        asked = []

        def to_meta(value):
            if isinstance(value, torch.device):
                asked.append(value)
                return torch.device("meta")
            return metas[id(value)] if isinstance(value, torch.Tensor) else value

        meta_args = _map_all(to_meta, args)
        meta_kwargs = _map_all(to_meta, kwargs)
        if not fakes and "device" not in kwargs and not asked and _takes_device(func):
            meta_kwargs["device"] = torch.device("meta")
        with _C._DisableTorchDispatch():
            try:
                result = func(*meta_args, **meta_kwargs)
            except NotImplementedError as error:
                if func.namespace == "aten":
                    raise
                draft = draft_under_way()
                result = None if draft is None else draft.result(func)
                if result is None:
                    raise UnsupportedOperatorException(func, str(error)) from error
        device = asked[0] if asked else device
        written = func._schema.is_mutable
        if written:
            for t in fakes:
                if known_result is None:
                    self.fake_tensor_converter.forget_constant(t)
                _C._take_layout(t, metas[id(t)])

        numbers = dict(
            zip(map(id, _tensors([result])), _tensors([known_result]) if known_result is not None else ())
        )

        def dress(t):
            known = originals.get(id(t))
            if known is not None:
                return known
            if not t.is_meta:  # computed of numbers alone
                return self.fake_tensor_converter.from_real_tensor(self, t, make_constant=t.numel() <= 1)
            fake = self.from_meta(t, device)
            if id(t) in numbers:
                self.fake_tensor_converter.keep_constant(fake, numbers[id(t)])
            return fake

        return _map(dress, result)


def _check_writes(func, values, versions):
    """Raise where an operator of a program wrote to what its schema does not let it write to."""
    for argument, value in zip(func._schema.arguments, values):
        written = any(t._version != versions[id(t)] for t in _tensors([value]) if id(t) in versions)
        if written and (argument.alias_info is None or not argument.alias_info.is_write):
            raise RuntimeError(
                f"{func}: the operator wrote to its input, which its schema does not say, for argument "
                f"'{argument.name}': name it in mutates_args, or write to a copy"
            )


def _map_all(function, value):
    """Like _map, over every leaf."""
    if isinstance(value, (list, tuple)):
        return type(value)(_map_all(function, item) for item in value)
    if isinstance(value, dict):
        return {k: _map_all(function, v) for k, v in value.items()}
    return function(value)


def _shown(args):
    return ", ".join(type(a).__name__ if isinstance(a, torch.Tensor) else repr(a) for a in args)


def _has_output_size(name, kwargs):
    return name == "repeat_interleave" and kwargs.get("output_size") is not None


@functools.cache
def _takes_device(func):
    return any(a.name == "device" for a in func._schema.arguments)


def _on_one_device(func, args):
    """Those arguments that may not lie on another device than the others."""
    anywhere = func.traits.any_device
    return [a for i, a in enumerate(args) if not anywhere >> i & 1]


def _common_device(func, fakes):
    """Numbers on the CPU go along with anything, integers there with tensors without data (the rows of an
    embedding); all others must agree."""
    common, is_number = None, False
    for t in fakes:
        number = t.dim() == 0 and t.device.type == "cpu"
        if common is None or (is_number and not number):
            common, is_number = t.device, number
        elif not number and t.device != common:
            if func.namespace != "aten" or _are_rows(func, t, common):
                continue
            raise RuntimeError(
                f"Unhandled FakeTensor Device Propagation for {func}, found two different devices "
                f"{common}, {t.device}"
            )
    return common if common is not None else torch.device("cpu")


def _are_rows(func, t, common):
    integers = not (t.dtype.is_floating_point or t.dtype.is_complex)
    return integers and t.device.type == "cpu" and common.type == "meta" and not func.traits.elementwise


def unset_fake_temporarily():
    """A context in which operators are real."""
    return _C._DisableTorchDispatch()


def _is_tensor_constructor(func):
    """Whether an operator makes one tensor of none."""
    from rushlight._library.utils import has_tensor_arg

    schema = func._schema
    return not has_tensor_arg(schema) and [str(r.type) for r in schema.returns] == ["Tensor"]


def is_fake(x):
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t):
    return t.fake_mode if isinstance(t, FakeTensor) else None


def get_plain_tensors(subclass, *, out):
    out.append(subclass)
    return out


@contextlib.contextmanager
def in_kernel_invocation_manager(fake_mode):
    with _C._DisableTorchDispatch():
        yield
