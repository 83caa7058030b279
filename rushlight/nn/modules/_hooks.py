"""Hooks of modules: the tables for all modules, registration, and the full form of a call with hooks."""

import types
import warnings
from collections import OrderedDict

import rushlight as torch
from rushlight._command.names import program_level
from rushlight.utils.hooks import RemovableHandle, _HookTable

_global_parameter_registration_hooks: OrderedDict = _HookTable()
_global_buffer_registration_hooks: OrderedDict = _HookTable()
_global_module_registration_hooks: OrderedDict = _HookTable()
_global_forward_pre_hooks: OrderedDict = _HookTable()
_global_forward_hooks: OrderedDict = _HookTable()
_global_forward_hooks_with_kwargs: OrderedDict = _HookTable()
_global_forward_hooks_always_called: OrderedDict = _HookTable()
_global_backward_pre_hooks: OrderedDict = _HookTable()
_global_backward_hooks: OrderedDict = _HookTable()
_global_is_full_backward_hook = None


class TableSharing(types.ModuleType):
    """The type of a module that shows the tables as its own: what they are set to replaces their contents,
    for programs that put `nn.modules.module._global_forward_hooks = OrderedDict()`."""

    def __getattribute__(self, name):
        if name == "_global_is_full_backward_hook":
            return _global_is_full_backward_hook
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        global _global_is_full_backward_hook
        if name == "_global_is_full_backward_hook":
            _global_is_full_backward_hook = value
        elif name.startswith("_global_") and isinstance(value, dict):
            table = globals()[name]
            contents = list(value.items())
            table.clear()
            table.update(contents)
        else:
            super().__setattr__(name, value)


def add_hook(table, hook, prepend=False, marks=()):
    """Put hook into table and True into each table of marks under its id."""
    handle = RemovableHandle(table, extra_dict=list(marks))
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    for mark in marks:
        mark[handle.id] = True
        if prepend:
            mark.move_to_end(handle.id, last=False)
    return handle


def registered(table, module, name, value):
    """Show value to the registration hooks of table; each may put another in its place."""
    for hook in table.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` whenever a module gets a buffer."""
    return add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` whenever a module gets a submodule."""
    return add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, param)`` whenever a module gets a parameter."""
    return add_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, input)`` before the forward of every module."""
    return add_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, input, output)`` after the forward of every module."""
    marks = [_global_forward_hooks_with_kwargs] if with_kwargs else []
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return add_hook(_global_forward_hooks, hook, marks=marks)


