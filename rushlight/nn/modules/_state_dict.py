"""Saving a module's tensors into a flat dictionary, and loading them with an account of every difference."""

import sys
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import rushlight as torch
from rushlight._C import _write_state_dict
from rushlight._errors.advice import advised
from rushlight.nn.parameter import Parameter, is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return "_" + super().__repr__().lstrip("_")

    __str__ = __repr__


def future_switch(switch):
    """A switch of `torch.__future__`, which is off as long as nobody loads that module."""
    module = sys.modules.get("rushlight.__future__")
    return module is not None and getattr(module, switch)()


def _swap_in(tensor, value, given):
    """Let tensor have the content of value, which `module_load` made of what was given."""
    if value is tensor or value is given:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the "
            "inputs in module_load"
        )
    if isinstance(tensor, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(tensor.requires_grad)
        else:
            value = Parameter(value, requires_grad=tensor.requires_grad)
    torch.utils.swap_tensors(tensor, value)


class StateDictMixin:
    """`state_dict`, `load_state_dict`, and the two methods that a module overrides to change its own part."""

    if TYPE_CHECKING:  # what the module has that they are mixed into
        _modules: dict[str, Any]
        _state_dict_hooks: dict[int, Any]
        _state_dict_pre_hooks: dict[int, Any]

    _version = 1

    def get_extra_state(self):
        """State beyond tensors to keep in the state_dict; override together with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an "
            "issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def set_extra_state(self, state):
        """Take back what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an "
            "issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def _overrides(self, method):
        return getattr(type(self), method) is not getattr(StateDictMixin, method)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own parameters, persistent buffers and extra state into destination."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names.

        Args:
            destination (dict or None): where entries are put.
            prefix (str): what names begin with.
            keep_vars (bool): whether entries are the parameters themselves instead of detached tensors.

        Example:
            >>> list(torch.nn.Linear(2, 2).state_dict())
            ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if _write_state_dict(self, destination, prefix, keep_vars):
            return destination
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Take this module's own entries out of state_dict; problems go into the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {k: v for k, v in self._parameters.items() if v is not None}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                own[name] = buffer
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_tensor(name, tensor, key, state_dict[key], assign)
                if problem is not None:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._overrides("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key or key[len(prefix) :] in own:
                    continue
                head, dot, _ = key[len(prefix) :].partition(".")
                if head not in (self._modules if dot else own):
                    unexpected_keys.append(key)

    def _load_tensor(self, name, tensor, key, value, assign):
        """Copy value into tensor, or put it in its place; what went wrong as text, or None."""
        if not (isinstance(value, torch.Tensor) or hasattr(type(value), "__torch_function__")):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(value)}"
            )
        if not is_lazy(tensor):
            if tensor.dim() == 0 and value.dim() == 1:  # files older than 0-dimensional tensors
                value = value[0]
            if value.shape != tensor.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                    f"the shape in current model is {tensor.shape}."
                )
        if tensor.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the "
                "current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state "
                "dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        swap = future_switch("get_swap_module_params_on_conversion")
        try:
            with torch.no_grad():
                if swap:
                    _swap_in(tensor, tensor.module_load(value, assign=assign), value)
                    return None
                if not assign:
                    tensor.copy_(value)
                    return None
                if isinstance(tensor, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(tensor.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=tensor.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            return (
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in '
                "the model are "
                f"{tensor.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}."
            )
        return None

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> "_IncompatibleKeys":
        """Copy (or with assign, put) the entries of state_dict into the module and its descendants.

        Args:
            state_dict (mapping): what `state_dict` returned.
            strict (bool): whether names must be exactly those of the module.
            assign (bool): whether the tensors take the place of the module's, instead of
                being copied into them.

        Raises: RuntimeError where names or shapes do not fit.

        Example:
            >>> a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            >>> b.load_state_dict(a.state_dict())
            <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise advised(TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}."))
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []

        def load(load, module, entries, prefix):  # itself as an argument: a closure would be a cycle
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                entries, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = f"{prefix}{name}."
                    below = {k: v for k, v in entries.items() if k.startswith(child_prefix)}
                    load(load, child, below, child_prefix)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, _IncompatibleKeys(missing_keys, unexpected_keys)) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                        "return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(load, self, state_dict, "")
        if strict:
            for keys, kind in ((unexpected_keys, "Unexpected"), (missing_keys, "Missing")):
                if keys:
                    listed = ", ".join(f'"{k}"' for k in keys)
                    error_msgs.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if error_msgs:
            raise advised(
                RuntimeError(
                    f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(error_msgs)
                )
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
