"""Parameters computed from other tensors by modules."""

import copy
from collections.abc import Sequence
from contextlib import contextmanager

import rushlight as torch
from rushlight._errors.advice import advised
from rushlight.nn import ModuleDict, ModuleList, Parameter

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip

__capture__ = "through"  # Note [Capture marks]
__capture_state__ = frozenset(["_cache_enabled"])

_cache_enabled = 0
_cache: dict = {}


@contextmanager
def cached():
    """Within the context each parametrized tensor is computed once."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _right_inverse(module, value):
    """value through right_inverse, if the module implements it."""
    if hasattr(module, "right_inverse"):
        try:
            return module.right_inverse(value)
        except NotImplementedError:
            pass
    return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors that it is computed from."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with torch.no_grad():
            new = original
            for module in reversed(list(self)):
                new = _right_inverse(module, new)
        if not isinstance(new, torch.Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check_result(shape, dtype)

    def _keep_one(self, original, new):
        if original.dtype != new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
            )
        # The same object stays the parameter, so that an optimizer goes on with it.
        with torch.no_grad():
            if new is not original:
                original.data = new
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original, new):
        for i, tensor in enumerate(new):
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", tensor)

    def _check_result(self, shape, dtype):
        result = self()
        if not isinstance(result, torch.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` "
                    "flag "
                    f"is enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def _originals(self):
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Set the original tensors so that the parametrized one has this value."""
        with torch.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if not isinstance(values, Sequence) or not all(isinstance(v, torch.Tensor) for v in values):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got {type(value).__name__}"
                )
            if len(values) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(values)}."
                )
            for original, new in zip(self._originals(), values):
                if original.dtype != new.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` has "
                        f"dtype {original.dtype}"
                    )
                original.data = new

    def forward(self):
        first, *rest = self
        value = first(*self._originals())
        for module in rest:
            value = module(value)
        return value


def _inject_new_class(module):
    """Make the module the only instance of a class of its own, which can carry properties."""
    cls = module.__class__

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            replica = self.__new__(self.__class__)
            memo[id(self)] = replica
            replica.__dict__ = copy.deepcopy(self.__dict__, memo)
            # The properties are the copy's own as well.
            replica.__class__ = type(
                self.__class__.__name__, self.__class__.__bases__, dict(vars(self.__class__))
            )
        return memo[id(self)]

    def __getstate__(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    body = {"__getstate__": __getstate__, "__module__": __name__}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = __deepcopy__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _inject_property(module, tensor_name):
    """Reading tensor_name computes it; assigning goes through right_inverse."""

    def get(self):
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        if torch.compiler.is_dynamo_compiling():
            torch._dynamo.graph_break("what `cached` computes once is kept outside of any graph")
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def set(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(module.__class__, tensor_name, property(get, set))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Computes a parameter or buffer of a module by a parametrization from now on.

    Args:
        module (Module): whose tensor it is.
        tensor_name (str): its name.
        parametrization (Module): computes it from another; with `right_inverse` the value stays as it is.
        unsafe (bool): whether dtype, shape and class are not checked.

    Returns: the module, whose class has changed.

    Raises: ValueError where there is no such tensor, or shape or dtype changes.

    Example:
        >>> class Positive(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.abs()
        >>> layer = torch.nn.Linear(2, 1)
        >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
        >>> bool((layer.weight >= 0).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations = module.parametrizations[tensor_name]
        if not unsafe:
            _check_added(tensor_name, getattr(module, tensor_name), parametrization)
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise advised(
            ValueError(
                f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                f"'{tensor_name}'"
            )
        )
    return module


def _check_added(tensor_name, current, parametrization):
    """A parametrization on top of others has to keep shape and dtype both ways."""
    result = parametrization(current)
    if not isinstance(result, torch.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(current, what), getattr(result, what)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` "
                "flag "
                f"is enabled.\nmodule.{tensor_name}.{what}: {before}\n"
                f"parametrization(module.{tensor_name}).{what}: {after}"
            )
    if hasattr(parametrization, "right_inverse"):
        with torch.no_grad():
            inverse = _right_inverse(parametrization, result)
        if not isinstance(inverse, torch.Tensor):
            raise ValueError(
                f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
            )
        for what in ("dtype", "shape"):
            received, expected = getattr(inverse, what), getattr(current, what)
            if received != expected:
                raise ValueError(
                    f"The tensor returned by parametrization.right_inverse must have the same {what} as "
                    f"module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
                    f"module.{tensor_name}.{what}: {expected}\nreturned {what}: {received}"
                )


def is_parametrized(module, tensor_name=None):
    """Whether a module, or one tensor of it, has parametrizations.

    Args:
        module (Module): the module.
        tensor_name (str, optional): the tensor's name; None: any.

    Example:
        >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.Linear(2, 1))
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes a tensor an ordinary one again, with its computed value or with the original's.

    Args:
        module (Module): whose tensor it is.
        tensor_name (str): its name.
        leave_parametrized (bool): whether it keeps the computed value.

    Returns: the module.

    Raises: ValueError where it has no parametrization, or the original cannot be left.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
        >>> torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=1, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms "
            "of a "
            "sequence of tensors."
        )
    if leave_parametrized:
        with torch.no_grad():
            value = getattr(module, tensor_name)
    if parametrizations.is_tensor:
        tensor = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                tensor.data = value
    else:
        needs_grad = any(t.requires_grad for t in parametrizations._originals())
        is_parameter = isinstance(parametrizations.original0, Parameter)
        tensor = Parameter(value, requires_grad=needs_grad) if is_parameter else value
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, tensor)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module):
    """The module's class without the one that parametrizations put in between."""
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give to_module the parametrizations of from_module and the tensors under them."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module