def _choose_global_backward_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """The old form, fired by the node of the output; prefer `register_module_full_backward_hook`."""
    _choose_global_backward_kind(False)
    return add_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    return add_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` when a module's input gradients are known."""
    _choose_global_backward_kind(True)
    return add_hook(_global_backward_hooks, hook)


class _WrappedHook:
    """A hook together with the module that it is to receive first (weakly held)."""

    def __init__(self, hook, module=None):
        import functools
        import weakref

        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        module = state["module"] if state["with_module"] else None
        if state["with_module"] and module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], module)


class HookMixin:
    """Registration of a module's own hooks, and calls that have to run any."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before forward; what it returns takes the place of the arguments."""
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add_hook(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output."""
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return add_hook(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` before the module's gradients are computed."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known."""
        self._choose_backward_kind(True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """The old form, fired by the node of the output; prefer `register_full_backward_hook`."""
        self._choose_backward_kind(False)
        return add_hook(self._backward_hooks, hook)

    def _choose_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` at the end of `state_dict`."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        # The older form: the hook may return another dictionary.
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects anything."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return add_hook(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, ...)`` before the module loads its own entries."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit the keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _get_backward_hooks(self):
        """The backward hooks in force, as (full, old form)."""
        hooks = {True: [], False: []}
        if _global_is_full_backward_hook is not None:
            hooks[_global_is_full_backward_hook] += _global_backward_hooks.values()
        if self._is_full_backward_hook is not None:
            hooks[self._is_full_backward_hook] += self._backward_hooks.values()
        return hooks[True], hooks[False]

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _call_impl(self, *args, **kwargs):
        """Forward with every hook around it; the complete form of a call."""
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks_always_called
            or _global_backward_hooks
            or _global_backward_pre_hooks
            or _global_forward_hooks_always_called
        ):
            called = set()
            try:
                return self._call_with_hooks(args, kwargs, called)
            except Exception:
                self._run_always_called_hooks(args, kwargs, called)
                raise
        if self._forward_pre_hooks or _global_forward_pre_hooks:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        result = self.forward(*args, **kwargs)
        for hooks in (_global_forward_hooks, self._forward_hooks):
            if not hooks:
                continue
            for id, hook in tuple(hooks.items()):
                replaced = self._run_forward_hook(id, hook, args, kwargs, result)
                if replaced is not None:
                    result = replaced
        return result

    def _call_with_hooks(self, args, kwargs, called):
        full_hooks, old_hooks = self._get_backward_hooks()
        backward_pre_hooks = self._get_backward_pre_hooks()
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        boundary = None
        if full_hooks or backward_pre_hooks:
            from ._backward_hook import BackwardHook

            boundary = BackwardHook(self, full_hooks, backward_pre_hooks)
            args = boundary.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for id, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            called.add(id)
            replaced = self._run_forward_hook(id, hook, args, kwargs, result)
            if replaced is not None:
                result = replaced
        if boundary is not None:
            if not isinstance(result, (torch.Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                    f"but received {type(result)}",
                    stacklevel=program_level(),
                )
            result = boundary.setup_output_hook(result)
        if old_hooks:
            self._attach_old_backward_hooks(old_hooks, args, result)
        return result

    def _run_forward_pre_hooks(self, args, kwargs):
        for id, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if id not in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
                continue
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                    f"{result}."
                )
            args, kwargs = result
        return args, kwargs

    def _run_forward_hook(self, id, hook, args, kwargs, result):
        if id in self.__dict__["_forward_hooks_with_kwargs"] or id in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _run_always_called_hooks(self, args, kwargs, called):
        # The first error is the one to report, so errors of these hooks become warnings.
        for hooks, always, what in (
            (_global_forward_hooks, _global_forward_hooks_always_called, "global module forward hook"),
            (self._forward_hooks, self._forward_hooks_always_called, "module forward hook"),
        ):
            for id, hook in hooks.items():
                if id not in always or id in called:
                    continue
                try:
                    self._run_forward_hook(id, hook, args, kwargs, None)
                except Exception as error:
                    warnings.warn(
                        f"{what} with ``always_call=True`` raised an exception that was silenced as another "
                        "error "
                        f"was raised in forward: {error}",
                        stacklevel=program_level(),
                    )

    def _attach_old_backward_hooks(self, hooks, args, result):
        first = result
        while not isinstance(first, torch.Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, torch.Tensor))
            else:
                first = first[0]
        if first.grad_fn is not None:
            for hook in hooks:
                first.grad_fn.register_hook(_WrappedHook(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, first.grad_fn)

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
        """Tell when an old-style hook can not see all of the module's gradients."""
        problem = _old_hook_problem(inputs, result, grad_fn)
        if problem is not None:
            about, missing = problem
            warnings.warn(
                f"Using {about} is deprecated and will be removed in future versions. "
                f"This hook will be missing {missing}. "
                "Please use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=program_level(),
            )


def _old_hook_problem(inputs, result, grad_fn):
    """What keeps a hook on the node grad_fn from being the module's, and which gradients it misses."""
    values = {"return": result, "take as input": inputs}
    for (role, value), missing in zip(values.items(), ("grad_output", "grad_input")):
        values[role] = value = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(v, torch.Tensor) for v in value):
            about = f"does not {role} a single Tensor or a tuple of Tensors"
            return f"non-full backward hooks on a Module that {about}", f"some of the {missing}"
    outputs, inputs = values.values()
    hook = "a non-full backward hook when"
    if len({t.grad_fn for t in outputs if t.grad_fn is not None}) > 1:
        return f"{hook} outputs are generated by different autograd Nodes", "some grad_output"
    if {fn for fn, _ in grad_fn.next_functions} != {t.grad_fn for t in inputs if t.grad_fn is not None}:
        return f"{hook} the forward contains multiple autograd Nodes", "some grad_input"
    return None
