"""What every optimizer shares: parameter groups, state, hooks, saving and loading, and the frame of a
step."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import wraps
from itertools import chain

import rushlight
from rushlight._errors.advice import advised
from rushlight.optim._shared import (  # noqa: F401
    ParamsT,
    StateDict,
    _capturable_doc,
    _check_capturable,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _view_as_real,
    group_tensors,
)
from rushlight.utils.hooks import RemovableHandle, _HookTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])
else:
    Any = object  # the module typing is slow to load

__all__ = [
    "Optimizer",
    "register_optimizer_step_pre_hook",
    "register_optimizer_step_post_hook",
    "required",
]


class _RequiredParameter:
    """Stands for a hyperparameter without a default: every group has to give it."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()

_global_pre_hooks: OrderedDict = _HookTable()
_global_post_hooks: OrderedDict = _HookTable()


def _add_hook(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return _add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _add_hook(_global_post_hooks, hook)


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _profiled:
    """Name what runs inside in profiles."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.range = rushlight._C._profiler_enter(self.name)

    def __exit__(self, *exc):
        rushlight._C._profiler_exit(self.range)


def _use_grad_for_differentiable(func: _F) -> _F:
    """Run a step with gradients off, unless the optimizer was built with ``differentiable=True``."""

    @wraps(func)
    def run(self, *args, **kwargs):
        before = rushlight.is_grad_enabled()
        rushlight._C._set_grad_enabled(bool(self.defaults.get("differentiable", False)))
        try:
            return func(self, *args, **kwargs)
        finally:
            rushlight._C._set_grad_enabled(before)

    return run  # type: ignore[return-value]


def _zero_in_place(grad):
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: tensors, ``(name, tensor)`` pairs, or dicts that each describe a parameter group.
        defaults: the options used for groups that do not give their own.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.data
        tensor([0.9000])
    """

    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, rushlight.Tensor):
            raise advised(
                TypeError(
                    "params argument given to the optimizer should be an iterable of Tensors or "
                    "dicts, but got " + rushlight.typename(params)
                )
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        if not hasattr(params, "__iter__"):  # a model, or its method `parameters`
            text = f"optimizer parameters: '{type(params).__name__}' object is not iterable"
            raise advised(TypeError(text))
        groups: list[Any] = list(params)
        if not groups:
            raise advised(ValueError("optimizer got an empty parameter list"))
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    _group_tensors_by_device_and_dtype = staticmethod(group_tensors)

    def _make_hook_tables(self):
        # Not through __dict__: asking for it would slow down every look-up in the object.
        for table in _HOOK_TABLES:
            if not hasattr(self, table):
                setattr(self, table, _HookTable())
        self._patch_step_function()

    def _patch_step_function(self):
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a step function so that the registered hooks run around it."""

        @wraps(func)
        def step(self, *args, **kwargs):
            if not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_pre_hooks
                or _global_post_hooks
                or rushlight._C._profiler_enabled()
            ):
                return func(self, *args, **kwargs)
            with _profiled(f"Optimizer.step#{type(self).__name__}.step"):
                return stepped(self, args, kwargs)

        def stepped(self, args, kwargs):
            args = (self, *args)
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        return step

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict`` collects its values."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the finished dict; it may return another one."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another dict."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    def state_dict(self) -> StateDict:
        """The optimizer's state and options as plain values, with parameters replaced by their numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index: dict[int, int] = {}

        def pack(group):
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [index.setdefault(i, len(index)) for i in map(id, group["params"])]
            return packed

        groups = [pack(group) for group in self.param_groups]
        state = {index[id(k)] if isinstance(k, rushlight.Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over the state that ``state_dict`` returned; values move to each parameter's dtype and
        device."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        if "param_groups" not in state_dict:
            raise advised(KeyError("param_groups"))
        from copy import deepcopy

        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise advised(ValueError("loaded state dict has a different number of parameter groups"))
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
                "group"
            )

        params: dict[Any, tuple[Any, dict[str, Any]]] = {}
        for group, old in zip(groups, saved):
            params.update(zip(old["params"], ((p, group) for p in group["params"])))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                param, group = params[key]
                state[param] = self._adopt(param, group, value)
            else:
                state[key] = value
        for group, old in zip(groups, saved):
            old["params"] = group["params"]
            if "param_names" in group and "param_names" not in old:
                old["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _adopt(self, param, group, value, key=None):
        """Move loaded state to the dtype and device of the parameter it belongs to; containers are copied."""
        if isinstance(value, rushlight.Tensor):
            if key == "step":
                on_device = group.get("capturable") or group.get("fused")
                return value.to(dtype=rushlight.float32, device=param.device) if on_device else value
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        if isinstance(value, dict):
            return {k: self._adopt(param, group, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self._adopt(param, group, v) for v in value)
        return value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros when ``set_to_none`` is false."""
        if rushlight._C._profiler_enabled():
            with _profiled(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                self._clear_gradients(set_to_none)
        else:
            self._clear_gradients(set_to_none)

    def _clear_gradients(self, set_to_none):
        for group in self.param_groups:
            if set_to_none:
                rushlight._C._drop_gradients(group["params"])
                continue
            for grad in rushlight._C._zero_gradients(group["params"]):
                _zero_in_place(grad)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; ``closure`` evaluates the model again and returns the loss.

        Args:
            closure (callable or None): computes the loss and its gradients again; some optimizers need it.

        Example:
            >>> w = torch.nn.Parameter(torch.ones(1))
            >>> w.grad = torch.ones(1)
            >>> torch.optim.SGD([w], lr=0.5).step()
            >>> w.data
            tensor([0.5000])
        """
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, for instance layers that are unfrozen during training."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._set_params(param_group, param_group["params"])
        self._check_params(param_group["params"])
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)

        params = param_group["params"]
        ids = set(map(id, params))
        if len(params) != len(ids):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will "
                "cause an "
                "error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        if not all(ids.isdisjoint(map(id, group["params"])) for group in self.param_groups):
            raise advised(ValueError("some parameters appear in more than one parameter group"))
        self.param_groups.append(param_group)

    def _set_params(self, group, params):
        """Turn what the user gave under "params" into a list, with "param_names" beside it for named ones."""
        if isinstance(params, rushlight.Tensor):
            group["params"] = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        else:
            group["params"] = list(params)
        pairs = [p for p in group["params"] if isinstance(p, tuple)]
        if pairs and len(pairs) != len(group["params"]):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        if pairs:
            group["params"] = [p for _, p in pairs]
            group["param_names"] = [name for name, _ in pairs]
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            which = "with" if "param_names" in group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {which} names to the optimizer"
            )

    def _check_params(self, params):
        cls, any_tensor = rushlight.Tensor, self.defaults.get("differentiable")
        for p in params:
            if not isinstance(p, cls):
                raise advised(
                    TypeError(
                        "optimizer can only optimize Tensors, but one of the params is "
                        f"{rushlight.typename(p)}"
                    )
                )
            if not (any_tensor or p.is_leaf or p.retains_grad):
                raise advised(ValueError("can't optimize a non-leaf Tensor"))


def _check_range(name, value, valid):
    if not valid:
        raise advised(ValueError(f"Invalid {name}: {value}"))


def _check_betas(betas):
    for i in (0, 1):
        _check_range(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)


def _check_learning_rate(lr):
    if isinstance(lr, rushlight.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    try:
        positive = 0.0 <= lr
    except TypeError as error:  # text of a configuration file, say
        raise advised(error)
    _check_range("learning rate", lr, positive)


def _check_fused(foreach, fused, differentiable):
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _number(value):
    return value.item() if isinstance(value, rushlight.Tensor) else value
